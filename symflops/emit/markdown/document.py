"""The Markdown target: a derivation page as GitHub and KaTeX show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from symflops.emit.math.abbreviations import abbreviated
from symflops.emit.math.lines import aligned, fold, width
from symflops.emit.math.printer import LatexPrinter, letters, moment_rows
from symflops.emit.page.fragments import PIECES, fragments
from symflops.emit.page.page import located, page
from symflops.emit.page.phrases import WIDEST, AnalysisWords, Display
from symflops.emit.page.types import Cell, Form, Page
from symflops.emit.page.worked_figures import worked
from symflops.emit.rendering import template
from symflops.model.formula import ZERO, Formula
from symflops.model.program import Field, Program
from symflops.model.verification import Verification

SPACE = r"\thinspace"  # a backslash before a comma is an escape in Markdown, which would reach the formula as a comma
ROW = " \\cr\n"  # as is a doubled backslash


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The page of ``program``."""
    return render_page(page(abbreviated(program), verified, worked(program)), version)


def render_page(shown: Page, version: str) -> str:
    """The page of a page."""
    return template("derivation.md.jinja").render(version=version, **_Words(shown).context())


def render_fragments(program: Program, version: str) -> dict[str, str]:
    """What pastes into another page, by the names of ``PIECES``: closed forms and two tables."""
    found = fragments(abbreviated(program))
    context = _Words(found.page).context()
    return {name: template(f"{name}.md.jinja").render(version=version, found=found, **context) for name in PIECES}


def escape(text: str) -> str:
    """Any text as Markdown text, also within a table."""
    return re.sub(r"([\\`*_\[\]<>|$#~&])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """A name in a code span, also within a table: a bar is escaped there, a backtick makes the fence longer."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}".replace("|", r"\|")


class _Words:
    """What the template calls to place formulas and names."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.names = letters(page.program) | dict(page.letters)
        self.names = {name: text.replace(r"\,", f"{SPACE} ") for name, text in self.names.items()}
        self.printer = LatexPrinter(self.names, SPACE)
        self.grows = AnalysisWords(page, self.printer)

    def context(self) -> dict[str, object]:
        """The names of the template."""
        return {
            "page": self.page, "program": self.page.program, "grows": self.grows, "rows": self.rows,
            "text": escape, "code": code, "math": self.math,
            "symbol": self.printer.symbol, "display": self.display, "total": self.total, "cells": self.cells,
            "short": self.short, "sentence": sentence, "zero": ZERO,
            "default": self.default, "once": "" in self.names.values(), "moments": self.moments(),
            "names": names, "count": "{:,}".format, "signed": "{:+,}".format, "located": located,
            "comment": lambda text: re.sub(r"--+", "-", re.sub(r"[^ -~]", "?", text)),
        }  # fmt: skip

    def math(self, formula: Formula) -> str:
        """A formula within a line."""
        return f"${self.printer.text(formula)}$"

    def short(self, formula: Formula) -> str:
        """A formula within a line; nothing where it is long."""
        text = self.printer.text(formula)
        return self.math(formula) if width(text) <= WIDEST else ""

    def display(self, form: Form) -> str:
        """A closed form as the rows of an alignment."""
        terms = [self.printer.term(formula, self.names[f"moment@{position}"]) for position, formula in form.terms]
        return ROW.join(aligned(form.name, terms))

    @staticmethod
    def rows(display: Display) -> str:
        """The rows of an alignment."""
        return ROW.join(display.rows)

    def total(self, head: str, formula: Formula) -> str:
        """A count as the rows of an alignment."""
        return ROW.join(aligned(head, [fold(self.printer.text(formula))]))

    def cells(self, cells: Sequence[Cell]) -> str:
        """How often gradients are computed, with the letters of their notes."""
        return ", ".join(self.math(cell.count) + (f" <sup>{cell.note}</sup>" if cell.note else "") for cell in cells)

    def default(self, field: Field) -> str:
        """The default of a size."""
        match field.default:
            case None:
                return "required" if field.required else "none"
            case bool():
                return "true" if field.default else "false"
            case str() | tuple():
                return code(field.default if isinstance(field.default, str) else str(list(field.default)))
        return self.math(field.default)

    def moments(self) -> list[tuple[str, str, str]]:
        """Moments, and what they hold of the batch as a whole: symbol, sum, and what it is over."""
        return moment_rows(self.page.program, self.names, self.printer)


def sentence(text: str) -> str:
    """A text as a sentence."""
    return escape(f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else "")


def names(texts: Sequence[str]) -> str:
    """Names in a sentence."""
    printed = [code(text) for text in texts]
    return printed[0] if len(printed) == 1 else f"{', '.join(printed[:-1])} and {printed[-1]}" if printed else ""
