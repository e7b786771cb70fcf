"""Values of expressions: numbers, conditions, texts, lists, null, settings read from a config, and choices."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sympy import Basic, Expr, Integer, Symbol, expand

from symflops.formula import functions as fn
from symflops.formula.truth import NO, YES, Truth, all_of, any_of
from symflops.formula.words import said


@dataclass(frozen=True, slots=True)
class Setting:
    """A size read from a config: its symbol, its type (``kind``), and whether it may be null."""

    name: str
    kind: str
    symbol: Symbol
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that depends on conditions: (condition, value) cases, of which exactly one holds."""

    cases: tuple[tuple[Truth, Any], ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """A symbolic list: ``item`` for each ``low <= index < high`` for which ``condition`` holds."""

    index: Symbol
    low: Expr
    high: Expr
    item: Expr
    condition: Truth = YES


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal as written; expressions such as ``D`` and ``E`` are not.

    Only sympy objects are compared by sympy, which would parse texts from a config as Python.
    """
    if isinstance(a, Basic) or isinstance(b, Basic):
        return isinstance(a, (Basic, int, float)) and isinstance(b, (Basic, int, float)) and bool(a == b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Choice) and isinstance(b, Choice):
        return same(a.cases, b.cases)
    return type(a) is type(b) and bool(a == b)


def is_null(value: Any) -> Truth:
    """The condition that ``value`` is null."""
    match value:
        case None:
            return YES
        case Setting(nullable=True):
            return ~Truth.of(fn.Given(value.symbol))
        case Choice(cases):
            return any_of(case & is_null(item) for case, item in cases)
    return NO


def equal_numbers(a: Expr, b: Expr) -> Truth:
    """The condition that two numbers are equal: ``YES`` or ``NO`` if that is known, else a bracket."""
    difference = a - b
    if difference == 0:
        return YES
    return NO if difference.is_Number or difference.is_nonzero else Truth.of(fn.Equal(a, b))


def sizes_behind(value: Any) -> list[str]:
    """Names of the sizes that ``value`` depends on, without loop indices."""
    match value:
        case Setting(name):
            return [name]
        case Choice(cases):
            return [name for case, item in cases for name in (*sizes_behind(case), *sizes_behind(item))]
        case tuple():
            return [name for item in value for name in sizes_behind(item)]
        case Terms():
            return fn.sizes_in(value.high, value.low, value.item, value.condition.expr)
        case Truth(expr=expr) | (Expr() as expr):
            return fn.sizes_in(expr)
    return []


def number_of(value: Any, where: Truth = YES) -> Any:
    """Return the symbol of a numeric setting if ``where`` excludes null; other values stay as they are."""
    if not isinstance(value, Setting) or value.kind != "number":
        return value
    given = not value.nullable or where.implies(Truth.of(fn.Given(value.symbol)))
    return value.symbol if given else value


def either(condition: Truth, then: Expr, otherwise: Expr) -> Expr:
    """The number ``then`` if ``condition`` holds, else ``otherwise``.

    If the condition is an equation under which both sides are equal, one side is the result: ``D if E != D else E`` is ``D``.
    """
    for truth, side, other in ((condition, then, otherwise), (~condition, otherwise, then)):
        left, right = truth.equation or (None, None)
        if left is not None and expand((side - other).subs(left, right)) == 0:
            return other
    return condition.expr * then + (~condition).expr * otherwise


def choose(condition: Truth, then: Any, otherwise: Any) -> Any:
    """The value ``then`` if ``condition`` holds, else ``otherwise``; a :class:`Choice` if not a formula."""
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
    """Describe ``value`` in words with its type, for findings: "a list", "the text 'gelu'"."""
    match value:
        case Setting(name, kind):
            return f"'{name}' (a {kind})"
        case None:
            return "null"
        case str():
            return f"the text {value!r}"
        case tuple() | Terms():
            return "a list"
        case Truth():
            return "a condition"
        case Choice(cases):
            return " or ".join(dict.fromkeys(describe(item) for _, item in cases))
    return f"'{said(value)}'"


def known(value: Any) -> Any:
    """Convert a plain config value to a value of the expression language."""
    match value:
        case bool():
            return YES if value else NO
        case int():
            return Integer(value)
        case list() | tuple():
            return tuple(known(item) for item in value)
    return value


def python_value(value: Any) -> Any:
    """Convert a value of the expression language without symbols to a plain Python value."""
    match value:
        case Integer():
            return int(value)
        case Truth(expr=expr):
            return bool(expr)
        case Expr():
            return Fraction(int(value.p), int(value.q))
        case tuple():
            return tuple(python_value(item) for item in value)
    return value


QUOTIENTS = (fn.FloorDiv, fn.CeilDiv, fn.Modulo)


def divided_under(condition: Truth, value: Any) -> Any:
    """Return ``value`` with divisors that are 1 unless ``condition``, which excludes their zeros, holds."""
    if isinstance(value, tuple):
        return tuple(divided_under(condition, item) for item in value)
    if isinstance(value, Choice):
        return Choice(tuple((case, divided_under(condition, item)) for case, item in value.cases))
    if isinstance(value, Truth):
        found = NO
        for product, factor in value.terms.items():
            found = found.plus(all_of(Truth.of(divided_under(condition, bracket)) for bracket in product), factor)
        return found
    if not isinstance(value, Expr) or not value.has(*QUOTIENTS):
        return value
    excluded = {symbol for symbol in condition.expr.free_symbols if excludes_zero(condition, symbol)}

    def guarded(quotient: Expr) -> Expr:
        above, below = quotient.args
        if below.free_symbols.isdisjoint(excluded):
            return quotient
        return type(quotient)(above, 1 + condition.expr * (below - 1))

    return value.replace(lambda found: isinstance(found, QUOTIENTS), guarded) if excluded else value


def excludes_zero(condition: Truth, symbol: Symbol) -> bool:
    """Whether ``condition`` is false whenever ``symbol`` is null or 0."""
    null = condition.expr.replace(lambda found: isinstance(found, fn.Given) and found.args[0] == symbol, lambda _: Integer(0))
    return bool(null == 0 or null.subs(symbol, 0) == 0)
