"""A tiny evaluator for the expressions of a spec (test code: it may use `eval` on its own syntax tree)."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from types import CodeType
from typing import Any


def _exact(value: Any) -> Any:
    """Fractions that are whole become ints, floats become fractions, containers are walked."""
    if isinstance(value, float):
        value = Fraction(str(value))
    if isinstance(value, Fraction) and value.denominator == 1:
        return int(value)
    if isinstance(value, list | tuple | range):
        return [_exact(v) for v in value]
    return value


def _ceil(a: Any, b: Any = 1) -> int:
    return math.ceil(Fraction(a) / Fraction(b))


def _per(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, list) else [value] * count


FUNCTIONS: dict[str, Any] = {
    "null": None, "true": True, "false": False,
    "min": min, "max": max, "len": len, "sum": sum, "prod": math.prod, "int": int, "range": range,
    "ceil": _ceil, "round_up": lambda a, b: _ceil(a, b) * b,
    "count": lambda xs, v: list(xs).count(v), "index": lambda xs, v: list(xs).index(v),
    "longest": None, "per": _per, "rev": lambda xs: list(reversed(xs)),
    "_div": lambda a, b: _exact(Fraction(a) / Fraction(b)),
    "_dec": lambda s: _exact(Fraction(s)),
}  # fmt: skip


class _Rewrite(ast.NodeTransformer):
    """`a / b` is exact, decimals are exact, `width(v)` takes the name of a value, `longest(e)` an expression of each item."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("_div", ast.Load()), [node.left, node.right], [])
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, float):
            return ast.Call(ast.Name("_dec", ast.Load()), [ast.Constant(str(node.value))], [])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "width":
            (name,) = node.args
            return ast.Call(ast.Name("_width", ast.Load()), [ast.Constant(ast.unparse(name))], [])
        if isinstance(node.func, ast.Name) and node.func.id == "longest":
            (length,) = node.args
            return ast.Call(ast.Name("_longest", ast.Load()), [ast.Constant(ast.unparse(length))], [])
        self.generic_visit(node)
        return node


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    tree = _Rewrite().visit(ast.parse(text.strip(), mode="eval"))
    return compile(ast.fix_missing_locations(tree), "<spec>", "eval")


def _no_widths(name: str) -> int:
    raise NameError(f"width({name}) is not available here")


def evaluate(source: Any, names: Mapping[str, Any], width_of: Callable[[str], int] = _no_widths) -> Any:
    """The value of an expression field: text is evaluated, lists elementwise, anything else stands for itself."""
    if isinstance(source, list):
        return [evaluate(s, names, width_of) for s in source]
    if not isinstance(source, str):
        return _exact(source)
    scope = {**FUNCTIONS, **names, "_width": width_of, "__builtins__": {}}
    return _exact(eval(_compiled(source), scope))


def exact(value: Any) -> Any:
    """A configuration value with its decimals made exact."""
    return _exact(value)


def free_names(source: Any, known: Mapping[str, Any]) -> list[str]:
    """Names of an expression that nothing known explains, in the order in which they appear."""
    if not isinstance(source, str):
        return []
    tree = ast.parse(source.strip(), mode="eval")
    items = {loop.target.id for loop in ast.walk(tree) if isinstance(loop, ast.comprehension) and isinstance(loop.target, ast.Name)}
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in items]
    nodes.sort(key=lambda n: n.col_offset)
    return list(dict.fromkeys(n.id for n in nodes if n.id not in known and n.id not in FUNCTIONS))


def fill(template: str, names: Mapping[str, Any], width_of: Callable[[str], int] = _no_widths) -> str:
    """A path template with every `{expr}` replaced."""
    out, rest = "", template
    while "{" in rest:
        head, _, tail = rest.partition("{")
        inner, _, rest = tail.partition("}")
        out += head + str(evaluate(inner, names, width_of))
    return out + rest
