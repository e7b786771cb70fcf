"""The first page: the result in closed form, its letters, and the work by module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.fragments import is_made, meaning, stream_words
from symflops.emit.page.sections_growth import percent
from symflops.emit.page.sections_model import counted, moment_rows, sign_of
from symflops.emit.page.sections_results import convention_doc
from symflops.emit.page.sections_work import NOTHING, closed_forms, other_unit
from symflops.emit.page.tree import (
    Block,
    Code,
    Column,
    Equation,
    Heading,
    Items,
    Line,
    Math,
    Number,
    Paragraph,
    Scaled,
    Section,
    Table,
    Words,
)
from symflops.emit.page.types import FormGroup, ModuleRow, Page
from symflops.emit.page.writing import by_group, default, letter, math, names, series
from symflops.evaluate.step import Step
from symflops.evaluate.typical_values import default_sizes, typical_batch
from symflops.formula.formula import Formula, Num, Sym, evaluate, symbols
from symflops.ir.program import Definition, Field, with_definitions


def result(page: Page, letters: Mapping[str, str], alone: bool) -> Section:
    """Build the section with the closed forms, written out, and a line for each of their letters.

    Args:
        page: The page.
        letters: LaTeX by letter.
        alone: Whether no derivation follows; else only the forms of the first regime and convention are written out.
    """
    shown = written_out(page, alone)
    found: list[Block] = [Paragraph(said_of(page, *shown[0]))] if len(shown) == 1 else []
    for regime, group in shown:
        if len(shown) > 1:
            found.append(
                Heading(("Regime ", Code(regime), ", convention ", *names(group.conventions), *other_unit(page, group)))
            )
        found += closed_forms(group.forms, page.unit_of(group.conventions[0])) if group.forms else [Paragraph((NOTHING,))]
    found.append(Equation((Line("parameters", (Scaled(page.parameters),)),)))
    found.append(Items(tuple(letter_lines(page, letters, used(page, shown))), columns=2))
    return Section("result", "Result", tuple(found))


def written_out(page: Page, alone: bool) -> list[tuple[str, FormGroup]]:
    """Return the closed forms of the first page, written out, as (regime, forms)."""
    found = [(regime, group) for regime, groups in page.opened for group in groups]
    if alone or not found:
        return found
    regime, group = found[0]
    return [(regime, replace(group, conventions=group.conventions[:1]))]


def said_of(page: Page, regime: str, group: FormGroup) -> Words:
    """Return the sentence before the closed forms: their regime, and what their convention counts."""
    name = group.conventions[0]
    doc = f" ({convention_doc(page.program, name)})" if page.pairs_differ or name in page.program.own else ""
    return (
        f"{page.unit_of(name)} of a step on any batch, regime ", Code(regime), ", convention ", Code(name), f"{doc}:",
    )  # fmt: skip


def used(page: Page, shown: Iterable[tuple[str, FormGroup]]) -> set[str]:
    """Return the letters that the first page shows, and those that their definitions show."""
    forms = [form for _, group in shown for form in group.forms]
    formulas = [page.parameters, *(formula for form in forms for _, formula in form.terms)]
    formulas += [formula for row in page.modules for formula in (row.parameters, row.term)]
    found = {name for formula in formulas for name in symbols(formula)} | {moment for form in forms for moment in form.moments}
    found = with_definitions(found, page.program)
    places = {int(place) for kind, at, place in (name.partition("@") for name in found) if at and kind in SUMS}
    found |= {name for place in places for name in symbols(page.program.moments[place].formula)}
    return found | {name for one in page.program.statistics if one.name in found for name in symbols(one.formula)}


TALL = 12
"""Number of modules above which their table gets a smaller font."""
SUMS = ("moment", "real", "padded")


def letter_lines(page: Page, letters: Mapping[str, str], shown: set[str]) -> Iterator[Words]:
    """Yield a line for each letter in ``shown``: lengths, sums, sizes with their values and config fields, notations."""
    program, sizes = page.program, default_sizes(page.program)
    for stream, _ in page.streams:
        if shown.intersection(stream.variables):
            yield (*series([(letter(name),) for name in stream.variables]), ": ", *stream_words(stream))
    if page.levels:
        yield from ((math(Sym(row.letter), " = ", row.formula),) for row in page.levels.rows if row.length in shown)
    signs = {letters[name] for name in shown if name in letters}
    for row in moment_rows(program, letters, page.levels):
        if sign_of(row, letters) in signs:
            (sign,), (first, *rest), over = row
            yield (math(*parts_of(sign), " = ", *parts_of(first)), *rest, ", over ", *over)
    for field in program.fields:
        if field.letter in shown:
            key: Words = (" (", Code(field.keys[0]), ")") if field.doc and field.keys else ()
            yield (letter(field.letter), *value_of(field, sizes), ": ", meaning(field), *key)
    for one in program.definitions:
        if one.letter in shown and not is_made(one):
            at = Number(sizes[one.letter]) if sizes and isinstance(sizes[one.letter], int) else None
            yield (math(Sym(one.letter), " = ", one.formula), *((" = ", at) if at else ()))
    yield from notation(page)


def parts_of(node: object) -> tuple[str | Formula, ...]:
    """Return the parts of inline math."""
    return node.parts if isinstance(node, Math) else ()


def value_of(field: Field, sizes: Mapping[str, Any] | None) -> Words:
    """Return words for the value of a size, after an equals sign; () without a value."""
    found = sizes[field.letter] if sizes else field.default
    if found is None:
        return () if field.required else (", none by default",)
    plain = Num(Fraction(found)) if isinstance(found, (int, Fraction)) and not isinstance(found, bool) else found
    return (" = ", *default(replace(field, default=plain)))


def notation(page: Page) -> Iterator[Words]:
    """Explain Iverson brackets and the positive part ``(a)^+``, if the first page has them."""
    text = " ".join(map(LatexPrinter().text, formulas_of(page)))
    if "[" in text:
        yield "a bracket is ", math("1"), " where its condition holds and ", math("0"), " elsewhere"
    if "^{+}" in text:
        yield (math(r"(a)^{+} = \max(0, a)"),)


def formulas_of(page: Page) -> Iterator[Formula]:
    """Yield the formulas of the first page, moments and definitions included."""
    yield page.parameters
    for _, groups in page.opened:
        yield from (formula for group in groups for form in group.forms for _, formula in form.terms)
    yield from (formula for row in page.modules for formula in (row.parameters, row.term))
    yield from (moment.formula for moment in page.program.moments)
    yield from (one.formula for one in page.program.definitions)


def modules(page: Page, full: bool) -> Section:
    """Build the table of parameters and forward work by module, all copies together.

    Without the ``full`` derivation it ends with the command that prints this.
    """
    rows, columns = page.modules, [Column(("Module",), 26), Column(("Parameters",), 27), Column((f"Forward {page.unit}",), 34)]
    shares = shares_of(page, rows)
    columns += [Column(("Share, %",), number=True)] if shares else []
    cells: list[tuple[str, tuple[Words, ...]]] = []
    for place, row in enumerate(rows):
        share: tuple[Words, ...] = ((percent(shares[place]),),) if shares else ()
        cells.append((row.group, ((Code(row.module),), counted(row.parameters), (Math((row.term,)),), *share)))
    name = page.program.conventions[0]
    share_of = ", with its share of the forward pass in the step above" if shares else ""
    told = Paragraph(("What computes, all copies of a module together, by convention ", Code(name), f"{share_of}:"))
    table = Table("Modules", tuple(columns), tuple(by_group(cells)), small=1 + (len(rows) > TALL))
    lines = tuple(Line(letter(one.letter), (Scaled(one.formula),)) for one in made_in(rows, page))
    where: tuple[Block, ...] = (Paragraph(("where",)), Equation(lines)) if lines and not full else ()
    command = Code(f"symflops render {page.program.name} --format pdf --full")
    more = () if full else (Paragraph(("The derivation, product by product: ", command, ".")),)
    return Section("modules", "By module", (told, table, *where, *more))


def made_in(rows: Sequence[ModuleRow], page: Page) -> list[Definition]:
    """Return the definitions that shorten the formulas of ``rows``, directly or through others."""
    letters = (name for row in rows for formula in (row.parameters, row.term) for name in symbols(formula))
    found = with_definitions(letters, page.program)
    return [one for one in page.program.definitions if one.letter in found and is_made(one)]


def shares_of(page: Page, rows: Sequence[ModuleRow]) -> list[Fraction]:
    """Return the share of each row in the forward work of the step of the page; [] without one."""
    sizes = default_sizes(page.program)
    if not page.worked or sizes is None:
        return []
    step = Step(page.program, sizes, typical_batch(page.program))
    sums = {f"moment@{place}": value for place, value in enumerate(step.moments(page.program.conventions[0]))}
    values = [Fraction(evaluate(row.term, sizes | sums)) for row in rows]
    return [value / (sum(values) or 1) for value in values]
