"""Hymba: attention heads and state-space heads side by side in each layer, behind learned meta tokens.

X. Dong et al., Hymba: A Hybrid-head Architecture for Small Language Models, arXiv 2411.13676: section 2 (fused heads,
global and local layers, keys and values of the layer before, meta tokens). State space: A. Gu, T. Dao, Mamba, arXiv
2312.00752, algorithm 2. Rotary positions are left out.

Stream: text, n >= 1 tokens a sample. Meta tokens, whose number is the config's, stand before the text in all layers: meta +
n rows.
Sizes: the fields of ``Config``. Both kinds of heads are inner = heads * head_dim wide.

Layer i makes queries, gate and the input of the state space (inner each) by one linear without bias; a layer not in
reuse_layers also makes keys and values (groups * head_dim each) by the same linear, one in reuse_layers takes those of the
last layer that made some (layer 0 makes them). A layer in global_layers is causal over all rows. In the others, a text
token sees all meta tokens and the last min(window, ...) tokens of text with itself; a meta token sees the meta tokens up to
itself. Keys are gathered per query: exactly the useful pairs. The outputs of both kinds are normed and scaled by a learned
vector each; their mean goes to one linear. Meta tokens are dropped before the last norm and the head.

The counter sees linears, scores and mixes, and the causal depthwise convolution over rows (inner channels, one group each,
with bias); not the scan and all else that is elementwise, softmax, norms.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    vocab: int  # entries of the vocabulary
    width: int  # model width
    layers: int
    heads: int  # query heads
    groups: int  # heads of keys and values
    head_dim: int  # width of a head
    hidden: int  # hidden width of the gated feed-forward network
    meta: int  # meta tokens
    window: int  # tokens of text that a local layer sees
    global_layers: list[int]  # indices of layers
    reuse_layers: list[int]  # indices of layers, without 0
    state: int  # states of a channel
    kernel: int  # width of the convolution
    rank: int  # rank of the step size


class StateSpace(nn.Module):
    def __init__(self, c):
        super().__init__()
        inner = c.heads * c.head_dim
        self.rank, self.state, self.kernel = c.rank, c.state, c.kernel
        self.conv = nn.Conv1d(inner, inner, c.kernel, groups=inner)
        self.select, self.step = nn.Linear(inner, c.rank + 2 * c.state, bias=False), nn.Linear(c.rank, inner)
        self.decay, self.skip = nn.Parameter(torch.zeros(inner, c.state)), nn.Parameter(torch.ones(inner))

    def forward(self, x, gate):  # [rows, inner]
        x = functional.silu(self.conv(functional.pad(x.T, (self.kernel - 1, 0))[None])[0].T)
        low, enter, leave = self.select(x).split([self.rank, self.state, self.state], 1)
        step = functional.softplus(self.step(low))[..., None]
        keep, add = torch.exp(-step * self.decay.exp()), step * enter[:, None] * x[..., None]
        state, rows = torch.zeros_like(add[0]), []
        for t in range(len(x)):
            state = keep[t] * state + add[t]
            rows.append((state * leave[t]).sum(-1))
        return (torch.stack(rows) + self.skip * x) * functional.silu(gate)


class Mixer(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        inner, shared = c.heads * c.head_dim, c.groups * c.head_dim
        self.c, self.whole, self.split = c, i in c.global_layers, [inner] * 3 + [shared] * 2 * (i not in c.reuse_layers)
        self.enter, self.out = nn.Linear(c.width, sum(self.split), bias=False), nn.Linear(inner, c.width, bias=False)
        self.state_space = StateSpace(c)
        self.norm_attention, self.norm_state = nn.RMSNorm(inner), nn.RMSNorm(inner)
        self.scale_attention, self.scale_state = nn.Parameter(torch.ones(inner)), nn.Parameter(torch.ones(inner))

    def forward(self, x, shared):
        c = self.c
        query, gate, signal, *made = self.enter(x).split(self.split, 1)
        if made:
            shared = [part.view(len(x), c.groups, -1).transpose(0, 1) for part in made]
        mix = self.attend(query.view(len(x), c.groups, -1, c.head_dim), *shared)
        mix = self.norm_attention(mix) * self.scale_attention
        state = self.norm_state(self.state_space(signal, gate)) * self.scale_state
        return self.out((mix + state) / 2), shared

    def attend(self, q, k, v):
        c, rows = self.c, []
        for t in range(len(q)):
            near = 0 if self.whole else max(c.meta, t + 1 - c.window)
            seen = list(range(t + 1)) if self.whole or t < c.meta else [*range(c.meta), *range(near, t + 1)]
            scores = q[t] @ k[:, seen].mT * c.head_dim**-0.5
            rows.append((scores.softmax(-1) @ v[:, seen]).flatten())
        return torch.stack(rows)


class Block(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.norm1, self.mixer, self.norm2 = nn.RMSNorm(c.width), Mixer(c, i), nn.RMSNorm(c.width)
        self.gate, self.up = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x, shared):
        more, shared = self.mixer(self.norm1(x), shared)
        x = x + more
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), shared


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed, self.meta = nn.Embedding(config.vocab, config.width), nn.Parameter(torch.zeros(config.meta, config.width))
        self.blocks = nn.ModuleList(Block(config, i) for i in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.sample(sample) for sample in tokens])

    def sample(self, tokens):
        x, shared = torch.cat([self.meta, self.embed(tokens)]), None
        for block in self.blocks:
            x, shared = block(x, shared)
        return self.head(self.norm(x[len(self.meta) :]))
