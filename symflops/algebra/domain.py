"""What expressions mean: numbers, conditions, texts, lists, null, settings that a config decides, and choices."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sympy import Basic, Expr, Integer, Symbol, expand

from symflops.algebra import functions as fn
from symflops.algebra.truth import NO, YES, Truth, any_of


@dataclass(frozen=True, slots=True)
class Setting:
    """A size that is only known when a config is read: its symbol, its type, and whether it may be null."""

    name: str
    kind: str
    symbol: Symbol
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that depends on a condition; the conditions of its cases exclude each other and cover everything."""

    cases: tuple[tuple[Truth, Any], ...]


def same(a: Any, b: Any) -> bool:
    """Whether two values are one.

    Sympy is asked about its own objects only: compared with a list or an object of a config, it would read the texts in it
    as Python.
    """
    if isinstance(a, Basic) or isinstance(b, Basic):
        return isinstance(a, (Basic, int, float)) and isinstance(b, (Basic, int, float)) and bool(a == b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Choice) and isinstance(b, Choice):
        return same(a.cases, b.cases)
    return type(a) is type(b) and bool(a == b)


def is_null(value: Any) -> Truth:
    if value is None:
        return YES
    if isinstance(value, Setting) and value.nullable:
        return ~Truth.of(fn.Given(value.symbol))
    if isinstance(value, Choice):
        return any_of(case & is_null(item) for case, item in value.cases)
    return NO


def equal_numbers(a: Expr, b: Expr) -> Truth:
    """Whether two numbers are equal: decided where it can be, else a bracket."""
    difference = a - b
    if difference == 0:
        return YES
    if difference.is_Number or difference.is_nonzero:
        return NO
    return Truth.of(fn.Equal(a, b))


def sizes_behind(value: Any) -> list[str]:
    """The sizes that decide what ``value`` is; the index of a repeat is none."""
    if isinstance(value, Setting):
        return [value.name]
    if isinstance(value, Choice):
        return [name for case, item in value.cases for name in (*sizes_behind(case.expr), *sizes_behind(item))]
    value = value.expr if isinstance(value, Truth) else value
    symbols = {symbol.name.removeprefix("?") for symbol in value.free_symbols} if isinstance(value, Expr) else set()
    return sorted(name for name in symbols if "@" not in name)


def number_of(value: Any, where: Truth = YES) -> Any:
    """A setting that is a number where ``where`` holds, as its symbol; anything else as it is."""
    if not isinstance(value, Setting) or value.kind != "number":
        return value
    given = not value.nullable or where.implies(Truth.of(fn.Given(value.symbol)))
    return value.symbol if given else value


def either(condition: Truth, then: Expr, otherwise: Expr) -> Expr:
    """The number ``then`` where ``condition`` holds, else ``otherwise``.

    Where one side holds for an equation only, and both are equal by it, the other side is what both are: ``D if E != D else E``
    is ``D``.
    """
    for truth, side, other in ((condition, then, otherwise), (~condition, otherwise, then)):
        left, right = truth.equation or (None, None)
        if left is not None and expand((side - other).subs(left, right)) == 0:
            return other
    return condition.expr * then + (~condition).expr * otherwise


def choose(condition: Truth, then: Any, otherwise: Any) -> Any:
    """``then`` where ``condition`` holds, else ``otherwise``."""
    then, otherwise = number_of(then, condition), number_of(otherwise, ~condition)
    if same(then, otherwise):
        return then
    if isinstance(then, Truth) and isinstance(otherwise, Truth):
        return condition.choose(then, otherwise)
    if isinstance(then, Expr) and isinstance(otherwise, Expr):
        return either(condition, then, otherwise)
    cases: list[tuple[Truth, Any]] = []
    for side, value in ((condition, then), (~condition, otherwise)):
        inner = value.cases if isinstance(value, Choice) else ((YES, value),)
        cases.extend((side & case, item) for case, item in inner)
    return Choice(tuple(cases))


def describe(value: Any) -> str:
    """What kind of thing ``value`` is, in words."""
    if isinstance(value, Setting):
        return f"'{value.name}' (a {value.kind})"
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, tuple):
        return "a list"
    if isinstance(value, Truth):
        return "a condition"
    return f"'{value}'"


def known(value: Any) -> Any:
    """A plain value of a config in the domain of expressions."""
    if isinstance(value, bool):
        return YES if value else NO
    if isinstance(value, int):
        return Integer(value)
    if isinstance(value, (list, tuple)):
        return tuple(known(item) for item in value)
    return value


def plain(value: Any) -> Any:
    """A known value as Python has it."""
    if isinstance(value, Integer):
        return int(value)
    if isinstance(value, Truth):
        return bool(value.expr)
    if isinstance(value, Expr):
        return Fraction(int(value.p), int(value.q))
    return tuple(plain(item) for item in value) if isinstance(value, tuple) else value
