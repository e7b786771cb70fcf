"""BigBird: blocks of tokens attend to global, neighbouring and random blocks.

M. Zaheer et al., Big Bird: Transformers for Longer Sequences, arXiv 2007.14062: section 2 (random, window, global; internal
construction) and appendix D (in blocks). An encoder with post-norms and learned positions, without token types and dropout.

Stream: text, n tokens a sample; n = block * m with m >= 1, n <= positions.
Sizes: the fields of ``Config``.

The first min(global_blocks, m) blocks attend to all m blocks. Every other block attends to the global ones, to the blocks
at a distance of at most window_blocks // 2 on both sides (fewer at the ends, no wrapping), and to min(random_blocks, what
is left) other blocks, drawn for each layer and block. Each block counts once. Blocks of keys are gathered per block of
queries: exactly the useful pairs.

The counter sees linears, scores and mixes; not embeddings, softmax, norms.
"""

from __future__ import annotations

import random
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
    block: int  # tokens of a block
    global_blocks: int
    window_blocks: int  # odd: the block itself and as many on each side
    random_blocks: int


def seen_blocks(c, layer, i, blocks):
    """The blocks of keys that block i of queries attends to."""
    if i < c.global_blocks:
        return list(range(blocks))
    reach = c.window_blocks // 2
    known = {j for j in range(blocks) if j < c.global_blocks or abs(i - j) <= reach}
    rest = [j for j in range(blocks) if j not in known]
    return sorted(known) + random.Random(f"{layer} {i} {blocks}").sample(rest, min(c.random_blocks, len(rest)))


class Attention(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.c, self.layer = c, layer
        self.query, self.key, self.value, self.out = (nn.Linear(c.width, c.width) for _ in range(4))

    def forward(self, x):
        c, blocks = self.c, len(x) // self.c.block
        parts = (layer(x).view(blocks, c.block, c.heads, -1) for layer in (self.query, self.key, self.value))
        q, k, v = (part.permute(2, 0, 1, 3) for part in parts)  # [heads, blocks, block, head_dim]
        rows = []
        for i in range(blocks):
            seen = seen_blocks(c, self.layer, i, blocks)
            scores = q[:, i] @ k[:, seen].flatten(1, 2).mT * q.shape[-1] ** -0.5
            rows.append(scores.softmax(-1) @ v[:, seen].flatten(1, 2))
        return self.out(torch.cat(rows, 1).transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.attention, self.norm1 = Attention(c, layer), nn.LayerNorm(c.width)
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
        self.blocks = nn.ModuleList(Block(config, i) for i in range(config.layers))
        self.transform, self.head_norm = nn.Linear(config.width, config.width), nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.sample(sample) for sample in tokens])

    def sample(self, tokens):
        places = torch.arange(len(tokens), device=tokens.device)
        x = nn.Sequential(*self.blocks)(self.norm(self.embed(tokens) + self.positions(places)))
        return self.head(self.head_norm(functional.gelu(self.transform(x))))
