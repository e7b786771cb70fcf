"""The Markdown target: a derivation page as GitHub and KaTeX show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from symflops.emit.math.abbreviations import abbreviated
from symflops.emit.math.lines import aligned, fold
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.page.fragments import PIECES, fragments
from symflops.emit.page.markup import Markup
from symflops.emit.page.page import page
from symflops.emit.page.phrases import Display
from symflops.emit.page.types import Form, Page
from symflops.emit.page.worked_figures import worked
from symflops.emit.rendering import template
from symflops.model.formula import Formula
from symflops.model.program import Program
from symflops.model.verification import Verification

SPACE = r"\thinspace"  # not a backslash and a comma, which Markdown turns into a comma
ROW = " \\cr\n"  # not a doubled backslash, which Markdown turns into one


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The page of ``program``."""
    return render_page(page(abbreviated(program), verified, worked(program)), version)


def render_page(shown: Page, version: str) -> str:
    """``shown`` in Markdown."""
    return template("derivation.md.jinja").render(version=version, **_Context(shown).context())


def render_fragments(program: Program, version: str) -> dict[str, str]:
    """Pieces to paste into another page, by the names of ``PIECES``: closed forms and two tables."""
    found = fragments(abbreviated(program))
    context = _Context(found.page).context()
    return {name: template(f"{name}.md.jinja").render(version=version, found=found, **context) for name in PIECES}


def escape(text: str) -> str:
    """``text`` escaped for Markdown, also within a table."""
    return re.sub(r"([\\`*_\[\]<>|$#~&])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """``text`` as a code span, also within a table: bars are escaped, and backticks in it make the fence longer."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}".replace("|", r"\|")


class _Context:
    """The names that the templates use."""

    def __init__(self, page: Page) -> None:
        names = letters(page.program) | dict(page.letters)
        self.names = {name: text.replace(r"\,", f"{SPACE} ") for name, text in names.items()}
        self.printer = LatexPrinter(self.names, SPACE)
        self.markup = Markup(page, self.names, self.printer, escape, code, self.math, " <sup>{}</sup>")

    def context(self) -> dict[str, object]:
        """By name, what the templates call and place."""
        return self.markup.context() | {
            "rows": self.rows,
            "display": self.display,
            "total": self.total,
            "comment": lambda text: re.sub(r"--+", "-", re.sub(r"[^ -~]", "?", text)),
        }

    def math(self, formula: Formula) -> str:
        """A formula within a line."""
        return f"${self.printer.text(formula)}$"

    def display(self, form: Form) -> str:
        """A closed form as rows of an alignment."""
        terms = [self.printer.term(formula, self.names[f"moment@{position}"]) for position, formula in form.terms]
        return ROW.join(aligned(form.name, terms))

    @staticmethod
    def rows(display: Display) -> str:
        """The rows of an alignment."""
        return ROW.join(display.rows)

    def total(self, head: str, formula: Formula) -> str:
        """A count as rows of an alignment."""
        return ROW.join(aligned(head, [fold(self.printer.text(formula))]))
