"""A module as a user writes one: no library, a custom autograd function, and a weight that is used twice."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class SquaredReLU(torch.autograd.Function):
    """``relu(x) ** 2`` with a backward pass of its own."""

    @staticmethod
    def forward(ctx, x):
        positive = x.clamp(min=0)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, gradient):
        (positive,) = ctx.saved_tensors
        return 2 * gradient * positive


class Attention(nn.Module):
    def __init__(self, width, heads, key_heads):
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, key_heads * self.size, bias=False)
        self.value = nn.Linear(width, key_heads * self.size, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.query(x).view(b, n, self.heads, self.size).transpose(1, 2)
        k = self.key(x).view(b, n, self.key_heads, self.size).transpose(1, 2)
        v = self.value(x).view(b, n, self.key_heads, self.size).transpose(1, 2)
        repeats = self.heads // self.key_heads
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(a.transpose(1, 2).reshape(b, n, -1))


class FeedForward(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(SquaredReLU.apply(self.up(x)))


class Block(nn.Module):
    def __init__(self, width, heads, key_heads, hidden):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, key_heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed = FeedForward(width, hidden)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x = x + self.scale * self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class TinyModel(nn.Module):
    """A decoder whose head is the embedding table, on tokens and on features of pictures."""

    def __init__(self, words=61, width=24, heads=4, key_heads=2, hidden=40, depth=2, features=10):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.picture = nn.Linear(features, width)
        self.blocks = nn.ModuleList(Block(width, heads, key_heads, hidden) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, picture):
        x = torch.cat([self.picture(picture), self.table(tokens)], dim=1)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)[:, picture.shape[1] :]
        with torch.no_grad():
            self.table.weight.norm()
        return x @ self.table.weight.t()


class Switched(nn.Module):
    """Tokens through feed-forward layers that have a gate, or none."""

    def __init__(self, words=100, width=32, hidden=64, depth=2, gated=False):
        super().__init__()
        self.config = {"words": words, "width": width, "hidden": hidden, "depth": depth, "gated": gated}
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Gated(width, hidden, gated) for _ in range(depth))

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(x)
        return x


class Gated(nn.Module):
    """Up, perhaps a gate, and down."""

    def __init__(self, width, hidden, gated):
        super().__init__()
        self.up = nn.Linear(width, hidden, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False) if gated else None
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        hidden = self.up(x).relu()
        return self.down(hidden if self.gate is None else hidden * self.gate(x))
