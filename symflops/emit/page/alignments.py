"""Displayed lines as rows of an alignment: terms side by side as they fit, definitions by cases, roots, long sums in lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from symflops.analysis.item_analysis import Crossover
from symflops.emit.math.cases import Conditions, cases_text, rows_of
from symflops.emit.math.lines import LINE, width
from symflops.emit.math.printer import LatexPrinter
from symflops.emit.page.tree import Line, Math, Scaled, Words
from symflops.emit.page.writing import math
from symflops.model.formula import ONE, ZERO, Formula, Sym, brackets

END = r"\\"
"""What ends a row."""
WIDE = 10_000.0
STAR = "^{*}"
"""Marks the length at which two costs are equal."""
HEAD = r"\mathrm{recomputed}"
"""The widest head beside which a line of a formula has its full width."""


def math_text(node: Math, printer: LatexPrinter) -> str:
    """A formula within a line as LaTeX."""
    return "".join(part if isinstance(part, str) else printer.text(part) for part in node.parts)


def head_text(line: Line, printer: LatexPrinter) -> str:
    """The left side of a line as LaTeX."""
    if isinstance(line.head, Math):
        return math_text(line.head, printer)
    return rf"\mathrm{{{line.head.replace(' ', chr(92) + ' ')}}}"


def aligned(lines: Iterable[Line], printer: LatexPrinter, points: float = LINE, end: str = END) -> list[str]:
    """The rows of an alignment; definitions with the same cases share them, and short ones follow where a row has room."""
    rows: list[str] = []
    room = 0.0  # beside what the last row holds
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
    """The rows of each group, and whether it is a definition of one row; these follow longer definitions beside them."""
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
    """Whether a line defines a letter, and is no result, which stands above what it is written with."""
    return isinstance(line.head, Math) and not line.number and STAR not in line.head.parts


def with_equal_cases(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines, together those that follow each other and have values by the same cases."""
    found: list[list[Line]] = []
    for line in lines:
        conditions = conditions_of(line)
        if found and len(conditions) > 1 and len(found[-1]) == 1 and conditions_of(found[-1][0]) == conditions:
            found[-1].append(line)
        else:
            found.append([line])
    return found


def conditions_of(line: Line) -> list[Conditions]:
    """The conditions of a definition by cases."""
    match line.terms:
        case (Scaled(formula, None),):
            return [conditions for conditions, _ in rows_of(formula)]
    return []


def cases_row(lines: Sequence[Line], printer: LatexPrinter, points: float, end: str) -> list[str]:
    """Definitions with the same cases as one row, if that is wide enough; else a row for each."""
    heads = ", ".join(head_text(line, printer) for line in lines)
    values = [rows_of(term.formula) for line in lines for term in line.terms if isinstance(term, Scaled)]
    pairs = [(row[0][0], [value for _, value in row]) for row in zip(*values, strict=True)]
    row = rf"({heads}) ={{}}& {cases_text(pairs, printer, WIDE, end)}"
    if extent(row) <= points + width(HEAD):
        return [row]
    return [row for line in lines for row in line_rows(line, printer, points, end)]


def extent(row: str) -> float:
    """The width of a row, whose cases stand below each other."""
    before, begin, rest = row.partition(r"\begin{cases}")
    if not begin:
        return width(row)
    inside, _, after = rest.partition(r"\end{cases}")
    columns = [[width(cell) for cell in [*one.split("&"), ""][:2]] for one in re.split(r"\\\\|\\cr", inside)]
    across: float = sum(max(cells) for cells in zip(*columns, strict=True))
    return width(before) + 14.0 + across + width(after)


def line_rows(line: Line, printer: LatexPrinter, points: float = LINE, end: str = END) -> list[str]:
    """The rows of a line in an alignment, each at most ``points`` wide beside its head; ``end`` ends lines of cases in them."""
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
SHORT = 120.0
"""Points beside a fraction in its row."""


class Roots:
    """The lines of crossovers in the length ``letter``."""

    def __init__(self, letter: str, printer: LatexPrinter) -> None:
        self.letter, self.printer = letter, printer

    def lines(self, found: Crossover) -> list[Line]:
        """A quotient, or the root of a square polynomial with its coefficients."""
        return list(self.quotient(found) if found.kind == "quotient" else self.root(found))

    def linear(self, found: Crossover) -> Words:
        """What a root is if its square coefficient vanishes, which only a condition makes it do."""
        if found.kind != "root" or not any(True for _ in brackets([found.square])):
            return ()
        a, b, c = COEFFICIENTS
        return (" (", math(f"-{c} / {b}"), " where ", math(a), " is 0)")

    def root(self, found: Crossover) -> Iterator[Line]:
        """The positive root of a square polynomial, then its coefficients."""
        a, b, c = COEFFICIENTS
        root = rf"\frac{{-{b} + \sqrt{{{b}^{{2}} - 4 {a} {c}}}}}{{2 {a}}}"
        yield Line(self.star(), (math(f"-{b} / {a}" if found.constant == ZERO else root),))
        yield from defined((found.square, found.linear, found.constant))

    def quotient(self, found: Crossover) -> Iterator[Line]:
        """A quotient; if it is too wide, of two letters that are defined below."""
        if found.below == ONE:
            yield Line(self.star(), (Scaled(found.above),))
            return
        if max(width(self.printer.text(part)) for part in (found.above, found.below)) <= LINE - SHORT:
            yield Line(self.star(), (math(r"\frac{", found.above, "}{", found.below, "}"),))
            return
        yield Line(self.star(), (math(r"\alpha / \beta"),))
        yield from defined((found.above, found.below))

    def star(self) -> Math:
        """The length at which both cost the same."""
        return math(Sym(self.letter), STAR)


def defined(formulas: Iterable[Formula]) -> Iterator[Line]:
    """Lines that define the Greek letters of coefficients."""
    for name, formula in zip(COEFFICIENTS, formulas, strict=False):
        yield Line(math(name), (Scaled(formula),))
