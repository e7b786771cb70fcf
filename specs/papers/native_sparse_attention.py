"""Native sparse attention: compressed, selected and windowed keys, mixed by gates.

J. Yuan et al., Native Sparse Attention: Hardware-Aligned and Natively Trainable Sparse Attention, arXiv 2502.11089, section
3: gates of three branches (eq. 5), compressed blocks (eq. 7), scores of blocks from the compressed attention (eq. 8 to 10),
chosen blocks (eq. 11, 12), window (section 3.3.3). The backbone is dense (the paper's has experts); rotary positions are
left out.

Stream: text, n tokens a sample, n >= block. (A shorter text has no compressed block: keys and values of that branch are
made and unread.)
Sizes: the fields of ``Config``. Every branch has keys and values of its own (section 3.3.3).

Query t (from 0) sees the compressed blocks that end by t: block i holds tokens i*stride .. i*stride + block - 1. It sees
the tokens up to t of min(top, t // chosen_block + 1) chosen blocks: its own, the one before, the first, and the best
others, one choice per key head and query. It sees the last min(window, t + 1) tokens. Keys and values are gathered per
query: exactly the useful pairs.

The counter sees linears (compression included, once for each whole block and key head) and the products of the three
branches; not the scores of blocks (sums of probabilities, without gradient), softmax, norms and gates.
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
    key_dim: int  # width of a query and a key head
    value_dim: int  # width of a value head
    hidden: int  # hidden width of the gated feed-forward network
    block: int  # tokens of a compressed block
    stride: int  # tokens from one compressed block to the next; divides block and chosen_block
    compress_hidden: int  # hidden width of the networks that compress a block
    chosen_block: int  # tokens of a block to choose
    top: int  # chosen blocks a query, at least 3
    window: int  # tokens of the window


def attend(query, keys, values):
    """[groups, rows, key_dim] on [groups, m, key_dim]: the probabilities, and the mix of values."""
    probabilities = (query @ keys.mT * query.shape[-1] ** -0.5).softmax(-1)
    return probabilities, probabilities @ values


class Compress(nn.Module):
    """One vector for each block: positions inside of the block are added, then two layers."""

    def __init__(self, c, width):
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(c.block, width))
        self.up, self.down = nn.Linear(c.block * width, c.compress_hidden), nn.Linear(c.compress_hidden, width)

    def forward(self, blocks):  # [groups, m, block, width]
        return self.down(functional.gelu(self.up((blocks + self.positions).flatten(-2))))


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.query = nn.Linear(c.width, c.heads * c.key_dim, bias=False)
        self.keys = nn.ModuleList(nn.Linear(c.width, c.groups * c.key_dim, bias=False) for _ in range(3))
        self.values = nn.ModuleList(nn.Linear(c.width, c.groups * c.value_dim, bias=False) for _ in range(3))
        self.compress_keys, self.compress_values = Compress(c, c.key_dim), Compress(c, c.value_dim)
        self.gate = nn.Linear(c.width, 3 * c.heads)
        self.out = nn.Linear(c.heads * c.value_dim, c.width, bias=False)

    def chosen(self, probabilities, t):
        """Indices [groups, m] of the tokens of the chosen blocks up to t."""
        c = self.c
        own, score = t // c.chosen_block, probabilities.detach().sum(1)
        scores = score.new_zeros(c.groups, own + 1)
        for i in range(score.shape[1]):  # each piece of `stride` tokens in a compressed block counts for its chosen block
            for piece in range(i, i + c.block // c.stride):
                scores[:, piece * c.stride // c.chosen_block] += score[:, i]
        forced = sorted({0, max(own - 1, 0), own})
        scores[:, forced] = -torch.inf
        best = scores.topk(min(c.top, own + 1) - len(forced)).indices
        whole = torch.cat([best, torch.tensor(forced[:-1], device=best.device).expand(c.groups, -1).to(best)], 1)
        tokens = whole[..., None] * c.chosen_block + torch.arange(c.chosen_block, device=best.device)
        last = torch.arange(own * c.chosen_block, t + 1, device=best.device).expand(c.groups, -1)
        return torch.cat([tokens.flatten(1), last], 1)

    def forward(self, x):
        c, n = self.c, len(x)
        query = self.query(x).view(n, c.groups, c.heads // c.groups, c.key_dim)
        keys = [layer(x).view(n, c.groups, c.key_dim).transpose(0, 1) for layer in self.keys]
        values = [layer(x).view(n, c.groups, c.value_dim).transpose(0, 1) for layer in self.values]
        if n >= c.block:
            short_keys = self.compress_keys(keys[0].unfold(1, c.block, c.stride).mT)
            short_values = self.compress_values(values[0].unfold(1, c.block, c.stride).mT)
        gates = self.gate(x).sigmoid().view(n, 3, c.groups, c.heads // c.groups, 1)
        rows = []
        for t in range(n):
            q, seen = query[t], max(0, (t + 1 - c.block) // c.stride + 1)
            probabilities, row = q.new_zeros(c.groups, q.shape[1], 0), 0
            if seen:
                probabilities, row = attend(q, short_keys[:, :seen], short_values[:, :seen])
                row = gates[t, 0] * row
            index = self.chosen(probabilities, t)[..., None]
            _, mix = attend(q, keys[1].take_along_dim(index, 1), values[1].take_along_dim(index, 1))
            near = slice(max(0, t + 1 - c.window), t + 1)
            rows.append(row + gates[t, 1] * mix + gates[t, 2] * attend(q, keys[2][:, near], values[2][:, near])[1])
        return self.out(torch.stack(rows).flatten(1))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.RMSNorm(c.width), Attention(c), nn.RMSNorm(c.width)
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
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, tokens):  # a list of [n], or [b, n]
        return torch.cat([self.head(self.norm(nn.Sequential(*self.blocks)(self.embed(sample)))) for sample in tokens])
