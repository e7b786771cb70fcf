"""Modules as users write them, whose constructors take a config object of a class of their own."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import nn


class Kind(enum.Enum):
    """Whether a block has a gate."""

    PLAIN = "plain"
    GATED = "gated"


@dataclass
class Config:
    """A dataclass."""

    width: int = 32
    layers: int = 2
    bias: bool = False


@dataclass
class Biased(Config):
    """A dataclass with another default."""

    bias: bool = True


@dataclass(frozen=True, slots=True)
class Inner:
    """The config of a part."""

    hidden: int = 48
    bias: bool = False
    kind: Kind = Kind.PLAIN


@dataclass
class Outer:
    """A dataclass with another one inside, and a field that it sets itself."""

    width: int = 32
    layers: int = 2
    feed: Inner = field(default_factory=Inner)
    total: int = field(init=False, default=0)
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        self.total = self.width * self.layers


@dataclass
class Maybe(Config):
    """A dataclass that may have another one inside."""

    feed: Inner | None = None


class Row(NamedTuple):
    """A tuple with names."""

    width: int = 32
    layers: int = 2
    bias: bool = False


class Plain:
    """Defaults of the class, and whatever is given."""

    width, layers, bias = 32, 2, False

    def __init__(self, **given):
        self.__dict__.update(given)


class Block(nn.Module):
    def __init__(self, width, hidden, bias, kind=Kind.PLAIN):
        super().__init__()
        self.up = nn.Linear(width, hidden, bias=bias)
        self.gate = nn.Linear(width, hidden, bias=bias) if kind is Kind.GATED else None
        self.down = nn.Linear(hidden, width, bias=bias)

    def forward(self, x):
        hidden = self.up(x).relu()
        return x + self.down(hidden if self.gate is None else hidden * self.gate(x))


class Stack(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.blocks = nn.ModuleList(Block(config.width, 2 * config.width, config.bias) for _ in range(config.layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Named(Stack):
    """Names its config class, and keeps the config."""

    config_class = Config

    def __init__(self, config):
        super().__init__(config)
        self.config = config


class Annotated(Stack):
    """Names its config class in an annotation, and keeps no config."""

    def __init__(self, cfg: Biased):
        super().__init__(cfg)


class Perhaps(Stack):
    """Takes a config, or none."""

    def __init__(self, config: Config | None = None):
        super().__init__(config or Config())


class OfRow(Stack):
    def __init__(self, row: Row, scale: float = 1.0):
        super().__init__(row)


class OfPlain(Stack):
    config_class = Plain


class OfOuter(Stack):
    """Reads a config inside its config."""

    def __init__(self, config: Outer):
        nn.Module.__init__(self)
        feed = config.feed
        self.blocks = nn.ModuleList(Block(config.width, feed.hidden, feed.bias, feed.kind) for _ in range(config.layers))


class OfMaybe(Stack):
    """Has another hidden width if there is a config inside its config."""

    def __init__(self, config: Maybe):
        nn.Module.__init__(self)
        hidden = config.feed.hidden if config.feed else 2 * config.width
        self.blocks = nn.ModuleList(Block(config.width, hidden, config.bias) for _ in range(config.layers))


class OfTwo(Stack):
    """Takes a config beside a number."""

    def __init__(self, width: int, feed: Inner, layers: int = 2):
        nn.Module.__init__(self)
        self.blocks = nn.ModuleList(Block(width, feed.hidden, feed.bias, feed.kind) for _ in range(layers))


class OfDefault(Stack):
    """Takes a config whose class its default shows."""

    def __init__(self, setup=Config()):
        super().__init__(setup)


class Nameless(Stack):
    """Takes a config of any of the classes of this file."""

    def __init__(self, config):
        super().__init__(config)
