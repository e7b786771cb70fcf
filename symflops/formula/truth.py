"""Conditions that may depend on sizes, as polynomials over 0/1 brackets.

An operator may exist, and a value may need a gradient or have a reader, always, never, or "if L >= 1", "if ``qk_norm`` is
set". Each condition is a :class:`Truth`: a multilinear polynomial over brackets. *And* is a product, *or* is ``a + b - a*b``,
*not* is ``1 - a``. So equal conditions compare equal, and a cost can be multiplied by a condition.

If a condition must be known and is not, :class:`UnknownSizeError` names the size that decides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import combinations

from sympy import Add, Expr, Integer, Mul, Symbol

from symflops.formula.cases import exclude, never
from symflops.formula.functions import AtLeast, Bracket, Contains, Equal, Given, is_bracket, sizes_in
from symflops.formula.written import text_of
from symflops.support.findings import Diagnostic, Span


class UnknownSizeError(Exception):
    """The structure of the model depends on a size that is still a symbol.

    Operators such as ``&`` of conditions raise this deep inside an evaluation. The driver catches it and retries with the value
    from a config.

    Attributes:
        size: The size to fix; empty if no single size suffices.
        diagnostic: The finding to report if that size has no value.
    """

    def __init__(self, size: str, diagnostic: Diagnostic) -> None:
        super().__init__(size)
        self.size = size
        self.diagnostic = diagnostic


def unequal_widths(widths: Iterable[Expr], message: str, span: Span | None) -> UnknownSizeError | None:
    """Create the error for unequal ``widths`` if one of them depends on a condition; else return None."""
    atoms = {atom for width in widths for atom in width.atoms(Bracket, Symbol) if is_bracket(atom)}
    sizes = sizes_in(*atoms)
    if not sizes:
        return None
    return UnknownSizeError(
        sizes[0], Diagnostic("structural-size", message, span, f"'{sizes[0]}' decides that, and must be known")
    )


def tangled(brackets: Iterable[Expr]) -> UnknownSizeError:
    """The error for a condition over too many ``brackets``.

    The error names the size to fix: preferably a list that a bracket reads, a count only as the last resort.
    """
    rank: dict[str, int] = {}
    for bracket in sorted(brackets, key=text_of):
        place = 0 if isinstance(bracket, Contains) else 2 if isinstance(bracket, AtLeast) else 1
        for name in sizes_in(bracket.args[-1] if place == 0 else bracket):
            rank[name] = min(place, rank.get(name, place))
    first = min(rank, key=lambda name: (rank[name], name), default="")
    message = f"what exists here, or needs a gradient, depends on too many combinations of '{first}'"
    return UnknownSizeError(
        first, Diagnostic("structural-size", message, None, f"give '{first}' a value in a config, or a variant")
    )


Product = frozenset[Expr]
MAX_TERMS = 128


class Truth:
    """A 0/1-valued polynomial: products of distinct brackets and their integer coefficients."""

    __slots__ = ("_expr", "_hash", "terms")

    def __init__(self, terms: Mapping[Product, int]) -> None:
        self.terms = {product: factor for product, factor in terms.items() if factor}
        self._hash = hash(frozenset(self.terms.items()))
        self._expr: Expr | None = None

    @classmethod
    def of(cls, bracket: Expr | bool | int) -> Truth:
        """The condition that ``bracket`` is 1; a bool or a constant gives ``YES`` or ``NO``."""
        if isinstance(bracket, (bool, int)) or bracket.is_Integer:
            return YES if int(bracket) else NO
        return cls({frozenset((bracket,)): 1})

    def __and__(self, other: Truth) -> Truth:
        """The condition that this one and ``other`` hold.

        Raises:
            UnknownSizeError: the result has more than ``MAX_TERMS`` terms.
        """
        if self is YES or other is NO:
            return other
        if other is YES or self is NO or (self.terms == other.terms and len(self.terms) == 1):
            return self
        return _both(self, other)

    def __or__(self, other: Truth) -> Truth:
        if self is YES or other is NO or self == other:
            return self
        if other is YES or self is NO:
            return other
        return _known(self.plus(other).plus(self & other, -1))

    def __invert__(self) -> Truth:
        return _known(YES.plus(self, -1))

    def plus(self, other: Truth, factor: int = 1) -> Truth:
        """Return the sum ``self + factor * other``, which is a condition only if it is always 0 or 1."""
        terms = dict(self.terms)
        for product, value in other.terms.items():
            terms[product] = terms.get(product, 0) + factor * value
        return _known(Truth(terms))

    def choose(self, then: Truth, otherwise: Truth) -> Truth:
        """The condition ``then`` where this one holds, and ``otherwise`` where it does not."""
        return then if then == otherwise else _known((self & then).plus(~self & otherwise))

    def implies(self, other: Truth) -> bool:
        """Whether ``other`` is known to hold whenever this condition does."""
        return self is other or other is YES or _excluded(self & ~other)

    @property
    def expr(self) -> Expr:
        """The condition as a sympy expression with the value 0 or 1, by which a cost can be multiplied."""
        if self._expr is None:
            products = (Mul(Integer(factor), *sorted(product, key=text_of)) for product, factor in self.terms.items())
            self._expr = Add(*products)
        return self._expr

    @property
    def equation(self) -> tuple[Expr, Expr] | None:
        """(size, value) if this condition is the single equation ``size = value``, else None."""
        for product in self.terms:
            (atom, *more) = product or (None,)
            if isinstance(atom, Equal) and not more and self.terms == {product: 1}:
                left, right = atom.args if atom.args[0].is_Symbol else atom.args[::-1]
                return (left, right) if left.is_Symbol and isinstance(right, Expr) else None
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Truth) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Truth({self.expr})"


@lru_cache(maxsize=1 << 14)
def _both(one: Truth, two: Truth) -> Truth:
    """The product of two conditions (cached)."""
    terms: dict[Product, int] = {}
    for left, a in one.terms.items():
        for right, b in two.terms.items():
            product = join(left, right)
            if product is not None:
                terms[product] = terms.get(product, 0) + a * b
        if len(terms) > MAX_TERMS:
            raise tangled(frozenset().union(*terms))
    return _known(Truth(terms))


@lru_cache(maxsize=1 << 12)
def _excluded(truth: Truth) -> bool:
    """Whether a condition never holds (cached)."""
    return truth == NO or never(truth.terms)


def join(left: Product, right: Product) -> Product | None:
    """Multiply two products of brackets and drop implied brackets; None if they exclude each other.

    ``[a >= 1]*[a >= 3]`` is ``[a >= 3]``; ``[s = 'x']*[s = 'y']`` is 0, and ``[s = 'x']*[s given]`` is ``[s = 'x']``.
    """
    if left == right:
        return left
    bounds: dict[Expr, Expr] = {}
    values: dict[Expr, Expr] = {}
    rest: set[Expr] = set()
    for atom in left | right:
        if isinstance(atom, AtLeast):
            base, bound = atom.args
            bounds[base] = max(bounds.get(base, bound), bound)
        elif isinstance(atom, Equal) and (atom.args[1].is_Integer or not atom.args[1].is_Number):
            both = (atom.args[1], values.setdefault(atom.args[0], atom.args[1]))
            if both[0] != both[1] and all(value.is_Integer or type(value).__name__ == "Str" for value in both):
                return None
            rest.add(atom)
        else:
            rest.add(atom)
    ranges = [AtLeast(*bound) for bound in bounds.items()] + [atom for atom in rest if isinstance(atom, Equal)]
    if any(exclude(*pair) for pair in combinations(ranges, 2)):
        return None
    texts = {Given(base) for base, value in values.items() if type(value).__name__ == "Str"}
    return frozenset((rest - texts) | {AtLeast(base, bound) for base, bound in bounds.items()})


YES = Truth({frozenset(): 1})
NO = Truth({})


def _known(truth: Truth) -> Truth:
    return NO if not truth.terms else YES if truth.terms == YES.terms else truth


def any_of(truths: Iterable[Truth]) -> Truth:
    """The condition that at least one of ``truths`` holds; evaluation stops at one that always holds."""
    found = NO
    for truth in truths:
        if truth is YES:
            return YES
        found = found | truth
    return found


def all_of(truths: Iterable[Truth]) -> Truth:
    """The condition that all of ``truths`` hold; evaluation stops at one that never holds."""
    found = YES
    for truth in truths:
        if truth is NO:
            return NO
        found = found & truth
    return found
