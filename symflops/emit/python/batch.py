"""Batches in Python: the arguments of ``moments``, the columns of lengths, and the sums over them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence, Set

from symflops.emit.code.batches import Summed, columns, columns_of, lengths_in, stream_rows, summed
from symflops.emit.code.infix import ATOM, PRODUCT, UNARY
from symflops.emit.code.tables import Scope, Tables
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.rendering import tuple_text
from symflops.model.formula import ONE, Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, symbols
from symflops.model.program import Program
from symflops.model.sums import BatchCondition, InnerLength, Moment, Statistic
from symflops.runtime.layouts import implied_streams, inputs_of


class MomentPrinter(PythonPrinter):
    """Functions of lengths; exact divisions are checked at run time."""

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"_exact({top}, {bottom})", ATOM


class ElementPrinter(PythonPrinter):
    """Functions of lengths that work on ints and, element by element, on integer arrays.

    ``rests`` collects the remainders of exact divisions, which must be zero.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[str] = []

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        rest = f"{top} % ({bottom})" if product else f"{top} % {bottom}"
        if rest not in self.rests:
            self.rests.append(rest)
        return super().quotient(top, bottom, product)

    def apply(self, formula: Apply) -> tuple[str, int]:
        if formula.function == "excess":
            return f"_most(0, {self.text(formula.arguments[0])})", ATOM
        if formula.function in ("min", "max"):
            texts = [self.text(argument) for argument in formula.arguments]
            name = "_least" if formula.function == "min" else "_most"
            nested = texts[0]
            for text in texts[1:]:
                nested = f"{name}({nested}, {text})"
            return nested, ATOM
        return super().apply(formula)

    def bracket(self, formula: Bracket) -> tuple[str, int]:
        text, binding = super().bracket(formula)
        return (
            (f"1*{text}", PRODUCT) if formula.kind in ("at_least", "equal") else (text, binding)
        )  # arrays of bools know no difference


PRINT = MomentPrinter()
WIDTH = 112


def signature(program: Program) -> str:
    """The arguments of ``moments``."""
    numbers = {
        stream.name for stream in program.streams if not stream.variables or (stream.absent and len(stream.variables) == 1)
    }
    parts = [
        f"{name}: {'Streams | int' if name in numbers else 'Streams'}{' | None = None' if optional else ''}"
        for name, _, _, optional in stream_rows(program)
    ]
    return ", ".join(["*", *parts]) if parts else ""


def total(what: Moment | Statistic, program: Program) -> str:
    """A moment or a statistic as a sum over columns."""
    found = summed(what, program)
    match found.kind:
        case "once":
            return PRINT.text(found.formula)
        case "count":
            count = f"len({found.columns[0]}_)" if found.columns else "0"
            return count if isinstance(found.formula, Num) else f"{count}*{PRINT.inside(found.formula, UNARY)}"
    first = found.columns[0]
    if found.formula == Power(Sym(first), 2):
        return f"sum([{first}*{first} for {first} in {first}_])"
    return f"sum({over_items(found)})"


def figure(statistic: Statistic, program: Program) -> str:
    """A statistic as a sum over columns, or as their largest value."""
    if statistic.kind == "sum":
        return total(statistic, program)
    items = over_items(summed(statistic, program))
    return f"max({items if items.isidentifier() else f'({items})'}, default=0)"


def over_items(found: Summed) -> str:
    """A formula for each item of a batch: a column, or a generator over columns."""
    first, *others = found.columns
    if found.kind == "column":
        return f"{first}_"
    text = PRINT.text(found.formula)
    if not others:
        return f"{text} for {first} in {first}_"
    return f"{text} for {', '.join(found.columns)} in zip({', '.join(f'{name}_' for name in found.columns)})"


Method = tuple[str, str, str, Sequence[str], str]
"""A method of an estimator: name, arguments, type, statements before the result, the result."""


