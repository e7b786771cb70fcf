"""Sums of a query as SQL expressions of columns for each engine, and conversion of the results back.

In formulas of a stored program, sizes become numbers, and lengths become columns of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

from symflops.emit.code.infix import ATOM, PRODUCT, SUM, UNARY, Printer
from symflops.evaluate.columnwise import Bound, Columnwise
from symflops.formula.formula import (
    ONE,
    ZERO,
    Apply,
    Bracket,
    Formula,
    Num,
    Power,
    Prod,
    Sum,
    Sym,
    Table,
    TallyOf,
    evaluate,
    number,
    parts,
    symbols,
)
from symflops.formula.table import ELEMENTWISE, Formulas
from symflops.formula.terms import factors_of, product_of, sum_of
from symflops.support.errors import SymflopsError
from symflops.support.files import digest


class Substitution:
    """Substitution of sizes in stored formulas; ``rests`` collects remainders that must be 0.

    ``lengths`` maps each batch variable to a column or a number.
    """

    def __init__(self, formulas: Formulas, sizes: Mapping[str, Any], lengths: Mapping[str, Formula]) -> None:
        self.formulas, self.sizes, self.lengths = formulas, sizes, lengths
        self.rests: list[Formula] = []

    def of(self, position: int) -> Formula:
        """Return the formula at ``position`` in terms of columns, with sizes substituted.

        Raises:
            SymflopsError: a length is the operand of a function of lists.
        """
        if self.formulas.letters(position).isdisjoint(self.lengths):
            return Num(Fraction(self.formulas.checked(position, self.sizes)))
        node = self.formulas.nodes[position]
        if type(node) is str:
            return self.lengths[node]
        match node:
            case ["+", *terms]:
                return total(map(self.of, terms))
            case ["*", *factors]:
                return self._product(map(self.of, factors))
            case ["^", base, int(exponent)] if exponent > 0:
                return as_number(Power(self.of(base), exponent))
            case ["?equal" | "?at_least" as kind, *operands]:
                return as_number(Bracket(kind[1:], tuple(map(self.of, operands))))
        if node[0] not in ELEMENTWISE:
            raise SymflopsError(f"a table of lengths is not priced: lengths do not go through {node[0]}")
        return applied(node[0], tuple(map(self.of, node[1:])))

    def _product(self, factors: Iterable[Formula]) -> Formula:
        found = product(factors)
        bottom = found.factors[0].value.denominator if isinstance(found, Prod) and isinstance(found.factors[0], Num) else 1
        if bottom == 1:
            return found
        top = product((number(bottom), found))
        self.rests.append(Apply("mod", (top, number(bottom))))
        return Apply("floordiv", (top, number(bottom)))


def total(terms: Iterable[Formula]) -> Formula:
    """Return the sum of ``terms``, with nested sums flattened and numbers merged into a last term."""
    parts = [part for term in terms for part in (term.terms if isinstance(term, Sum) else (term,))]
    kept = [part for part in parts if not isinstance(part, Num)]
    constant = sum((part.value for part in parts if isinstance(part, Num)), Fraction(0))
    return sum_of([*kept, Num(constant)] if constant or not kept else kept)


def product(factors: Iterable[Formula]) -> Formula:
    """Multiply factors, with nested products flattened and numbers merged into a first factor."""
    parts = [part for factor in factors for part in factors_of(factor)]
    kept = [part for part in parts if not isinstance(part, Num)]
    constant = prod((part.value for part in parts if isinstance(part, Num)), start=Fraction(1))
    if not constant or not kept:
        return Num(constant)
    return product_of(kept if constant == 1 else [Num(constant), *kept])


def applied(function: str, arguments: tuple[Formula, ...]) -> Formula:
    """Apply an integer function, simplifying a division by 1 and the minimum of a length and 0."""
    if function in ("floordiv", "ceildiv") and arguments[1] == ONE:
        return arguments[0]
    if function == "ceildiv" and isinstance(arguments[1], Num) and arguments[1].value > 0:
        return applied("floordiv", (total((arguments[0], Num(arguments[1].value - 1))), arguments[1]))
    if function == "min" and ZERO in arguments and all(isinstance(one, (Num, Sym)) for one in arguments):
        return ZERO
    return as_number(Apply(function, arguments))


def as_number(formula: Power | Apply | Bracket) -> Formula:
    """Evaluate a formula whose arguments are all numbers; else return it unchanged."""
    return Num(Fraction(evaluate(formula, {}))) if all(isinstance(part, Num) for part in parts(formula)) else formula


def is_natural(formula: Formula) -> bool:
    """Whether a formula of lengths is never negative, as far as its form shows; False if it does not."""
    if isinstance(formula, Num):
        return formula.value >= 0
    if isinstance(formula, Apply) and formula.function == "excess":
        return True
    return isinstance(formula, (Sym, Bracket)) or all(map(is_natural, parts(formula)))


WIDE_BITS = 126
"""Bits of an integer with 38 digits, the capacity of each engine's wide type."""
ROW_BITS = 32
"""The bits of the number of rows that a sum is exact for."""


