"""A module in the style of nanoGPT: nothing says the class of its config but the only dataclass beside it."""

from dataclasses import dataclass

from torch import nn

from tests.draft.own_model import FeedForward


@dataclass
class Shape:
    """Sizes, one of which follows from another, and factors in a tuple."""

    width: int = 32
    layers: int = 2
    hidden: int | None = None
    factors: tuple = (2, 3)

    def __post_init__(self):
        if self.hidden is None:
            self.hidden = 4 * self.width


class Nano(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(FeedForward(config.width, config.hidden) for _ in range(config.layers))
        self.tail = FeedForward(config.width, config.factors[1] * config.width)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.tail(x)
