"""Decides conditions on the index of a repeat, segment by segment, or says where the repeat must be cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from sympy import Expr, Integer, Symbol, expand

from symflops.algebra.domain import Choice
from symflops.algebra.functions import AtLeast, Contains, Equal, Excess, Least, Modulo, text_of
from symflops.algebra.truth import NO, YES, Truth
from symflops.build.scopes import Frame


class Undecided(Exception):
    """A condition on a loop index is not the same for all iterations of the segment being built."""

    def __init__(self, index: Symbol, cut: Expr | None, selector: Expr | None) -> None:
        super().__init__(str(index))
        self.index = index
        self.cut = cut
        self.selector = selector


@dataclass(frozen=True, slots=True)
class Segment:
    """Iterations ``low`` to ``high`` in which every cut has one truth."""

    low: Expr
    high: Expr
    truths: dict[Expr, bool]

    @property
    def count(self) -> Expr:
        return span(self.low, self.high)


def span(low: Expr, high: Expr) -> Expr:
    """``max(0, high - low)``, said simply."""
    if isinstance(low, Excess):
        rest = high - low.args[0]
        if rest.is_Integer and rest > 0 and high.is_nonnegative:
            return AtLeast(high, Integer(1)) if rest == 1 else Least(high, rest)
    return Excess(expand(high - low))


class Cutting(Protocol):
    """A repeat that is being cut: where it begins and ends, and what selects among its iterations."""

    start: Expr
    end: Expr
    selectors: list[Expr]
    canonical: Symbol


class Decider:
    """Decides the conditions on one loop's index, or says where the loop must be cut; then puts in what the index is."""

    def __init__(
        self, segments: Cutting, segment: Segment, index: Symbol, position: Expr, selected: dict[Expr, bool], frame: Frame
    ) -> None:
        self.segments, self.segment, self.index, self.position, self.selected = segments, segment, index, position, selected
        self.outer = frame.decide

    def decide(self, value: Any) -> Any:
        """``value`` without conditions on the index."""
        return self.outer(self.resolve(value))

    def resolve(self, value: Any) -> Any:
        if isinstance(value, Truth):
            return self.truth(value)
        if isinstance(value, Expr):
            if self.index not in value.free_symbols:
                return value
            atoms = [atom for atom in value.atoms(AtLeast, Equal, Contains) if self.index in atom.free_symbols]
            return value.xreplace({atom: Integer(self.atom(atom)) for atom in sorted(atoms, key=text_of)}).subs(
                self.index, self.position
            )
        if isinstance(value, Choice):
            cases = [(self.truth(truth), self.resolve(item)) for truth, item in value.cases]
            known = [item for truth, item in cases if truth is YES]
            return known[0] if known else Choice(tuple(case for case in cases if case[0] is not NO))
        if isinstance(value, tuple):
            return tuple(self.resolve(item) for item in value)
        return value

    def truth(self, truth: Truth) -> Truth:
        if not any(self.index in atom.free_symbols for product_ in truth.terms for atom in product_):
            return truth
        total = NO
        for product_, factor in sorted(truth.terms.items(), key=lambda term: str(sorted(map(str, term[0])))):
            rest = frozenset(atom for atom in product_ if self.index not in atom.free_symbols)
            if all(self.atom(atom) for atom in sorted(product_ - rest, key=text_of)):
                total = total.plus(Truth({rest: 1}), factor)
        return total

    def atom(self, atom: Expr) -> bool:
        """The truth of one bracket in this segment."""
        canonical = atom.xreplace({self.index: self.segments.canonical})
        if canonical in self.selected:
            return self.selected[canonical]
        if canonical in self.segments.selectors:
            value = canonical.xreplace({self.segments.canonical: self.position}).xreplace(_turns(self.position, canonical))
            if value.is_Integer:
                return bool(value)
        if isinstance(atom, (AtLeast, Equal)) and all(isinstance(arg, Expr) for arg in atom.args):
            difference = expand(atom.args[0] - atom.args[1])
            slope = difference.coeff(self.index, 1)
            if slope in (1, -1):
                rest = expand(difference - slope * self.index)
                if self.index not in rest.free_symbols:
                    return self.run(atom, slope, rest)
        raise Undecided(self.index, None, atom)

    def run(self, atom: Expr, slope: Expr, rest: Expr) -> bool:
        """A bracket that holds for a run of indices."""
        if isinstance(atom, AtLeast):
            return self.past(-rest) if slope == 1 else not self.past(rest + 1)
        point = -rest if slope == 1 else rest
        return self.past(point) and not self.past(point + 1)

    def past(self, point: Expr) -> bool:
        """Whether the index is at least ``point``."""
        if point in self.segment.truths:
            return self.segment.truths[point]
        if (self.segments.start - point).is_nonnegative:
            return True
        if (point - self.segments.end).is_nonnegative:
            return False
        for known, truth in self.segment.truths.items():
            if truth and (known - point).is_nonnegative:
                return True
            if not truth and (point - known).is_nonnegative:
                return False
        raise Undecided(self.index, point, None)


def _turns(position: Expr, atom: Expr) -> dict[Expr, Expr]:
    """``(P*u + r) % P`` is ``r % P``: what the rounded remainders of ``atom`` are at ``position``, whatever the turn."""
    found = {}
    for inner in atom.atoms(Modulo):
        ((symbol,), modulus) = (tuple(inner.args[0].free_symbols), inner.args[1])
        shifted = expand(inner.args[0].subs(symbol, position))
        rest = shifted.as_coefficients_dict()
        kept = sum(((c % modulus) * term for term, c in rest.items() if c.is_Integer), Integer(0))
        found[Modulo(inner.args[0].subs(symbol, position), modulus)] = Modulo(kept, modulus)
    return found


def renamed(truth: Truth, old: Symbol, new: Symbol) -> Truth:
    return (
        Truth({frozenset(atom.xreplace({old: new}) for atom in product_): factor for product_, factor in truth.terms.items()})
        if truth not in (YES, NO)
        else truth
    )
