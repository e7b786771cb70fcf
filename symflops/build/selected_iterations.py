"""Selects iterations of a repeat by the patterns of a regime: where they cut it, and which of them choose an iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm
from typing import TYPE_CHECKING

from sympy import Expr, Integer, expand

from symflops.algebra.unknown_size import UnknownSizeError
from symflops.diagnostics.findings import Diagnostic, Span
from symflops.model.path import Path
from symflops.model.patterns import selectors

if TYPE_CHECKING:
    from symflops.build.state import Registry


class Chooser:
    """The selectors of patterns at the index of a repeat's module lists, which runs from ``start`` to ``end``."""

    def __init__(self, patterns: Sequence[str], lists: Sequence[Path], start: Expr, end: Expr) -> None:
        self.lists, self.start, self.end = lists, start, end
        self.selectors = tuple(dict.fromkeys(name for path in lists for name in selectors(patterns, path)))

    def run(self, selector: str) -> tuple[Expr, Expr, int]:
        """The first index, the one past the last, and the step of a selector."""
        if ":" not in selector:
            first = self.point(selector, self.start)
            return first, first + 1, 1
        low, high, step = [*selector.split(":"), "", ""][:3]
        return self.point(low, self.start), self.point(high, self.end), max(1, int(step or 1))

    def point(self, text: str, otherwise: Expr) -> Expr:
        """An index as written, counted from the end where it is negative."""
        if not text:
            return otherwise
        return self.end + int(text) if text.startswith("-") else Integer(int(text))

    def cuts(self) -> list[Expr]:
        """Where the repeat must be cut so that each selector holds for all of a segment or for none of it."""
        points = [point for selector in self.selectors for point in self.run(selector)[:2]]
        inner = (point for point in points if not (point - self.start).is_nonpositive and not (self.end - point).is_nonpositive)
        return list(dict.fromkeys(inner))

    @property
    def step(self) -> int:
        """After how many iterations the selectors with a step come round again."""
        return lcm(1, *(self.run(selector)[2] for selector in self.selectors))

    def chosen(self, position: Expr, past: Callable[[Expr], bool], span: Span) -> frozenset[str]:
        """The selectors that choose the iteration at index ``position``."""
        return frozenset(name for name in self.selectors if self.holds(name, position, past, span))

    def note(self, builder: Registry, position: Expr, past: Callable[[Expr], bool], span: Span) -> None:
        """Let the graph know which selectors choose the iteration at index ``position``."""
        found = self.chosen(position, past, span)
        if not position.is_Integer:
            builder.chosen[position] = found
        elif found:
            builder.listed.update({(path, int(position)): found for path in self.lists})

    def holds(self, selector: str, position: Expr, past: Callable[[Expr], bool], span: Span) -> bool:
        """Whether a selector chooses the iteration at index ``position``; ``past`` says whether it is at least some index."""
        first, last, step = self.run(selector)
        if not past(first) or past(last):
            return False
        if step == 1:
            return True
        constant, rest = expand(position - first).as_coeff_Add()
        if any(factor % step for factor in rest.as_coefficients_dict().values()) or not constant.is_Integer:
            message = f"the pattern component '{selector}' cannot be counted in this repeat, which other patterns cut elsewhere"
            raise UnknownSizeError("", Diagnostic("bad-pattern", message, span, "count from an index that is a number"))
        return bool(constant % step == 0)
