"""The Markdown target: a derivation page as GitHub and KaTeX show it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from symflops.emit.math.abbreviations import abbreviated
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.page.fragments import PIECES, fragments
from symflops.emit.page.markup import Markup, joined
from symflops.emit.page.page import page
from symflops.emit.page.types import Page
from symflops.emit.page.worked_figures import worked
from symflops.emit.rendering import template
from symflops.model.formula import Formula
from symflops.model.program import Program
from symflops.model.verification import Verification

SPACE = r"\thinspace"  # not a backslash and a comma, which Markdown turns into a comma
ROW = r" \cr"  # not a doubled backslash, which Markdown turns into one


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The page of ``program``."""
    return render_page(page(abbreviated(program), verified, worked(program)), version)


def render_page(shown: Page, version: str) -> str:
    """``shown`` in Markdown."""
    return template("derivation.md.jinja").render(version=version, **_context(shown))


def render_fragments(program: Program, version: str) -> dict[str, str]:
    """Pieces to paste into another page, by the names of ``PIECES``: closed forms and two tables."""
    found = fragments(abbreviated(program))
    context = _context(found.page)
    return {name: template(f"{name}.md.jinja").render(version=version, found=found, **context) for name in PIECES}


def escape(text: str) -> str:
    """``text`` escaped for Markdown, also within a table."""
    return re.sub(r"([\\`*_\[\]<>|$#~&])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """``text`` as a code span, also within a table: bars are escaped, and backticks in it make the fence longer."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}".replace("|", r"\|")


def _context(page: Page) -> dict[str, object]:
    """The names that the templates use."""
    names = letters(page.program) | dict(page.letters)
    names = {name: text.replace(r"\,", f"{SPACE} ") for name, text in names.items()}
    printer = LatexPrinter(names, SPACE)

    def math(formula: Formula) -> str:
        return f"${printer.text(formula)}$"

    markup = Markup(page, names, printer, escape, code, math, " <sup>{}</sup>", block=partial(joined, usual=ROW))
    return markup.context() | {"comment": lambda text: re.sub(r"--+", "-", re.sub(r"[^ -~]", "?", text))}
