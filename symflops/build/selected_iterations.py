"""Selection of a repeat's iterations by patterns of a regime: the required cuts, and the selectors of each iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm

from sympy import Expr, Integer, expand

from symflops.build.graph_builder import GraphBuilder
from symflops.formula.truth import UnknownSizeError
from symflops.ir.patterns import Path
from symflops.support.findings import Diagnostic, Span

IsPast = Callable[[Expr], bool]
"""A function that returns whether the index of an iteration is at least the given index."""


class SelectedIterations:
    """The selectors for the index of one repeat in a regime's patterns, such as ``:8`` in ``blocks.:8.*``.

    The repeat iterates over the module ``lists``, at indices from ``start`` up to, not including, ``end``.
    """

    def __init__(self, graph: GraphBuilder, lists: Sequence[Path], start: Expr, end: Expr) -> None:
        self.lists, self.start, self.end = lists, start, end
        self.selectors = tuple(dict.fromkeys(name for path in lists for name in graph.selectors(path)))

    def cuts(self) -> list[Expr]:
        """Indices at which to cut the repeat, so that a selector covers a segment entirely or not at all."""
        points = [point for selector in self.selectors for point in self._run(selector)[:2]]
        inner = (point for point in points if not (point - self.start).is_nonpositive and not (self.end - point).is_nonpositive)
        return list(dict.fromkeys(inner))

    @property
    def period(self) -> int:
        """The least common multiple of the selectors' steps, in iterations."""
        return lcm(1, *(self._run(selector)[2] for selector in self.selectors))

    def note(self, graph: GraphBuilder, position: Expr, is_past: IsPast, span: Span) -> None:
        """Record in ``graph`` which selectors choose the iteration at index ``position``.

        ``is_past`` returns whether ``position`` is at least a given index.
        """
        chosen = frozenset(name for name in self.selectors if self._chooses(name, position, is_past, span))
        if not position.is_Integer:
            graph.chosen[position] = chosen
        elif chosen:
            graph.listed.update({(path, int(position)): chosen for path in self.lists})

    def _run(self, selector: str) -> tuple[Expr, Expr, int]:
        """Parse a selector into (start, stop, step), as of a Python range."""
        if ":" not in selector:
            first = self._point(selector, self.start)
            return first, first + 1, 1
        low, high, step = [*selector.split(":"), "", ""][:3]
        return self._point(low, self.start), self._point(high, self.end), max(1, int(step or 1))

    def _point(self, text: str, default: Expr) -> Expr:
        """Parse an index; a negative one counts from the end, an empty one is ``default``."""
        if not text:
            return default
        return self.end + int(text) if text.startswith("-") else Integer(int(text))

    def _chooses(self, selector: str, position: Expr, is_past: IsPast, span: Span) -> bool:
        """Whether a selector chooses the iteration at index ``position``."""
        first, last, step = self._run(selector)
        if not is_past(first) or is_past(last):
            return False
        if step == 1:
            return True
        constant, rest = expand(position - first).as_coeff_Add()
        if any(factor % step for factor in rest.as_coefficients_dict().values()) or not constant.is_Integer:
            message = f"the pattern component '{selector}' cannot be counted in this repeat, which other patterns cut elsewhere"
            hint = "count from an index that is a number"
            raise UnknownSizeError("", Diagnostic("bad-pattern", message, span, hint))
        return bool(constant % step == 0)
