"""Option types of meters and estimators, and the sums and rates of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from operator import add
from typing import Any, TypedDict


class DefaultOptions(TypedDict, total=False):
    """The options of :class:`symflops.MFUMeter` that have a default."""

    scope: str
    group: Any
    dtype: Any
    peak_tflops: float | str | None
    variables: tuple[str, ...]
    fallback: str | None
    device_name: str | None
    properties: Any
    keys: str
    hidden: tuple[str, ...]
    log_every: int
    log: Callable[[str], object]
    clock: Callable[[], float]
    device: Any
    warmup: int


class MeterOptions(DefaultOptions, total=False):
    """The options of :class:`symflops.MFUMeter`."""

    devices: int | None


class ConfigOptions(DefaultOptions, total=False):
    """Options of :meth:`symflops.MFUMeter.of_config`, without config and devices."""

    regimes: str | Mapping[str, str]
    convention: str
    spec: str | None


class ModelOptions(ConfigOptions, total=False):
    """Options of :meth:`symflops.MFUMeter.of_model`, without module and devices."""

    check: str


class BatchOptions(TypedDict, total=False):
    """Options of :meth:`symflops.MFUMeter.add_batch`: how often a micro-batch runs, and in which phase."""

    passes: int
    timesteps: int
    phase: str | None


class EstimatorOptions(TypedDict, total=False):
    """Options of :class:`symflops.training.frameworks.verl_omni.DiffusionFlops`."""

    convention: str
    latents: str
    regime: str
    module: Any


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the batches of a step.

    Attributes:
        real: Each moment of the real lengths.
        padded: Each moment of the padded lengths.
        tokens: The number of tokens of each stream.
        faults: The number of invalid lengths and unreadable batches.
        known: FLOPs of watched calls, those of the model and those executed, and their tokens.
    """

    real: tuple[int, ...]
    padded: tuple[int, ...]
    tokens: tuple[int, ...]
    faults: int
    known: tuple[int, int, int] = (0, 0, 0)

    def __add__(self, other: Sums) -> Sums:
        """Add each moment, each number of tokens, the faults and the known FLOPs."""
        pairs = ((self.real, other.real), (self.padded, other.padded), (self.tokens, other.tokens))
        real, padded, tokens = (tuple(map(add, one, two)) for one, two in pairs)
        model, executed, watched = map(add, self.known, other.known)
        return Sums(real, padded, tokens, self.faults + other.faults, (model, executed, watched))

    def flops(self, coefficients: Sequence[int], padded: bool = False) -> int:
        """FLOPs: the sum of ``coefficients`` (FLOPs per moment) times the real, or else ``padded``, moments.

        Raises:
            ValueError: the total is negative.
        """
        found = int(sum(c * value for c, value in zip(coefficients, self.padded if padded else self.real, strict=True)))
        if found < 0:
            raise ValueError(f"config and batches do not fit the model: a total of {found}")
        return found


@dataclass(slots=True)
class Window:
    """Totals over a number of ``steps``: model FLOPs, executed FLOPs, tokens and seconds."""

    model: int = 0
    executed: int = 0
    tokens: int = 0
    seconds: float = 0.0
    steps: int = 0

    def __add__(self, other: Window) -> Window:
        """Merge two windows into one, with sums of FLOPs, tokens, seconds and steps."""
        return Window(*map(add, astuple(self), astuple(other)))
