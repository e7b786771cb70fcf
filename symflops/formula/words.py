"""Prints expressions for people: in mathematical notation for captions, or as a spec writes them for messages."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import Add, Expr, Integer, Mul
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from symflops.formula import functions as fn
from symflops.formula.written import Plain, text_of, written

FORMS = {
    "Least": "min({}, {})", "Most": "max({}, {})", "Excess": "max(0, {})", "FloorDiv": "floor({}/{})", "CeilDiv": "ceil({}/{})",
    "Modulo": "{} mod {}", "Longest": "longest {}", "Together": "all {0}", "Item": "{}[{}]", "Each": "{}[{}]",
    "Length": "entries of {}", "Occurrences": "{1} in {0}", "Total": "sum of {}",
    "Tally": "number of {0} from {1} below {2} with {3}",
}  # fmt: skip
CONDITIONS = {"AtLeast": "{} >= {}", "Equal": "{} is {}", "Given": "{} given", "Contains": "{1} in {0}"}
QUOTIENTS = ("FloorDiv", "CeilDiv", "Modulo")


class _Ordered(StrPrinter):  # type: ignore[misc]
    """Prints sums with positive terms first, and names without the marks ``?`` and ``@``."""

    def _print_Symbol(self, expr: Expr) -> str:
        return expr.name.removeprefix("?").partition("@")[0] or "i"

    def _print_Add(self, expr: Add, order: object = None) -> str:
        terms = sorted(expr.args, key=lambda term: (term.could_extract_minus_sign(), not term.free_symbols, text_of(term)))
        first, *rest = (str(self._print(term)) for term in terms)
        return first + "".join(f" - {text[1:]}" if text.startswith("-") else f" + {text}" for text in rest)


class _Words(_Ordered, Plain):
    """Prints the functions of :mod:`symflops.formula.functions` in mathematical notation."""

    def _print_Symbol(self, expr: Expr) -> str:
        return f"[{condition(expr)}]" if fn.is_bracket(expr) else str(expr.name)

    def _print_Function(self, expr: Expr) -> str:
        if isinstance(expr, fn.Bracket):
            return f"[{condition(expr)}]"
        name = type(expr).__name__
        print_part = self._print if name not in QUOTIENTS else lambda part: self.parenthesize(part, PRECEDENCE["Mul"])
        return FORMS.get(name, f"{name.lower()} {{}}").format(*map(print_part, expr.args))


def condition(bracket: Expr) -> str:
    """The text of a bracket's condition, e.g. ``L >= 2``."""
    if bracket.is_Symbol:
        return str(bracket.name[1:])
    return CONDITIONS.get(type(bracket).__name__, "{}").format(*map(words_of, bracket.args))


def as_written(truth: Expr) -> str:
    """The text of a 0/1 condition in the expression language of specs.

    >>> from sympy import Symbol
    >>> from sympy.core.symbol import Str
    >>> word, L = Symbol("word"), fn.size_symbol("L")
    >>> as_written(fn.Equal(word, Str("a"))), as_written(1 - fn.Given(word))
    ("word == 'a'", 'word == null')
    >>> as_written(fn.flag_symbol("deep") * fn.AtLeast(L, 2))
    'L >= 2 and deep'
    """
    if isinstance(truth, Mul) and all(fn.is_bracket(part) or fn.is_bracket(1 - part) for part in truth.args):
        return " and ".join(sorted(as_written(part) for part in truth.args))
    for sign, part in ((True, truth), (False, 1 - truth)):
        if part.is_Symbol and fn.is_bracket(part):
            return str(part.name[1:]) if sign else f"not {part.name[1:]}"
        if isinstance(part, fn.Bracket):
            return written(part, _Ordered(), negated=not sign)
    return f"{_text(truth)} == 1"


@lru_cache(maxsize=4096)  # captions of operators name few widths, many times
def words_of(expr: Expr | int) -> str:
    """Print an expression in mathematical notation; with one condition in it, as two cases.

    >>> from sympy import Symbol
    >>> L, J = Symbol("L", integer=True), Symbol("J", integer=True)
    >>> words_of(fn.Excess(L - 3)), words_of(J * fn.Given(J) - 64 * fn.Given(J) + 64), words_of(fn.FloorDiv(L, 3))
    ('max(0, L - 3)', 'J if J given, else 64', 'floor(L/3)')
    """
    expr = Integer(expr) if isinstance(expr, int) else expr
    brackets = [atom for atom in expr.atoms(fn.Bracket) | expr.free_symbols if fn.is_bracket(atom)]
    if len(brackets) == 1 and expr not in brackets and not expr.has(fn.Tally):
        yes, no = (_text(expr.subs(brackets[0], value).expand()) for value in (1, 0))
        return f"{yes} if {condition(brackets[0])}" + (f", else {no}" if no != "0" else "")
    return _text(expr)


def said(expr: Any) -> str:
    """Print an expression in the language of specs, for messages; with one condition in it, as two cases.

    >>> L, deep = fn.size_symbol("L"), fn.flag_symbol("deep")
    >>> said(fn.Excess(L - 3)), said(4 * deep + L * (1 - deep)), said(-3 * fn.FloorDiv(L, 3)), said(None)
    ('max(0, L - 3)', '4 if deep else L', '-3*(L//3)', 'None')
    """
    if not isinstance(expr, Expr):
        return str(expr)
    brackets = [atom for atom in expr.atoms(fn.Bracket) | expr.free_symbols if fn.is_bracket(atom)]
    if len(brackets) == 1 and expr not in brackets and not expr.has(fn.Tally):
        yes, no = (said(expr.subs(brackets[0], value).expand()) for value in (1, 0))
        return f"{yes} if {_Ordered().doprint(brackets[0])} else {no}"
    return str(_Ordered().doprint(expr))


def _text(expr: Expr) -> str:
    return str(_Words().doprint(expr))
