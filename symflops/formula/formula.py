"""Formulas as the output languages print them: a closed set of frozen nodes in a fixed order, free of sympy.

Every number that symflops prints (a coefficient, a count, a size) is a formula: code, LaTeX and evaluation read one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, assert_never

from symflops.formula.table import Formulas


class Node:
    """Base of formula nodes, which are immutable: caches the hash and the number of operators."""

    __slots__ = ("_hash", "_operators")
    _hash: int
    _operators: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            found = hash((type(self).__name__, *(getattr(self, name) for name in self.__match_args__)))  # type: ignore[attr-defined]
            object.__setattr__(self, "_hash", found)
            return found


@dataclass(frozen=True, slots=True)
class Num(Node):
    """A number; a fraction only as the factor of a product."""

    value: Fraction

    def __hash__(self) -> int:
        # a fraction's own hash is slow: it inverts the denominator modulo a prime
        return hash((self.value.numerator, self.value.denominator))


@dataclass(frozen=True, slots=True)
class Sym(Node):
    """A size, a derived size, a length or an index, by its letter."""

    name: str


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A text constant that a setting is compared with."""

    value: str


@dataclass(frozen=True, slots=True)
class Sum(Node):
    """The sum of ``terms``, in the order of printing."""

    terms: tuple[Formula, ...]

    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True)
class Prod(Node):
    """The product of ``factors``, in the order of printing, a number first."""

    factors: tuple[Formula, ...]

    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True)
class Power(Node):
    """A base to an integer exponent: at least two, or negative for a divisor."""

    base: Formula
    exponent: int

    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """An integer function or a function of a list.

    Integer functions are ``floordiv``, ``ceildiv``, ``mod``, ``min``, ``max`` and ``excess`` (max with 0); those of a list are
    ``item``, ``each``, ``len``, ``count`` and ``total``.
    """

    function: str
    arguments: tuple[Formula, ...]

    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True)
class Bracket(Node):
    """1 if a condition on ``arguments`` holds, else 0.

    ``kind`` is ``at_least``, ``equal``, ``given`` (not null), ``contains`` or ``flag``.
    """

    kind: str
    arguments: tuple[Formula, ...]

    idempotent, __hash__ = True, Node.__hash__


@dataclass(frozen=True, slots=True)
class TallyOf(Node):
    """The number of integers ``low <= index < high`` that satisfy ``condition``, a 0/1 formula."""

    index: str
    low: Formula
    high: Formula
    condition: Formula

    __hash__ = Node.__hash__


Formula = Num | Sym | Text | Sum | Prod | Power | Apply | Bracket | TallyOf
ZERO, ONE, MINUS = Num(Fraction(0)), Num(Fraction(1)), Num(Fraction(-1))


def number(value: int) -> Num:
    """An integer as a formula."""
    return Num(Fraction(value))


