"""The closed form of a length at which two costs are equal, as displayed lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symflops.analysis.item_analysis import Crossover
from symflops.emit.math.lines import LINE, width
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.alignments import STAR
from symflops.emit.page.tree import Line, Math, Scaled, Words
from symflops.emit.page.writing import math
from symflops.model.formula import ONE, ZERO, Formula, Sym, brackets

COEFFICIENTS = (r"\alpha", r"\beta", r"\gamma")
SHORT = 120.0
"""Points beside a fraction in its row."""


class Roots:
    """The lines of crossovers in the length ``letter``."""

    def __init__(self, letter: str, printer: LatexPrinter) -> None:
        self.letter, self.printer = letter, printer

    def lines(self, found: Crossover) -> list[Line]:
        """A quotient, or the root of a square polynomial with its coefficients."""
        return list(self.quotient(found) if found.kind == "quotient" else self.root(found))

    def linear(self, found: Crossover) -> Words:
        """What a root is if its square coefficient vanishes, which only a condition makes it do."""
        if found.kind != "root" or not any(True for _ in brackets([found.square])):
            return ()
        a, b, c = COEFFICIENTS
        return (" (", math(f"-{c} / {b}"), " where ", math(a), " is 0)")

    def root(self, found: Crossover) -> Iterator[Line]:
        """The positive root of a square polynomial, then its coefficients."""
        a, b, c = COEFFICIENTS
        root = rf"\frac{{-{b} + \sqrt{{{b}^{{2}} - 4 {a} {c}}}}}{{2 {a}}}"
        yield Line(self.star(), (math(f"-{b} / {a}" if found.constant == ZERO else root),))
        yield from defined((found.square, found.linear, found.constant))

    def quotient(self, found: Crossover) -> Iterator[Line]:
        """A quotient; if it is too wide, of two letters that are defined below."""
        if found.below == ONE:
            yield Line(self.star(), (Scaled(found.above),))
            return
        if max(width(self.printer.text(part)) for part in (found.above, found.below)) <= LINE - SHORT:
            yield Line(self.star(), (math(r"\frac{", found.above, "}{", found.below, "}"),))
            return
        yield Line(self.star(), (math(r"\alpha / \beta"),))
        yield from defined((found.above, found.below))

    def star(self) -> Math:
        """The length at which both cost the same."""
        return math(Sym(self.letter), STAR)


def defined(formulas: Iterable[Formula]) -> Iterator[Line]:
    """Lines that define the Greek letters of coefficients."""
    for name, formula in zip(COEFFICIENTS, formulas, strict=False):
        yield Line(math(name), (Scaled(formula),))
