"""Text, names and formulas within a line: what the templates of all markups share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.emit.math.lines import LINE, aligned, fold, width
from symflops.emit.math.printer import LatexPrinter, moment_rows
from symflops.emit.page.page import located
from symflops.emit.page.phrases import WIDEST, AnalysisWords, Display
from symflops.emit.page.types import Cell, Form, Page
from symflops.model.formula import ZERO, Formula
from symflops.model.program import Field


def joined(rows: Sequence[str], end: str, usual: str = r" \\") -> str:
    """Rows of an alignment, with ``end`` or the ``usual`` end after each but the last."""
    return f"{end or usual}\n".join(rows)


@dataclass(frozen=True, slots=True)
class Markup:
    """How one markup sets text, names and formulas within a line.

    Attributes:
        page: what is shown.
        letters: how letters print, as :func:`symflops.emit.math.printer.letters` returns it.
        printer: prints formulas with these letters.
        text: escapes any text.
        code: sets a name in the typewriter face.
        math: sets a formula within a line.
        note: a format of the superscript letter of a note.
        listed: a format of the default of a size that is a list.
        line: the width of a line of an alignment, in points.
        block: joins the rows of an alignment; the second argument ends each but the last, or is empty for the usual end.
    """

    page: Page
    letters: Mapping[str, str]
    printer: LatexPrinter
    text: Callable[[str], str]
    code: Callable[[str], str]
    math: Callable[[Formula], str]
    note: str
    listed: Callable[[list[Any]], str] = str
    line: float = LINE
    block: Callable[[Sequence[str], str], str] = joined

    def context(self) -> dict[str, Any]:
        """The names that the templates of all markups use."""
        program = self.page.program
        return {
            "page": self.page, "program": program, "grows": AnalysisWords(self.page, self.printer, self.line),
            "text": self.text, "code": self.code, "math": self.math, "symbol": self.printer.symbol, "cells": self.cells,
            "short": self.short, "sentence": self.sentence, "default": self.default, "names": self.names,
            "moments": moment_rows(program, self.letters, self.printer), "once": "" in self.letters.values(),
            "display": self.display, "rows": self.rows, "total": self.total,
            "zero": ZERO, "count": "{:,}".format, "signed": "{:+,}".format, "located": located,
        }  # fmt: skip

    def display(self, form: Form, end: str = "") -> str:
        """A closed form as rows of an alignment, with ``end`` after each but the last."""
        names = [self.letters[f"moment@{position}"] for position, _ in form.terms]
        terms = [self.printer.term(formula, name, self.line) for (_, formula), name in zip(form.terms, names, strict=True)]
        return self.block(aligned(form.name, terms), end)

    def rows(self, *displays: Display) -> str:
        """Several displays as rows of one alignment."""
        return self.block([row for display in displays for row in display.rows], "")

    def total(self, head: str, formula: Formula, end: str = "") -> str:
        """A count as rows of an alignment, with ``end`` after each but the last."""
        return self.block(aligned(head, [fold(self.printer.text(formula), self.line)]), end)

    def short(self, formula: Formula) -> str:
        """A formula within a line; empty if it is too wide."""
        return self.math(formula) if width(self.printer.text(formula)) <= WIDEST else ""

    def cells(self, cells: Sequence[Cell]) -> str:
        """How often gradients are computed, with the letters of their notes."""
        return ", ".join(self.math(cell.count) + (self.note.format(cell.note) if cell.note else "") for cell in cells)

    def default(self, field: Field) -> str:
        """The default of a size."""
        match field.default:
            case None:
                return "required" if field.required else "none"
            case bool():
                return "true" if field.default else "false"
            case str():
                return self.code(field.default)
            case tuple():
                return self.code(self.listed(list(field.default)))
        return self.math(field.default)

    def sentence(self, text: str) -> str:
        """A text with a capital and a full stop."""
        return self.text(f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else "")

    def names(self, texts: Sequence[str]) -> str:
        """Names as a list in a sentence: ``a``, ``a and b``, ``a, b and c``."""
        *printed, last = map(self.code, texts) if texts else [""]
        return f"{', '.join(printed)} and {last}" if printed else last
