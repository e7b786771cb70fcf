"""Product-key memory: a layer looks up few of very many values, by keys that are pairs of sub-keys.

G. Lample et al., Large Memory Layers with Product Keys, arXiv 1907.05242: section 3.1 (query network, selection, values),
3.2 (product keys), 3.3 (several heads). The transformer has post-norms, causal attention and learned positions.

Stream: text, n tokens a sample, 1 <= n <= positions; n >= 2 in training mode, for the batch norm.
Sizes: the fields of ``Config``. A layer in memory_layers has a memory in place of its feed-forward network.

Memory: a linear makes memory_heads queries of width query_dim, then a batch norm. Each half of a query multiplies the
sub_keys sub-keys of its head and half: n * memory_heads * sub_keys * query_dim in all. Both halves keep their best top; of
the top**2 sums the best top are looked up in one table of sub_keys**2 values for all heads. Their weighted sum, over heads
too, is elementwise.

Dense attention: all n * n products are computed and the future is masked. The counter sees linears, scores, mixes, and the
products with sub-keys; not embeddings, the sum of values, softmax, norms.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Config:
    vocab: int  # entries of the vocabulary
    positions: int  # learned positions
    width: int  # model width, heads * width of a head
    layers: int
    heads: int
    hidden: int  # hidden width of the feed-forward network
    memory_layers: list[int]  # indices of layers with a memory
    memory_heads: int
    query_dim: int  # width of a query, even
    sub_keys: int  # sub-keys of a half; the memory has their square
    top: int  # values that each head takes


class Memory(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, inner = c, c.memory_heads * c.query_dim
        self.query, self.norm = nn.Linear(c.width, inner), nn.BatchNorm1d(inner)
        self.sub_keys = nn.Parameter(torch.randn(2 * c.memory_heads, c.sub_keys, c.query_dim // 2))
        self.values = nn.Embedding(c.sub_keys**2, c.width)

    def forward(self, x):
        c, n = self.c, len(x)
        halves = self.norm(self.query(x)).view(n, 2 * c.memory_heads, -1).transpose(0, 1)
        scores, index = (halves @ self.sub_keys.mT).unflatten(0, (c.memory_heads, 2)).topk(c.top)  # [heads, 2, n, top]
        sums = (scores[:, 0, :, :, None] + scores[:, 1, :, None]).flatten(2)
        pairs = (index[:, 0, :, :, None] * c.sub_keys + index[:, 1, :, None]).flatten(2)
        best, place = sums.topk(c.top)
        return (self.values(pairs.take_along_dim(place, 2)) * best.softmax(-1)[..., None]).sum((0, 2))


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up, self.down = nn.Linear(c.width, c.hidden), nn.Linear(c.hidden, c.width)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.query, self.key, self.value, self.out = (nn.Linear(c.width, c.width) for _ in range(4))

    def forward(self, x):
        n = len(x)
        q, k, v = (layer(x).view(n, self.heads, -1).transpose(0, 1) for layer in (self.query, self.key, self.value))
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        mix = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, -torch.inf).softmax(-1) @ v
        return self.out(mix.transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.attention, self.norm1 = Attention(c), nn.LayerNorm(c.width)
        if i in c.memory_layers:
            self.memory = Memory(c)
        else:
            self.feed_forward = FeedForward(c)
        self.norm2 = nn.LayerNorm(c.width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + (self.memory if hasattr(self, "memory") else self.feed_forward)(x))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed, self.positions = nn.Embedding(config.vocab, config.width), nn.Embedding(config.positions, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.blocks = nn.ModuleList(Block(config, i) for i in range(config.layers))
        self.head = nn.Linear(config.width, config.vocab)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.sample(sample) for sample in tokens])

    def sample(self, tokens):
        places = torch.arange(len(tokens), device=tokens.device)
        return self.head(nn.Sequential(*self.blocks)(self.norm(self.embed(tokens) + self.positions(places))))
