"""The closed forms of a derivation in notebooks, as Markdown with math or as LaTeX."""

from __future__ import annotations

from symflops.emit.markdown.document import code
from symflops.emit.math.abbreviations import abbreviated
from symflops.emit.math.lines import aligned, fold
from symflops.emit.math.plain_words import with_plain_words
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.model.program import Case, Program


class Shown:
    """A derivation of one regime under one convention, which notebooks display."""

    program: Program
    case: Case

    def _repr_latex_(self) -> str:
        rows = " \\\\\n".join(row for block in _rows(self.program, self.case) for row in block)
        return f"$$\n\\begin{{aligned}}\n{rows}\n\\end{{aligned}}\n$$"

    def _repr_markdown_(self) -> str:
        program, case = self.program, self.case
        what = f"regime {code(case.regime)}, convention {code(case.convention)}"
        head = f"**{code(program.name)}**, {what}: parameters and FLOPs per batch"
        sums = ", ".join(f"{code(moment.name)} over the {moment.items}" for moment in program.moments if not moment.constant)
        return "\n\n".join([head, self._repr_latex_(), f"Moments are sums of lengths: {sums}." if sums else ""]).rstrip()


def _rows(program: Program, case: Case) -> list[list[str]]:
    """The rows of an alignment, a block per closed form."""
    short = abbreviated(with_plain_words(program))
    names = letters(short)
    printer = LatexPrinter(names)
    case = short.case(case.regime, case.convention)
    blocks = [aligned("parameters", [fold(printer.text(short.regime(case.regime).parameters))])]
    for name, terms in (("forward", case.forward), ("backward", case.backward), ("recomputed", case.recomputed)):
        if terms:
            blocks.append(aligned(name, [printer.term(formula, names[f"moment@{place}"]) for place, formula in terms]))
    used = [definition for definition in short.definitions if definition.letter.startswith("count@")]
    blocks += [[rf"{definition.latex} ={{}}& {printer.text(definition.formula)}"] for definition in used]
    return blocks
