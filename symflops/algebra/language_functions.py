"""The functions of the expression language. A new one is one function and one line of :data:`FUNCTIONS`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from sympy import Add, Expr, Integer, Mul
from sympy.core.symbol import Str

from symflops.algebra import functions as fn
from symflops.algebra.domain import Terms, same
from symflops.algebra.sums import total

MAX_ITEMS = 4096


def _numbers(walker: Any, node: ast.Call, args: Sequence[Any]) -> list[Expr]:
    if len(args) == 1 and not isinstance(args[0], Expr):
        return [walker.number(item, node) for item in walker.list_of(args[0], node.args[0])]
    return [walker.number(arg, place) for arg, place in zip(args, node.args, strict=True)]


def _sum(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    if not args:
        raise ValueError("takes a list, or numbers")
    if _symbolic(args[0]):
        return fn.Total(args[0].symbol)
    if isinstance(args[0], Terms):
        return total(args[0])
    return Add(*_numbers(walker, node, args))


def _int(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    number = walker.number(args[0], node.args[0])
    return number if number.is_integer else fn.FloorDiv(number, Integer(1))


def _ceil(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    a, b = [*_numbers(walker, node, args), Integer(1)][:2] if len(args) == 2 else (walker.number(args[0], node), Integer(1))
    return fn.CeilDiv(a, b)


def _round_up(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    a, b = _numbers(walker, node, args)
    return b * fn.CeilDiv(a, b)


def _len(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    if _symbolic(args[0]):
        return fn.Length(args[0].symbol)
    if isinstance(args[0], Terms):
        return total(args[0], lambda _: Integer(1))
    return Integer(len(walker.list_of(args[0], node.args[0])))


def _count(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    if _symbolic(args[0]):
        wanted = Str(args[1]) if isinstance(args[1], str) else walker.number(args[1], node.args[1])
        return fn.Occurrences(args[0].symbol, wanted)
    return Integer(sum(same(item, args[1]) for item in walker.list_of(args[0], node.args[0])))


def _index(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    items = walker.list_of(args[0], node.args[0])
    place = next((place for place, item in enumerate(items) if same(item, args[1])), None)
    if place is None:
        raise ValueError("the list has no such item")
    return Integer(place)


def _range(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    bounds = range(*(walker.integer(arg, place) for arg, place in zip(args, node.args, strict=True)))
    if bounds[MAX_ITEMS:]:  # len() fails above the largest C integer
        raise ValueError(f"a list has at most {MAX_ITEMS} items")
    return tuple(Integer(value) for value in bounds)


def _per(walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    if isinstance(args[0], tuple):
        return args[0]
    if getattr(args[0], "kind", "") == "any":
        walker.structural(node.args[0], f"'{args[0].name}' must be known here, as a list or as one value")
    count = walker.integer(args[1], node.args[1])
    if not 0 <= count <= MAX_ITEMS:
        raise ValueError(f"a list has at most {MAX_ITEMS} items")
    if getattr(args[0], "kind", "") in ("number or list", "number, list, same or valid"):
        return tuple(fn.Each(args[0].symbol, Integer(place)) for place in range(count))
    return (walker.value(node.args[0]),) * count


def _symbolic(value: Any) -> bool:
    return getattr(value, "kind", "") == "list"


Function = Callable[[Any, ast.Call, Sequence[Any]], Any]

FUNCTIONS: dict[str, tuple[tuple[int, ...], Function]] = {
    "min": ((), lambda *call: reduce(fn.Least, _numbers(*call))),
    "max": ((), lambda *call: reduce(fn.Most, _numbers(*call))),
    "sum": ((), _sum),
    "prod": ((), lambda *call: Mul(*_numbers(*call))),
    "int": ((1,), _int),
    "ceil": ((1, 2), _ceil),
    "round_up": ((2,), _round_up),
    "len": ((1,), _len),
    "count": ((2,), _count),
    "index": ((2,), _index),
    "range": ((1, 2, 3), _range),
    "per": ((2,), _per),
    "rev": ((1,), lambda walker, node, args: walker.list_of(args[0], node.args[0])[::-1]),
}
"""Each function with the numbers of values that it takes; empty for one that takes any."""


def call_function(name: str, walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    """The value of a function of the language.

    Raises:
        TypeError: It does not take values of these types.
        ValueError: It does not take these values, or so many.
    """
    counts, function = FUNCTIONS[name]
    if counts and len(args) not in counts:
        raise ValueError(f"takes {' or '.join(map(str, counts))} values, not {len(args)}")
    return function(walker, node, args)
