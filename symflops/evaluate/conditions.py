"""Conditions on the fields of a config, in Python's syntax, as stored identities have them. Imports ``ast`` only when asked."""

from __future__ import annotations

import math
import operator
import re
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from typing import Any

NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": Fraction, "FloorDiv": operator.floordiv,
    "Mod": operator.mod, "Pow": operator.pow, "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt,
    "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "BitAnd": operator.and_, "BitOr": operator.or_,
}  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {"Max": max, "Min": min, "ceiling": math.ceil}


class UnknownNameError(LookupError):
    """A condition reads a name that has no value, such as a length of the inputs."""


def holds(condition: str, value: Callable[[str], Any]) -> bool:
    """Whether a condition holds, such as ``hidden_size % num_attention_heads == 0``.

    Args:
        condition: Arithmetic with remainders and powers, ``Max``, ``Min``, ``ceiling``, comparisons, ``&``, ``|`` and ``~``.
        value: The number of a name, with dots between nested fields; None if it has none.

    Raises:
        UnknownNameError: a name has no value.
        ValueError: the text is no such condition, or it divides by zero.
    """
    import ast

    names: dict[str, str] = {}

    def placed(found: re.Match[str]) -> str:
        name = found[0]
        return name if name in CALLS else names.setdefault(name, f"name_{len(names)}")

    text = NAME.sub(placed, condition)
    known = {place: name for name, place in names.items()}

    def of(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=place) if place in known:
                found = value(known[place])
                if not isinstance(found, (int, Fraction)):
                    raise UnknownNameError(known[place])
                return found
            case ast.BinOp(left=one, op=how, right=other) if type(how).__name__ in OPERATORS:
                return OPERATORS[type(how).__name__](of(one), of(other))
            case ast.Compare(left=one, ops=[how], comparators=[other]) if type(how).__name__ in OPERATORS:
                return OPERATORS[type(how).__name__](of(one), of(other))
            case ast.UnaryOp(op=ast.USub(), operand=one):
                return -of(one)
            case ast.UnaryOp(op=ast.Invert(), operand=one):
                return not of(one)
            case ast.Call(func=ast.Name(id=name), args=some, keywords=[]) if name in CALLS:
                return CALLS[name](*map(of, some))
        raise ValueError(f"{condition!r} is no condition")

    try:
        return bool(of(ast.parse(text, mode="eval").body))
    except (SyntaxError, ArithmeticError, TypeError) as error:
        raise ValueError(f"{condition!r} is no condition: {error}") from None
