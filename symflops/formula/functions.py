"""Integer functions that sympy does not rewrite: rounding, bounds, and indicator brackets.

sympy's own ``floor``, ``Max`` and ``Piecewise`` are slow, and simplify differently from release to release. These functions
fold numbers and a few identities, and otherwise stay as written, so that pages are equal under every release.
"""

from __future__ import annotations

from typing import Any

from sympy import Add, Expr, Function, Integer, Rational, Symbol

from symflops.formula.written import level_of, written

ZERO, ONE = Integer(0), Integer(1)


def is_index(name: str) -> bool:
    """Whether ``name`` is that of a loop index, which contains ``@``."""
    return "@" in name


def sizes_in(*exprs: Expr) -> list[str]:
    """Sorted names of the sizes in ``exprs``, without loop indices."""
    names = {symbol.name.removeprefix("?") for expr in exprs for symbol in expr.free_symbols}
    return sorted(name for name in names if not is_index(name))


def size_symbol(name: str) -> Symbol:
    """The symbol of a size, a length or an index: a non-negative integer."""
    return Symbol(name, integer=True, nonnegative=True)


def position_symbol(name: str) -> Symbol:
    """The symbol of a position in a list: an integer, negative if counted from the end."""
    return Symbol(name, integer=True)


def _numbers(*args: Any) -> bool:
    return all(arg.is_Rational for arg in args)


class Count(Function):  # type: ignore[misc]
    """Base of integer functions that are non-negative if their operands are."""

    _sympystr = written
    precedence = property(level_of)

    def _eval_is_integer(self) -> bool:
        return True

    def _eval_is_nonnegative(self) -> bool | None:
        return all(arg.is_nonnegative for arg in self.args) or None


class PerToken(Count):
    """The number of experts per token: as many as the class runs, or as many as the token is routed to.

    A convention selects one count (:func:`symflops.count.count.count`), so no formula has both.
    """

    @classmethod
    def eval(cls, run: Expr, routed: Expr) -> Expr | None:
        return run if run == routed else None


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """``a / b`` if ``b`` is an integer above 1 that divides each term of ``a``, else None.

    >>> exact_quotient(4 * Symbol("D", integer=True) + 2, Integer(2))
    2*D + 1
    """
    if not (b.is_Integer and b > 1):
        return None
    terms = [term / b for term in Add.make_args(a)]
    return Add(*terms) if all(term.is_integer for term in terms) else None


class Quotient(Count):
    """Base of ``a / b`` rounded to an integer; divisors are positive, so ``a / b / c`` is ``a / (b * c)``."""

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        if b == ONE and a.is_integer:
            return a
        if isinstance(a, cls) and b.is_integer:
            return cls(a.args[0], a.args[1] * b)
        if (exact := exact_quotient(a, b)) is not None:
            return exact
        return cls.rounded(a / b) if _numbers(a, b) and b != 0 else None


class FloorDiv(Quotient):
    """``a // b``: the quotient rounded down."""

    rounded = staticmethod(Rational.floor)

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        return ONE if a == b and a.is_Symbol else super().eval(a, b)


class CeilDiv(Quotient):
    """``ceil(a / b)``: the quotient rounded up."""

    rounded = staticmethod(Rational.ceiling)


class Modulo(Count):
    """``a % b``, with the sign of ``b``."""

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        if _numbers(a, b) and b != 0:
            return a - b * Integer((a / b).floor())
        return ZERO if (b == ONE and a.is_integer) or exact_quotient(a, b) is not None else None


class Least(Count):
    """The smaller of two numbers."""

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        if a == b:
            return a
        if _numbers(a, b):
            return min(a, b)
        if isinstance(a, Least) and _numbers(a.args[1], b):
            return Least(a.args[0], min(a.args[1], b))
        difference = a - b
        return b if difference.is_nonnegative else a if difference.is_nonpositive else None


class Most(Count):
    """The larger of two numbers."""

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        if a == ZERO:
            return Excess(b)
        if b == ZERO:
            return Excess(a)
        if a == b:
            return a
        if _numbers(a, b):
            return max(a, b)
        difference = a - b
        return a if difference.is_nonnegative else b if difference.is_nonpositive else None


class NonNegative(Count):
    """Base of integer functions that are never negative."""

    def _eval_is_nonnegative(self) -> bool:
        return True


