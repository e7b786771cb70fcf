"""Words of a page: lists, sentences, and formulas, inline or as displayed rows of an alignment.

A row holds as many terms as fit; definitions by cases and long formulas take several rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from symflops.emit.math.printer import LINE, LatexPrinter, width
from symflops.emit.math.shortest import Conditions, cases_text, rows_of
from symflops.emit.page.tree import Code, Emphasis, Group, Inline, Line, Math, Row, Scaled, Words
from symflops.evaluate.item_analysis import Crossover
from symflops.formula.formula import ONE, ZERO, Formula, Sym, brackets
from symflops.ir.program import Field

NONE: Words = ("—",)
MOST = 8
"""Maximum number of entries of a list that a page prints in full."""
MANY = 6
"""Number of values in a list above which runs are printed."""


def math(*parts: str | Formula) -> Math:
    """Build inline math."""
    return Math(parts)


def letter(name: str) -> Math:
    """Build inline math of one letter."""
    return Math((Sym(name),))


def equals(name: str, *parts: str | Formula) -> Math:
    """Build the inline equation ``name = ...``."""
    return Math((Sym(name), " = ", *parts))


def series(items: Iterable[Words], last: str = ", ", between: str = ", ") -> Words:
    """Join items in a sentence, with ``last`` before the last one.

    >>> series([("a",), ("b",), ("c",)], " and ")
    ('a', ', ', 'b', ' and ', 'c')
    """
    found: list[Inline] = []
    listed = list(items)
    for place, item in enumerate(listed):
        if place:
            found.append(last if place == len(listed) - 1 else between)
        found += item
    return tuple(found)


def names(texts: Iterable[str], last: str = " and ") -> Words:
    """Join names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return series([(Code(text),) for text in texts], last)


