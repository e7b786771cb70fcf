"""The formulas of a stored program as Python expressions, without the dataclasses that deriving needs."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SUM, PRODUCT, UNARY, ATOM = 1, 2, 3, 4
"""Precedences of printed texts."""
DIVISIONS = {"floordiv": "{}//{}", "ceildiv": "-(-{}//{})", "mod": "{} % {}"}
CALLS = {"excess": "max(0, {})", "item": "{}[{}]", "each": "_each({}, {})", "count": "{}.count({})", "total": "sum({})"}
CONDITIONS = {"?at_least": ">=", "?contains": "in", "?equal": "=="}


class RowPrinter:
    """Printer of stored formulas, like :class:`symflops.emit.python.printer.PythonPrinter`.

    ``nodes`` is the table of a stored program, in which a formula refers to its parts by position.
    """

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.nodes = nodes

    def text(self, position: int) -> str:
        """Print the formula at a position."""
        return self.visit(position)[0]

    def inside(self, position: int, least: int) -> str:
        """Print the formula at a position, in parentheses if its precedence is below ``least``."""
        text, strength = self.visit(position)
        return f"({text})" if strength < least else text

    def visit(self, position: int) -> tuple[str, int]:
        """Print the formula at a position; return (text, precedence of its outermost operator)."""
        node = self.nodes[position]
        if isinstance(node, int):
            return str(node), ATOM if node >= 0 else PRODUCT
        if isinstance(node, str):
            return node.partition("@")[0], ATOM
        match node:
            case ["text", text]:
                return json.dumps(text), ATOM
            case ["/", top, bottom]:
                return f"{top}/{bottom}", PRODUCT
            case ["+", *terms]:
                return "".join([self.inside(terms[0], SUM), *map(self.added, terms[1:])]), SUM
            case ["*", *factors]:
                return self.product(factors)
            case ["^", base, exponent]:
                return self.power(base, exponent), PRODUCT if exponent < 0 else UNARY
            case ["tally", index, low, high, condition]:
                bounds = self.text(high) if self.nodes[low] == 0 else f"{self.text(low)}, {self.text(high)}"
                return f"sum({self.text(condition)} for {index.partition('@')[0]} in range({bounds}))", ATOM
        return self.function(*node)

    def added(self, term: int) -> str:
        """Print a further term of a sum, with its sign."""
        text = self.inside(term, SUM)
        return f" - {text[1:]}" if text.startswith("-") else f" + {text}"

    def power(self, base: int, exponent: int) -> str:
        """Print a power; an exponent of 1 is omitted."""
        text = self.inside(base, ATOM)
        return text if exponent == 1 else f"{text}**{exponent}"

    def product(self, factors: Sequence[int]) -> tuple[str, int]:
        """Print a product: its number first, divisors last."""
        top, bottom, rest = 1, 1, list(factors)
        match self.nodes[rest[0]]:
            case int() as top:
                del rest[0]
            case ["/", top, bottom]:
                del rest[0]
        nodes = [self.nodes[place] for place in rest]
        divides = [isinstance(node, list) and node[0] == "^" and node[2] < 0 for node in nodes]
        parts = [self.inside(place, UNARY) for place, below in zip(rest, divides, strict=True) if not below]
        sign = "-" if top == -1 and parts else ""
        if abs(top) != 1 or not parts:
            parts.insert(0, str(top))
        under = [str(bottom)] if bottom != 1 else []
        under += [self.power(node[1], -node[2]) for node, below in zip(nodes, divides, strict=True) if below]
        text = sign + "*".join(parts)
        divisor = f"({'*'.join(under)})" if len(under) > 1 else "".join(under)
        return f"{text}//{divisor}" if under else text, PRODUCT

    def function(self, name: str, *arguments: int) -> tuple[str, int]:
        """Print a function of numbers or of a list, or a condition."""
        if name in DIVISIONS:
            above = self.inside(arguments[0], ATOM if name == "ceildiv" else UNARY)
            return DIVISIONS[name].format(above, self.inside(arguments[1], ATOM)), PRODUCT
        if name == "?flag":
            return self.text(arguments[0]), ATOM
        if name == "?given":
            return f"has_{self.text(arguments[0])}", ATOM
        if name in CONDITIONS:
            return f"({self.inside(arguments[0], SUM)} {CONDITIONS[name]} {self.inside(arguments[1], SUM)})", ATOM
        texts = [self.text(argument) for argument in arguments]
        return CALLS[name].format(*texts) if name in CALLS else f"{name}({', '.join(texts)})", ATOM