def methods(program: Program, tables: Tables) -> list[Method]:
    """The methods that evaluate the formulas of batches."""
    letters = tables.letters([moment.formula for moment in program.moments if moment.sizes])
    names = columns(program)
    elements = ", ".join(["sizes: Any", *([f"{name}: Any" for name in names] or ["*_: Any"])])
    found = [sums_of(program, letters)]
    if not program.whole:  # no item decides what it adds to a moment of the batch as a whole
        printer = ElementPrinter()
        terms = [printer.text(moment.formula) for moment in program.moments]
        found.append(("terms", elements, "tuple[Any, ...]", letters, rows(terms)))
        if printer.rests:
            found.append(("rests", elements, "tuple[Any, ...]", letters, tuple_text(printer.rests)))
    inner = [length.formula for length in program.inner]
    if inner:
        texts = [ElementPrinter().text(formula) for formula in inner]
        found.append(("inner", elements, "tuple[Any, ...]", tables.letters(inner), rows(texts)))
    if program.conditions:
        found.append(demands_of(program, tables))
    if any(length.text for length in program.inner):
        letters = tables.letters([value for length in program.inner for value in length.values])
        told = [takes(length, program) for length in program.inner]
        found.append(("takes", "sizes: Any", "tuple[tuple[str, ...], ...]", letters, rows(told)))
    found += others(program, tables)
    return [(name, arguments, kind, joined(statements), value) for name, arguments, kind, statements, value in found]


def takes(length: InnerLength, program: Program) -> str:
    """What the class takes, and the axes that count, of an inner length that is a condition; else an empty tuple."""
    if not length.text:
        return "()"
    return tuple_text([words_of(length), *map(json.dumps, lengths_in(length.formula, program))])


def words_of(one: InnerLength | BatchCondition) -> str:
    """What the class takes, as a string or an f-string."""
    text = json.dumps(one.text, ensure_ascii=False)
    if not one.values:
        return text.replace("{{", "{").replace("}}", "}")
    for place, value in enumerate(one.values):
        text = text.replace(f"{{{place}}}", f"{{{PRINT.text(value)}}}")
    return f"f{text}"


def demands_of(program: Program, tables: Tables) -> Method:
    """The method that says whether the class takes a batch as a whole."""
    read = [formula for one in program.conditions for formula in (one.formula, *one.values)]
    every = dict.fromkeys(statistic for one in program.conditions for statistic in one.statistics)
    letters = tables.letters([*read, *(one.formula for one in every)])
    figures = [f"{one.name} = {largest(one) or figure(one, program)}" for one in every]
    firsts = {items: columns_of(row)[0] for row in reversed(stream_rows(program)) for items in [row[1]]}
    told = []
    for one in program.conditions:
        there = " and ".join(f"len({firsts[items]}_)" for items in dict.fromkeys(part.items for part in one.statistics))
        told.append(f"(not ({there}) or {PRINT.text(one.formula)}, {words_of(one)})")
    arguments = ", ".join(["sizes: Any", *(f"{name}_: Any" for name in columns(program))])
    return "demands", arguments, "tuple[tuple[Any, str], ...]", [*letters, *figures], rows(told)


def largest(statistic: Statistic) -> str:
    """The largest length of a column; empty for another statistic."""
    plain = statistic.kind == "max" and isinstance(statistic.formula, Sym)
    return f"_largest({statistic.formula.name}_)" if plain else ""  # type: ignore[union-attr]


def sums_of(program: Program, letters: Sequence[str]) -> Method:
    """The method that sums up columns of lengths."""
    arguments = ", ".join(["sizes: Any", *([f"{name}_: list[int]" for name in columns(program)] or ["*_: Any"])])
    figures = [f"{item.name} = {figure(item, program)}" for item in program.statistics]
    sums = [total(moment, program) for moment in program.moments]
    line = f"Moments({', '.join(sums)})"
    told = "".join(f"\n            {text},  # {moment.name}" for text, moment in zip(sums, program.moments, strict=True))
    return "sums", arguments, "Moments", [*letters, *figures], line if len(line) < WIDTH else f"Moments({told}\n        )"


