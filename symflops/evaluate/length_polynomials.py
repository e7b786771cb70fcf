"""Expands functions of lengths to polynomials in one varying length, and records the assumptions this needs.

``min(x, W)`` is ``W`` in longer sequences and ``x`` in shorter ones; ``x // c`` is ``x / c`` if ``c`` divides ``x``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import Apply, Bracket, Formula, Sym, TallyOf, symbols
from symflops.formula.sparse import Poly, ratio
from symflops.formula.terms import coefficient

LONG, SHORT = "long", "short"


class NotPolynomialError(Exception):
    """A formula of lengths cannot be expanded to a polynomial under any assumption."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A condition: ``left`` is ``at_least``, ``at_most``, ``equal`` to or a ``multiple`` of ``right``."""

    relation: str
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Unknown:
    """The one length that varies while all other lengths are fixed.

    Attributes:
        items: the index set to whose items the length belongs.
        kind: ``axis`` (one axis), ``tokens`` (all axes of a stream, multiplied) or ``equal`` (several streams of equal length).
        streams: the streams with the length.
        variables: their batch variables.
        letter: the letter that stands for the length.
        axes: if ``kind`` is ``tokens``, the factors of the product, such as ``h // 2``.
    """

    items: str
    kind: str
    streams: tuple[str, ...]
    variables: tuple[str, ...]
    letter: str
    axes: tuple[Formula, ...] = ()


