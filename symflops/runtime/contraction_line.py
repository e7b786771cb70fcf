"""One line of a stored program: the work of a contraction, or of several equal ones, with every formula of sizes evaluated."""

from __future__ import annotations

from symflops.model.format import leading, line_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def share(whole: Any, parts: int) -> Any:
    """A part of a number, as a fraction if it is not whole."""
    found, rest = divmod(whole, parts)
    if not rest:
        return found
    from fractions import Fraction  # an estimate with whole FLOPs starts faster without it

    return Fraction(whole, parts)


class Line:
    """One contraction, with every formula of sizes evaluated for one model.

    ``value`` evaluates the formula at a position. ``places`` are those of moments in a batch's. ``kind`` (of pairs), ``unseen``
    and ``shares`` (parts of a FLOP) are those of the convention. ``vector`` holds the units of work per moment, as pairs of a
    moment's place and a coefficient.
    """

    __slots__ = ("_within", "backward", "contraction", "forward", "module", "recomputed", "unit", "vector")

    def __init__(
        self, document: Mapping[str, Any], position: int, value: Callable[[int], Any], places: Mapping[int, int],
        kind: str, unseen: bool, shares: int = 1,
    ) -> None:  # fmt: skip
        self.module, shared, *rest = line_of(document, document["all_lines"][position])
        work = document["work"][shared]
        self._within: Sequence[str] = rest[0]["within"] if rest else ()
        self.contraction: str = work["contraction"]
        self.unit = value(work["unit"]) if shares == 1 else share(value(work["unit"]), shares)
        self.forward = value(work["forward"])
        self.backward = sum(value(document["all_gradients"][gradient]["count"]) for gradient in work["gradients"])
        self.recomputed = value(work["recomputed"]) if "recomputed" in work else 0
        counts = work.get("seen", True) or unseen
        pairs = document["all_amounts"][work["amount"]]["useful" if kind == "useful" else "executed"]
        self.vector = [(places[moment], value(formula)) for moment, formula in pairs] if counts else []

    @property
    def within(self) -> tuple[str, ...]:
        """The modules that run while this does, outermost first."""
        return tuple(self._within) or leading(self.module)

    def once(self, values: Sequence[int]) -> Any:
        """FLOPs of one execution, on the moments of a batch."""
        return self.unit * sum(part * values[position] for position, part in self.vector)
