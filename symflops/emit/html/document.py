"""The HTML target: a derivation page with a calculator, a plot and a graph; it works from a file without a network.

Formulas are LaTeX, which KaTeX sets if scripts run. Figures come from the program's own estimator in JavaScript, which the page
contains or loads.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.emit.html.calculator import Setting, calculator
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.page.analysis import FORWARD
from symflops.emit.page.markup import Markup
from symflops.emit.page.types import Form, Page
from symflops.emit.page.typical_values import default_sizes
from symflops.emit.rendering import template
from symflops.model.formula import Formula, evaluate
from symflops.model.program import Program

LINE = 560.0
"""The width of a line of a formula in points; wider formulas are folded, and scroll within their box on a phone."""

SECTIONS = (
    ("calculator", "Calculator"), ("plotted", "Over length"), ("graph", "The model"), ("streams", "Streams"),
    ("modules", "Token scope"), ("definitions", "Definitions"), ("forms", "Closed forms"), ("passes", "Both passes"),
    ("ratio", "Why not twice forward"), ("growth", "How the cost grows"), ("regimes", "Regimes and conventions"),
    ("parameters", "Parameters"), ("verified", "Verification"),
)  # fmt: skip
FAMILIES = {
    "nn": "torch.nn", "language": "Language", "diffusion": "Diffusion", "vision": "Vision", "audio": "Audio",
    "multimodal": "Multimodal",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Resources:
    """The HTML elements of style sheets and scripts, as links or with their contents."""

    styles: str
    scripts: str


def render(program: Program, shown: Page, version: str, setting: Setting, resources: Resources) -> str:
    """The page of ``program`` with the derivation ``shown``; the calculator offers all regimes of the program."""
    context = _context(shown) | calculator(program, setting) | _head(program, shown, setting)
    return template("html/derivation.html.jinja").render(version=version, resources=resources, home=setting.home, **context)


def escape(text: object) -> str:
    """``text`` escaped for HTML, also within a quoted attribute."""
    return html.escape(" ".join(str(text).split()))


def code(text: str) -> str:
    """A name in the typewriter face; it may break after separators."""
    broken = escape(text).replace(".", ".<wbr>").replace("_", "_<wbr>")
    return f"<code>{broken}</code>"


def tex(text: str) -> str:
    """A formula within a line; a number needs no LaTeX."""
    return f'<span class="num">{text}</span>' if text.isdecimal() else f'<span class="tex">{html.escape(text)}</span>'


def _context(page: Page) -> dict[str, Any]:
    """The names that the template uses for formulas and text."""
    names = letters(page.program) | dict(page.letters)
    printer = LatexPrinter(names)

    def math(formula: Formula) -> str:
        return tex(printer.text(formula))

    markup = Markup(page, names, printer, escape, code, math, "<sup>{}</sup>", json.dumps, LINE, alignment)

    def display(form: Form) -> str:
        return markup.display(form, rf"\tag{{{form.number}}}")

    functions = {"display": display, "tex": tex, "latex": printer.text, "capital": capital, "phrases": phrases}
    return markup.context() | functions


def alignment(rows: Sequence[str], tag: str = "") -> str:
    """Rows of an alignment as a displayed formula, which scrolls if it is too wide."""
    body = " \\\\\n".join(rows)
    text = html.escape(f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}{tag}")
    box = '<div class="scroll formula" tabindex="0" role="group" aria-label="formula">'
    return f'{box}<div class="tex display">{text}</div></div>'


def phrases(texts: Sequence[str]) -> list[str]:
    """Phrases with math between dollar signs, as HTML."""
    return [
        "".join(tex(part) if place % 2 else escape(part) or part for place, part in enumerate(text.split("$")))
        for text in texts
    ]


def capital(text: str) -> str:
    """``text`` with a capital first letter."""
    return text[:1].upper() + text[1:]


def title_of(title: str, name: str) -> str:
    """The display name of a model: the beginning of its title, else its name."""
    head = title.partition(",")[0].partition(":")[0].strip()
    return head if 0 < len(head) <= 60 else name


def about(title: str, short: str) -> str:
    """The rest of a title after the name."""
    return capital(title[len(short) :].lstrip(",:; ") if title.startswith(short) else title)


def default_parameters(program: Program) -> int | None:
    """Parameters at the default sizes; None if a size has no default."""
    sizes = default_sizes(program)
    return None if sizes is None else int(evaluate(program.parameters, sizes))


def family_title(group: str) -> str:
    """The display name of a family of models."""
    return FAMILIES.get(group, capital(group))


def _head(program: Program, shown: Page, setting: Setting) -> dict[str, Any]:
    hidden = {"graph": not setting.drawing, "growth": not shown.analysis.items}
    short = title_of(program.title, program.name)
    return {
        "headline": short, "about": about(program.title, short), "facts": list(_facts(shown)),
        "family": family_title(setting.family), "drawing": setting.drawing,
        "sections": [(id, name) for id, name in SECTIONS if not hidden.get(id)],
        "description": f"Parameters and FLOPs of {short} in closed form, with an exact calculator.",
    }  # fmt: skip


def _facts(shown: Page) -> Iterator[tuple[str, str, str]]:
    """The key figures of a page: name, value, and a note."""
    if shown.default_parameters is not None:
        yield "Parameters", f"{shown.default_parameters:,}", "at the default sizes"
    if shown.worked and shown.worked.regimes[0].forward:
        first = shown.worked.regimes[0]
        if first.backward:
            yield "Backward over forward", f"{float(Fraction(first.backward, first.forward)):.4f}", f"regime {first.name}"
    grows = (growth for items in shown.analysis.items for growth in items.growth)
    crossed = [(growth, found) for growth in grows for found in growth.crossovers if found.value and found.work == FORWARD]
    for growth, found in crossed[:1]:
        yield "Attention overtakes", f"{found.value:,}", f"tokens of {' and '.join(growth.unknown.streams)}"
    cases = sum(len(item.cases) for item in shown.verified)
    if cases:
        yield "Verified", f"{cases} measured {'case' if cases == 1 else 'cases'}", "equal to the last FLOP"
