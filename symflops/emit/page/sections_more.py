"""The parts of a page about one more token, layer or expert, and about work per token over the length."""

from __future__ import annotations

from collections.abc import Iterator

from symflops.analysis.one_more import OneMore
from symflops.analysis.step import OverLength
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.sections_work import fits
from symflops.emit.page.tree import Bar, Block, Code, Column, Heading, Math, Number, Paragraph, Row, Table, Words
from symflops.emit.page.types import Page
from symflops.emit.page.writing import NONE, letter, names
from symflops.model.formula import ZERO

ONE_MORE = (
    "What one more costs in the step above: the exact differences of both closed forms, and that of the forward one as a"
    " formula. Conditions are as they are at the default sizes."
)


def more(page: Page, printer: LatexPrinter) -> Iterator[Block]:
    """What one more of each costs, then work per token over the length; nothing without figures."""
    if page.worked and page.worked.more:
        yield Heading(("One more token, layer or expert",))
        yield Paragraph((ONE_MORE,))
        columns = (
            Column(("One more",), 19),
            Column(("Forward, as a formula",), 33),
            *(Column((title,), number=True) for title in ("Parameters", f"Forward {page.unit}", f"Backward {page.unit}")),
        )
        rows: list[Row] = [*token_rows(page), *(size_row(one, printer) for one in page.worked.more)]
        yield Table("What one more costs", columns, tuple(rows), small=2)
    if page.worked and page.worked.over:
        yield from over_length(page.worked.over, page.unit)


def token_rows(page: Page) -> Iterator[Row]:
    """What one more token of each stream costs, which has its formula above."""
    told = set()
    for items in page.analysis.items:
        for grown in items.growth:
            (_, _, forward), (_, _, both) = grown.marginal
            if grown.unknown.kind != "equal" and forward is not None and both is not None and grown.unknown not in told:
                told.add(grown.unknown)
                length: Words = (", ", letter(grown.unknown.letter)) if grown.unknown.kind == "axis" else ()
                name: Words = ("token of ", *names(grown.unknown.streams), *length)
                yield name, ("as above",), NONE, (Number(forward),), (Number(both - forward),)


def size_row(one: OneMore, printer: LatexPrinter) -> Row:
    """What one more of a size costs."""
    name: Words = (letter(one.field.letter), f" = {one.now:,}: ", one.field.doc or Code(one.field.keys[0]))
    shown = one.work != ZERO and fits(one.work, printer)
    work: Words = (Math((one.work,)),) if shown else NONE
    return name, work, *((Number(value),) for value in (one.parameters, one.forward, one.backward))


def over_length(over: OverLength, unit: str) -> Iterator[Block]:
    """Work per token as items grow, with bars."""
    yield Heading((f"{unit} per token over the length of ", Code(over.stream)))
    yield Paragraph((f"In both passes of an item; the first part of a bar is attention, the whole bar all {unit} per token.",))
    columns = (
        *(Column((title,), number=True) for title in ("Tokens", f"{unit} per token", "Attention, %")),
        Column((), 50),
    )
    most = max(row.each for row in over.rows)
    rows: list[Row] = []
    for row in over.rows:
        dark = row.attention * row.each / most
        share = f"{float(100 * row.attention):.1f}"
        rows.append(((Number(row.item),), (Number(round(row.each)),), (share,), (Bar(dark, row.each / most - dark),)))
    yield Table(f"{unit} per token over the length of {over.stream}", columns, tuple(rows))
