"""Lists made by a formula, ``[s**2 for s in sides]``, and their sums; a config may give the list, or the bounds of a range."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from sympy import Add, Expr, Integer, Symbol

from symflops.algebra import functions as fn
from symflops.algebra.domain import Setting, Terms
from symflops.algebra.truth import NO, YES, Truth


def listed(walker: Any, node: ast.ListComp) -> tuple[Any, ...] | Terms:
    """The items of a list comprehension; if a config decides the list, a formula of them."""
    found = items_of(walker, node)
    if isinstance(found, Terms):
        return found
    if any(condition not in (YES, NO) for condition, _ in found):
        walker.structural(node, "which items this list has must be known here")
    return tuple(value for condition, value in found if condition is YES)


def summed(walker: Any, node: ast.GeneratorExp) -> Expr:
    """The sum over the items of a list; if a config decides the list, one that stays closed."""
    found = items_of(walker, node)
    if isinstance(found, Terms):
        return total(found)
    return Add(*(condition.expr * value for condition, value in found))


def total(terms: Terms, of: Callable[[Expr], Expr] = lambda item: item) -> Expr:
    """The sum of a function ``of`` the items of a list."""
    return fn.Tally(terms.index, terms.low, terms.high, terms.condition.expr * of(terms.item))


def list_total(value: Any, of: Callable[[Expr], Expr] = lambda item: item) -> Expr | None:
    """The sum of a function ``of`` the numbers of a list; None for what is no list of numbers."""
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
    """The items that a loop makes, each with its condition, or the formula of an item."""
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
    """The index of a loop over ``name``: no item of a loop around it has the same."""
    values = (getattr(value, "symbol", value) for value in names.values())
    taken = {symbol.name for value in values if isinstance(value, Expr) for symbol in value.free_symbols}
    found = (f"{name}{number or ''}@" for number in count())
    return fn.size_symbol(next(text for text in found if text not in taken))


def bounds_of(walker: Any, node: ast.expr) -> tuple[Expr, Expr] | None:
    """The bounds of ``range(a, b)`` if they are not both known."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" and 0 < len(node.args) < 3):
        return None
    found = [walker.number(walker.visit(argument), argument) for argument in node.args]
    low, high = found if len(found) == 2 else (Integer(0), found[0])
    return None if low.is_Integer and high.is_Integer else (low, high)
