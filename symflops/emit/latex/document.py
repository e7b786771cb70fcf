"""The LaTeX target: a derivation page as one document that pdflatex compiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import ceil

from symflops.emit.math.abbreviations import abbreviated
from symflops.emit.math.lines import LINE, fold, width
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.page.fragments import PIECES, Fragments, fragments
from symflops.emit.page.markup import Markup
from symflops.emit.page.page import page
from symflops.emit.page.types import Page
from symflops.emit.page.worked_figures import worked
from symflops.emit.rendering import template
from symflops.model.formula import Formula
from symflops.model.program import Definition, Program
from symflops.model.verification import Verification

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\textquotedbl{}", "'": "'", "`": r"\textasciigrave{}", "\u2013": "--",
    "\u2014": "---", "\u2019": "'", "\u201c": "``", "\u201d": "''",
    "→": r"$\to$", "\u00d7": r"$\times$", "≤": r"$\le$", "≥": r"$\ge$", "…": r"\dots{}", "-": "-", "\n": " ",
}  # fmt: skip
NOTE = r"\,\textsuperscript{{\textit{{{}}}}}"
FRAGMENT_LINE, NARROW = 220.0, 70.0  # points: a term beside its head and its number, and a cell, in a text 345 points wide
WORD = 8  # letters of a long word that stay together
CELL, LINES = 90.0, 36  # points of one line in a cell of a fragment's table, and lines of a table that fits on a page


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The document of ``program``."""
    return render_page(page(abbreviated(program), verified, worked(program)), version)


def render_page(shown: Page, version: str) -> str:
    """``shown`` as a LaTeX document."""
    return template("derivation.tex.jinja").render(version=version, **_Context(shown).context())


def render_fragments(program: Program, version: str) -> dict[str, str]:
    """Pieces to paste into a paper, by the names of ``PIECES``: an alignment and two tables, without a preamble."""
    found = fragments(abbreviated(program))
    shown = _Context(found.page, FRAGMENT_LINE, r"\,\penalty900")
    context = {**shown.context(), "version": version, "found": found, "tall": shown.tall(found)}
    return {name: template(f"{name}.tex.jinja").render(context) for name in PIECES}


def escape(text: str) -> str:
    """``text`` escaped for LaTeX; characters that the fonts may lack become their code points."""
    if text.isascii() and text.isalnum():
        return text
    return "".join(SPECIAL.get(character) or _plain(character) for character in text)


def signed(number: int) -> str:
    """A difference with its sign."""
    return f"${number:+,}$".replace(",", "{,}")


def _plain(character: str) -> str:
    return character if 32 <= ord(character) < 127 or 192 <= ord(character) < 383 else f"U+{ord(character):04X}"


@lru_cache(maxsize=1 << 12)
def code(text: str) -> str:
    """A name in the typewriter face; it may break after separators, before capitals, and at need within long words."""
    pieces = re.findall(r"[A-Z][a-z0-9]+|[._/-]|[^._/A-Z-]+|[A-Z]", text)
    breakable = ""
    for piece in pieces:
        if breakable and (piece[0].isupper() and breakable[-1].islower()):
            breakable += r"\allowbreak{}"
        words = [piece[start : start + WORD] for start in range(0, len(piece), WORD)] if len(piece) > WORD + 2 else [piece]
        breakable += r"\penalty500{}".join(map(escape, words)) + (r"\allowbreak{}" if piece in "._/-" else "")
    return rf"\texttt{{{breakable.removesuffix(chr(92) + 'allowbreak{}')}}}"


class _Context:
    """The names that the templates use."""

    def __init__(self, page: Page, line: float = LINE, thin: str = r"\thin") -> None:
        self.page = page
        self.line = line
        self.names = letters(page.program) | dict(page.letters)
        self.printer = LatexPrinter(self.names)
        self.inline = LatexPrinter(self.names, thin, thin)
        self.markup = Markup(page, self.names, self.printer, escape, code, self.math, NOTE, line=line)

    def context(self) -> dict[str, object]:
        """By name, what the templates call and place."""
        return self.markup.context() | {
            "defined": self.defined,
            "signed": signed,
            "comment": lambda text: re.sub(r"[^ -~]", "?", text),
        }

    def math(self, formula: Formula) -> str:
        """A formula within a line."""
        plain = self.printer.text(formula)
        return f"${self.inline.text(formula) if self.line == LINE or width(plain) > NARROW else plain}$"

    def defined(self, definition: Definition) -> str:
        """A derived size as rows of an alignment."""
        first, *rest = fold(self.printer.text(definition.formula), self.line)
        return " \\\\\n".join([f"{definition.latex} &= {first}", *(rf"&\qquad {{}}{line}" for line in rest)])

    def tall(self, found: Fragments) -> dict[str, bool]:
        """The tables that may be higher than a page."""
        cells = {
            "symbols": [[5.0 * len(field.doc), 6.0 * sum(map(len, field.keys))] for field in self.page.program.fields],
            "modules": [
                [6.0 * len(row.module), width(self.printer.text(row.parameters)), width(self.printer.text(row.term))]
                for row in found.modules
            ],
        }
        program = self.page.program
        others = [*program.definitions, *self.page.streams, *program.statistics, *program.moments]
        cells["symbols"] += [[0.0] for _ in others]
        return {name: sum(ceil(max(*row, 1.0) / CELL) for row in rows) > LINES for name, rows in cells.items()}