class Excess(NonNegative):
    """``max(0, a)``: the positive part of ``a``."""

    @classmethod
    def eval(cls, a: Expr) -> Expr | None:
        if a.is_nonnegative:
            return a
        if a.is_nonpositive:
            return ZERO
        constant, rest = a.as_coeff_Add()
        if constant < 0 and isinstance(rest, Excess):
            return Excess(rest.args[0] + constant)
        return ZERO if constant < 0 and is_bracket(rest) else None


class Whole(NonNegative):
    """Base of functions of a whole batch, such as the sum or maximum over its items."""


class Together(Whole):
    """``Together(items, a)``: the sum of ``a`` over the items of the index set ``items``."""


class Longest(Whole):
    """The maximum of ``a`` over the items of a batch: the length to which a model pads them."""

    @classmethod
    def eval(cls, a: Expr) -> Expr | None:
        if a.is_Rational or isinstance(a, Longest):
            return a
        content, rest = a.as_content_primitive()
        return content * cls(rest) if content != ONE else None


class Bracket(NonNegative):
    """Base of indicator brackets: 1 if the condition holds, else 0."""


class AtLeast(Bracket):
    """The bracket ``[a >= b]``, normalised to a number ``b``, so that equal conditions compare equal."""

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        difference = a - b
        if difference.is_nonnegative:
            return ONE
        if difference.is_negative:
            return ZERO
        constant, rest = difference.as_coeff_Add()
        if isinstance(rest, Excess) and -constant >= 1:
            return AtLeast(rest.args[0], -constant)
        if isinstance(rest, CeilDiv) and rest.args[1].is_Integer and rest.args[1] > 0 and constant.is_Integer:
            return AtLeast(rest.args[0], rest.args[1] * (-constant - 1) + 1)
        if is_bracket(rest) and -constant >= 1:
            return rest if constant == -1 else ZERO
        return None if (a, b) == (rest, -constant) else AtLeast(rest, -constant)


class Equal(Bracket):
    """The bracket ``[a = b]`` of two numbers, or of a setting and a text."""

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        return ONE if a == b else ZERO if _numbers(a, b) else None


class Given(Bracket):
    """The bracket "this setting is not null"."""


class Contains(Bracket):
    """The bracket ``[a in list]``."""


class Reading(NonNegative):
    """Base of functions that read a number from a config list."""


class Item(Reading):
    """``list[i]`` of a config list."""


class Each(Reading):
    """``list[i]`` of a config value; if the value is one number instead of a list, this number."""


class Length(Reading):
    """``len(list)`` of a config list."""


class Occurrences(Reading):
    """``count(list, value)`` of a config list."""


class Total(Reading):
    """``sum(list)`` of a config list."""


class Tally(Count):
    """``Tally(index, low, high, term)``: the sum of ``term`` over ``low <= index < high``."""

    @property
    def free_symbols(self) -> set[Symbol]:
        """The free symbols, without the bound index."""
        index, low, high, term = self.args
        found: set[Symbol] = (term.free_symbols - {index}) | low.free_symbols | high.free_symbols
        return found

    def _eval_is_integer(self) -> bool | None:  # type: ignore[override]
        return self.args[3].is_integer  # type: ignore[no-any-return]

    def _eval_is_nonnegative(self) -> bool | None:
        return self.args[3].is_nonnegative or None

    @classmethod
    def eval(cls, index: Expr, low: Expr, high: Expr, bracket: Expr) -> Expr | None:
        if bracket == ZERO:
            return ZERO
        return Excess(high - low) if bracket == ONE else None


def unpadded(expr: Expr, of_items: bool = True) -> Expr:
    """Replace the longest length of the batch in ``expr`` by the length of each item.

    Unless ``of_items``, this is done only within sums over items (:class:`Together`).
    """
    if not expr.has(Longest):
        return expr
    if of_items:
        return expr.replace(Longest, lambda length: length)
    return expr.replace(Together, lambda items, value: Together(items, unpadded(value)))


def is_bracket(atom: Expr) -> bool:
    """Whether ``atom`` is a bracket or the symbol of a flag, which are 0 or 1."""
    return isinstance(atom, Bracket) or (atom.is_Symbol and atom.name.startswith("?"))


def flag_symbol(name: str) -> Symbol:
    """The 0/1 symbol of a boolean size; its name starts with ``?``, unlike those of other sizes."""
    return Symbol("?" + name, integer=True, nonnegative=True)
