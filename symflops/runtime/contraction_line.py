"""One line of a stored program: the work of a contraction, or of several equal ones, with every formula of sizes evaluated."""

from __future__ import annotations

from symflops.model.format import leading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from symflops.runtime.moments import Moments


class Line:
    """One contraction, with every formula of sizes evaluated for one model.

    ``value`` evaluates the formula at a position. ``side``, ``kind`` (of pairs) and ``unseen`` are those of the convention.
    ``vector`` holds the units of work per moment, as pairs of a moment's position and a coefficient.
    """

    __slots__ = ("backward", "contraction", "forward", "module", "recomputed", "side", "unit", "vector", "within")

    def __init__(
        self, document: Mapping[str, Any], position: int, value: Callable[[int], Any], side: str, kind: str, unseen: bool
    ) -> None:
        self.module, shared, *rest = document["all_lines"][position]
        work = document["work"][shared]
        self.within: tuple[str, ...] = tuple(rest[0]["within"]) if rest else leading(self.module)
        self.contraction: str = work["contraction"]
        self.side: str = work.get("side") or side
        self.unit = value(work["unit"])
        self.forward = value(work["forward"])
        self.backward = sum(value(document["all_gradients"][gradient]["count"]) for gradient in work["gradients"])
        self.recomputed = value(work["recomputed"]) if "recomputed" in work else 0
        counts = work.get("seen", True) or unseen
        pairs = document["all_amounts"][work["amount"]]["useful" if kind == "useful" else "executed"]
        self.vector = [(moment, value(formula)) for moment, formula in pairs] if counts else []

    def once(self, m: Moments) -> Any:
        """FLOPs of one execution, on the moments of a batch."""
        values = m.padded if self.side == "padded" else m.values
        return self.unit * sum(part * values[position] for position, part in self.vector)
