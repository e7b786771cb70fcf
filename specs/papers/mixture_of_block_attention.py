"""Mixture of block attention: each query and head routes to few blocks of keys; the last layers attend in full.

E. Lu et al., MoBA: Mixture of Block Attention for Long-Context LLMs, arXiv 2502.13189: section 2.2 (eq. 2 to 6, algorithm
1) and section 3.2 (full attention in the last layers). Rotary positions are left out.

Stream: text, n tokens a sample, any n >= 1. Blocks: tokens i*block .. i*block + block - 1, the last one of a sample may be
shorter.
Sizes: the fields of ``Config``.

A query in block c takes its own block up to itself, and the best min(top - 1, c) of the c blocks before, by the product
with their mean keys. The products with all ceil(n / block) mean keys are computed, as in algorithm 1, and future ones
masked; the choice is not differentiable, so they have no backward pass. Chosen keys and values are gathered per query and
head: exactly the useful pairs. A full layer computes all n * n products and masks the future.

The counter sees linears, the products with mean keys (forward only), scores and mixes; not means, softmax, norms.
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
    layers: int  # all layers
    full_layers: int  # the last ones, with full attention
    heads: int  # heads of queries, keys and values
    head_dim: int  # width of a head
    hidden: int  # hidden width of the gated feed-forward network
    block: int  # tokens of a block
    top: int  # chosen blocks, with the query's own


def attend(query, keys, values, mask=None):
    scores = query @ keys.mT * query.shape[-1] ** -0.5
    return (scores if mask is None else scores.masked_fill(mask, -torch.inf)).softmax(-1) @ values


class Attention(nn.Module):
    def __init__(self, c, full):
        super().__init__()
        self.c, self.full, inner = c, full, c.heads * c.head_dim
        self.query, self.key, self.value = (nn.Linear(c.width, inner, bias=False) for _ in range(3))
        self.out = nn.Linear(inner, c.width, bias=False)

    def forward(self, x):
        n = len(x)
        q, k, v = (layer(x).view(n, self.c.heads, -1).transpose(0, 1) for layer in (self.query, self.key, self.value))
        if self.full:
            future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
            mix = attend(q, k, v, future)
        else:
            mix = self.routed(q, k, v)
        return self.out(mix.transpose(0, 1).flatten(1))

    def routed(self, q, k, v):  # [heads, n, head_dim]
        size = self.c.block
        means = torch.stack([block.mean(1) for block in k.split(size, 1)], 1)
        affinity = q @ means.mT  # [heads, n, blocks]
        rows = []
        for t in range(q.shape[1]):
            own = t // size
            best = affinity[:, t, :own].topk(min(self.c.top - 1, own)).indices
            tokens = (best[..., None] * size + torch.arange(size, device=q.device)).flatten(1)
            here = torch.arange(own * size, t + 1, device=q.device).expand(len(q), -1)
            index = torch.cat([tokens, here], 1)[..., None]
            rows.append(attend(q[:, t : t + 1], k.take_along_dim(index, 1), v.take_along_dim(index, 1)))
        return torch.cat(rows, 1)


class Block(nn.Module):
    def __init__(self, c, full):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.RMSNorm(c.width), Attention(c, full), nn.RMSNorm(c.width)
        self.gate, self.up = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config, i >= config.layers - config.full_layers) for i in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.head(self.norm(nn.Sequential(*self.blocks)(self.embed(sample)))) for sample in tokens])