@dataclass(frozen=True, slots=True)
class Engine:
    """SQL dialect of one engine.

    Attributes:
        quote: The mark around identifiers.
        wide: The type of whole numbers beyond 64 bits.
        quotient: The exact quotient of two whole numbers of 64 bits.
        wide_quotient: The same for the wide type.
        halves: The upper and the lower 32 bits of a 64-bit integer, if sums of 64-bit integers overflow.
        file: A Parquet file as a table, with the mark that a path cannot hold; "" if the engine reads none.
    """

    quote: str
    wide: str
    quotient: str
    wide_quotient: str
    halves: tuple[str, str] | None
    file: str

    def name(self, text: str) -> str:
        """Quote an identifier."""
        return f"{self.quote}{text.replace(self.quote, 2 * self.quote)}{self.quote}"

    def table(self, text: str) -> str:
        """Print a Parquet file or a table (``schema.table``) for FROM."""
        if text.endswith((".parquet", "/*")) and self.file:
            mark = "'" if "'" in self.file else "`"
            return self.file.format(text.replace(mark, 2 * mark))
        return ".".join(map(self.name, text.split(".")))


ENGINES: Mapping[str, Engine] = {
    "duckdb": Engine('"', "HUGEINT", "({0} // {1})", "({0} // {1})", None, "read_parquet('{0}')"),
    "spark": Engine(
        "`", "DECIMAL(38, 0)", "({0} DIV {1})", "CAST({0} / {1} AS DECIMAL(38, 0))",
        ("shiftright({0}, 32)", "({0}) & 4294967295"), "parquet.`{0}`",
    ),
    "postgres": Engine('"', "NUMERIC", "({0} / {1})", "div({0}, {1})", None, ""),
}  # fmt: skip


class SqlPrinter(Printer):
    """Printer of SQL expressions, in which truth values are 0 and 1, and division rounds down.

    ``names`` maps symbols to columns; ``wide``: whether expressions are computed in more than 64 bits.
    """

    def __init__(self, engine: Engine, names: Mapping[str, str], wide: bool = False) -> None:
        self.engine, self.names, self.wide = engine, names, wide

    def text(self, formula: Formula) -> str:
        found = super().text(formula)
        return found[1:-1] if isinstance(formula, Power) else found

    def number(self, value: Fraction) -> tuple[str, int]:
        if value.denominator != 1:
            raise SymflopsError("a table of lengths is not priced: the model computes with parts of lengths")
        return str(value.numerator), ATOM if value >= 0 else PRODUCT

    def symbol(self, name: str) -> str:
        found = self.names[name]
        return f"CAST({found} AS {self.engine.wide})" if self.wide else found

    def quoted(self, text: str) -> str:
        raise SymflopsError("a table of lengths is not priced: a length is compared with a text")

    def product(self, factors: tuple[Formula, ...]) -> tuple[str, int]:
        if isinstance(factors[0], Num) and factors[0].value == -1:
            return "-" + " * ".join(self.inside(factor, UNARY) for factor in factors[1:]), PRODUCT
        return " * ".join(self.inside(factor, UNARY) for factor in factors), PRODUCT

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, UNARY)
        return f"({' * '.join([base] * formula.exponent)})"

    def apply(self, formula: Apply) -> tuple[str, int]:
        match formula.function, formula.arguments:
            case "mod", (top, bottom):
                return self.rest(top, bottom), ATOM
            case "floordiv", (top, bottom):
                return self.divided(top, bottom), ATOM
            case "excess", (one,):
                return f"GREATEST({self.text(one)}, 0)", ATOM
            case "min" | "max" as name, several:
                return f"{'LEAST' if name == 'min' else 'GREATEST'}({', '.join(map(self.text, several))})", ATOM
        raise SymflopsError(f"a table of lengths is not priced: lengths do not go through {formula.function}")

    def rest(self, top: Formula, bottom: Formula) -> str:
        """Remainder of a division that rounds down."""
        one, two = self.inside(top, ATOM), self.inside(bottom, ATOM)
        return f"({one} % {two})" if is_natural(top) else f"(({one} % {two} + {two}) % {two})"

    def divided(self, top: Formula, bottom: Formula) -> str:
        """Quotient of a division that rounds down."""
        one, two = self.inside(top, ATOM), self.inside(bottom, ATOM)
        if self.wide:
            return self.engine.wide_quotient.format(f"({one} - {self.rest(top, bottom)})", two)
        return self.engine.quotient.format(one if is_natural(top) else f"({one} - {self.rest(top, bottom)})", two)

    def bracket(self, formula: Bracket) -> tuple[str, int]:
        return f"(CASE WHEN {self.holds(formula)} THEN 1 ELSE 0 END)", ATOM

    def holds(self, formula: Bracket) -> str:
        """Print a condition as an SQL Boolean."""
        one, two = (self.inside(argument, SUM) for argument in formula.arguments)
        return f"{one} {'>=' if formula.kind == 'at_least' else '='} {two}"

    def tally(self, formula: TallyOf) -> tuple[str, int]:
        raise SymflopsError("a table of lengths is not priced: a length bounds a loop")


