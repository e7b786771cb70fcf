"""Rates over all windows of a job after its warm-up."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from statistics import median

from symflops.training.meter.types import Window


@dataclass(slots=True)
class Steady:
    """The sums of windows, and each window's rates, for their median.

    Attributes:
        total: The sums over all windows.
        useful, executed, tokens: Model FLOPs, executed FLOPs and tokens per second of each window.
    """

    total: Window = field(default_factory=Window)
    useful: array[float] = field(default_factory=lambda: array("d"))
    executed: array[float] = field(default_factory=lambda: array("d"))
    tokens: array[float] = field(default_factory=lambda: array("d"))

    def add(self, window: Window) -> None:
        """Add a window, which has a positive number of seconds."""
        self.total += window
        for rates, amount in ((self.useful, window.model), (self.executed, window.executed), (self.tokens, window.tokens)):
            rates.append(amount / window.seconds)

    def rates(self, devices: int, peak: float | None) -> dict[str, float]:
        """Map names of rates to values; without a ``peak``, FLOP/s of a device, there are no shares of it."""
        total = self.total
        if not total.model:
            return {}
        found: dict[str, float] = {"steps": total.steps, "seconds": total.seconds}
        named = (("useful", "mfu", total.model, self.useful), ("executed", "hfu", total.executed, self.executed))
        for word, share, flops, rates in named:
            for kind, rate in (("mean", flops / total.seconds), ("median", median(rates))):
                found[f"{word}_tflops_per_device_{kind}"] = rate / devices / 1e12
                if peak:
                    found[f"{share}_{kind}"] = rate / devices / peak
        means = (("mean", total.tokens / total.seconds), ("median", median(self.tokens)))
        return {**found, **{f"tokens_per_second_{kind}": rate for kind, rate in means}}
