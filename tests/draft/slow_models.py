"""Modules that hang, or end the process, at some sizes."""

import os

from torch import nn


class HangsWhenWide(nn.Module):
    """Two linears; never done when the second is not as wide as at first."""

    def __init__(self, width: int, wide: int) -> None:
        super().__init__()
        self.wide = wide
        self.up = nn.Linear(width, wide)
        self.down = nn.Linear(wide, 3)

    def forward(self, x):
        while self.wide != 12:
            pass
        return self.down(self.up(x))


class Dies(nn.Module):
    """A linear whose process ends at some width."""

    def __init__(self, width: int, at: int) -> None:
        super().__init__()
        if width == at:
            os._exit(7)
        self.up = nn.Linear(width, 4)

    def forward(self, x):
        return self.up(x)


class Keeps(nn.Module):
    """A linear, and a number of bytes."""

    def __init__(self, width: int, kept: int) -> None:
        super().__init__()
        self.kept = bytearray(kept)
        self.down = nn.Linear(width, 3)

    def forward(self, x):
        return self.down(x)
