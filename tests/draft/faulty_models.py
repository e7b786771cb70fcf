"""Modules whose drafts are easily wrong: each hides work or parameters from a drafter that does not look closely."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from tests.draft.own_model import FeedForward


class SharedLayer(nn.Module):
    """One layer that stands several times in a list."""

    def __init__(self, width=24, hidden=40, depth=6):
        super().__init__()
        layer = FeedForward(width, hidden)
        self.layers = nn.ModuleList([layer] * depth)
        self.head = nn.Linear(width, 7)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


class OneLayerTwice(nn.Module):
    """One feed-forward under two names, each of which runs."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.first = FeedForward(width, hidden)
        self.between = nn.Linear(width, width)
        self.second = self.first

    def forward(self, x):
        return self.second(self.between(self.first(x)))


class InTurns(nn.Module):
    """A list in which two layers take turns."""

    def __init__(self, width=24, hidden=40, turns=3):
        super().__init__()
        pair = [FeedForward(width, hidden), FeedForward(width, 2 * hidden)]
        self.layers = nn.ModuleList(pair * turns)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


class Halves(nn.Module):
    """Two linears, each for the tokens that a mask chooses."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.seen = nn.Linear(width, hidden)
        self.hidden = nn.Linear(width, hidden)

    def forward(self, x, mask):
        return torch.cat([self.seen(x[mask]), self.hidden(x[~mask])])


class TwoResults(nn.Module):
    """A trunk with two heads, and both results."""

    def __init__(self, width=24, first=10, second=30):
        super().__init__()
        self.trunk = nn.Linear(width, width)
        self.first = nn.Linear(width, first)
        self.second = nn.Linear(width, second)

    def forward(self, x):
        x = self.trunk(x).relu()
        return {"first": self.first(x), "others": (self.second(x),)}


class Growing(nn.Module):
    """Layers each of which is wider than the one before, so that they are no repeat."""

    def __init__(self, width=24, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width * 2**i, width * 2 ** (i + 1)) for i in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


class OwnList(nn.Module):
    """Two linears whose widths stand in a list, which has three items if nobody gives it."""

    def __init__(self, width=24, widths=None):
        super().__init__()
        widths = widths or [32, 96]
        self.config = {"width": width, "widths": list(widths)}
        self.up = nn.Linear(width, widths[0])
        self.down = nn.Linear(widths[0], widths[1])

    def forward(self, x):
        return self.down(self.up(x).relu())


class Grouped(nn.Module):
    """Attention in which the number of heads of keys is a field of its own, and cannot move alone when it equals that of heads."""

    def __init__(self, width=24, heads=4, key_heads=4):
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        if heads % key_heads:
            raise ValueError("heads come in groups")
        self.query = nn.Linear(width, heads * self.size)
        self.key = nn.Linear(width, key_heads * self.size)
        self.value = nn.Linear(width, key_heads * self.size)
        self.out = nn.Linear(heads * self.size, width)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.query(x).view(b, n, self.heads, self.size).transpose(1, 2)
        k, v = (one(x).view(b, n, self.key_heads, self.size).transpose(1, 2) for one in (self.key, self.value))
        k, v = (one.repeat_interleave(self.heads // self.key_heads, 1) for one in (k, v))
        return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, -1))


class Divided(nn.Module):
    """Attention whose heads divide the width: what is left over of a width stays out of the heads."""

    def __init__(self, width=24, heads=4):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.qkv = nn.Linear(width, 3 * heads * self.size)
        self.out = nn.Linear(heads * self.size, width)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, -1))


class Fused(nn.Module):
    """Attention with one linear for all projections if there are as many heads of keys, else with two."""

    def __init__(self, width=24, heads=4, key_heads=4):
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, width // heads
        if heads == key_heads:
            self.qkv = nn.Linear(width, 3 * heads * self.size)
        else:
            self.q = nn.Linear(width, heads * self.size)
            self.kv = nn.Linear(width, 2 * key_heads * self.size)
        self.out = nn.Linear(heads * self.size, width)

    def forward(self, x):
        b, n, _ = x.shape
        sizes = [count * self.size for count in (self.heads, self.key_heads, self.key_heads)]
        every = self.qkv(x) if self.heads == self.key_heads else torch.cat([self.q(x), self.kv(x)], -1)
        q, k, v = (part.view(b, n, -1, self.size).transpose(1, 2) for part in every.split(sizes, -1))
        k, v = (one.repeat_interleave(self.heads // self.key_heads, 1) for one in (k, v))
        return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, -1))


class Crossed(nn.Module):
    """A linear that takes two switches."""

    def __init__(self, width=24, hidden=40, twice=False, deep=False):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.between = nn.Linear(hidden, hidden) if twice and deep else nn.Identity()
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(self.between(self.up(x)))


class Gated(nn.Module):
    """A layer with a gate, unless somebody says otherwise; its number of gates only matters then."""

    def __init__(self, width=24, hidden=40, gated=True, gates=1, wide=False):
        super().__init__()
        hidden = 2 * hidden if wide and gates > 1 else hidden
        self.up = nn.Linear(width, hidden)
        self.gates = nn.ModuleList(nn.Linear(width, hidden) for _ in range(gates if gated else 0))
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        hidden = self.up(x)
        for gate in self.gates:
            hidden = hidden * gate(x)
        return self.down(hidden)
