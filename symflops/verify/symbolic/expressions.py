"""Expressions of traces: evaluated exactly, simplified, and written as Python code."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy.printing.pycode import PythonCodePrinter
from sympy.printing.str import StrPrinter

WIDTH = 80
SIMPLE = 2000
"""Most operations of an expression that is factored for printing."""


def symbol(name: str) -> sympy.Symbol:
    """The symbol of a field or a length: a positive integer."""
    return sympy.Symbol(name, integer=True, positive=True)


class _Exact(PythonCodePrinter):  # type: ignore[misc]
    """Prints expressions over integers whose values are exact: floors as ``//``, other quotients as fractions."""

    def _print_Rational(self, found: Any) -> str:
        return f"Fraction({found.p}, {found.q})"

    def _print_floor(self, found: Any) -> str:
        above, below = found.args[0].as_numer_denom()
        return f"(({self._print(above)})//({self._print(below)}))"

    def _print_Mul(self, found: Any) -> str:
        above, below = found.as_numer_denom()
        if below == 1:
            return super()._print_Mul(found)  # type: ignore[no-any-return]
        return f"Fraction({self._print(above)}, {self._print(below)})"


def replaced(found: sympy.Basic, values: Mapping[sympy.Symbol, Any]) -> Any:
    """An expression with other symbols or numbers; ``nan`` where it divides by zero."""
    try:
        return found.xreplace(values)
    except ZeroDivisionError:
        return sympy.nan


def compiled(names: Sequence[sympy.Symbol], found: Any) -> Callable[..., Any]:
    """Function of the values of symbols, in order, that evaluates an expression or a list of them exactly."""
    printer = _Exact({"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True})
    functions = {"Fraction": Fraction, "math": math, "floor": math.floor, "ceil": math.ceil}
    return sympy.lambdify(names, found, modules=[functions], printer=printer)  # type: ignore[no-any-return]


class _Printer(StrPrinter):  # type: ignore[misc]
    """Prints floors of quotients as ``//``, remainders as ``%``, and equations as Python does."""

    def _print_floor(self, found: Any) -> str:
        above, below = found.args[0].as_numer_denom()
        return f"({self.parenthesize(above, 50)} // {self.parenthesize(below, 60)})"

    def _print_Mod(self, found: Any) -> str:
        return f"({self.remainder(found)})"

    def remainder(self, found: Any) -> str:
        return f"{self.parenthesize(found.args[0], 50)} % {self.parenthesize(found.args[1], 60)}"

    def _print_Relational(self, found: Any) -> str:
        sides = (self.remainder(one) if isinstance(one, sympy.Mod) else self._print(one) for one in (found.lhs, found.rhs))
        return f" {found.rel_op} ".join(sides)

    def _print_And(self, found: Any) -> str:
        return " & ".join(f"({self._print(one)})" for one in sorted(found.args, key=str))

    def _print_Or(self, found: Any) -> str:
        return " | ".join(f"({self._print(one)})" for one in sorted(found.args, key=str))

    def _print_Not(self, found: Any) -> str:
        return f"~({self._print(found.args[0])})"


def text_of(found: sympy.Basic) -> str:
    """An expression or a condition as Python code over the names of fields and lengths."""
    return str(_Printer().doprint(found))


def neat(found: sympy.Expr) -> sympy.Expr:
    """An expression with common factors in front, if it is small enough to look for them."""
    return sympy.factor(found) if sympy.count_ops(found) < SIMPLE else found


def divided(found: sympy.Expr, conditions: Sequence[sympy.Basic]) -> sympy.Expr:
    """An expression without floors of quotients that a condition makes whole."""
    for one in conditions:
        remainder = next(iter(one.args), None) if isinstance(one, sympy.Eq) else None
        if isinstance(remainder, sympy.Mod) and one.rhs == 0:
            above, below = remainder.args
            for part in (below, *(below / factor for factor in sympy.Mul.make_args(below) if factor != below)):
                found = found.xreplace({sympy.floor(sympy.expand(above / part)): above / part})
    return sympy.expand(found) if found.has(sympy.Pow) else found


def tree(rows: Sequence[Mapping[str, str]], name: str) -> Iterator[str]:
    """Lines of 80 columns: each module below the one that contains it, the shape of its output, its forward FLOPs.

    Args:
        rows: ``path``, ``shape`` and ``forward`` of each module, outermost first.
        name: What the outermost module is called.
    """
    known: list[str] = []
    for row in rows:
        path = row["path"]
        while known and known[-1] and not path.startswith(f"{known[-1]}."):
            known.pop()
        inside = known[-1] if known else ""
        head = f"{'  ' * len(known)}{(path[len(inside) + 1 :] if inside else path) or name} {row['shape']}"
        yield from wrapped(f"{head:<38} {row['forward']}", 39) if len(head) < 39 else wrapped(f"{head}  {row['forward']}", 39)
        known.append(path)


def wrapped(text: str, indent: int, first: str = "") -> list[str]:
    """Lines of 80 columns, longer only where one word is; all but the first begin with ``indent`` spaces."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
