"""One page, three printers: whatever the tree says stands in every format, and no printer adds words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from html import unescape
from typing import Any

import pytest

from symflops.emit.emit import page_of
from symflops.emit.html import document as html
from symflops.emit.latex import document as latex
from symflops.emit.latex.fragments import LatexFragment
from symflops.emit.markdown import document as markdown
from symflops.emit.page.printing import PagePrinter, displays
from symflops.emit.page.sections import document
from symflops.emit.page.tree import (
    Code,
    Column,
    Document,
    Emphasis,
    Equation,
    EquationLink,
    Figure,
    Group,
    Heading,
    Items,
    Line,
    Link,
    Mark,
    Math,
    Notes,
    Number,
    Paragraph,
    Remark,
    Scaled,
    Section,
    Table,
)  # fmt: skip
from symflops.emit.page.writing import by_group, line_rows, names
from symflops.formula.formula import Sym, number
from symflops.library.records.verified import verifications
from symflops.read.spec_files import shipped, specs_in
from tests.sampling import sampled
from tests.shipped import load

PRINTERS: dict[str, Any] = {
    "latex": lambda letters: latex.LatexPage(letters),
    "fragment": lambda letters: LatexFragment(letters, "name"),
    "markdown": markdown.MarkdownPage,
    "html": lambda letters: html.HtmlPage(letters, {}),
}
PAGES = ("latex", "markdown", "html")
ALL = sorted(file.name for file in specs_in(shipped("specs")))


@cache
def tree(name: str) -> Document:
    """The page of a shipped spec."""
    model = load(name)
    return document(page_of(model.typical(), verifications(model.file)))


def leaves(value: Any) -> Iterator[Any]:
    """Every text, name, number and formula that a reader sees, in order."""
    if isinstance(value, (str, Code, Number, Math)):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, Table):
        yield from leaves((value.columns, value.rows))
    elif isinstance(value, (Figure, Equation)):
        return
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in ("id", "short", "address", "letter"):
                yield from leaves(getattr(value, field.name))


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("name", sampled(ALL, 48, 12))
def test_what_the_tree_says_stands_in_each_format_in_its_order(name: str, kind: str) -> None:
    shown = tree(name)
    printer: PagePrinter = PRINTERS[kind](shown.letters)
    text, place = printer.blocks((*shown.intro, *shown.parts)), 0
    for leaf in leaves((shown.intro, shown.parts)):
        printed = printer.inline(leaf)
        found = text.find(printed, place)
        assert found >= 0, leaf
        place = found + len(printed)


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("name", sampled(ALL, 32, 8))
def test_each_equation_stands_in_each_format(name: str, kind: str) -> None:
    shown = tree(name)
    printer: PagePrinter = PRINTERS[kind](shown.letters)
    text = printer.blocks(shown.parts)
    blocks = [block for part in shown.parts if isinstance(part, Section) for block in part.blocks]
    lines = [line for block in blocks if isinstance(block, Equation) for line in block.lines]
    plain = unescape(text) if kind == "html" else text
    rows = [row for block in blocks if isinstance(block, Equation) for some in displays(block) for row in printer.rows(some)]
    assert lines and all(row in plain for row in rows)
    numbers = [line.number for line in lines if line.number]
    tags = r'<a class="number" href="#[^"]*">\((\d+)\)' if kind == "html" else r"\\tag\{(\d+)\}"
    assert numbers == list(range(1, len(numbers) + 1)) == [int(tag) for tag in re.findall(tags, text)]


NODES = (
    Heading(()), Paragraph(("",)), Items(((),)), Notes((("", ()),)), Table("", (Column(()), Column((), 20)), (Group(), ((), ()), ((),))), Figure("none"),
    Section("", "", ()), Paragraph((Emphasis(()), Code(""), Link("#", ()), EquationLink(1), Mark(""))), Equation((Line(Math(("",)), ()),)),
    Paragraph((Number(1), Number(Fraction(1, 3)), Number(-2, True))),
)  # fmt: skip


@pytest.mark.parametrize("kind", PAGES)
def test_a_printer_has_no_words_of_its_own(kind: str) -> None:
    """Nodes without words print markup alone."""
    text = PRINTERS[kind]({}).blocks(NODES)
    plain = re.sub(r"<[^>]*>|\\(?:begin|end|setlength|label|hyperref)\{?[\w*\\]*\}?(?:\[[^]]*\])?|\\[A-Za-z]+|\{[^{}]*\\linewidth\}", "", text)
    assert not re.search(r"[A-Za-z]{4,}", plain), plain


def test_only_a_source_has_remarks_and_only_a_screen_has_figures() -> None:
    remark, figure = Remark("a -- remark"), Figure("by-regime", "Title", "What it shows.")
    assert {kind: PRINTERS[kind]({}).block(remark) for kind in PAGES} == {"latex": "", "markdown": "<!-- a - remark -->", "html": ""}
    assert all(printer({}).block(figure) == "" for printer in PRINTERS.values())
    assert html.HtmlPage({}, {"by-regime": "<p>drawn</p>"}).block(figure) == "<p>drawn</p>"


def test_words_are_escaped_in_every_place() -> None:
    evil = r"<b>&\input{x}$|_"
    nodes = (
        Section("a", evil, (Heading((evil,)), Paragraph((Emphasis((evil,)), Link("#a", (evil,)))), Items(((evil,),)), Notes((("a", (evil,)),)))),
        Table(evil, (Column((evil,)),), (Group((evil,)), ((evil,),))),
    )  # fmt: skip
    assert "<b>" not in PRINTERS["html"]({}).blocks(nodes)
    assert r"\input" not in PRINTERS["latex"]({}).blocks(nodes)
    assert not re.search(r"(?<!\\)(?:<b|\$|_)", PRINTERS["markdown"]({}).blocks(nodes))


def test_short_rows_and_groups() -> None:
    table = Table("T", (Column(("a",), 20), Column(("b",), 20), Column(("c",), 20)), (Group((Code("g"),)), (("1",), ("2",), ("3",)), Group(), (("4",), ("5",))))
    lines = PRINTERS["markdown"]({}).block(table).splitlines()
    assert lines[2:] == ["| `g` | | |", "| 1 | 2 | 3 |", "| 4 | 5 | |"]
    tex = PRINTERS["latex"]({}).block(table)
    assert r"\quad 1 & 2 & 3 \\" in tex and "\n4 & \\multicolumn{2}" in tex and tex.count(r"\midrule") == 2
    page = PRINTERS["html"]({}).block(table)
    assert '<th colspan="3" scope="colgroup">' in page and page.count("<tbody>") == 2 and '<td colspan="2" class="k">5</td>' in page


def test_wide_heads_leave_less_room() -> None:
    printer = PRINTERS["latex"]({}).printer
    terms = tuple(Scaled(number(place), Sym("x")) for place in range(11, 60))
    wide, narrow = (line_rows(Line(head, terms), printer) for head in ("token, both passes", "forward"))
    assert wide[0].startswith(r"\mathrm{token,\ both\ passes} ={}& 11") and len(narrow) < len(wide) < len(terms)
    assert line_rows(Line("forward", ()), printer) == [r"\mathrm{forward} ={}& 0"]


def test_lists_of_rows() -> None:
    assert names(["a", "b", "c"]) == (Code("a"), ", ", Code("b"), " and ", Code("c"))
    rows = list(by_group([("g", (("1",),)), ("g", (("2",),)), ("", (("3",),))]))
    assert rows == [Group((Emphasis(("in",)), " ", Code("g"))), (("1",),), (("2",),), Group(), (("3",),)]
