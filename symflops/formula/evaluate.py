"""Evaluates expressions of a spec: a walk over the tree with names bound to symbols, texts, lists and conditions.

A number is a sympy expression, a condition a :class:`Truth`, a text ``str``, null ``None``, a list a tuple
(see :mod:`symflops.formula.domain`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from itertools import pairwise
from operator import add, mul, sub, truediv
from typing import Any, NoReturn

from sympy import Expr, Integer, Rational
from sympy.core.symbol import Str

from symflops.formula import functions as fn
from symflops.formula.domain import (
    Choice,
    Setting,
    Terms,
    choose,
    describe,
    divided_under,
    equal_numbers,
    is_null,
    same,
    sizes_behind,
)
from symflops.formula.expression import Expression
from symflops.formula.language_functions import FUNCTIONS, MAX_ITEMS, call_function, listed, summed
from symflops.formula.truth import NO, YES, Truth, UnknownSizeError, all_of, any_of
from symflops.support.findings import Diagnostic, SpecError, did_you_mean

ARITHMETIC: Mapping[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.FloorDiv: fn.FloorDiv, ast.Mod: fn.Modulo,
}  # fmt: skip
DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
ORDERS: Mapping[type[ast.cmpop], Callable[[Expr, Expr], Expr]] = {
    ast.Lt: lambda a, b: fn.AtLeast(b, a + 1),
    ast.LtE: lambda a, b: fn.AtLeast(b, a),
    ast.Gt: lambda a, b: fn.AtLeast(a, b + 1),
    ast.GtE: fn.AtLeast,
}
MAX_BITS = 512
MAX_EXPONENT = 16


def evaluate(expression: Expression, names: Mapping[str, Any], calls: Mapping[str, Callable[..., Any]] | None = None) -> Any:
    """The value of ``expression``: a number, condition, text, null or list.

    Args:
        expression: A parsed expression of the language.
        names: Name -> value, for the names that the expression may read.
        calls: Name -> additional function, which is called with the walker and the node of the call.

    Raises:
        SpecError: an unknown name or function, or operands that do not fit.
        UnknownSizeError: the evaluation needs a list, a text or a number that is still a symbol.
    """
    return _Walker(expression, names, calls or {}).visit(expression.tree)


class _Walker:
    """Computes the values of the nodes of one expression: method ``visit_X`` is for nodes of the class ``ast.X``."""

    def __init__(self, expression: Expression, names: Mapping[str, Any], calls: Mapping[str, Callable[..., Any]]) -> None:
        self.expression = expression
        self.names = names
        self.calls = calls

    def fail(self, code: str, message: str, node: ast.AST, hint: str = "") -> NoReturn:
        raise SpecError([Diagnostic(code, message, self.expression.place(node), hint)])

    def visit(self, node: ast.expr) -> Any:
        return getattr(self, f"visit_{type(node).__name__}")(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, bool):
            return YES if value else NO
        if isinstance(value, int):
            return Integer(value)
        return Rational(self.expression.segment(node)) if isinstance(value, float) else value

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in ("null", "true", "false"):
            return {"null": None, "true": YES, "false": NO}[node.id]
        if node.id not in self.names:
            hint = did_you_mean(
                node.id,
                self.names,
                f"declare it under 'sizes' as '{node.id}: <field of the config>', or derive it under 'derived'; "
                f"a text has quotes of its own: \"'{node.id}'\"",
            )
            self.fail("unknown-size", f"size '{node.id}' is not declared", node, hint)
        return self.names[node.id]

    def visit_List(self, node: ast.List) -> Any:
        return tuple(self.value(item) for item in node.elts)

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return listed(self, node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Add):
            if isinstance(left, tuple) or isinstance(right, tuple):
                return self.list_of(left, node.left) + self.list_of(right, node.right)
            if isinstance(left, str) and isinstance(right, str):
                return left + right
        if isinstance(node.op, ast.Mult) and isinstance(left, tuple):
            count = self.integer(right, node.right)
            if len(left) * count > MAX_ITEMS:
                self.fail("expression-too-large", f"a list has at most {MAX_ITEMS} items", node)
            return left * count
        a, b = self.number(left, node.left), self.number(right, node.right)
        if isinstance(node.op, ast.Pow):
            return self.power(a, b, node)
        if b == 0 and isinstance(node.op, DIVISIONS):
            self.fail("bad-expression", "division by zero", node)
        value = ARITHMETIC[type(node.op)](a, b)
        if isinstance(node.op, ast.Mult) and value.is_Integer and abs(int(value)).bit_length() > MAX_BITS:
            self.fail("expression-too-large", "this number is too large", node)
        return value

    def power(self, base: Expr, exponent: Expr, node: ast.BinOp) -> Expr:
        """``base**exponent`` for a known exponent from 0 to ``MAX_EXPONENT``."""
        if exponent.free_symbols:
            message = f"'{self.expression.segment(node)}' has an exponent that is no number here"
            hint = "an index of a repeat over a list is a number in each iteration, and so is a size that the config decides"
            size = next(iter(fn.sizes_in(exponent)), "")
            raise UnknownSizeError(size, Diagnostic("structural-size", message, self.expression.place(node), hint))
        if not (exponent.is_Integer and 0 <= exponent <= MAX_EXPONENT):
            message, hint = f"an exponent is a whole number from 0 to {MAX_EXPONENT}", "write it as a product"
            self.fail("expression-too-large", message, node, hint)
        if base.is_Integer and abs(int(base)).bit_length() * int(exponent) > MAX_BITS:
            self.fail("expression-too-large", "this number is too large", node)
        return base**exponent

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return ~self.truth(self.visit(node.operand), node.operand)
        value = self.number(self.visit(node.operand), node.operand)
        return -value if isinstance(node.op, ast.USub) else value

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        both = isinstance(node.op, ast.And)
        found = YES if both else NO
        for value in node.values:
            reached = found if both else ~found
            if reached is NO:
                break
            truth = self.truth(divided_under(reached, self.visit(value)), value)
            found = found & truth if both else found | truth
        return found

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.truth(self.visit(node.test), node.test)
        if condition is YES:
            return self.visit(node.body)
        if condition is NO:
            return self.visit(node.orelse)
        return choose(
            condition, divided_under(condition, self.visit(node.body)), divided_under(~condition, self.visit(node.orelse))
        )

    def visit_Compare(self, node: ast.Compare) -> Any:
        operands = [node.left, *node.comparators]
        values = [self.visit(operand) for operand in operands]
        sides = zip(node.ops, pairwise(values), pairwise(operands), strict=True)
        return all_of([self.compare(operator, *pair, *places) for operator, pair, places in sides])

    def compare(self, operator: ast.cmpop, a: Any, b: Any, left: ast.expr, right: ast.expr) -> Truth:
        if type(operator) in ORDERS:
            return Truth.of(ORDERS[type(operator)](self.number(a, left), self.number(b, right)))
        holds = self.equal if isinstance(operator, (ast.Eq, ast.NotEq)) else self.contains
        found = holds(a, b, left, right)
        return ~found if isinstance(operator, (ast.NotEq, ast.NotIn)) else found

    def equal(self, a: Any, b: Any, left: ast.expr, right: ast.expr) -> Truth:
        if isinstance(b, Setting) and not isinstance(a, Setting):
            a, b, left, right = b, a, right, left
        match a, b:
            case (None, other) | (other, None):
                return is_null(other)
            case Choice(), _:
                return any_of(case & self.equal(value, b, left, right) for case, value in a.cases)
            case Setting(kind="text" | "item" | "number, list, same or valid"), str():
                return Truth.of(fn.Equal(a.symbol, Str(b)))
            case tuple(), tuple() if len(a) == len(b):
                return all_of(self.equal(one, other, left, right) for one, other in zip(a, b, strict=True))
            case (str() | tuple(), _) | (_, str() | tuple()):
                return YES if same(a, b) else NO
            case Truth(), Truth():
                return a.choose(b, ~b)
        return equal_numbers(self.number(a, left), self.number(b, right))

    def contains(self, a: Any, b: Any, left: ast.expr, right: ast.expr) -> Truth:
        if isinstance(b, Setting) and b.kind == "list":
            return Truth.of(fn.Contains(self.number(a, left) if not isinstance(a, str) else Str(a), b.symbol))
        if not isinstance(b, tuple):
            self.fail("bad-expression", "'in' needs a list", right)
        return any_of(self.equal(a, item, left, right) for item in b)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        items = self.visit(node.value)
        if isinstance(items, Setting) and items.kind == "list" and not isinstance(node.slice, ast.Slice):
            return Setting(items.name, "item", fn.Item(items.symbol, self.number(self.visit(node.slice), node.slice)))
        items = self.list_of(items, node.value)
        if isinstance(node.slice, ast.Slice):
            bounds = (node.slice.lower, node.slice.upper, node.slice.step)
            return items[slice(*(self.integer(self.visit(bound), bound) if bound else None for bound in bounds))]
        index = self.integer(self.visit(node.slice), node.slice)
        if not -len(items) <= index < len(items):
            self.fail("bad-expression", f"index {index} is outside a list of {len(items)}", node.slice)
        return items[index]

    def visit_Call(self, node: ast.Call) -> Any:
        name = getattr(node.func, "id", "")
        if name in self.calls:
            return self.calls[name](self, node)
        if node.args and isinstance(node.args[0], ast.GeneratorExp):
            return summed(self, node.args[0])
        if name not in FUNCTIONS:
            known = [*FUNCTIONS, *self.calls]
            hint = did_you_mean(name, known, f"functions: {', '.join(known)}")
            self.fail("unknown-function", f"there is no function '{name}'", node.func, hint)
        try:
            return call_function(name, self, node, [self.visit(argument) for argument in node.args])
        except (TypeError, ValueError) as error:
            self.fail("bad-expression", f"{name}: {error}", node)

    def value(self, node: ast.expr) -> Any:
        """Evaluate ``node``; a setting of the kind ``number`` becomes its symbol."""
        found = self.visit(node)
        return found.symbol if isinstance(found, Setting) and found.kind == "number" else found

    def number(self, value: Any, node: ast.expr) -> Expr:
        """Convert ``value`` to a number, and a flag to 0 or 1; for others, report an error at ``node``."""
        match value:
            case Setting(kind="number" | "item", symbol=number) | Truth(expr=number) | (Expr() as number):
                return number
        return self.fail("bad-expression", f"{describe(value)} is not a number", node)

    def truth(self, value: Any, node: ast.expr) -> Truth:
        """Return ``value`` if it is a condition; otherwise report an error at ``node``."""
        if isinstance(value, Truth):
            return value
        if isinstance(value, Setting) and value.nullable:
            self.fail("bad-expression", f"'{value.name}' is no condition", node, f"write '{value.name} != null'")
        return self.fail("bad-expression", f"{describe(value)} is no condition", node, "compare it with something")

    def integer(self, value: Any, node: ast.expr) -> int:
        """Convert ``value`` to a plain integer; if it is a symbol, report an error at ``node``."""
        number = self.number(value, node)
        if not number.is_Integer:
            self.structural(node, f"'{self.expression.segment(node)}' must be a known number here")
        return int(number)

    def list_of(self, value: Any, node: ast.expr) -> tuple[Any, ...]:
        """Return ``value`` if it is a list of known items; otherwise report an error at ``node``."""
        if isinstance(value, tuple):
            return value
        match value:
            case Setting(name, kind="list"):
                self.structural(node, f"the list '{name}' must be known here")
            case Choice() | Terms():
                self.structural(node, f"the list '{self.expression.segment(node)}' must be known here")
        return self.fail("bad-expression", f"{describe(value)} is not a list", node)

    def structural(self, node: ast.expr, message: str) -> NoReturn:
        """Raise the error that the value of ``node`` must be known; it names a size that decides this value, if there is one.

        A setting, and a flag that is neither true nor false, decide it before other names do.
        """
        hint = "it decides the structure: give it a default; other structures may be variants"
        diagnostic = Diagnostic("structural-size", message, self.expression.place(node), hint)
        found = [self.names.get(name.id) for name in ast.walk(node) if isinstance(name, ast.Name)]
        found.sort(key=lambda value: not isinstance(value, (Setting, Truth)) or value in (YES, NO))
        raise UnknownSizeError(
            next((name for value in found for name in sizes_behind(value) if "@" not in name), ""), diagnostic
        )
