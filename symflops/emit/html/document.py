"""The HTML target: a derivation page with a calculator, and the index of a site."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.emit.html.calculator import Setting, calculator
from symflops.emit.html.curves import picture
from symflops.emit.page.printing import PagePrinter
from symflops.emit.page.tree import Bar, Block, Code, Document, Figure, Group, Line, Math, Plot, Section, Table, Words
from symflops.emit.page.writing import math_text
from symflops.emit.rendering import template
from symflops.evaluate.typical_values import default_sizes
from symflops.formula.formula import evaluate
from symflops.ir.program import Program

FAMILIES = {
    "nn": "torch.nn", "language": "Language", "diffusion": "Diffusion", "vision": "Vision", "audio": "Audio",
    "multimodal": "Multimodal", "papers": "Papers",
}  # fmt: skip


KEPT = 24
"""Maximum number of characters of a cell that never breaks."""

LONG = "-" * (KEPT + 1)


@dataclass(frozen=True, slots=True)
class Resources:
    """HTML elements for the style sheets and the scripts of a page, which link to them or contain them."""

    styles: str
    scripts: str


def render(program: Program, shown: Document, version: str, setting: Setting, resources: Resources) -> str:
    """Print the HTML page of ``program`` with the derivation ``shown`` and a calculator for all regimes."""
    words = {"code": code, "text": escape, "broken": broken}
    asked = {"program": program, "drawing": setting.drawing, **words, **calculator(program, setting)}
    figures = {
        part.id: template(f"html/{part.id}.html.jinja").render(figure=part, **asked)
        for part in figures_of(shown)
        if part.id != "graph" or setting.drawing
    }
    printer = HtmlPage(shown.letters, figures)
    short = title_of(program.title, program.name)
    return template("html/derivation.html.jinja").render(
        version=version, resources=resources, home=setting.home, program=program, shown=shown, data=asked["data"],
        text=escape, code=code, box=printer.box(shown.facts), headline=short, about=rest_of_title(program.title, short),
        family=family_title(setting.family), intro=printer.blocks(shown.intro), body=printer.blocks(shown.parts),
        contents=[
            (part.id, getattr(part, "short", "") or part.title)
            for part in shown.parts if isinstance(part, Section) or part.id in figures
        ],
        description=f"Parameters and FLOPs of {short} in closed form, with an exact calculator.",
    )  # fmt: skip


def figures_of(shown: Document) -> Iterator[Figure]:
    """Yield the drawings and interactive parts of a page."""
    for part in shown.parts:
        yield from (each for each in (part.blocks if isinstance(part, Section) else (part,)) if isinstance(each, Figure))


def escape(text: object) -> str:
    """Escape ``text`` for HTML, quoted attributes included."""
    return html.escape(re.sub(r"\s+", " ", str(text)))


def broken(text: str) -> str:
    """Escape ``text``, with possible line breaks after separators in names."""
    return re.sub(r"(?<=\w)(?:[._]|//)(?=\w)", r"\g<0><wbr>", escape(text))


def code(text: str) -> str:
    """Print a name in typewriter; it may break after separators."""
    return f"<code>{broken(text)}</code>"


def tex(text: str) -> str:
    """Print inline math; a plain number is printed as text."""
    return f'<span class="num">{text}</span>' if text.isdecimal() else f'<span class="tex">{html.escape(text)}</span>'


class HtmlPage(PagePrinter):
    """Printer of pages in HTML; ``figures`` maps the id of each :class:`Figure` to its HTML."""

    line = 560.0  # wider formulas are folded, and scroll within their box on a phone

    def __init__(self, letters: Mapping[str, str], figures: Mapping[str, str]) -> None:
        super().__init__(letters)
        self.figures = figures

    def text(self, text: str) -> str:
        return escape(text)

    def code(self, text: str) -> str:
        return code(text)

    def math(self, node: Math) -> str:
        return tex(math_text(node, self.printer))

    def emphasis(self, words: str) -> str:
        return f"<em>{words}</em>"

    def mark(self, letter: str) -> str:
        return f"<sup>{letter}</sup>"

    def link(self, address: str, words: str) -> str:
        return f'<a href="{escape(address)}">{words}</a>'

    def equation_link(self, number: int) -> str:
        return f'<a href="#eq-{number}">({number})</a>'

    def bar(self, node: Bar) -> str:
        dark, light = (f"{float(100 * share):.2f}" for share in (node.dark, node.light))
        one = f'<rect class="part-attention" width="{dark}" height="8"/>'
        return (
            f'<svg class="work" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{one}'
            f'<rect class="part-0" x="{dark}" width="{light}" height="8"/></svg>'
        )

    def joined(self, blocks: Sequence[tuple[Block | Section, str]]) -> str:
        return "\n".join(text for _, text in blocks)

    def section(self, node: Section) -> str:
        head = f'<h2 id="{node.id}-h">{escape(node.title)}</h2>'
        return f'\n<section id="{node.id}" aria-labelledby="{node.id}-h">\n{head}\n{self.blocks(node.blocks)}\n</section>'

    def heading(self, words: str) -> str:
        return f"<h3>{words}</h3>"

    def paragraph(self, words: str) -> str:
        return f"<p>{words}</p>"

    def boxed(self, figures: Sequence[tuple[str, str, str]]) -> str:
        shown = [(name, value + (note and f" <small>{note}</small>")) for name, value, note in figures]
        return "\n".join(
            ['<dl class="facts">', *(f"<div><dt>{name}</dt><dd>{told}</dd></div>" for name, told in shown), "</dl>"]
        )

    def items(self, items: Sequence[str], columns: int) -> str:
        return "\n".join(['<ul class="columns">' if columns > 1 else "<ul>", *(f"<li>{item}</li>" for item in items), "</ul>"])

    def notes(self, notes: Sequence[tuple[str, str]]) -> str:
        told = " ".join(f"{self.mark(letter)} {words}" if letter else words for letter, words in notes)
        return f'<p class="notes">{told}</p>'

    def table(self, node: Table) -> str:
        caption, count = escape(node.caption), len(node.columns)
        aligned = [' class="n"' if each.number else "" for each in node.columns]
        titles = (
            f'<th scope="col"{kind}>{self.words(each.title)}</th>' for each, kind in zip(node.columns, aligned, strict=True)
        )
        lines = [
            f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">',
            "<table>",
            f"<caption>{caption}</caption>",
        ]
        lines += [f"<thead><tr>{''.join(titles)}</tr></thead>", "<tbody>"]
        for row in node.rows:
            if isinstance(row, Group):
                heading = f'<tr class="group"><th colspan="{count}" scope="colgroup">{self.words(row.words)}</th></tr>'
                lines.append(heading if row.words else "</tbody><tbody>")
                continue
            spans = ["" for _ in row[:-1]] + ([f' colspan="{count - len(row) + 1}"'] if len(row) < count else [""])
            heads = [each.number for each in node.columns]
            first, *rest = (self.cell(*each) for each in zip(row, spans, heads, strict=False))
            lines.append(f'<tr><th scope="row"{first}</th>{"".join(f"<td{cell}</td>" for cell in rest)}</tr>')
        return "\n".join([*lines, "</tbody>", "</table>", "</div>"])

    def cell(self, words: Words, span: str, number: bool) -> str:
        """Print attributes and contents of a table cell: numbers align right, short texts never break."""
        kind = "n" if number else "k" if len(text_of_words(words)) <= KEPT else ""
        name = f' class="{kind}"' if kind else ""
        return f"{span}{name}>{self.words(words)}"

    def display(self, lines: Sequence[Line]) -> str:
        number = lines[-1].number
        body = " \\\\\n".join(self.rows(lines))
        text = html.escape(f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}")
        name = f' id="eq-{number}"' if number else ""
        beside = f'<a class="number" href="#eq-{number}">({number})</a>' if number else ""
        return (
            f'<div class="formula"{name} role="group" aria-label="formula"><div class="tex display">{text}</div>{beside}</div>'
        )

    def figure(self, node: Figure) -> str:
        return self.figures.get(node.id, "")

    def plot(self, node: Plot) -> str:
        return f'<figure class="plot scroll" tabindex="0">\n{picture(node)}\n</figure>'


def text_of_words(words: Words) -> str:
    """Return ``words`` as plain text, with the placeholder ``LONG`` for each formula."""
    texts = (node if isinstance(node, str) else node.text if isinstance(node, Code) else LONG for node in words)
    return "".join(texts)


def capital(text: str) -> str:
    """Capitalise the first letter of ``text``."""
    return text[:1].upper() + text[1:]


def title_of(title: str, name: str) -> str:
    """Return the display name of a model: its title up to a comma or colon, else its name.

    The name is used if that part of the title is empty or too long.
    """
    head = title.partition(",")[0].partition(":")[0].strip()
    return head if 0 < len(head) <= 60 else name


def rest_of_title(title: str, short: str) -> str:
    """Return the title without the display name ``short`` at its start."""
    return capital(title[len(short) :].lstrip(",:; ") if title.startswith(short) else title)


def default_parameters(program: Program) -> int | None:
    """Return the number of parameters at the default sizes; None if a size has no default."""
    sizes = default_sizes(program)
    return None if sizes is None else int(evaluate(program.parameters, sizes))


def family_title(group: str) -> str:
    """Return the display name of a family, the models of one folder of specs."""
    return FAMILIES.get(group, capital(group))


COLUMNS = (
    ("Model", "text"), ("Family", "text"), ("Parameters", "number"), ("FLOPs of a step", "number"),
    ("FLOPs per token", "number"), ("Measured records", "number"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A model in the index.

    Attributes:
        name: The name of its spec.
        group: The folder of its spec.
        title: Its title.
        references: The classes that its spec derives.
        pipelines: The pipelines that run it.
        model_types: Its model types in configs.
        parameters: The number of parameters at the default sizes.
        verified: The number of measured cases that the derivation equals.
        step: FLOPs of both passes of a typical batch.
        token: FLOPs of both passes per token of this batch.
        names: Its variants and published models, which the search finds, too.
    """

    name: str
    group: str
    title: str
    references: Sequence[str]
    pipelines: Sequence[str]
    model_types: Sequence[str]
    parameters: int | None
    verified: int
    step: int | None = None
    token: int | None = None
    names: Sequence[str] = ()

    @property
    def shown(self) -> dict[str, Any]:
        """Template variables of the entry by name: its texts, address and figures, and words to search."""
        short = title_of(self.title, self.name)
        family = family_title(self.group)
        words = [self.name, self.title, self.group, family, *self.references, *self.pipelines, *self.model_types, *self.names]
        return {
            "title": short, "about": rest_of_title(self.title, short), "group": self.group,
            "reference": (self.references or [self.name])[0],
            "address": f"{self.group or 'models'}/{self.name}.html", "family": family,
            "figures": (self.parameters, self.step, self.token, self.verified or None),
            "words": " ".join(words).lower(),
        }  # fmt: skip


def render_index(entries: Sequence[Entry], version: str, resources: Resources) -> str:
    """Print the index page of ``entries``."""
    counts = Counter(entry.group for entry in entries)
    order = [*(group for group in FAMILIES if group in counts), *sorted(counts.keys() - FAMILIES.keys())]
    families = [
        (group, family_title(group), counts[group])
        for group in sorted(order, key=lambda group: (group == "nn", -counts[group]))
    ]
    shown = sorted((entry.shown for entry in entries), key=lambda entry: (entry["group"] == "nn", entry["title"].lower()))
    return template("html/index.html.jinja").render(
        version=version, resources=resources, home="", text=escape, models=shown, families=families, columns=COLUMNS,
        description="Parameters and FLOPs of neural networks in closed form, with exact calculators.",
    )  # fmt: skip
