"""Page sections on the model: streams of a batch, and definitions of the letters in formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symflops.emit.math.printer import INDEX, is_barred
from symflops.emit.page.tree import (
    Block,
    Code,
    Column,
    Emphasis,
    Equation,
    Heading,
    Line,
    Math,
    Paragraph,
    Scaled,
    Section,
    Table,
    Words,
)
from symflops.emit.page.types import Page
from symflops.emit.page.writing import NONE, default, letter, math, names, series
from symflops.evaluate.typical_values import LevelLengths
from symflops.formula.formula import ZERO, Formula, Sum, Sym
from symflops.formula.terms import Rewriting
from symflops.ir.batch import Moment, Statistic
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.program import Program

MOMENTS = (
    "The cost of one item is expanded in its lengths. Each distinct function of the lengths, summed over the items of the"
    " batch, is a "
)
PADDED = (
    " The model pads items to the longest of their batch, which a hat marks; useful work is that of items as long as they"
    " are themselves."
)
WHOLE = (
    " Figures of the batch as a whole, such as the number of its items or the length of the longest, belong to none of"
    " them: moments that hold one are of one batch, and those of two do not add."
)
AMOUNTS = "Contractions run over these amounts of work."
PAIRS = (
    " A pair is one query and one key. Useful pairs are those that the mask leaves, all pairs those that attention without a"
    " mask computes."
)
PADDING = " Useful work is that of the items as they are; executed work includes masked pairs and padding."
STREAMS = (
    "A stream is a sequence of tokens that the model carries. Only its length varies from batch to batch; each linear runs"
    " over the tokens of one stream, and attention over pairs of them."
)
ITEM = "item@"


def streams(page: Page) -> Section:
    """Build the section on the streams of a batch, and the inputs that carry them."""
    rows = []
    for stream, inputs in page.streams:
        carried = series([(Code(name), *((" (", Code(layout), ")") if layout else ())) for name, layout in inputs])
        rows.append(((Code(stream.name),), (stream.items,), (Math((stream.rows,)),), carried or ("computed values",)))
    columns = (
        Column(("Stream",), 15),
        Column(("Belongs to",), 13),
        Column(("Tokens per item",), 26),
        Column(("Carried by",), 39),
    )
    return Section("streams", "Streams", (
        Paragraph((STREAMS,)),
        Table("Streams", columns, tuple(rows)),
    ))  # fmt: skip


def counted(formula: Formula) -> Words:
    """Return the content of a table cell with a number: a dash if it is 0."""
    return NONE if formula == ZERO else (Math((formula,)),)


def definitions(page: Page, letters: Mapping[str, str]) -> Section:
    """Build the section that defines sizes, moments and amounts of work."""
    bracket = (
        "A bracket such as ", math(r"[L \ge 1]"), " is ", math("1"), " where its condition holds and ", math("0"),
        " elsewhere; ", math("(a)^{+}"), " is ", math(r"\max(0, a)"), ".",
    )  # fmt: skip
    blocks = (Paragraph(bracket), *sizes(page.program), *moments(page, letters), *amounts(page))
    return Section("definitions", "Definitions", blocks)


def sizes(program: Program) -> Iterator[Block]:
    """Yield the tables of the sizes of the model, and of derived sizes."""
    yield Heading(("Sizes",))
    yield Paragraph(("The sizes of a model are read from its configuration.",))
    told = "Value" if len(program.fixed) == len(program.fields) else "Default"
    columns = (Column(("Symbol",)), Column(("Field",), 29), Column((told,), 13), Column(("Meaning",), 38))
    rows = tuple(
        ((letter(field.letter),), names(field.keys, ", "), default(field), (field.doc,) if field.doc else NONE)
        for field in program.fields
    )
    yield Table("Sizes of the configuration", columns, rows)
    if program.definitions:
        yield Paragraph(("Derived from them:",))
        yield Equation(tuple(Line(letter(one.letter), (Scaled(one.formula),)) for one in program.definitions))


def moments(page: Page, letters: Mapping[str, str]) -> Iterator[Block]:
    """Yield the table of the moments of a batch."""
    program, levels = page.program, page.levels
    yield Heading(("Moments",))
    adding = "; moments of two batches add, so that ragged and packed batches are exact."
    rest = "." + (PADDED if program.padded else "") + WHOLE if program.whole else adding
    yield Paragraph((MOMENTS, Emphasis(("moment",)), rest))
    columns = (Column(("Moment",), 15), Column(("Definition" if program.whole else "Sum",), 42), Column(("Over",), 38))
    shown = {sign_of(row, letters): row for row in moment_rows(program, letters, levels)}
    twins = ((letters[f"padded@{place}"], letters[f"real@{place}"]) for place in range(len(program.moments)))
    for padded, real in dict(twins).items():
        if padded != real and {padded, real} <= shown.keys():
            shown.pop(padded)  # the closed forms say what a bar is
    yield Table("Moments of a batch", columns, tuple(shown.values()))
    if levels and levels.rows:
        yield Paragraph(("The lengths of levels, each of one item:",))
        yield Equation(tuple(Line(letter(row.letter), (Scaled(row.formula),)) for row in levels.rows))
    if "" in letters.values():
        yield Paragraph(("A coefficient without a moment is spent once per step, whatever the batch is.",))


def sign_of(row: tuple[Words, ...], letters: Mapping[str, str]) -> str:
    """Return the LaTeX of the symbol that a row of the table of moments defines."""
    return "".join(letters[part.name] for words in row[0] for part in getattr(words, "parts", ()) if isinstance(part, Sym))


def amounts(page: Page) -> Iterator[Block]:
    """Yield the table of the amounts that contractions run over, in moments."""
    differ = (PADDING if page.program.padded else PAIRS) if page.pairs_differ else ""
    yield Paragraph((AMOUNTS + differ,))
    columns: tuple[Column, ...] = (Column(("Amount",), 27), Column(("In moments",), 70))
    if page.pairs_differ:
        useful, executed = ("Useful", "Executed") if page.program.padded else ("Useful pairs", "All pairs")
        columns = (Column(("Amount",), 27), Column((useful,), 34), Column((executed,), 34))
    rows = []
    for amount in page.amounts:
        if amount.name in page.replaced:
            continue
        row = ((Code(amount.name),), (Math((amount.useful,)),), (Math((amount.executed,)),))
        rows.append(row if page.pairs_differ else row[:2])
    yield Table("Amounts of work", columns, tuple(rows))


def index_of(letters: Mapping[str, str]) -> str:
    """Return a letter for the index of an item that is not the letter of a size."""
    return next((name for name in INDEX if name not in letters), "s")


def item_letters(program: Program, letters: Mapping[str, str]) -> dict[str, str]:
    """Map letters of the lengths of one item to their LaTeX, with the index of the item."""
    index = index_of(letters)
    lengths = {name: letters[name] for stream in program.streams for name in stream.variables}
    lengths |= {name: text for name, text in letters.items() if "@" in name and name.partition("@")[0] in lengths}  # of levels
    return {ITEM + name: f"{{{text}}}_{{,{index}}}" if "_" in text else f"{text}_{{{index}}}" for name, text in lengths.items()}


def moment_rows(
    program: Program, letters: Mapping[str, str], levels: LevelLengths | None = None
) -> Iterator[tuple[Words, ...]]:
    """Yield a row (symbol, definition, index set) per statistic and moment; each symbol has one row."""
    rows: dict[str, tuple[Words, ...]] = {}
    for statistic in program.statistics:
        definition = over_items(rf"\{statistic.kind}", statistic, program, index_of(letters), levels)
        rows[letters[statistic.name]] = (letter(statistic.name),), (definition,), (f"the {statistic.items} of the batch",)
    for name in sum_letters(program):
        position = int(name.partition("@")[2])
        moment, padded = program.moments[position], is_barred(letters[name])
        told: Words = (" of padded lengths",) if padded else ()
        if moment.items != ONCE:
            definition = over_items(r"\sum", moment, program, index_of(letters), levels)
            rows[letters[name]] = (letter(name),), (definition, *told), (f"the {moment.items} of the batch",)
        elif padded or letters[name] == f"S_{{{position}}}":
            rows[letters[name]] = (letter(name),), (Math((moment.formula,)), *told), ("the whole batch",)
    yield from rows.values()


def sum_letters(program: Program) -> list[str]:
    """Return the letters of all moments: first those of the first convention, then those of others.

    Conventions can count the same moment of real or of padded lengths, which then has two letters.
    """
    places = range(len(program.moments))
    every = (program.sum_key(place, convention) for convention in program.conventions for place in places)
    return list(dict.fromkeys([*(f"moment@{place}" for place in places), *every]))


def over_items(word: str, what: Moment | Statistic, program: Program, index: str, levels: LevelLengths | None) -> Math:
    """Build the math of a sum or maximum over items, where lengths have the index of the item.

    ``word`` is the LaTeX command of the sum or maximum.
    """
    mine = {name for stream in program.streams if stream.items == what.items for name in stream.variables}
    mine |= {row.letter for row in (levels.rows if levels else ()) if row.length in mine}
    marked: Formula = Rewriting(lambda part: Sym(ITEM + part.name) if isinstance(part, Sym) and part.name in mine else None)(
        levels.short(what.formula) if levels else what.formula
    )
    under = index if what.items == SAMPLES else rf"{index} \in \mathrm{{{what.items.replace('_', ' ')}}}"
    return math(f"{word}_{{{under}}} ", *(("(", marked, ")") if isinstance(marked, Sum) else (marked,)))
