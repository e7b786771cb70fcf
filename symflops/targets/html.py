"""The HTML target: a derivation page with a calculator, a plot and a graph, which works from a file without a network.

Formulas stand in the page as LaTeX, which KaTeX sets where scripts run; figures come from the program's own estimator in
JavaScript, which the page carries or loads.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.model.formula import ZERO, Formula, evaluate, symbols
from symflops.model.program import Field, Program, StreamInfo
from symflops.model.verification import Verification
from symflops.targets.abbreviations import abbreviated
from symflops.targets.latex_printer import LatexPrinter, letters, moment_rows
from symflops.targets.lines import aligned, fold
from symflops.targets.page import Cell, Form, Page, default_sizes, located, page
from symflops.targets.python_printer import PythonPrinter
from symflops.targets.rendering import template

LINE = 560.0
"""How wide a line of a formula may be, in points; what is wider is folded, and scrolls within its box on a phone."""

SECTIONS = (
    ("calculator", "Calculator"), ("growth", "Over length"), ("regimes", "Regimes and conventions"), ("graph", "The model"),
    ("sizes", "Sizes"), ("streams", "Streams and moments"), ("modules", "What each module does"),
    ("passes", "Both passes"), ("forms", "Closed forms"), ("ratio", "Backward over forward"), ("parameters", "Parameters"),
    ("verified", "Verification"),
)  # fmt: skip
TIMES = " \u00d7 "
FAMILIES = {
    "nn": "torch.nn", "language": "Language", "diffusion": "Diffusion", "vision": "Vision", "audio": "Audio",
    "multimodal": "Multimodal",
}  # fmt: skip
SHOWN = ("full", "forward")
"""The regimes whose operators and closed forms a page prints, of those that it has; the calculator has all."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The elements that bring a page its style sheets and scripts, as links or with all that they hold."""

    styles: str
    scripts: str


@dataclass(frozen=True, slots=True)
class Preset:
    """Sizes and a batch that the calculator offers: what a config says, and one entry per item and stream."""

    label: str
    config: Mapping[str, Any]
    batch: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a page shows beside a program: where it stands, its presets, its graph, and its estimators.

    ``estimators`` are the keys under which their scripts register, that of the program first, each with the address of its
    script, which is empty where the page carries it.
    """

    family: str
    presets: tuple[Preset, ...]
    drawing: str
    estimators: tuple[tuple[str, str], ...]
    home: str = ""


def render(program: Program, version: str, verified: Sequence[Verification], setting: Setting, resources: Resources) -> str:
    """The page of ``program``."""
    names = [regime.name for regime in program.regimes]
    shown = page(abbreviated(program.showing([name for name in names if name in SHOWN] or names)), verified)
    words = _Words(shown)
    context = words.context() | _calculator(program, setting) | _head(program, shown, setting)
    return template("html/derivation.html.jinja").render(version=version, resources=resources, home=setting.home, **context)


def escape(text: object) -> str:
    """Any text as HTML text, also within the quotes of an attribute."""
    return html.escape(" ".join(str(text).split()))


def code(text: str) -> str:
    """A name, which may break after its separators."""
    broken = escape(text).replace(".", ".<wbr>").replace("_", "_<wbr>")
    return f"<code>{broken}</code>"


def tex(text: str) -> str:
    """A formula within a line; a number is one as it is."""
    return f'<span class="num">{text}</span>' if text.isdecimal() else f'<span class="tex">{html.escape(text)}</span>'


def carried(value: object) -> str:
    """JSON that stands within a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


class _Words:
    """What the template calls to place formulas and names."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.names = letters(page.program)
        self.printer = LatexPrinter(self.names)

    def context(self) -> dict[str, Any]:
        """The names of the template."""
        return {
            "page": self.page, "text": escape, "code": code, "math": self.math, "tex": tex,
            "latex": self.printer.text, "symbol": self.printer.symbol, "display": self.display, "total": self.total,
            "cells": self.cells, "zero": ZERO, "default": self.default, "once": "" in self.names.values(),
            "moments": moment_rows(self.page.program, self.names, self.printer), "names": names, "count": "{:,}".format,
            "signed": "{:+,}".format, "located": located, "capital": capital, "program": self.page.program,
        }  # fmt: skip

    def math(self, formula: Formula) -> str:
        """A formula within a line."""
        return tex(self.printer.text(formula))

    def display(self, form: Form) -> str:
        """A closed form as an alignment with its number."""
        terms = [self.printer.term(formula, self.names[f"moment@{position}"], LINE) for position, formula in form.terms]
        return alignment(aligned(form.name, terms), rf"\tag{{{form.number}}}")

    def total(self, head: str, formula: Formula) -> str:
        """A count as an alignment."""
        return alignment(aligned(head, [fold(self.printer.text(formula), LINE)]))

    def cells(self, cells: Sequence[Cell]) -> str:
        """How often gradients are computed, with the letters of their notes."""
        return ", ".join(self.math(cell.count) + (f"<sup>{cell.note}</sup>" if cell.note else "") for cell in cells)

    def default(self, field: Field) -> str:
        """The default of a size."""
        match field.default:
            case None:
                return "required" if field.required else "none"
            case bool():
                return "true" if field.default else "false"
            case str() | tuple():
                return code(field.default if isinstance(field.default, str) else json.dumps(field.default))
        return self.math(field.default)


def alignment(rows: Sequence[str], tag: str = "") -> str:
    """Rows of an alignment as a formula that stands alone, and scrolls where it is too wide."""
    body = " \\\\\n".join(rows)
    text = html.escape(f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}{tag}")
    box = '<div class="scroll formula" tabindex="0" role="group" aria-label="formula">'
    return f'{box}<div class="tex display">{text}</div></div>'


def names(texts: Sequence[str]) -> str:
    """Names in a sentence."""
    printed = [code(text) for text in texts]
    return printed[0] if len(printed) == 1 else f"{', '.join(printed[:-1])} and {printed[-1]}" if printed else ""


def capital(text: str) -> str:
    """A phrase as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def title_of(title: str, name: str) -> str:
    """The name of a model as people write it: what its title begins with, else its name."""
    head = title.partition(",")[0].partition(":")[0].strip()
    return head if 0 < len(head) <= 60 else name