@dataclass(slots=True)
class Lengths:
    """Expands formulas of lengths to polynomials in one length, under recorded assumptions.

    Attributes:
        varying: the letters of the length that varies.
        reach: whether the length is above (``long``) or below (``short``) all bounds, such as a window.
        writer: writes polynomials as formulas.
        stands: letter -> formula to substitute for it.
        assumed: the assumptions made so far.
        bounded: whether a formula so far had a bound, so that ``reach`` affects the result.
        given: ``given`` brackets that equal 1, because a sequence longer than a bound implies that the bound exists.
        products: products of axes; each axis (such as ``h // 2``) is kept as one variable of polynomials.
        known: cache: function or condition -> polynomial.
    """

    varying: frozenset[str]
    reach: str
    writer: Writer
    stands: Mapping[str, Formula] = field(default_factory=dict)
    assumed: dict[Assumption, None] = field(default_factory=dict)
    bounded: bool = False
    given: frozenset[Formula] = frozenset()
    products: Sequence[Unknown] = ()
    known: dict[Formula, Poly] = field(default_factory=dict)

    def of(self, formula: Formula) -> Poly:
        """Expand a formula to a polynomial.

        Raises:
            NotPolynomialError: the formula is not a polynomial of the varying letters.
        """
        return expanded(formula, self.rule)

    def rule(self, formula: Formula) -> Poly | None:
        """Expand a letter, function or condition to a polynomial; None if it is a variable of the polynomial."""
        if self.axis(formula):
            return None
        if isinstance(formula, Sym):
            return self.of(self.stands[formula.name]) if formula.name in self.stands else None
        if isinstance(formula, (Apply, Bracket, TallyOf)) and self.touched(formula):
            if formula not in self.known:
                self.known[formula] = self.expand(formula)
            return self.known[formula]
        return None

    def axis(self, formula: Formula) -> bool:
        """Whether a formula is one of the axes of ``products``."""
        return any(formula in product.axes for product in self.products)

    def touched(self, formula: Formula) -> bool:
        """Whether a formula contains a letter that varies or is substituted."""
        return any(name in self.varying or name in self.stands for name in symbols(formula))

    def varies(self, poly: Poly) -> bool:
        """Whether an atom of a polynomial contains a letter that varies."""
        return any(self.letters(atom) for monomial in poly.terms for atom, _ in monomial)

    def letters(self, atom: Formula) -> bool:
        """Whether a formula contains a letter that varies."""
        return any(name in self.varying for name in symbols(atom))

    def expand(self, formula: Apply | Bracket | TallyOf) -> Poly:
        """Expand a function, a condition or a number of iterations to a polynomial."""
        if isinstance(formula, TallyOf):
            raise NotPolynomialError
        arguments = [self.of(argument) for argument in formula.arguments]
        if isinstance(formula, Apply) and any(name in self.stands for name in symbols(formula)):
            formula = Apply(formula.function, tuple(self.writer.plain(argument) for argument in arguments))
            if self.axis(formula):
                return Poly.atom(formula)
        if not any(map(self.varies, arguments)):
            shown = tuple(self.writer.plain(argument) for argument in arguments)
            return Poly.atom(Apply(formula.function, shown) if isinstance(formula, Apply) else Bracket(formula.kind, shown))
        if isinstance(formula, Bracket):
            return self.bracket(formula.kind, arguments)
        match formula.function:
            case "floordiv" | "ceildiv" | "mod":
                return self.rounded(formula.function, *arguments)
            case "min" | "max":
                return self.extreme(formula.function, arguments)
            case "excess":
                return self.excess(arguments[0])
        raise NotPolynomialError

    def parted(self, poly: Poly) -> tuple[Poly, Poly]:
        """Split a sum into (terms that contain a varying letter, other terms)."""
        free = {chosen: factor for chosen, factor in poly.terms.items() if any(self.letters(atom) for atom, _ in chosen)}
        return Poly(free), Poly({chosen: factor for chosen, factor in poly.terms.items() if chosen not in free})

    def rounded(self, function: str, above: Poly, below: Poly) -> Poly:
        """Expand a rounded quotient or remainder, assuming that the divisor divides the varying part."""
        if self.varies(below):
            raise NotPolynomialError
        free, rest = self.parted(above)
        self.assume("multiple", free, below)
        left = self.of_constants(function, rest, below)
        return left if function == "mod" else divided(free, below, self.writer) + left

    def of_constants(self, function: str, above: Poly, below: Poly) -> Poly:
        """Rounded quotient or remainder of two polynomials without varying letters."""
        if not above:
            return Poly({})
        one, two = (poly.number for poly in (above, below))
        if one is not None and two is not None:
            floor = one // two
            found: dict[str, Fraction | int] = {"floordiv": floor, "ceildiv": -(-one // two), "mod": one - floor * two}
            return Poly.constant(found[function])
        return Poly.atom(Apply(function, (self.writer.plain(above), self.writer.plain(below))))

    def extreme(self, function: str, arguments: list[Poly]) -> Poly:
        """Replace the minimum or maximum of a varying length and fixed bounds by one of them, by ``reach``."""
        arguments = list(dict.fromkeys(arguments))
        free, fixed = [poly for poly in arguments if self.varies(poly)], [poly for poly in arguments if not self.varies(poly)]
        if len(free) > 1:
            raise NotPolynomialError
        if not fixed:
            return free[0]
        bound = fixed[0] if len(fixed) == 1 else Poly.atom(Apply(function, tuple(map(self.writer.plain, fixed))))
        self.bounded = True
        if self.reach == LONG:
            self.assume("at_least", free[0], bound)
            atoms = (atom for monomial in bound.terms for atom, _ in monomial)
            self.given |= {Bracket("given", (Sym(name),)) for atom in atoms for name in symbols(atom)}
        else:
            self.assume("at_most", free[0], bound)
        return bound if (function == "min") == (self.reach == LONG) else free[0]

    def excess(self, inner: Poly) -> Poly:
        """Expand ``max(0, inner)``; ``x - 1`` assumes that ``x`` is at least 1."""
        free, rest = self.parted(inner)
        found = free.sign, rest.sign
        if 0 in found and rest:
            raise NotPolynomialError
        if found[0] == found[1] or not rest:
            return inner if found[0] > 0 else Poly({})
        if found[0] > 0 and rest == Poly.constant(-1):
            self.assume("at_least", free, Poly.constant(1))
            return inner
        self.bounded = True
        long = self.reach == LONG
        self.assume("at_least" if long else "at_most", free.scale(Fraction(found[0])), rest.scale(Fraction(-found[0])))
        return inner if long == (found[0] > 0) else Poly({})

    def bracket(self, kind: str, arguments: list[Poly]) -> Poly:
        """Replace a condition on a varying length by 1 or 0, and record this as an assumption."""
        if kind == "equal" and all(map(self.varies, arguments)):
            self.assume("equal", *arguments)
            return Poly.constant(1)
        if kind == "at_least" and not self.varies(arguments[1]):
            self.bounded = True
            if self.reach == LONG:
                self.assume("at_least", *arguments)
                return Poly.constant(1)
            self.assume("at_most", arguments[0], arguments[1] - Poly.constant(1))
            return Poly({})
        raise NotPolynomialError

    def assume(self, relation: str, left: Poly, right: Poly) -> None:
        """Record an assumption unless it always holds; clears fractions (4 divides ``h``, not 2 ``h / 2``)."""
        if relation == "multiple" and len(left.terms) == 1:
            ((monomial, factor),) = left.terms.items()
            under = frozenset((atom, -exponent) for atom, exponent in monomial if exponent < 0)
            left, right = (poly * Poly({under: Fraction(factor.denominator)}) for poly in (left, right))
        if relation == "multiple" and right == Poly.constant(1):
            return
        if relation == "at_least" and right == Poly.constant(1) and len(left.terms) == 1:
            return
        self.assumed.setdefault(Assumption(relation, self.writer.plain(left), self.writer.plain(right)))

    def assumptions(self) -> tuple[Assumption, ...]:
        """The recorded assumptions, without each that another recorded assumption implies."""
        return tuple(one for one in self.assumed if not any(other is not one and follows(one, other) for other in self.assumed))


def follows(one: Assumption, other: Assumption) -> bool:
    """Whether ``one`` follows from ``other``: a multiple of 4 is a multiple of 2."""
    if not one.relation == other.relation == "multiple" or one.left != other.left:
        return False
    small, large = (coefficient(assumption.right) for assumption in (one, other))
    return small[1] == large[1] and ratio(large[0], small[0]).denominator == 1


def divided(above: Poly, below: Poly, writer: Writer) -> Poly:
    """Quotient of two polynomials, assuming exact division."""
    if len(below.terms) == 1:
        ((monomial, factor),) = below.terms.items()
        return above.over(monomial, factor)
    return above * Poly.atom(writer.plain(below), -1)


def holds(assumption: Assumption, left: Fraction, right: Fraction) -> bool:
    """Whether an assumption holds if its sides have the values ``left`` and ``right``."""
    match assumption.relation:
        case "multiple":
            return bool(right) and (left / right).denominator == 1
        case "at_least":
            return left >= right
        case "at_most":
            return left <= right
    return left == right
