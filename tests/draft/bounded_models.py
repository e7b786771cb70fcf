"""Modules that do other work beyond a bound, which few samples cross: a draft of the work below it is not exact."""

from __future__ import annotations

import torch
from torch import nn

from tests.draft.own_model import FeedForward


class Free(nn.Module):
    """Layers without a bound."""

    def __init__(self, width=24, hidden=40, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(FeedForward(width, hidden) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Wide(nn.Module):
    """One more part above a width."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.first = FeedForward(width, hidden)
        self.second = FeedForward(width, hidden) if width > 5000 else nn.Identity()

    def forward(self, x):
        return self.second(self.first(x))


class Ratio(nn.Module):
    """A shortcut unless two widths have a ratio."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.beside = nn.Linear(width, hidden) if 5 * width != 2 * hidden else None

    def forward(self, x):
        return self.up(x) if self.beside is None else self.up(x) + self.beside(x)


class Long(nn.Module):
    """One more part for long inputs."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.first, self.second = FeedForward(width, hidden), FeedForward(width, hidden)

    def forward(self, x):
        found = self.first(x)
        return found if x.shape[1] <= 2000 else found + self.second(x)


class Many(nn.Module):
    """One more part for large batches."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.first, self.second = FeedForward(width, hidden), FeedForward(width, hidden)

    def forward(self, x):
        found = self.first(x)
        return found if x.shape[0] <= 100 else found + self.second(x)


class Capped(nn.Module):
    """A width that has a largest value."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.feed = FeedForward(width, min(hidden, 30000))

    def forward(self, x):
        return self.feed(x)


class Deep(nn.Module):
    """Layers of which those from the 21st on are wider."""

    def __init__(self, width=24, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(FeedForward(width, (2 if place < 20 else 4) * width) for place in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


class Untraced(nn.Module):
    """Asks for a value, which no trace has."""

    def __init__(self, width=24, hidden=40):
        super().__init__()
        self.feed = FeedForward(width, hidden)

    def forward(self, x):
        if torch.is_tensor(x) and type(x) is not torch.Tensor and x.device.type != "meta":
            raise RuntimeError("not with tensors of this kind")
        return self.feed(x)