def parts(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas of a formula."""
    match formula:
        case Num() | Sym() | Text():
            return ()
        case Sum():
            return formula.terms
        case Prod():
            return formula.factors
        case Power():
            return (formula.base,)
        case Apply() | Bracket():
            return formula.arguments
        case TallyOf():
            return (formula.low, formula.high, formula.condition)
        case _:
            assert_never(formula)


def walk(formula: Formula) -> Iterator[Formula]:
    """A formula and all its subformulas, in preorder."""
    yield formula
    for part in parts(formula):
        yield from walk(part)


def operators(formula: Formula) -> int:
    """Number of operators in a formula: additions, products, powers, functions and conditions."""
    try:
        return formula._operators
    except AttributeError:
        found = _own_operators(formula) + sum(map(operators, parts(formula)))
        object.__setattr__(formula, "_operators", found)
        return found


def _own_operators(formula: Formula) -> int:
    """Number of operators at the root of a formula."""
    match formula:
        case Num() | Sym() | Text():
            return 0
        case Sum(terms):
            return len(terms) - 1
        case Prod(factors):
            return len(factors) - (2 if factors[0] == MINUS else 1)  # a sign is no factor
    return 1


def symbols(formula: Formula, given: bool = True) -> Iterator[str]:
    """Yield each letter that a formula reads, in order and with repetitions.

    Unless ``given``, letters that are only tested for null are left out.
    """
    if isinstance(formula, Sym):
        yield formula.name
    if isinstance(formula, Bracket) and formula.kind == "given" and not given:
        return
    for part in parts(formula):
        bound = formula.index if isinstance(formula, TallyOf) else None
        yield from (name for name in symbols(part, given) if name != bound)


def tallies(formula: Formula) -> Iterator[TallyOf]:
    """Yield every :class:`TallyOf` in a formula."""
    return (part for part in walk(formula) if isinstance(part, TallyOf))


def brackets(formulas: Iterable[Formula]) -> Iterator[Bracket]:
    """Yield every bracket in ``formulas``."""
    return (part for formula in formulas for part in walk(formula) if isinstance(part, Bracket))


class Table:
    """A table of formulas as rows of plain data, which contain positions of other rows as operands."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.known: dict[str, int] = {}
        self.seen: dict[int, tuple[Formula, int]] = {}  # by identity: hashing a formula walks through all of it

    def add(self, formula: Formula) -> int:
        """Return the position of a formula's row, which is added if the table has no equal one."""
        if id(formula) not in self.seen:
            row = self._row(formula)
            position = self.known.setdefault(repr(row), len(self.rows))
            if position == len(self.rows):
                self.rows.append(row)
            self.seen[id(formula)] = (formula, position)
        return self.seen[id(formula)][1]

    def _row(self, formula: Formula) -> Any:
        """The row of a formula: a number, a letter, or an operator with operand positions."""
        match formula:
            case Num(value):
                return value.numerator if value.denominator == 1 else ["/", value.numerator, value.denominator]
            case Sym(name):
                return name
            case Text(value):
                return ["text", value]
            case Power(base, exponent):
                return ["^", self.add(base), exponent]
            case TallyOf():
                return ["tally", formula.index, *map(self.add, parts(formula))]
            case Sum(terms):
                return ["+", *map(self.add, terms)]
            case Prod(factors):
                return ["*", *map(self.add, factors)]
            case Apply(function, arguments):
                return [function, *map(self.add, arguments)]
            case Bracket(kind, arguments):
                return [f"?{kind}", *map(self.add, arguments)]
            case _:
                assert_never(formula)


def formulas_of(rows: Sequence[Any]) -> list[Formula]:
    """Convert the rows of a :class:`Table` to formulas, one per row.

    Raises:
        ValueError: a row is no formula, or refers to a later one.
    """
    found: list[Formula] = []
    for row in rows:
        found.append(_formula(row, found))
    return found


def _formula(row: Any, earlier: Sequence[Formula]) -> Formula:
    """Convert one row of a table; ``earlier`` has the formulas of the rows before it."""

    def at(position: Any) -> Formula:
        if type(position) is not int or not 0 <= position < len(earlier):
            raise ValueError(f"{position!r} is no position of an earlier formula")
        return earlier[position]

    match row:
        case bool():
            raise ValueError(f"{row!r} is no formula")
        case int():
            return number(row)
        case str():
            return Sym(row)
        case ["/", int(top), int(bottom)]:
            return Num(Fraction(top, bottom))
        case ["text", str(text)]:
            return Text(text)
        case ["^", base, int(exponent)]:
            return Power(at(base), exponent)
        case ["tally", str(index), low, high, condition]:
            return TallyOf(index, at(low), at(high), at(condition))
        case ["+", *terms]:
            return Sum(tuple(map(at, terms)))
        case ["*", *factors]:
            return Prod(tuple(map(at, factors)))
        case [str(name), *arguments] if name.startswith("?"):
            return Bracket(name[1:], tuple(map(at, arguments)))
        case [str(name), *arguments]:
            return Apply(name, tuple(map(at, arguments)))
    raise ValueError(f"{row!r} is no formula")


@lru_cache(maxsize=1 << 12)
def _tabulated(formula: Formula) -> tuple[Formulas, int]:
    """(Evaluator of a table that contains ``formula``, position of the formula in the table), cached."""
    table = Table()
    position = table.add(formula)
    return Formulas(table.rows), position


def evaluate(formula: Formula, names: Mapping[str, Any]) -> Any:
    """Evaluate a formula: an int if the value is whole, else a Fraction.

    ``names`` maps letters to ints, Fractions, booleans, texts, tuples, or None for null (which counts as 0).
    """
    table, position = _tabulated(formula)
    return table.value(position, names)
