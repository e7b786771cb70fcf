"""The result of an estimate: a dict, whose entries are also attributes."""

from __future__ import annotations

from symflops.evaluate.units import NAMES, scaled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Estimate(dict[str, "Any"]):
    """Figures of one step, as the JSON object of ``symflops estimate --json``; entries are also attributes.

    ``asked`` is the model's name for headings.

    >>> found = Estimate(parameters=6738415616, total=5)
    >>> found.total, found["total"]
    (5, 5)
    """

    asked = ""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"an estimate has no '{name}': it has {', '.join(self)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        if not {"total", "unit"} <= self.keys():
            return super().__repr__()
        unit = NAMES[self["unit"]]
        passes = ", ".join(f"{kind} {scaled(self[kind])}" for kind in ("forward", "backward", "total"))
        tokens = f", {self['tokens']:,} tokens" if self["tokens"] else ""
        told = f"{self.asked or self['spec']}: {scaled(self['parameters'])} parameters{tokens}; {passes} {unit}"
        return f"<Estimate of {told}; {self['regime']:.60}, {self['convention']}>"