LONGEST = 2**30 - 1
LENGTH = 12


@dataclass(frozen=True)
class Items:
    """Items of an index set that a model can run: their lengths are valid, and the conditions hold.

    ``columns`` are those of the lengths.
    """

    columns: tuple[str, ...]
    conditions: tuple[Bracket, ...] = ()

    @cached_property
    def text(self) -> str:
        """Columns and conditions as text, from which names of result columns are made."""
        return "; ".join((", ".join(self.columns), *map(sql_line, self.conditions)))


@dataclass(frozen=True)
class Rows:
    """Rows of a table that a model can run: each has an item of each index set.

    With several sets, a row without any length of a set has no item of that set, and needs an item of another set. The
    conditions apply to rows with an item of each set.
    """

    sets: tuple[Items, ...]
    conditions: tuple[Bracket, ...] = ()

    @cached_property
    def text(self) -> str:
        """Index sets and conditions as text, from which names of result columns are made."""
        return " | ".join((*(items.text for items in self.sets), *map(sql_line, self.conditions)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of all index sets."""
        return tuple(dict.fromkeys(name for items in self.sets for name in items.columns))

    @property
    def count(self) -> str:
        """Name of the result column with the number of these rows."""
        return f"n_{digest(self.text)[:LENGTH]}"

    def counts(self, items: Items) -> str:
        """Return the name of the result column with the number of items of an index set."""
        return self.count if len(self.sets) == 1 else f"n_{digest(f'{items.text} of {self.text}')[:LENGTH]}"


@dataclass(frozen=True)
class Total:
    """Sum of a formula over the items of an index set."""

    rows: Rows
    items: Items
    formula: Formula

    @cached_property
    def name(self) -> str:
        """Name of the result column of the sum, made from a digest of formula, items and rows."""
        return f"s_{digest(f'{sql_line(self.formula)} over {self.items.text} of {self.rows.text}')[:LENGTH]}"


def sql_line(formula: Formula) -> str:
    """Print a formula of columns on one line."""
    text = SqlPrinter(ENGINES["duckdb"], {name: name for name in symbols(formula)}).text(formula)
    return " ".join(text.split())


def bounds(formula: Formula, longest: Mapping[str, int]) -> Bound:
    """Return an upper bound of a formula whose columns are at most ``longest``."""
    table = Table()
    position = table.add(formula)
    places = {name: place for place, name in enumerate(dict.fromkeys(symbols(formula)))}
    found = Columnwise(Formulas(table.rows), places, {}).of(position)([Bound(longest[name]) for name in places])
    return found if isinstance(found, Bound) else Bound(abs(int(found)))


def lengths_up_to(totals: Sequence[Total], most: int = LONGEST) -> dict[str, int]:
    """Map each column to the largest length, up to ``most``, with which no sum overflows the wide type."""
    longest = {name: most for total in totals for name in total.rows.columns}
    pairs = [(total.formula, WIDE_BITS - ROW_BITS) for total in totals]
    rows = [total.rows for total in totals]
    limits = [*(some.conditions for some in rows), *(items.conditions for some in rows for items in some.sets)]
    pairs += [(part, WIDE_BITS) for some in limits for one in some for part in one.arguments]
    for formula, bits in dict.fromkeys(pairs):
        while bounds(formula, longest).most >= 2**bits:
            names = set(symbols(formula))
            largest = max(longest[name] for name in names)
            if largest < 2:
                raise SymflopsError("a table of lengths is not priced: a sum of the model has more than 38 digits")
            longest |= {name: longest[name] // 2 for name in names if longest[name] == largest}
    return longest


def whole(value: object) -> int | None:
    """Convert a value in a result to int; NULL counts as 0.

    The return value is None if it is not an exact integer, such as a float that may have lost digits.
    """
    if value is None:
        return 0
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    if isinstance(value, (bool, float)) or not isinstance(value, int):
        exact = getattr(value, "as_integer_ratio", None)
        top, bottom = exact() if exact and not isinstance(value, (bool, float)) else (0, 0)
        return int(top) if bottom == 1 else None
    return value


def sum_in(row: Mapping[str, object], total: Total) -> Fraction | int | None:
    """Return the sum ``total`` in a row of a result; None if it is missing or not a whole number."""
    if isinstance(total.formula, Num):
        name = total.rows.counts(total.items)
        count = whole(row[name]) if name in row else None
        return None if count is None else total.formula.value * count
    if total.name in row:
        return whole(row[total.name])
    halves = [whole(row[f"{total.name}{half}"]) if f"{total.name}{half}" in row else None for half in ("_hi", "_lo")]
    return None if None in halves else (halves[0] << 32) + halves[1]  # type: ignore[operator]
