"""Cross-layer attention: some layers make keys and values, the layers after them use the same ones.

W. Brandon et al., Reducing Transformer Key-Value Cache Size with Cross-Layer Attention, arXiv 2405.12981: section 2
(sharing factor) and the patterns of section 3 that spare the first layers; multi-, grouped- or multi-query heads. Rotary
positions are left out.

Stream: text, n tokens a sample, any n >= 1.
Sizes: the fields of ``Config``. Layers below first_plain make their own keys and values; from there on, layer i makes them
if (i - first_plain) % share == 0, and uses those of the last maker otherwise. The last group may be shorter.

Dense: all n * n products are computed and the future is masked. The useful pairs are n * (n + 1) / 2.
The counter sees linears, scores and mixes; not softmax and norms.
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
    share: int  # layers that share keys and values
    first_plain: int  # layers at the start that share nothing


class Attention(nn.Module):
    def __init__(self, c, makes):
        super().__init__()
        self.c, self.makes = c, makes
        self.query = nn.Linear(c.width, c.heads * c.head_dim, bias=False)
        if makes:
            self.key = nn.Linear(c.width, c.groups * c.head_dim, bias=False)
            self.value = nn.Linear(c.width, c.groups * c.head_dim, bias=False)
        self.out = nn.Linear(c.heads * c.head_dim, c.width, bias=False)

    def forward(self, x, shared):
        c, n = self.c, len(x)
        q = self.query(x).view(n, c.heads, c.head_dim).transpose(0, 1)
        if self.makes:
            shared = [layer(x).view(n, c.groups, c.head_dim).transpose(0, 1) for layer in (self.key, self.value)]
        k, v = (part.repeat_interleave(c.heads // c.groups, 0) for part in shared)
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        mix = (q @ k.mT * c.head_dim**-0.5).masked_fill(future, -torch.inf).softmax(-1) @ v
        return self.out(mix.transpose(0, 1).flatten(1)), shared


class Block(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        makes = i < c.first_plain or (i - c.first_plain) % c.share == 0
        self.norm1, self.attention, self.norm2 = nn.RMSNorm(c.width), Attention(c, makes), nn.RMSNorm(c.width)
        self.gate, self.up = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x, shared):
        more, shared = self.attention(self.norm1(x), shared)
        x = x + more
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), shared


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config, i) for i in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.sample(sample) for sample in tokens])

    def sample(self, tokens):
        x, shared = self.embed(tokens), None
        for block in self.blocks:
            x, shared = block(x, shared)
        return self.head(self.norm(x))
