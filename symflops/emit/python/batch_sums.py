"""Sums over the items of a batch in Python, for generated modules and vendored estimators.

Conditions of a program, which are polynomials over 0/1 brackets, are printed with ``and``, ``or`` and ``not``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product, starmap
from math import prod

from symflops.emit.code.batches import StreamRow, columns, columns_of, lengths_in, stream_groups, stream_rows, summed
from symflops.emit.code.infix import ATOM, UNARY, CodePrinter
from symflops.emit.code.sharing import Scope
from symflops.emit.grouping import grouped
from symflops.emit.python.printer import (
    BUILTIN,
    PYTHON,
    WIDTH,
    ModulePrinter,
    SpacedPrinter,
    joined,
    packed,
    raised,
    remarked,
    statement,
    statement_of,
    wrapped,
)
from symflops.formula.formula import ONE, Bracket, Formula, Num, Power, Prod, Sum
from symflops.ir.batch import BatchCondition, InnerLength, Moment, Statistic
from symflops.ir.index_sets import ONCE, PADDED
from symflops.ir.program import Program

MOST = 8
"""Brackets of a condition that is rewritten; the table of truth doubles with each."""
Term = tuple[tuple[Bracket, bool], ...]
Signs = tuple[bool | None, ...]


def violated(formula: Formula, printer: CodePrinter) -> str:
    """Print the condition that ``formula``, a polynomial over brackets with values 0 and 1, is 0.

    The text is empty if something other than brackets occurs, or too many brackets.
    """
    found = dict.fromkeys(brackets_in(formula))
    brackets = [one for one in found if one is not None]
    if None in found or len(brackets) > MOST:
        return ""
    rows = list(product((False, True), repeat=len(brackets)))
    possible = [row for row in rows if not contradicts(dict(zip(brackets, row, strict=True)))]
    holds = [row for row in possible if value_of(formula, dict(zip(brackets, row, strict=True))) >= 1]
    fails = [row for row in possible if row not in holds]
    free = [row for row in rows if row not in possible]
    one, two = (text_of(shortest(part, free, brackets), printer) for part in (fails, holds))
    return min(one, f"not ({two})", key=len)


def brackets_in(formula: Formula) -> Iterator[Bracket | None]:
    """Yield the brackets of a polynomial, and None for each part that is neither bracket nor number."""
    match formula:
        case Bracket():
            yield formula
        case Sum(terms=parts) | Prod(factors=parts):
            for part in parts:
                yield from brackets_in(part)
        case Power(base=base, exponent=exponent) if exponent > 0:
            yield from brackets_in(base)
        case Num():
            pass
        case _:
            yield None


def value_of(formula: Formula, known: Mapping[Bracket, bool]) -> int:
    """Return the value of a polynomial; ``known`` says whether each of its brackets holds."""
    match formula:
        case Bracket():
            return int(known[formula])
        case Sum():
            return sum(value_of(term, known) for term in formula.terms)
        case Prod():
            return prod(value_of(factor, known) for factor in formula.factors)
        case Power():
            return int(value_of(formula.base, known) ** formula.exponent)
    assert isinstance(formula, Num)
    return int(formula.value)


def contradicts(known: Mapping[Bracket, bool]) -> bool:
    """Whether two brackets in ``known`` that hold say that one formula equals two different numbers."""
    equal = [one.arguments for one, value in known.items() if value and one.kind == "equal" and len(one.arguments) == 2]
    pairs = [(one, number) for arguments in equal for one, number in (arguments, arguments[::-1]) if isinstance(number, Num)]
    return any(one == two and first != second for (one, first), (two, second) in combinations(pairs, 2))


def shortest(wanted: list[tuple[bool, ...]], free: list[tuple[bool, ...]], brackets: list[Bracket]) -> list[Term]:
    """Return a short disjunction of conjunctions, found by the algorithm of Quine and McCluskey.

    Args:
        wanted: Rows of the truth table in which the disjunction must hold.
        free: Rows in which it may hold or not.
        brackets: The columns of the table.
    """
    current: set[Signs] = {*wanted, *free}
    primes: set[Signs] = set()
    while current:
        merged: set[Signs] = set()
        used: set[Signs] = set()
        for one in current:
            for place in [place for place, sign in enumerate(one) if sign is False]:
                two = (*one[:place], True, *one[place + 1 :])
                if two in current:
                    merged.add((*one[:place], None, *one[place + 1 :]))
                    used |= {one, two}
        primes |= current - used
        current = merged
    left, found, ordered = set(wanted), [], sorted(primes, key=str)
    while left:
        best = max(ordered, key=lambda prime: (len(covered(prime, left)), prime.count(None)))
        left -= covered(best, left)
        found.append(tuple((bracket, sign) for bracket, sign in zip(brackets, best, strict=True) if sign is not None))
    return found


def covered(prime: Signs, rows: set[tuple[bool, ...]]) -> set[tuple[bool, ...]]:
    """Return those of ``rows`` in which the conjunction ``prime`` holds."""
    return {row for row in rows if all(sign is None or sign is value for sign, value in zip(prime, row, strict=True))}


def text_of(terms: list[Term], printer: CodePrinter) -> str:
    """Print a disjunction of conjunctions as a Python expression."""
    texts = [" and ".join(literal(bracket, sign, printer) for bracket, sign in term) or "True" for term in terms]
    return " or ".join(texts) or "False"


def literal(bracket: Bracket, sign: bool, printer: CodePrinter) -> str:
    """Print a bracket as a Python expression; if not ``sign``, its negation."""
    text = printer.text(bracket).removeprefix("(").removesuffix(")") if bracket.kind in OPPOSITES else printer.text(bracket)
    if sign:
        return text
    for one, two in OPPOSITES.get(bracket.kind, {}).items():
        if text.count(one) == 1:
            return text.replace(one, two)
    return f"not {printer.text(bracket)}"


OPPOSITES = {"at_least": {" >= ": " < ", " <= ": " > "}, "equal": {" == ": " != "}}


UNFIT = "is too short for the model, or does not divide as the model divides it"


class MomentPrinter(SpacedPrinter):
    """Printer of functions of lengths; the printed code checks that exact divisions have no remainder."""

    reserved = BUILTIN

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"_exact({top}, {bottom})", ATOM


def of_lists(what: Moment | Statistic, program: Program, printer: CodePrinter, strict: bool = False) -> str:
    """Print a moment or statistic as a sum or maximum over lists of lengths.

    If ``strict``, the printed code checks that the lists have the same number of items.
    """
    found = summed(what, program)
    match found.kind:
        case "once":
            return printer.text(found.formula)
        case "count":
            count = f"len({found.columns[0]}_)" if found.columns else "0"
            return count if found.formula == ONE else f"{count}*{printer.inside(found.formula, UNARY)}"
    function = "max" if isinstance(what, Statistic) and what.kind == "max" else "sum"
    return over(function, found.columns, found.formula, printer, "" if function == "sum" else "0", strict)


def over(
    function: str, names: Sequence[str], formula: Formula, printer: CodePrinter, default: str = "", strict: bool = False
) -> str:
    """Print a call of ``function``, such as ``sum``, on the values of ``formula`` for all items.

    ``names`` are the lengths in it, ``default`` is the result without items, and ``strict`` is that of :func:`of_lists`.
    """
    rest = f", default={default}" if default else ""
    text = printer.text(formula)
    if text == names[0]:
        return f"{function}({text}_{rest})"
    items = items_of(text, names, strict)
    return f"{function}(({items}){rest})" if rest else f"{function}({items})"


def items_of(text: str, names: Sequence[str], strict: bool = False) -> str:
    """Print a generator of the expression ``text`` over the columns of the lengths ``names``."""
    shown = ", ".join(names)
    every = ", ".join([*(f"{name}_" for name in names), *(["strict=True"] if strict else [])])
    return f"{text} for {shown} in {shown}_" if len(names) == 1 else f"{text} for {shown} in zip({every})"


def entry_of(name: str, axes: Sequence[str], optional: bool) -> str:
    """Print a stream with its axes for a docstring; a question mark marks an optional stream."""
    return f"{name}{'?' if optional else ''}: {', '.join(axes)}" if axes else f"{name}{'?' if optional else ''}:"


class Reader:
    """Printer of the function of a generated module that computes the moments of a batch."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.sides = any(moment.side for moment in program.moments)
        self.alone = len(stream_rows(program)) == 1 and not stream_rows(program)[0][3]
        self.formulas = [moment.formula for moment in program.moments] + [one.formula for one in program.statistics]
        for inner in program.inner:
            self.formulas += [inner.formula, *inner.values]
        for one in program.conditions:
            self.formulas += [one.formula, *one.values, *(statistic.formula for statistic in one.statistics)]
        self.scope = Scope(program, replace(PYTHON, printer=MomentPrinter), self.formulas)

    def fields(self) -> Iterator[str]:
        """Yield the field declarations of the moments, each with its formula as a comment."""
        for one in self.program.moments:
            text = ModulePrinter().text(one.formula) + (", of padded lengths," if one.side else "")
            whole = one.items == ONCE and not one.constant
            told = f"# {text} of the whole batch" if whole else f"# sum of {text} over {one.items}"
            yield from remarked(f"{one.name}: int", told)

    def signature(self) -> str:
        """Signature of the function."""
        found = ["sizes: Sizes"] if self.scope.statements else []
        rows = stream_rows(self.program)
        found += ["*"] if rows else []
        absent = {stream.name for stream in self.program.streams if stream.absent and len(stream.variables) == 1}
        for name, _, axes, optional in rows:
            kind = "Any" if name in absent else "Sequence[Any]" if len(axes) > 1 else "Sequence[int]" if axes else "Any"
            found.append(f"{name}: {kind}{' | None' if optional and kind != 'Any' else ''}{' = None' if optional else ''}")
            found += [f"{name}_{PADDED}: Any = None"] if self.sides and axes else []
        line = ", ".join(found)
        return line if len(line) < WIDTH - 26 else "\n" + "".join(f"    {one},\n" for one in found)

    def doc(self) -> list[str]:
        """Docstring of the function, which describes the streams."""
        rows = [
            (f"per item of {items}" if axes else f"the number of {items}", (name, axes, optional))
            for name, items, axes, optional in stream_rows(self.program)
        ]
        padded = [name for name, side in self.program.lengths if side == PADDED]
        note = f" Under {', '.join(padded)} give padded lengths." if padded and rows else ""
        told = "; ".join(f"{', '.join(starmap(entry_of, streams))} {words}" for words, streams in grouped(rows).items())
        return wrapped(f'"""The sums of a batch{"; " if rows else ""}{told}.{note}"""', WIDTH - 4)

    def body(self) -> Iterator[str]:
        """Yield the statements of the function."""
        program, printer = self.program, self.scope.printer
        yield from joined(self.scope.statements, WIDTH)
        for group in stream_groups(program):
            yield from self.read(group)
        yield from self.unfit()
        for inner in program.inner:
            yield from self.left(inner) if inner.text else ()
        for condition in program.conditions:
            yield from self.demanded(condition)
        for statistic in program.statistics:
            yield from statement(statistic.name, of_lists(statistic, program, printer), WIDTH)
        sums = [self.padded(of_lists(one, program, printer), one) for one in program.moments]
        line = f"return Moments({', '.join(sums)})"
        if len(line) <= WIDTH:
            yield line
            return
        cells = [f"{one.name}={text}," for one, text in zip(program.moments, sums, strict=True)]
        yield from ("return Moments(", *packed(cells, WIDTH), ")")

    def padded(self, text: str, moment: Moment) -> str:
        """Make ``text`` read padded columns if the moment sums padded lengths."""
        if moment.side:
            for name in columns(self.program):
                text = text.replace(f" {name}_", f" {name}_{PADDED}_").replace(f"({name}_", f"({name}_{PADDED}_")
        return text

    def read(self, group: Sequence[StreamRow]) -> Iterator[str]:
        """Yield statements that read the streams of one index set, required streams first."""
        absent = {stream.name: stream.absent for stream in self.program.streams}
        if self.alone and len(group[0][2]) == 1 and not self.sides:
            ((name, _, (axis,), _),) = group
            yield f"{axis}_ = [index({axis}) for {axis} in {name}]"
            yield f"if min({axis}_, default=0) < 0:"
            yield f"    raise ValueError(\"'{name}' has a negative length\")"
            return
        rows = sorted(group, key=lambda row: row[3])
        count = ""
        if len(rows) > 1 and rows[0][3]:
            count = "count"
            every = ", ".join(row[0] for row in rows)
            yield f'count = next((len(given) for given in ({every}) if hasattr(given, "__len__")), 0)'
        for name, _, axes, optional in rows:
            if not axes:
                given = f"{name} or 0" if optional else name
                yield f"{name}_ = range({given}) if isinstance({given}, int) else {name}"
                continue
            for side in ("", f"{PADDED}_") if self.sides and axes else ("",):
                given = f"{name} if {name}_{PADDED} is None else {name}_{PADDED}" if side else name
                more = [str(len(axes)), count or "None", str(absent[name])]
                while more and more[-1] == {3: "0", 2: "None", 1: "1"}[len(more)]:
                    more.pop()
                names = [f"{axis}_{side}" for axis in axes]
                told = names[0] if len(names) == 1 else ""
                call = f"_columns({', '.join((json.dumps(name), given, *more))})"
                yield f"({told},) = {call}" if told else f"{', '.join(names)} = {call}"
                count = count or f"len({names[0]})"

    def unfit(self) -> Iterator[str]:
        """Yield statements that raise an error for items that are too short or not divisible."""
        plain = grouped((one.items, self.least(one)) for one in self.program.inner if not one.text)
        for items, tests in plain.items():
            tests = list(filter(None, tests))
            if tests:
                yield from statement_of(" or ".join(tests))
                yield from raised(f"an item of {items} {UNFIT}")

    def left(self, inner: InnerLength) -> Iterator[str]:
        """Yield statements that raise an error for an item in which the class would refuse the length."""
        names, test = lengths_in(inner.formula, self.program), violated(inner.formula, self.scope.printer)
        test = f"any({items_of(test, names)})" if names and test else self.least(inner)
        if test:
            yield from (*statement_of(test), *raised(*self.words(inner)))

    def least(self, inner: InnerLength) -> str:
        """Print the test that a length inside the model is below 1; empty if no length of the batch is in it."""
        names = lengths_in(inner.formula, self.program)
        return f"{over('min', names, inner.formula, self.scope.printer, '1')} < 1" if names else ""

    def demanded(self, one: BatchCondition) -> Iterator[str]:
        """Yield statements that raise an error for a batch that does not meet a condition of the class."""
        firsts = {items: columns_of(row)[0] for row in reversed(stream_rows(self.program)) for items in [row[1]]}
        printer = self.scope.printer
        own = {statistic.name: of_lists(statistic, self.program, printer) for statistic in one.statistics}
        there = " and ".join(f"{firsts[items]}_" for items in dict.fromkeys(part.items for part in one.statistics))
        printer.names |= own
        test = violated(one.formula, printer)
        test = f"({test})" if " or " in test and not test.startswith("not (") else test
        test = test or f"not {printer.text(one.formula)}"
        yield from statement_of(f"{there} and {test}")
        yield from raised(*self.words(one))
        printer.names = {name: text for name, text in printer.names.items() if name not in own}

    def words(self, one: InnerLength | BatchCondition) -> tuple[str, list[str]]:
        """Return (error message with the requirement of the class, expressions to insert into it)."""
        values = [self.scope.printer.text(value) for value in one.values]
        return f"the batch does not fit the model: the class takes {one.text}", values