def sentence(text: str) -> str:
    """Capitalise a text and end it with a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def plural(number: int, one: str, several: str) -> str:
    """Return ``one`` if ``number`` is 1, else ``several``."""
    return one if number == 1 else several


def ended(items: Sequence[Words]) -> tuple[Words, ...]:
    """End each item of a list with a semicolon, and the last with a full stop."""
    return tuple((*item, "." if place == len(items) else ";") for place, item in enumerate(items, 1))


def default(field: Field) -> Words:
    """Return words for the default of a size."""
    match field.default:
        case None:
            return ("required" if field.required else "none",)
        case bool():
            return ("true" if field.default else "false",)
        case str():
            return (Code(field.default),)
        case tuple() if len(field.default) > MOST:
            return Code(json.dumps(list(field.default[:3]), default=str)), f" and {len(field.default) - 3} more"
        case tuple():
            return listed(field.default)
    return (Math((field.default,)),)


def listed(items: Sequence[object]) -> Words:
    """Return words for the entries of a list; in a long list runs of equal entries are abbreviated.

    If a long list repeats a pattern, only the pattern is listed.
    """
    if len(items) <= MANY:
        return (Code(json.dumps(list(items), default=str)),)
    period = next(size for size in range(1, len(items) + 1) if list(items[size:]) == list(items[:-size]))
    runs = [(entry, len(list(some))) for entry, some in groupby(items[:period])]
    told = series(
        [(Code(json.dumps(entry, default=str)), *((f" \u00d7 {count}",) if count > 1 else ())) for entry, count in runs]
    )
    return (*told, f", {len(items)} entries" if period == len(items) else f", repeated to {len(items)} entries")


def by_group(rows: Iterable[tuple[str, tuple[Words, ...]]]) -> Iterator[Row]:
    """Yield the rows of (group, row) pairs, with a heading above each group of rows."""
    last = ""
    for group, row in rows:
        if group != last:
            yield Group((Emphasis(("in",)), " ", Code(group))) if group else Group()
        last = group
        yield row


def numbered(numbers: Sequence[int], head: str = "") -> str:
    """Print numbers, consecutive ones as a range, each with ``head`` before it: ``S1-S3, S5``."""
    consecutive = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[each for _, each in some] for _, some in consecutive]
    return ", ".join(f"{head}{run[0]}" + (f"\u2013{head}{run[-1]}" if len(run) > 1 else "") for run in runs)


def note_letter(number: int) -> str:
    """Return the letter of note ``number``, counted from 0: a, b, ... z, aa, ab, ..."""
    return (note_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


END = r"\\"
"""End of a row in LaTeX."""
WIDE = 10_000.0
STAR = "^{*}"
"""Superscript of the length at which two costs are equal."""
HEAD = r"\mathrm{recomputed}"
"""Widest head beside which a formula keeps its full line width."""


def math_text(node: Math, printer: LatexPrinter) -> str:
    """Print inline math in LaTeX, without delimiters."""
    return "".join(part if isinstance(part, str) else printer.text(part) for part in node.parts)


def head_text(line: Line, printer: LatexPrinter) -> str:
    """Print the left side of a line in LaTeX."""
    if isinstance(line.head, Math):
        return math_text(line.head, printer)
    return rf"\mathrm{{{line.head.replace(' ', chr(92) + ' ')}}}"


def aligned(lines: Iterable[Line], printer: LatexPrinter, points: float = LINE, end: str = END) -> list[str]:
    """Print lines as the rows of a LaTeX alignment, at most ``points`` wide, each ending with ``end``.

    Definitions with the same cases are printed as one, and short definitions share a row.
    """
    rows: list[str] = []
    room = 0.0  # left over in the last row
    for printed, is_short in short_last(with_equal_cases(lines), printer, points, end):
        text = printed[0].replace(" ={}& ", " = ", 1)
        if is_short and extent(text) + 20.0 <= room:
            rows[-1] += rf" ,\quad {text}"
            room -= extent(text) + 20.0
        else:
            rows += printed
            wide = points + (width(HEAD) if len(printed) == 1 else 0.0)
            room = 0.0 if printed[0].startswith(r"\mathrm{") else wide - extent(printed[-1])
    return [row.replace(r"\sum_", r"\sum\nolimits_") for row in rows]


def short_last(
    groups: Iterable[Sequence[Line]], printer: LatexPrinter, points: float, end: str
) -> Iterator[tuple[list[str], bool]]:
    """Print each group of lines; yield (its rows, whether it is a definition of a single row).

    Of consecutive definitions, those of a single row come last.
    """
    for defines, some in groupby(groups, lambda group: is_definition(group[0])):
        printed = [
            cases_row(one, printer, points, end) if len(one) > 1 else line_rows(one[0], printer, points, end) for one in some
        ]
        if defines:
            yield from ((rows, False) for rows in printed if len(rows) > 1 or "cases" in rows[0])
            yield from ((rows, True) for rows in printed if len(rows) == 1 and "cases" not in rows[0])
        else:
            yield from ((rows, False) for rows in printed)


def is_definition(line: Line) -> bool:
    """Whether a line defines a letter, rather than being a numbered equation or the root of one."""
    return isinstance(line.head, Math) and not line.number and STAR not in line.head.parts


def with_equal_cases(lines: Iterable[Line]) -> list[list[Line]]:
    """Group lines: two consecutive ones under the same conditions, or one line alone."""
    found: list[list[Line]] = []
    for line in lines:
        conditions = conditions_of(line)
        if found and len(conditions) > 1 and len(found[-1]) == 1 and conditions_of(found[-1][0]) == conditions:
            found[-1].append(line)
        else:
            found.append([line])
    return found


def conditions_of(line: Line) -> list[Conditions]:
    """Return the conditions of each case of a definition; [] for a line that is not a single formula."""
    match line.terms:
        case (Scaled(formula, None),):
            return [conditions for conditions, _ in rows_of(formula)]
    return []


def cases_row(lines: Sequence[Line], printer: LatexPrinter, points: float, end: str) -> list[str]:
    """Print definitions with equal cases as one row if it fits, else as separate rows."""
    heads = ", ".join(head_text(line, printer) for line in lines)
    values = [rows_of(term.formula) for line in lines for term in line.terms if isinstance(term, Scaled)]
    pairs = [(row[0][0], [value for _, value in row]) for row in zip(*values, strict=True)]
    row = rf"({heads}) ={{}}& {cases_text(pairs, printer, WIDE, end)}"
    if extent(row) <= points + width(HEAD):
        return [row]
    return [row for line in lines for row in line_rows(line, printer, points, end)]


def extent(row: str) -> float:
    """Return the width of a row in points; of cases, which stand below each other, the widest counts."""
    before, begin, rest = row.partition(r"\begin{cases}")
    if not begin:
        return width(row)
    inside, _, after = rest.partition(r"\end{cases}")
    columns = [[width(cell) for cell in [*one.split("&"), ""][:2]] for one in re.split(r"\\\\|\\cr", inside)]
    across: float = sum(max(cells) for cells in zip(*columns, strict=True))
    return width(before) + 14.0 + across + width(after)


def line_rows(line: Line, printer: LatexPrinter, points: float = LINE, end: str = END) -> list[str]:
    """Print a line as rows of at most ``points`` beside its head; ``end`` ends the lines of cases."""
    head = head_text(line, printer)
    room = points - max(0.0, width(head) - width(HEAD))
    rows: list[str] = []
    last = ""
    for place, term in enumerate(line.terms):
        if isinstance(term, Math):
            texts = [math_text(term, printer)]
        elif not term.factor and len(rows_of(term.formula)) > 1:
            texts = [cases_text([(told, [value]) for told, value in rows_of(term.formula)], printer, room, end)]
        else:
            texts = printer.term(term.formula, printer.text(term.factor) if term.factor else "", room)
        sign = "" if place == 0 or texts[0].startswith("-") else "+ "
        if place and len(texts) == 1 and width(f"{last} {sign}{texts[0]}") <= room:
            rows[-1] += f" {sign}{texts[0]}"
            last += f" {sign}{texts[0]}"
            continue
        rows.append(rf"{head} ={{}}& {texts[0]}" if place == 0 else f"&{{}}{sign}{texts[0]}")
        rows += [rf"&\qquad {{}}{text}" for text in texts[1:]]
        last = rf"\qquad {texts[-1]}" if len(texts) > 1 else texts[0]
    return rows or [rf"{head} ={{}}& 0"]


COEFFICIENTS = (r"\alpha", r"\beta", r"\gamma")
ROWS, BROAD = 12, 515.0
"""Maximum number of rows of a closed form on a page, and their width in points."""
SHORT = 120.0
"""Room beside a fraction in its row, in points."""


def root_lines(found: Crossover, letter: str, printer: LatexPrinter) -> list[Line]:
    """Return the lines for the length at which two costs are equal: a quotient, or a root of a quadratic.

    Long coefficients are named by Greek letters, which further lines define.
    """
    a, b, c = COEFFICIENTS
    star = math(Sym(letter), STAR)
    if found.kind != "quotient":
        root = rf"\frac{{-{b} + \sqrt{{{b}^{{2}} - 4 {a} {c}}}}}{{2 {a}}}"
        told = math(f"-{b} / {a}" if found.constant == ZERO else root)
        return [Line(star, (told,)), *defined((found.square, found.linear, found.constant))]
    if found.below == ONE:
        return [Line(star, (Scaled(found.above),))]
    if max(width(printer.text(part)) for part in (found.above, found.below)) <= LINE - SHORT:
        return [Line(star, (math(r"\frac{", found.above, "}{", found.below, "}"),))]
    return [Line(star, (math(rf"{a} / {b}"),)), *defined((found.above, found.below))]


def without_square(found: Crossover) -> Words:
    """Return words for the root where the quadratic coefficient is 0; () if it never is.

    It can be 0 only where a condition fails.
    """
    if found.kind != "root" or not any(True for _ in brackets([found.square])):
        return ()
    a, b, c = COEFFICIENTS
    return (" (", math(f"-{c} / {b}"), " where ", math(a), " is 0)")


def defined(formulas: Iterable[Formula]) -> Iterator[Line]:
    """Yield lines that define a Greek letter for each of ``formulas``, the coefficients of an equation."""
    return (Line(math(name), (Scaled(formula),)) for name, formula in zip(COEFFICIENTS, formulas, strict=False))


def is_short(lines: Iterable[Line], printer: LatexPrinter) -> bool:
    """Whether lines take few enough rows for a page."""
    return sum(len(line_rows(line, printer, BROAD)) for line in lines) <= ROWS
