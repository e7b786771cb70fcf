"""``sum(s**2 for s in sides)``: a sum over a list, or over ``range(a, b)``; a config may give the list or the bounds."""

from __future__ import annotations

import ast
from collections import ChainMap
from typing import Any

from sympy import Add, Expr, Integer

from symflops.algebra import functions as fn
from symflops.algebra.domain import Setting
from symflops.algebra.truth import YES


def summed(walker: Any, node: ast.GeneratorExp) -> Expr:
    """The sum over the items of a list; if a config decides the list, one that stays closed."""
    (loop,) = node.generators
    assert isinstance(loop.target, ast.Name)
    name = loop.target.id

    def term(value: Any) -> Expr:
        inside = type(walker)(walker.expression, ChainMap({name: value}, walker.names), walker.calls)
        number: Expr = inside.number(inside.visit(node.elt), node.elt)
        condition = YES
        for test in loop.ifs:
            condition = condition & inside.truth(inside.visit(test), test)
        return condition.expr * number

    index = fn.size_symbol(f"{name}@")
    bounds = bounds_of(walker, loop.iter)
    if bounds is not None:
        return fn.Tally(index, *bounds, term(index))
    items = walker.visit(loop.iter)
    if isinstance(items, Setting) and items.kind == "list":
        item = Setting(items.name, "item", fn.Item(items.symbol, index))
        return fn.Tally(index, Integer(0), fn.Length(items.symbol), term(item))
    return Add(*map(term, walker.list_of(items, loop.iter)))


def bounds_of(walker: Any, node: ast.expr) -> tuple[Expr, Expr] | None:
    """The bounds of ``range(a, b)`` if they are not both known."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" and 0 < len(node.args) < 3):
        return None
    found = [walker.number(walker.visit(argument), argument) for argument in node.args]
    low, high = found if len(found) == 2 else (Integer(0), found[0])
    return None if low.is_Integer and high.is_Integer else (low, high)
