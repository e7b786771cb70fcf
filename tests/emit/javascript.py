"""Evaluates printed JavaScript expressions by a walk over their tree, without an engine."""

from __future__ import annotations

import ast
import re
from typing import Any

FUNCTIONS = {
    "_div": lambda a, b: a // b, "_exact": lambda a, b: a // b, "_mod": lambda a, b: a % b, "_min": min, "_max": max,
    "_equal": lambda a, b: int(a == b), "BigInt": int,
}  # fmt: skip
OPERATORS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Pow: lambda a, b: a**b}


def value(text: str, names: dict[str, Any]) -> int:
    """What an expression over BigInt is; one that JavaScript does not read fails."""
    assert not re.search(r"(?<![\w)(, ])-[\w)]+\*\*|--|\+\+", text), f"no JavaScript: {text}"
    assert not re.search(r"(?<![\w$.])\d+(?![\dn])", text), f"a number that is no BigInt: {text}"
    python = re.sub(r"(?<![\w$])(\d+)n\b", r"\1", text).replace("$", "_")
    python = re.sub(r"\((\w+)\) => ", r"lambda \1: ", python)
    return walk(ast.parse(python, mode="eval").body, {name.replace("$", "_"): number for name, number in names.items()})


def walk(node: ast.AST, names: dict[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return names[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -walk(node.operand, names)
        case ast.BinOp():
            return OPERATORS[type(node.op)](walk(node.left, names), walk(node.right, names))
        case ast.Compare(ops=[ast.GtE()]):
            return walk(node.left, names) >= walk(node.comparators[0], names)
        case ast.Call(func=ast.Name(id="_tally"), args=[low, high, ast.Lambda() as condition]):
            index = condition.args.args[0].arg
            bounds = range(walk(low, names), walk(high, names))
            return sum(walk(condition.body, {**names, index: place}) for place in bounds)
        case ast.Call(func=ast.Name()):
            return FUNCTIONS[node.func.id](*(walk(argument, names) for argument in node.args))
    raise AssertionError(ast.dump(node))
