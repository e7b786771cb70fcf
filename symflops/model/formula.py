"""Formulas as targets print them: a closed set of frozen nodes in a fixed order, free of sympy.

Every number that symflops prints (a coefficient, a count, a size) is a formula, so that code, LaTeX and evaluation are
three readings
of one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

OF_A_LIST = ("item", "len", "count", "total")


@dataclass(frozen=True, slots=True)
class Num:
    """A number; a fraction only beside something that it divides."""

    value: Fraction

    def __hash__(self) -> int:
        # a fraction's own hash inverts its denominator modulo a prime, and formulas are looked up all the time
        return hash((self.value.numerator, self.value.denominator))


@dataclass(frozen=True, slots=True)
class Sym:
    """A size, a derived size, a length or an index, by its letter."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text that a setting is compared with."""

    value: str


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms, in the order of printing."""

    terms: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Prod:
    """Factors, in the order of printing, a number first."""

    factors: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Power:
    """A base to an integer exponent of at least two, or a negative one for a divisor."""

    base: Formula
    exponent: int


@dataclass(frozen=True, slots=True)
class Apply:
    """An integer function: ``floordiv``, ``ceildiv``, ``mod``, ``min``, ``max``, ``excess`` (max with 0), or a reading
    of a list: ``item``, ``len``, ``count``, ``total``.
    """

    function: str
    arguments: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Bracket:
    """1 when the condition holds, else 0: ``at_least``, ``equal``, ``given`` (not null), ``contains``, ``flag``."""

    kind: str
    arguments: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class TallyOf:
    """How many ``low <= index < high`` satisfy ``condition``, a 0/1 formula."""

    index: str
    low: Formula
    high: Formula
    condition: Formula


Formula = Num | Sym | Text | Sum | Prod | Power | Apply | Bracket | TallyOf
ZERO, ONE = Num(Fraction(0)), Num(Fraction(1))


def number(value: int) -> Num:
    """An integer as a formula."""
    return Num(Fraction(value))


def parts(formula: Formula) -> tuple[Formula, ...]:
    """The formulas that a formula is made of."""
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
    """A formula and everything inside it, in order."""
    yield formula
    for part in parts(formula):
        yield from walk(part)


def symbols(formula: Formula, given: bool = True) -> Iterator[str]:
    """Every letter that a formula reads, in order; without ``given`` not those of which it only asks whether they are null."""
    if isinstance(formula, Sym):
        yield formula.name
    if isinstance(formula, Bracket) and formula.kind == "given" and not given:
        return
    for part in parts(formula):
        bound = formula.index if isinstance(formula, TallyOf) else None
        yield from (name for name in symbols(part, given) if name != bound)


def tallies(formula: Formula) -> Iterator[TallyOf]:
    """Every count of iterations in a formula."""
    return (part for part in walk(formula) if isinstance(part, TallyOf))


def brackets(formulas: Iterable[Formula]) -> Iterator[Bracket]:
    """Every bracket in ``formulas``."""
    return (part for formula in formulas for part in walk(formula) if isinstance(part, Bracket))


def evaluate(formula: Formula, names: Mapping[str, Any]) -> Any:
    """The value of a formula: an int wherever it is whole, else a Fraction.

    ``names`` maps letters to ints, Fractions, booleans, texts, tuples, or None for null (which counts as 0).
    """
    value = _evaluate(formula, names)
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _evaluate(formula: Formula, names: Mapping[str, Any]) -> Any:
    match formula:
        case Num():
            return formula.value if formula.value.denominator != 1 else formula.value.numerator
        case Sym():
            value = names[formula.name]
            return 0 if value is None else value
        case Text():
            return formula.value
        case Sum():
            return sum(_evaluate(term, names) for term in formula.terms)
        case Prod():
            result: Any = 1
            for factor in formula.factors:
                result = result * _evaluate(factor, names)
                if result == 0:
                    return 0
            return result
        case Power():
            base = _evaluate(formula.base, names)
            return base**formula.exponent if formula.exponent >= 0 else Fraction(1) / Fraction(base) ** -formula.exponent
        case Apply():
            return _apply(formula.function, [_evaluate(argument, names) for argument in formula.arguments])
        case Bracket():
            return _bracket(formula, names)
        case TallyOf():
            low, high = _evaluate(formula.low, names), _evaluate(formula.high, names)
            return sum(_evaluate(formula.condition, {**names, formula.index: index}) for index in range(low, high))
        case _:
            assert_never(formula)


def _apply(function: str, values: list[Any]) -> Any:
    if function in OF_A_LIST and values[0] == 0:
        return 0  # null, which counts as 0, and so do its items
    match function:
        case "floordiv":
            return values[0] // values[1]
        case "ceildiv":
            return -(-values[0] // values[1])
        case "mod":
            return values[0] % values[1]
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "excess":
            return max(0, values[0])
        case "item":
            return values[0][values[1]]
        case "each":
            return values[0][values[1]] if isinstance(values[0], tuple) else values[0]
        case "len":
            return len(values[0])
        case "count":
            return list(values[0]).count(values[1])
        case "total":
            return sum(values[0])
    raise ValueError(function)


def _bracket(formula: Bracket, names: Mapping[str, Any]) -> int:
    first = formula.arguments[0]
    if formula.kind == "given":
        return int(isinstance(first, Sym) and names[first.name] is not None)
    values = [names[part.name] if isinstance(part, Sym) else _evaluate(part, names) for part in formula.arguments]
    match formula.kind:
        case "at_least":
            return int((values[0] or 0) >= values[1])
        case "equal":
            return int(values[0] == values[1])
        case "contains":
            return int(values[0] in (values[1] or ()))
        case "flag":
            return int(bool(values[0]))
    raise ValueError(formula.kind)
