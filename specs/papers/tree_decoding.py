"""Speculative decoding with several heads: one verification step over a tree of candidates.

T. Cai et al., Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads, arXiv 2401.10774: section
2.1.1 (heads), section 2.1.2 (tree attention); X. Miao et al., SpecInfer, arXiv 2305.09781, section 4 (tree attention). The
base model is a decoder with grouped heads; rotary positions are left out.

Streams: prefix, n >= 1 tokens a sample, no cache; nodes, whose number is the config's: the root, and the Cartesian product
of the candidates of each head. Depth 0 has one node, depth k has branches[0] * ... * branches[k-1]; depths are in order,
children in the order of their parents. Prefix and nodes are one sequence of n + nodes rows in all layers.
Sizes: the fields of ``Config``. There is one Medusa head for each entry of branches.

A prefix token sees the prefix up to itself; a node sees the prefix, its ancestors and itself. Dense, as in the paper: all
(n + nodes)**2 products are computed and the rest is masked. Base head and Medusa heads read the rows of nodes alone. Medusa
head k is x + silu(linear(x)), then a linear to the vocabulary without bias.

Outputs: the base logits [nodes, vocab] and Medusa's [heads, nodes, vocab], of all samples, both in the loss.
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
    branches: list[int]  # candidates of each Medusa head


def parents(branches):
    """The parent of each node; the root has -1."""
    found, level = [-1], [0]
    for count in branches:
        found, level = (
            found + [node for node in level for _ in range(count)],
            list(range(len(found), len(found) + count * len(level))),
        )
    return found


def tree_mask(n, tree):
    """What each row must not see."""
    hidden = torch.ones(n + len(tree), n + len(tree), dtype=torch.bool).triu(1)
    hidden[n:, n:] = True
    for node in range(len(tree)):
        seen = node
        while seen >= 0:
            hidden[n + node, n + seen] = False
            seen = tree[seen]
    return hidden


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.query = nn.Linear(c.width, c.heads * c.head_dim, bias=False)
        self.key, self.value = (nn.Linear(c.width, c.groups * c.head_dim, bias=False) for _ in range(2))
        self.out = nn.Linear(c.heads * c.head_dim, c.width, bias=False)

    def forward(self, x, hidden):
        c, n = self.c, len(x)
        q = self.query(x).view(n, c.heads, c.head_dim).transpose(0, 1)
        k, v = (layer(x).view(n, c.groups, c.head_dim).transpose(0, 1) for layer in (self.key, self.value))
        k, v = (part.repeat_interleave(c.heads // c.groups, 0) for part in (k, v))
        mix = (q @ k.mT * c.head_dim**-0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return self.out(mix.transpose(0, 1).flatten(1))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.RMSNorm(c.width), Attention(c), nn.RMSNorm(c.width)
        self.gate, self.up = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def forward(self, x, hidden):
        x = x + self.attention(self.norm1(x), hidden)
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Guess(nn.Module):
    """One Medusa head."""

    def __init__(self, c):
        super().__init__()
        self.inner, self.head = nn.Linear(c.width, c.width), nn.Linear(c.width, c.vocab, bias=False)

    def forward(self, x):
        return self.head(x + functional.silu(self.inner(x)))


class Model(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config, self.tree = asdict(config), parents(config.branches)
        self.embed = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm, self.head = nn.RMSNorm(config.width), nn.Linear(config.width, config.vocab, bias=False)
        self.medusa = nn.ModuleList(Guess(config) for _ in config.branches)

    def forward(self, prefix, nodes):  # lists of [n] and of [nodes], or [b, n] and [b, nodes]
        base, guesses = zip(*map(self.sample, prefix, nodes), strict=True)
        return torch.cat(base), torch.cat(guesses, 1)

    def sample(self, prefix, nodes):
        hidden = tree_mask(len(prefix), self.tree).to(prefix.device)
        x = self.embed(torch.cat([prefix, nodes]))
        for block in self.blocks:
            x = block(x, hidden)
        x = self.norm(x[len(prefix) :])
        return self.head(x), torch.stack([guess(x) for guess in self.medusa])
