"""The closed forms of a derivation in notebooks, as Markdown with math or as LaTeX."""

from __future__ import annotations

from collections.abc import Iterator

from symflops.emit.markdown.document import MarkdownPage
from symflops.emit.math.abbreviations import abbreviated
from symflops.emit.math.plain_words import with_plain_words
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.math.shortest import COUNT, PART
from symflops.emit.page.alignments import aligned
from symflops.emit.page.tree import Code, Emphasis, Line, Scaled, Words
from symflops.emit.page.writing import letter, series
from symflops.model.formula import Sym
from symflops.model.program import Case, Program
from symflops.runtime.units import NAMES


class Shown:
    """A derivation of one regime under one convention, which notebooks display."""

    program: Program
    case: Case

    def _repr_latex_(self) -> str:
        short = abbreviated(with_plain_words(self.program))
        printer = LatexPrinter(letters(short))
        lines = _lines(short, short.case(self.case.regime, self.case.convention))
        rows = " \\\\\n".join(aligned(lines, printer))
        return f"$$\n\\begin{{aligned}}\n{rows}\n\\end{{aligned}}\n$$"

    def _repr_markdown_(self) -> str:
        program, case, printer = self.program, self.case, MarkdownPage({})
        name = Emphasis((Emphasis((Code(program.name),)),))
        head = (
            name,
            ", regime ",
            Code(case.regime),
            ", convention ",
            Code(case.convention),
            f": parameters and {NAMES[program.row(case.convention).unit]} per batch",
        )
        sums: list[Words] = [
            (Code(moment.name), f" over the {moment.items}") for moment in program.moments if not moment.constant
        ]
        told = ("Moments are sums of lengths: ", *series(sums), ".") if sums else ()
        return "\n\n".join([printer.words(head), self._repr_latex_(), printer.words(told)]).rstrip()


def _lines(program: Program, case: Case) -> Iterator[Line]:
    """The parameters, the closed forms, and the counts of layers in them."""
    yield Line("parameters", (Scaled(program.regime(case.regime).parameters),))
    for name, terms in (("forward", case.forward), ("backward", case.backward), ("recomputed", case.recomputed)):
        if terms:
            yield Line(name, tuple(Scaled(formula, Sym(program.sum_key(place, case.convention))) for place, formula in terms))
    for definition in program.definitions:
        if definition.letter.startswith((COUNT, PART)):
            yield Line(letter(definition.letter), (Scaled(definition.formula),))
