"""Compares expressions as polynomials: ``6*H*d`` equals ``vectors*width`` if these are 6 and ``H*d``."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from symflops.formula.sparse import CONSTANT, Poly


def multiple(one: Poly, other: Poly) -> int | None:
    """Positive integer ``n`` with ``one == n * other``; None if there is none."""
    (monomial, factor), *_ = other.terms.items() or [(CONSTANT, 1)]
    times, rest = divmod(one.terms.get(monomial, 0), factor)
    return int(times) if not rest and times > 0 and other.scale(times) == one else None


class Substitution(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name that has a value."""
        return ast.parse(self.values[node.id], mode="eval").body if node.id in self.values else node


def parsed(text: str) -> ast.expr | None:
    """Syntax tree of an expression; None if the text does not parse."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Expression with names replaced by other expressions; text that does not parse is returned unchanged."""
    tree = parsed(text)
    return text if tree is None else ast.unparse(Substitution(values).visit(tree))


def sum_of(text: str, values: Mapping[str, str] | None = None) -> Poly:
    """Expression as a polynomial, names replaced by ``values``; text that does not parse is a variable.

    >>> sum_of("vectors*width", {"vectors": "6", "width": "H*d"}) == sum_of("6*d*H")
    True
    """
    tree = parsed(text)
    return Poly.atom(text) if tree is None else reduced(Substitution(values or {}).visit(tree))


def reduced(node: ast.expr) -> Poly:
    """Polynomial of a syntax tree; operations other than +, - and * become variables."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return Poly.constant(number)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return reduced(left) + reduced(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return reduced(left) - reduced(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return reduced(left) * reduced(right)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if 0 < power < 9:
            return reduced(left) ** power
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return reduced(operand).scale(-1)
    return Poly.atom(ast.unparse(node))
