"""Compares expressions as sums of products: ``6*H*d`` equals ``vectors*width`` if these are 6 and ``H*d``."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from symflops.formula.sparse import CONSTANT, Poly


def multiple(one: Poly, other: Poly) -> int | None:
    """How many times ``one`` is another sum; None if that is no whole number."""
    (monomial, factor), *_ = other.terms.items() or [(CONSTANT, 1)]
    times, rest = divmod(one.terms.get(monomial, 0), factor)
    return int(times) if not rest and times > 0 and other.scale(times) == one else None


class Substitution(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name."""
        return ast.parse(self.values[node.id], mode="eval").body if node.id in self.values else node


def parsed(text: str) -> ast.expr | None:
    """An expression as a tree; None if the text is none."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def substitute(text: str, values: Mapping[str, str]) -> str:
    """An expression with others in place of names; a text that is no expression stays."""
    tree = parsed(text)
    return text if tree is None else ast.unparse(Substitution(values).visit(tree))


def sum_of(text: str, values: Mapping[str, str] | None = None) -> Poly:
    """An expression as a sum, with others in place of names; a text that is no expression is an atom.

    >>> sum_of("vectors*width", {"vectors": "6", "width": "H*d"}) == sum_of("6*d*H")
    True
    """
    tree = parsed(text)
    return Poly.atom(text) if tree is None else reduced(Substitution(values or {}).visit(tree))


def reduced(node: ast.expr) -> Poly:
    """A tree as a sum."""
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
