"""The derivation page as a tree: its head, and the order of its sections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from symflops.emit.math.printer import letters
from symflops.emit.page.sections_against import section
from symflops.emit.page.sections_first import modules, result
from symflops.emit.page.sections_growth import growth
from symflops.emit.page.sections_model import definitions, item_letters, streams
from symflops.emit.page.sections_results import batch_of, conventions, entries, parameters, regimes, verification
from symflops.emit.page.sections_work import forms, passes, ratio
from symflops.emit.page.tree import Block, Code, Document, Fact, Figure, Link, Number, Paragraph, Section, Words
from symflops.emit.page.types import Page
from symflops.emit.page.writing import names, series
from symflops.evaluate.item_analysis import FORWARD, Crossover, Growth
from symflops.evaluate.units import AS_SOURCE, MULTIPLY_ADD
from symflops.evaluate.worked_figures import Worked

SCOPE = "Nothing is rounded, and no length is fixed: a batch enters through a few sums over its items."
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


def document(page: Page, full: bool = True) -> Document:
    """Build the tree of a page: the result and its table by module, with ``full`` also the derivation."""
    program = page.program
    known = letters(program) | dict(page.letters)
    known |= item_letters(program, known)
    compared = [conventions(page.worked, program.name)] if page.worked and len(page.worked.conventions) > 1 else []
    parts: list[Section | Figure] = [result(page, known, not full), *FIGURES, modules(page, full)]
    if full:
        grows = [growth(page, known)] if page.analysis.items else []
        beside = [section(page.against, program.name, known)] if page.against else []
        parts += [
            streams(page), definitions(page, known), passes(page), forms(page, known), ratio(page, known), *grows, *beside,
            regimes(page),
        ]  # fmt: skip
    parts += [*compared, *([parameters(page), verification(page)] if full else [])]
    made = Document(
        name=program.name,
        title=program.title or program.name,
        subtitle=f"Parameters and {page.unit}, derived",
        facts=tuple(facts(page)),
        intro=tuple(intro(page, full)),
        parts=tuple(parts),
        letters=known,
        sources=program.sources,
        full=full,
    )
    if not page.of_one_config:
        return made
    return replace(made, **{name: of_one_config(getattr(made, name)) for name in ("facts", "intro", "parts")})


def of_one_config(node: Any) -> Any:
    """Replace "default sizes" by "sizes of this configuration" throughout a part of a page."""
    if isinstance(node, str):
        return node.replace("default sizes", "sizes of this configuration")
    if isinstance(node, tuple):
        return tuple(map(of_one_config, node))
    if type(node).__module__ == Document.__module__:
        return replace(node, **{one.name: of_one_config(getattr(node, one.name)) for one in fields(node)})
    return node


def intro(page: Page, full: bool) -> Iterator[Block]:
    """Yield the blocks of the introduction: the step of the key figures, and the structure for which the page is."""
    program = page.program
    unit = page.counted_in(program.conventions[0])
    source = ", as its source counts" if unit == AS_SOURCE else ""
    classes = names(program.references or (program.name,))
    told: Words = (*classes, ", derived from its graph in ", Code(program.sources[0][0]), ". ")
    if page.worked:
        regime, step = Code(page.worked.regimes[0].name), batch_of(page.worked)
        told += ("The figures above are of one step of regime ", regime, " at the default sizes, on one item: ", *step, ". ")
    yield Paragraph((*told, f"A multiply-add counts as {MULTIPLY_ADD[unit]}{source}. {SCOPE}"))
    if page.of_one_config:
        where: Words = (" stand under ", Link("#definitions", ("Definitions",))) if full else (" stand beside its letters",)
        yield Paragraph(("It is of one configuration, whose values", *where, ": it decides all conditions."))
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
    """Yield the key figures at the head of a page: those of one step at the default sizes, and what verified them."""
    if page.default_parameters is not None:
        yield Fact("Parameters", (Number(page.default_parameters),), "at the default sizes")
    if page.default_active is not None:
        yield Fact("Active parameters", (Number(page.default_active),), "that one token goes through")
    if page.worked:
        yield from step_facts(page.worked, page.unit)
    for grown, found in list(crossed(page))[:1]:
        yield Fact("Attention overtakes", (Number(found.value or 0),), f"tokens of {' and '.join(grown.unknown.streams)}")
    cases = sum(len(item.cases) for item in page.verified)
    if cases:
        yield Fact("Verified", (f"{cases} measured {'case' if cases == 1 else 'cases'}",), "each equal to the last unit")


def step_facts(worked: Worked, unit: str) -> Iterator[Fact]:
    """Yield the figures of one step in the first regime: both passes, and their sum per token."""
    first = worked.regimes[0]
    where = ", ".join((f"regime {first.name}", *map(" ".join, entries(worked))))
    yield Fact(f"Forward {unit}", (Number(first.forward),), where)
    if first.backward:
        ratio = f"{first.backward / first.forward:.4f} times forward" if first.forward else ""
        yield Fact(f"Backward {unit}", (Number(first.backward),), ratio)
    if first.tokens:
        each = Fraction(first.forward + first.backward, first.tokens)
        yield Fact(f"{unit} per token", (Number(each if each.denominator > 1 else int(each)),), "both passes")
