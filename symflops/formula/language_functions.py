"""The functions of the expression language, and lists made by a formula, ``[s**2 for s in sides]``.

To add a function, write it and add a line to :data:`FUNCTIONS`. If a config gives the list of a comprehension, or the bounds
of its range, the result stays symbolic.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import count
from typing import Any

from sympy import Add, Expr, Integer, Mul, Symbol
from sympy.core.symbol import Str

from symflops.formula import functions as fn
from symflops.formula.domain import Setting, Terms, same
from symflops.formula.truth import NO, YES, Truth


def listed(walker: Any, node: ast.ListComp) -> tuple[Any, ...] | Terms:
    """Return the items of a list comprehension; :class:`Terms` if its list or range is still a symbol."""
    found = items_of(walker, node)
    if isinstance(found, Terms):
        return found
    if any(condition not in (YES, NO) for condition, _ in found):
        walker.structural(node, "which items this list has must be known here")
    return tuple(value for condition, value in found if condition is YES)


def summed(walker: Any, node: ast.GeneratorExp) -> Expr:
    """Compute the value of ``sum(... for ...)``.

    If the list or the range after ``in`` is still a symbol, because a config gives it, the value is a ``Tally``: the
    unevaluated sum over the positions of the list or over the range.
    """
    found = items_of(walker, node)
    return total(found) if isinstance(found, Terms) else Add(*(condition.expr * value for condition, value in found))


def total(terms: Terms, of: Callable[[Expr], Expr] = lambda item: item) -> Expr:
    """Return the sum of ``of(item)`` over the items of a symbolic list, as a ``Tally`` over its index."""
    return fn.Tally(terms.index, terms.low, terms.high, terms.condition.expr * of(terms.item))


def list_total(value: Any, of: Callable[[Expr], Expr] = lambda item: item) -> Expr | None:
    """Return the sum of ``of(item)`` over a known or symbolic list of numbers; None if ``value`` is none."""
    if isinstance(value, Setting) and value.kind == "list":
        index = fn.size_symbol(f"{value.name}@")
        value = Terms(index, Integer(0), fn.Length(value.symbol), fn.Item(value.symbol, index))
    if isinstance(value, Terms):
        return total(value, of)
    if isinstance(value, tuple):
        items = [item.symbol if isinstance(item, Setting) and item.kind in ("number", "item") else item for item in value]
        return Add(*map(of, items)) if all(isinstance(item, Expr) for item in items) else None
    return None


def items_of(walker: Any, node: ast.GeneratorExp | ast.ListComp) -> list[tuple[Truth, Expr]] | Terms:
    """Return (condition for being in the list, item) pairs of a comprehension, or symbolic :class:`Terms`."""
    (loop,) = node.generators
    assert isinstance(loop.target, ast.Name)
    name = loop.target.id

    def item(value: Any) -> tuple[Truth, Expr]:
        inside = type(walker)(walker.expression, ChainMap({name: value}, walker.names), walker.calls)
        number: Expr = inside.number(inside.visit(node.elt), node.elt)
        condition = YES
        for test in loop.ifs:
            condition = condition & inside.truth(inside.visit(test), test)
        return condition, number

    index = unused(name, walker.names)
    bounds = bounds_of(walker, loop.iter)
    if bounds is not None:
        condition, number = item(index)
        return Terms(index, *bounds, number, condition)
    items = walker.visit(loop.iter)
    if isinstance(items, Setting) and items.kind == "list":
        condition, number = item(Setting(items.name, "item", fn.Item(items.symbol, index)))
        return Terms(index, Integer(0), fn.Length(items.symbol), number, condition)
    if isinstance(items, Terms):
        condition, number = item(items.item)
        return Terms(items.index, items.low, items.high, number, items.condition & condition)
    return [item(value) for value in walker.list_of(items, loop.iter)]


def unused(name: str, names: Mapping[str, Any]) -> Symbol:
    """Return an index symbol for the bound variable ``name`` that no value in ``names`` contains."""
    values = (getattr(value, "symbol", value) for value in names.values())
    taken = {symbol.name for value in values if isinstance(value, Expr) for symbol in value.free_symbols}
    found = (f"{name}{number or ''}@" for number in count())
    return fn.size_symbol(next(text for text in found if text not in taken))


def bounds_of(walker: Any, node: ast.expr) -> tuple[Expr, Expr] | None:
    """Return (a, b) if ``node`` is ``range(a, b)`` with a symbolic bound, else None."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" and 0 < len(node.args) < 3):
        return None
    found = [walker.number(walker.visit(argument), argument) for argument in node.args]
    low, high = found if len(found) == 2 else (Integer(0), found[0])
    return None if low.is_Integer and high.is_Integer else (low, high)


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
    return total(args[0]) if isinstance(args[0], Terms) else Add(*_numbers(walker, node, args))


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
"""Function name -> allowed numbers of arguments (empty: any), and the implementation."""


def call_function(name: str, walker: Any, node: ast.Call, args: Sequence[Any]) -> Any:
    """Call the function ``name`` of the expression language with the values ``args``.

    Raises:
        TypeError: the arguments have wrong types.
        ValueError: the arguments have invalid values, or their number is wrong.
    """
    counts, function = FUNCTIONS[name]
    if counts and len(args) not in counts:
        raise ValueError(f"takes {' or '.join(map(str, counts))} values, not {len(args)}")
    return function(walker, node, args)