def others(program: Program, tables: Tables) -> Iterator[Method]:
    """The methods that tell inputs, implied streams, and trained elements, and that apply coefficients."""
    inputs = inputs_of(program)
    if inputs:
        widths = [PRINT.text(width) if width else "None" for _, _, _, width in inputs]
        cells = [(*map(json.dumps, texts), width) for (*texts, _), width in zip(inputs, widths, strict=True)]
        told = [f"{name}: ({to}, {layout}, {width})" for name, to, layout, width in cells]
        kind = "dict[str, tuple[str, str, int | None]]"
        yield "inputs", "sizes: Any", kind, tables.letters([width for _, _, _, width in inputs if width]), rows(told, "{}")
    implied = [f'"{name}": {PRINT.text(either(conditions))}' for name, conditions in implied_streams(program)]
    if implied:
        letters = tables.letters([info.when for info in program.inputs if info.when])
        yield "implied", "sizes: Any", "dict[str, Any]", letters, rows(implied, "{}")
    if program.requirements:
        told = [f"({PRINT.text(one.formula)}, {json.dumps(one.text)})" for one in program.requirements]
        letters = tables.letters([one.formula for one in program.requirements])
        yield "requires", "sizes: Any", "tuple[tuple[int, str], ...]", letters, rows(told)
    partly = [regime for regime in program.regimes if not all(regime.trains)]
    if partly:
        scope = Scope(tables, [regime.trainable for regime in partly])
        scope.share([regime.trainable for regime in partly])
        told = [f'"{regime.name}": {scope.printer.text(regime.trainable)}' for regime in partly]
        yield "trained", "sizes: Any", "dict[str, int]", scope.statements, rows(told, "{}")
    yield "dot", "c: Sequence[int], m: Any", "Any", [], dot(program)


def rows(texts: Sequence[str], brackets: str = "()") -> str:
    """Expressions as a tuple, or as a dictionary, in one line if they fit."""
    line = tuple_text(texts) if brackets == "()" else f"{brackets[0]}{', '.join(texts)}{brackets[1]}"
    if len(line) < WIDTH:
        return line
    return brackets[0] + "".join(f"\n            {text}," for text in texts) + f"\n        {brackets[1]}"


def joined(statements: Sequence[str]) -> list[str]:
    """Statements, those that read a size several in a line."""
    lines: list[str] = []
    for statement in statements:
        reads = re.fullmatch(r"\w+ = sizes\.\w+", statement)
        if lines and reads and re.match(r"\w+ = sizes\.\w+(;|$)", lines[-1]) and len(lines[-1]) + len(statement) < WIDTH:
            lines[-1] += f"; {statement}"
        else:
            lines.append(statement)
    return lines


def either(conditions: Sequence[Formula | None]) -> Formula:
    """0 if no condition holds; None always holds."""
    known = tuple(condition for condition in conditions if condition is not None)
    return Sum(known) if known and len(known) == len(conditions) else ONE


def dot(program: Program) -> str:
    """The sum of coefficients times moments, without moments that no work runs over."""
    used = {position for amount in program.amounts for position, _ in (*amount.useful, *amount.executed)}
    terms = [f"c[{position}] * m.{moment.name}" for position, moment in enumerate(program.moments) if position in used]
    return " + ".join(terms) or "0"


def grows(formula: Formula, lengths: Set[str], down: bool = False) -> bool:
    """Whether a function of lengths never falls (or with ``down`` never grows) where one grows, which its form shows."""
    if lengths.isdisjoint(symbols(formula)):
        return True
    match formula:
        case Sym():
            return not down
        case Sum(terms):
            return all(grows(term, lengths, down) for term in terms)
        case Prod(factors):
            negative = sum(isinstance(factor, Num) and factor.value < 0 for factor in factors)
            falls = down != bool(negative)
            signed = falls and not all(isinstance(one, Bracket) for one in factors if not lengths.isdisjoint(symbols(one)))
            return negative < 2 and not signed and all(grows(factor, lengths, falls) for factor in factors)
        case Apply("floordiv" | "ceildiv", (above, below)):
            return grows(above, lengths, down) and lengths.isdisjoint(symbols(below))
        case Bracket("at_least", (above, below)):
            return grows(above, lengths, down) and grows(below, lengths, not down)
        case _:
            return False


def quick(program: Program) -> tuple[list[str], list[str]]:
    """The conditions under which a batch is lists of ints, and their columns; empty for models with other streams."""
    rows = stream_rows(program)
    if not rows or any(optional or len(axes) != 1 or items != rows[0][1] for _, items, axes, optional in rows):
        return [], []
    first, *others = [name for name, _, _, _ in rows]
    tests = ("type({}) is list", "type({}[0]) is int", "_numbers({})")
    lists, ints, numbers = ([test.format(name) for name in (first, *others)] for test in tests)
    return [*lists, first, *(f"len({name}) == len({first})" for name in others), *ints], numbers
