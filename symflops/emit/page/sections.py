"""The derivation page as a tree: its head, and the order of its sections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from symflops.emit.math.printer import letters
from symflops.emit.page.sections_against import section
from symflops.emit.page.sections_growth import growth
from symflops.emit.page.sections_model import definitions, item_letters, streams
from symflops.emit.page.sections_results import batch_of, conventions, entries, parameters, regimes, verification
from symflops.emit.page.sections_work import forms, passes, ratio
from symflops.emit.page.tree import Block, Code, Column, Document, Fact, Figure, Link, Number, Paragraph, Section, Table, Words
from symflops.emit.page.types import Page
from symflops.emit.page.writing import letter, names, series
from symflops.evaluate.item_analysis import FORWARD, Crossover, Growth
from symflops.evaluate.units import AS_SOURCE, MULTIPLY_ADD
from symflops.evaluate.worked_figures import Worked

INTRO = (
    " has, and how many floating-point operations one step of it takes, forward and backward. Everything follows from the"
    " graph of the model in ",
    ". A multiply-add counts as ",
    ". Nothing is rounded, and no sequence length is fixed: a batch enters through a few sums over its items.",
)
FIGURES = (
    Figure("calculator", "Calculator"),
    Figure(
        "plotted",
        "Over length",
        "Forward and backward work of one item, as shares, per token or as it is; its other lengths are those of the first item"
        " of the batch above. The dashed line marks the length from which on attention does more work than everything else.",
    ),
    Figure(
        "graph",
        "The model",
        "The modules in the order in which values flow through them, as the spec writes them down. A frame is a repeated"
        " block; what an iteration hands to the next one is not drawn. Coloured boxes do matrix work.",
    ),
)


def document(page: Page) -> Document:
    """Build the tree of a page."""
    program = page.program
    known = letters(program) | dict(page.letters)
    known |= item_letters(program, known)
    glanced = [glance(page, page.worked)] if page.worked else []
    grows = [growth(page, known)] if page.analysis.items else []
    beside = [section(page.against, program.name, known)] if page.against else []
    compared = [conventions(page.worked, program.name)] if page.worked and page.worked.conventions else []
    made = Document(
        name=program.name,
        title=program.title or program.name,
        subtitle=f"Parameters and {page.unit}, derived",
        facts=tuple(facts(page)),
        intro=tuple(intro(page)),
        parts=(
            *FIGURES, *glanced, streams(page), definitions(page, known), passes(page), forms(page),
            ratio(page, known), *grows, *beside, regimes(page), *compared, parameters(page), verification(page),
        ),
        letters=known,
        sources=program.sources,
    )  # fmt: skip
    return made if not page.of_one_config else replace(made, parts=of_one_config(made.parts), facts=of_one_config(made.facts))


def of_one_config(node: Any) -> Any:
    """Replace "default sizes" by "sizes of this configuration" throughout a part of a page."""
    if isinstance(node, str):
        return node.replace("default sizes", "sizes of this configuration")
    if isinstance(node, tuple):
        return tuple(map(of_one_config, node))
    if type(node).__module__ == Document.__module__:
        return replace(node, **{one.name: of_one_config(getattr(node, one.name)) for one in fields(node)})
    return node


def intro(page: Page) -> Iterator[Block]:
    """Yield the blocks of the introduction: what the page derives, and for which structure."""
    program = page.program
    told = names(program.references or (program.name,))
    source = ", as its source counts" if page.counted_in(program.conventions[0]) == AS_SOURCE else ""
    rest = INTRO[1] + MULTIPLY_ADD[page.counted_in(program.conventions[0])] + source + INTRO[2]
    yield Paragraph(("This page derives how many parameters ", *told, INTRO[0], Code(program.sources[0][0]), rest))
    if page.of_one_config:
        where = Link("#definitions", ("Definitions",))
        yield Paragraph(("It is of one configuration, whose values stand under ", where, ": it decides all conditions."))
    elif page.fixed:
        values: list[Words] = [(Code(key), " is ", Code(value)) for key, value in page.fixed]
        rest = ": these decide the structure, and models with others are derived when they are asked for."
        yield Paragraph(("It is of models in which ", *series(values, ", and "), rest))


def crossed(page: Page) -> Iterator[tuple[Growth, Crossover]]:
    """Yield where attention costs as much as all other work in the forward pass: (growth, crossover)."""
    for items in page.analysis.items:
        for grown in items.growth:
            yield from ((grown, found) for found in grown.crossovers if found.value and found.work == FORWARD)


def facts(page: Page) -> Iterator[Fact]:
    """Yield the key figures at the head of a page."""
    if page.default_parameters is not None:
        yield Fact("Parameters", (Number(page.default_parameters),), "at the default sizes")
    if page.default_active is not None:
        yield Fact("Active parameters", (Number(page.default_active),), "that one token goes through")
    first = page.worked.regimes[0] if page.worked else None
    if first and first.forward and first.backward:
        where = ", ".join((f"regime {first.name}", *map(" ".join, entries(page.worked)))) if page.worked else ""
        yield Fact("Backward over forward", (Number(Fraction(first.backward, first.forward)),), where)
    for grown, found in list(crossed(page))[:1]:
        yield Fact("Attention overtakes", (Number(found.value or 0),), f"tokens of {' and '.join(grown.unknown.streams)}")
    cases = sum(len(item.cases) for item in page.verified)
    if cases:
        yield Fact("Verified", (f"{cases} measured {'case' if cases == 1 else 'cases'}",), "equal to the last FLOP")


def glance(page: Page, worked: Worked) -> Section:
    """Build the section with the figures of one step at the default sizes."""
    first = worked.regimes[0]
    rows: list[tuple[Words, Words]] = []
    if page.default_parameters is not None:
        rows.append((("Parameters",), (Number(page.default_parameters),)))
    if page.default_active is not None:
        rows.append((("Active parameters, those that one token goes through",), (Number(page.default_active),)))
    rows.append(((f"Forward {page.unit}",), (Number(first.forward),)))
    if first.backward:
        rows.append(((f"Backward {page.unit}",), (Number(first.backward),)))
        if first.forward:
            rows.append((("Backward over forward",), (Number(Fraction(first.backward, first.forward)),)))
    if first.tokens:
        each = Fraction(first.forward + first.backward, first.tokens)
        rows.append(((f"{page.unit} per token, both passes",), (Number(each if each.denominator > 1 else int(each)),)))
    grown = (one for items in page.analysis.items for one in items.growth)
    rows += [row for one in grown for row in grown_rows(one, page.unit)]
    step = ("At the default sizes, one step of regime ", Code(first.name), " on a batch of one item: ", *batch_of(worked), ".")
    columns = (Column(("Figure",), 66), Column(("Value",), number=True))
    return Section("glance", "At a glance", (Paragraph(step), Table("One step at the default sizes", columns, tuple(rows))))


def grown_rows(grown: Growth, unit: str) -> Iterator[tuple[Words, Words]]:
    """Yield rows (title, figure): from which length attention dominates, what one more token costs."""
    unknown = grown.unknown
    for found in grown.crossovers:
        if found.value and found.work == FORWARD:
            same = " = " if unknown.kind == "equal" else " "
            where: Words = (*names(unknown.streams), same, letter(unknown.letter), " on")
            yield ("Attention costs as much as all else from ", *where), (Number(found.value),)
    step = grown.marginal[0][2]
    if unknown.kind != "equal" and step is not None:
        yield (f"Forward {unit} of one more token of ", *names(unknown.streams)), (Number(step),)
