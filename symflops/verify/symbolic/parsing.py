"""Reads traces back from JSON: expressions are parsed as Python code and never executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy

from symflops.support.errors import SymflopsError
from symflops.verify.symbolic.expressions import symbol
from symflops.verify.symbolic.traced import FIGURES, Field, Traced

BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
    ast.FloorDiv: lambda a, b: sympy.floor(a / b),
    ast.Mod: sympy.Mod,
    ast.BitAnd: sympy.And,
    ast.BitOr: sympy.Or,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
}
FUNCTIONS = {
    name: getattr(sympy, name) for name in ("Max", "Min", "Mod", "Abs", "sqrt", "ceiling", "floor", "Piecewise", "Eq", "Ne")
}
PLACEHOLDER = "name_{}_"
"""Stands for a field in code; names of fields may have dots and numbers."""


class Parser:
    """Parses the expressions of a trace.

    Args:
        names: The names of all fields and lengths.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.places = {name: place for place, name in enumerate(names)}
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self.pattern = re.compile(rf"(?<![\w.])(?:{longest_first})(?![\w(]|\.\w)") if names else None

    def __call__(self, text: str) -> Any:
        """The expression, condition or list that ``text`` says.

        Raises:
            SymflopsError: it is no expression of a trace.
        """
        code = self.pattern.sub(lambda found: PLACEHOLDER.format(self.places[found[0]]), text) if self.pattern else text
        try:
            return self.value(ast.parse(code, mode="eval").body)
        except (SyntaxError, ValueError, TypeError, LookupError, RecursionError, MemoryError) as error:
            raise SymflopsError(f"'{text:.60}' is no expression of a trace") from error

    def value(self, node: ast.AST) -> Any:
        """The value of a node.

        Raises:
            ValueError: it is none that expressions of traces have.
        """
        match node:
            case ast.Constant(value=bool() as truth):
                return sympy.true if truth else sympy.false
            case ast.Constant(value=int() as number):
                return sympy.Integer(number)
            case ast.Name(id="True" | "False" as word):
                return sympy.true if word == "True" else sympy.false
            case ast.Name(id=word):
                return symbol(self.names[int(word.split("_")[1])])
            case ast.BinOp(left=left, op=operator, right=right) | ast.Compare(left=left, ops=[operator], comparators=[right]):
                return BINARY[type(operator)](self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self.value(inner)
            case ast.UnaryOp(op=ast.Invert(), operand=inner):
                return sympy.Not(self.value(inner))
            case ast.Call(func=ast.Name(id=word), args=arguments, keywords=[]):
                return FUNCTIONS[word](*map(self.value, arguments))
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(map(self.value, items))
        raise ValueError(type(node).__name__)


def parsed(document: Mapping[str, Any]) -> Traced:
    """The trace that :func:`symflops.verify.symbolic.printing.as_json` wrote.

    Modules without counted work are not in it.

    Raises:
        SymflopsError: ``document`` is no trace.
    """
    try:
        read = Parser(list(document["fields"]))
        name, rows = document["name"], document["modules"]
        parameters, forward, backward = (read(document[figure]) for figure in FIGURES)
        return Traced(
            name, parameters, forward, backward,
            {".".join(filter(None, (name, row["path"]))): read(row["forward"]) for row in rows},
            tuple(read(row["condition"]) for row in document["domain"]), tuple(row["line"] for row in document["domain"]),
            {field: Field(field, **one) for field, one in document["fields"].items()},
            document["numbers"], document["missed"], document["unseen"], document["unproven"],
            {row["path"]: read(row["shape"]) for row in rows if row["shape"]}, document["fixed"],
            {field: read(text) for field, text in document["equations"].items()}, tuple(document["points"]), document["depths"],
            idle=tuple(document.get("idle", ())),
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise SymflopsError(f"this is no trace: {type(error).__name__}: {error}") from None
