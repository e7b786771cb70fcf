"""Dynamic experts: each token takes as many experts as its probabilities need to reach a threshold.

Q. Huang et al., Harder Tasks Need More Experts: Dynamic Routing in MoE Models, arXiv 2403.07652: section 2 (router, top-p
routing). The additional losses have no product, and are left out, as rotary positions are.

Stream: text, n >= 1 tokens a sample; routes, the pairs of token and expert that run, n <= r <= n * experts, in each layer.
Sizes: the fields of ``Config``.

A linear without bias and a softmax give probabilities; in falling order, the fewest experts are taken whose sum reaches
threshold, at least one. Their outputs are added, weighted by these probabilities, not normed. How many routes run depends
on the data: ``routes`` of each layer tells it after a pass. If ``active`` gives the number of experts of each token, that
many best ones are taken in all layers, and r is its sum. Experts are gated networks; each runs on its tokens alone: exactly
r rows of all experts together.

Dense attention: all n * n products are computed and the future is masked.
The counter sees linears, the router too, scores and mixes; not sorting, sums of experts, softmax, norms. The routing reads
values, so the model does not run on meta tensors.
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
    heads: int
    head_dim: int  # width of a head
    experts: int
    hidden: int  # hidden width of an expert
    threshold: float  # sum of probabilities to reach


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, inner = c.heads, c.heads * c.head_dim
        self.query, self.key, self.value = (nn.Linear(c.width, inner, bias=False) for _ in range(3))
        self.out = nn.Linear(inner, c.width, bias=False)

    def forward(self, x):
        n = len(x)
        q, k, v = (layer(x).view(n, self.heads, -1).transpose(0, 1) for layer in (self.query, self.key, self.value))
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        mix = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, -torch.inf).softmax(-1) @ v
        return self.out(mix.transpose(0, 1).flatten(1))


class Expert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate, self.up = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.threshold, self.routes = c.threshold, 0
        self.router = nn.Linear(c.width, c.experts, bias=False)
        self.experts = nn.ModuleList(Expert(c) for _ in range(c.experts))

    def forward(self, x, active):
        probabilities = self.router(x).softmax(-1)
        ordered, index = probabilities.sort(-1, descending=True)
        if active is None:
            taken = ordered.cumsum(-1) - ordered < self.threshold  # the sum before this expert falls short
        else:
            taken = torch.arange(index.shape[1], device=x.device) < active[:, None]
        taken = taken.gather(-1, index.argsort(-1))
        taken[torch.arange(len(x)), index[:, 0]] = True
        self.routes += int(taken.sum())
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = taken[:, i].nonzero()[:, 0]
            if len(rows):
                out = out.index_add(0, rows, probabilities[rows, i, None] * expert(x[rows]))
        return out


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.attention, self.norm2, self.moe = nn.RMSNorm(c.width), Attention(c), nn.RMSNorm(c.width), Experts(c)

    def forward(self, x, active):
        x = x + self.attention(self.norm1(x))
        return x + self.moe(self.norm2(x), active)


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, tokens, active=None):
        """``tokens``: a list of [n], or [b, n]; ``active``: nothing, or as many numbers of experts."""
        for block in self.blocks:
            block.moe.routes = 0
        return torch.cat([*map(self.sample, tokens, [None] * len(tokens) if active is None else active)])

    def sample(self, tokens, active):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, active)
        return self.head(self.norm(x))