def short_title(program: Program) -> str:
    """The name of a program's model as people write it."""
    return title_of(program.title, program.name)


def about(title: str, short: str) -> str:
    """What a title says beside the name."""
    return capital(title[len(short) :].lstrip(",:; ") if title.startswith(short) else title)


def default_parameters(program: Program) -> int | None:
    """Parameters at the default sizes; None where a config must give one."""
    sizes = default_sizes(program)
    return None if sizes is None else int(evaluate(program.parameters, sizes))


def family_title(group: str) -> str:
    """The name of a family of models."""
    return FAMILIES.get(group, capital(group))


def _head(program: Program, shown: Page, setting: Setting) -> dict[str, Any]:
    cases = sum(len(item.cases) for item in shown.verified)
    facts = []
    if shown.default_parameters is not None:
        facts.append(("Parameters", f"{shown.default_parameters:,}", "at the default sizes"))
    facts.append(("Spec", program.name, ""))
    if cases:
        facts.append(("Verified", f"{cases} measured {'case' if cases == 1 else 'cases'}", "equal to the last FLOP"))
    hidden = {"graph"} if not setting.drawing else set()
    return {
        "short": short_title(program), "about": about(program.title, short_title(program)), "facts": facts,
        "family": family_title(setting.family), "drawing": setting.drawing,
        "sections": [(id, name) for id, name in SECTIONS if id not in hidden],
        "description": f"Parameters and FLOPs of {short_title(program)} in closed form, with an exact calculator.",
    }  # fmt: skip


def _calculator(program: Program, setting: Setting) -> dict[str, Any]:
    regimes = [(regime.name, regime.doc) for regime in program.regimes]
    conventions = [(name, convention_doc(program, name)) for name in program.conventions]
    streams = [(stream, stream_note(stream)) for stream in program.streams if stream.given]
    data = {
        "name": program.name,
        "estimators": setting.estimators,
        "regimes": dict(regimes),
        "conventions": dict(conventions),
        "streams": {stream.name: [stream.variables, stream.counts, stream.optional] for stream, _ in streams},
        "presets": [{"label": preset.label, "config": preset.config, "batch": preset.batch} for preset in setting.presets],
        "batch": setting.presets[0].batch if setting.presets else {},
        "fields": {field.attribute: [field.keys[0], field.kind, field.nullable] for field in program.fields},
    }
    return {
        "data": carried(data),
        "presets": [(preset.label, preset.label) for preset in setting.presets],
        "regimes": regimes,
        "conventions": conventions,
        "streams": streams,
        "axes": any(len(stream.variables) > 1 for stream, _ in streams),
        "inputs": [(field, size_note(field, program)) for field in program.fields],
    }


def convention_doc(program: Program, name: str) -> str:
    """What a convention of a program counts of attention."""
    pairs, lengths = dict(program.pairs)[name], dict(program.lengths)[name]
    if program.padded:
        return "padding counted" if lengths == "padded" else "useful work, without padding"
    return "useful pairs of masked attention" if pairs == "useful" else "all pairs of masked attention"


def stream_note(stream: StreamInfo) -> str:
    """What an entry of a stream is."""
    if stream.counts:
        return f"the number of {stream.items}"
    return f"{TIMES.join(stream.variables)} per item of {stream.items}" + (", may be left out" if stream.optional else "")


def size_note(field: Field, program: Program) -> str:
    """What a size is, and the formula of its default where that is of other sizes."""
    notes = [field.doc] if field.doc else []
    if (
        field.default is not None
        and not isinstance(field.default, (bool, str, tuple))
        and any(True for _ in symbols(field.default))
    ):
        names = {other.letter: other.attribute for other in program.fields}
        notes.append(f"default {PythonPrinter(names).text(field.default)}")
    return "; ".join(notes)
