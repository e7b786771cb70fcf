"""Linformer: keys and values are projected to a fixed number of rows.

S. Wang et al., Linformer: Self-Attention with Linear Complexity, arXiv 2006.04768: section 4 (eq. 7), and "additional
efficiency techniques" of it: projections shared by heads, by keys and values, or by layers. An encoder with post-norms and
learned positions.

Stream: text, n tokens a sample, 1 <= n <= positions.
Sizes: the fields of ``Config``. ``sharing`` is "none" (two projections for each layer and head), "heads" (two for each
layer), "keys-values" (one for each layer) or "layers" (one for the model). A projection is a parameter [rank, positions]
without bias; a text of n tokens uses its first n columns. It multiplies keys and values of all heads: rank * n * width
multiply-adds each.

Every query sees rank projected keys, also for n < rank: rank * n pairs, all computed.
The counter sees linears, projections, scores and mixes; not embeddings, softmax, norms.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    vocab: int  # entries of the vocabulary
    positions: int  # the longest text
    width: int  # model width, heads * width of a head
    layers: int
    heads: int
    hidden: int  # hidden width of the feed-forward network
    rank: int  # rows of projected keys
    sharing: str


def projection(c, heads=1):
    """A parameter [heads, rank, positions]."""
    return nn.Parameter(torch.randn(heads, c.rank, c.positions) * c.rank**-0.5)


class Attention(nn.Module):
    def __init__(self, c, shared):
        super().__init__()
        self.heads = c.heads
        self.query, self.key, self.value, self.out = (nn.Linear(c.width, c.width) for _ in range(4))
        self.project_keys = projection(c, c.heads if c.sharing == "none" else 1) if shared is None else shared
        own = c.sharing in ("none", "heads")
        self.project_values = projection(c, c.heads if c.sharing == "none" else 1) if own else self.project_keys

    def forward(self, x):
        n = len(x)
        q, k, v = (layer(x).view(n, self.heads, -1).transpose(0, 1) for layer in (self.query, self.key, self.value))
        k, v = (weight[..., :n] @ part for weight, part in ((self.project_keys, k), (self.project_values, v)))
        mix = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
        return self.out(mix.transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, c, shared):
        super().__init__()
        self.attention, self.norm1 = Attention(c, shared), nn.LayerNorm(c.width)
        self.up, self.down, self.norm2 = nn.Linear(c.width, c.hidden), nn.Linear(c.hidden, c.width), nn.LayerNorm(c.width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed, self.positions = nn.Embedding(config.vocab, config.width), nn.Embedding(config.positions, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.projection = projection(config) if config.sharing == "layers" else None
        self.blocks = nn.ModuleList(Block(config, self.projection) for _ in range(config.layers))
        self.head = nn.Linear(config.width, config.vocab)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.sample(sample) for sample in tokens])

    def sample(self, tokens):
        places = torch.arange(len(tokens), device=tokens.device)
        return self.head(nn.Sequential(*self.blocks)(self.norm(self.embed(tokens) + self.positions(places))))
