"""Reformer: queries that are keys, sorted into buckets by hashing, attend inside of chunks.

N. Kitaev, L. Kaiser, A. Levskaya, Reformer: The Efficient Transformer, arXiv 2001.04451: section 2 (shared queries and
keys, hashing by random rotations, sorting, chunks, rounds) and section 3 (two residual streams). Activations are kept, not
recomputed, which would repeat the forward pass. Positions are left out.

Stream: text, n tokens a sample; n is a multiple of chunk.
Sizes: the fields of ``Config``.

In each round and head, tokens are sorted by bucket, then by position, and cut into n / chunk chunks. A chunk attends to
itself and the chunk before; the first one only to itself, without wrapping. These products are computed in full; other
buckets, the future, and the token itself (unless it is alone) are masked. ``useful_pairs`` depends on the data, the
computed pairs do not: chunk**2 * (2 * n / chunk - 1).

The counter sees linears, the rotation of queries (n * head_dim * buckets / 2 a head and round, forward only, weights are
drawn and no parameters), scores and mixes; not sorting, softmax, norms and the weights of rounds.
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
    hidden: int  # hidden width of the feed-forward network
    chunk: int  # tokens of a chunk
    buckets: int  # even
    rounds: int  # of hashing


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, inner = c, c.heads * c.head_dim
        self.query_key, self.value = nn.Linear(c.width, inner, bias=False), nn.Linear(c.width, inner, bias=False)
        self.out = nn.Linear(inner, c.width, bias=False)

    def buckets(self, qk):
        """The bucket of each token in one round: [heads, n]."""
        c = self.c
        rotated = qk.detach() @ torch.randn(c.heads, c.head_dim, c.buckets // 2, device=qk.device)
        return torch.cat([rotated, -rotated], -1).argmax(-1)

    def chunked(self, qk, v, bucket):
        """The mix of each token and the logarithm of its normaliser, in one round."""
        size, n = self.c.chunk, qk.shape[1]
        order = (bucket * n + torch.arange(n, device=qk.device)).argsort(-1)
        key = functional.normalize(qk, dim=-1)
        q, k, v = (part.take_along_dim(order[..., None], 1) for part in (qk, key, v))
        bucket = bucket.take_along_dim(order, 1)
        parts = []
        for start in range(0, n, size):
            here, seen = slice(start, start + size), slice(max(0, start - size), start + size)
            place, other = order[:, here, None], order[:, None, seen]
            hidden = (bucket[:, here, None] != bucket[:, None, seen]) | (place < other)
            scores = (q[:, here] @ k[:, seen].mT * q.shape[-1] ** -0.5).masked_fill(hidden, -torch.inf)
            scores = scores.masked_fill(place == other, -1e5)
            total = scores.logsumexp(-1, keepdim=True)
            parts.append(((scores - total).exp() @ v[:, seen], total))
        back = order.argsort(-1)[..., None]
        return [torch.cat(part, 1).take_along_dim(back, 1) for part in zip(*parts, strict=True)]

    def forward(self, x):
        n = len(x)
        qk, v = (layer(x).view(n, self.c.heads, -1).transpose(0, 1) for layer in (self.query_key, self.value))
        rounds = [self.chunked(qk, v, self.buckets(qk)) for _ in range(self.c.rounds)]
        mixes, totals = (torch.stack(part) for part in zip(*rounds, strict=True))
        return self.out((totals.softmax(0) * mixes).sum(0).transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(c.width), Attention(c), nn.LayerNorm(c.width)
        self.up, self.down = nn.Linear(c.width, c.hidden), nn.Linear(c.hidden, c.width)

    def forward(self, first, second):
        first = first + self.attention(self.norm1(second))
        return first, second + self.down(functional.gelu(self.up(self.norm2(first))))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = asdict(config)
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm, self.head = nn.LayerNorm(2 * config.width), nn.Linear(2 * config.width, config.vocab)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.sample(sample) for sample in tokens])

    def sample(self, tokens):
        first = second = self.embed(tokens)
        for block in self.blocks:
            first, second = block(first, second)
        return self.head(self.norm(torch.cat([first, second], -1)))
