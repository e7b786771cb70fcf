"""Decides conditions on the index of a repeat within one segment, or answers what the repeat must do first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from sympy import Expr, Integer, Symbol, expand

from symflops.algebra.domain import Choice
from symflops.algebra.functions import AtLeast, Contains, Equal, Excess, Least, Modulo
from symflops.algebra.truth import NO, YES, Truth
from symflops.algebra.written import text_of
from symflops.build.scopes import Frame


@dataclass(frozen=True, slots=True)
class Cut:
    """The repeat over ``index`` must be cut at ``point``."""

    index: Symbol
    point: Expr


@dataclass(frozen=True, slots=True)
class Select:
    """The iterations of the repeat over ``index`` must be divided by a ``condition`` that is no run of indices."""

    index: Symbol
    condition: Expr


Decision = bool | Cut | Select


class UndecidedError(Exception):
    """An expression has a condition on a loop index that the segment does not decide.

    Expressions are evaluated deep inside entries (fields, widths, paths, arguments of blocks), and only the repeat around
    them can do what is missing. So this passes from the evaluation to the repeat, and from there on it is a value.
    """

    def __init__(self, needs: Cut | Select) -> None:
        super().__init__(str(needs.index))
        self.needs = needs


@dataclass(frozen=True, slots=True)
class Segment:
    """Iterations ``low`` to ``high``, for which each cut point is known to be passed or not."""

    low: Expr
    high: Expr
    passed: dict[Expr, bool]

    @property
    def count(self) -> Expr:
        """The number of iterations."""
        return span(self.low, self.high)


def span(low: Expr, high: Expr) -> Expr:
    """``max(0, high - low)``, in its shortest form."""
    if isinstance(low, Excess):
        rest = high - low.args[0]
        if rest.is_Integer and rest > 0 and high.is_nonnegative:
            return AtLeast(high, Integer(1)) if rest == 1 else Least(high, rest)
    return Excess(expand(high - low))


class Cutting(Protocol):
    """A repeat that is being cut: its bounds, and the conditions that divide its iterations."""

    start: Expr
    end: Expr
    selectors: list[Expr]
    canonical: Symbol


class Decider:
    """Decides conditions on the index of one loop, then replaces the index by its position."""

    def __init__(
        self, repeat: Cutting, segment: Segment, index: Symbol, position: Expr, selected: dict[Expr, bool], frame: Frame
    ) -> None:
        self.repeat, self.segment, self.index, self.position, self.selected = repeat, segment, index, position, selected
        self.outer = frame.decide

    def decide(self, value: Any) -> Any:
        """``value`` without conditions on the index, or on those of the loops around.

        Raises:
            UndecidedError: the segment does not decide one.
        """
        return self.outer(self._resolved(value))

    def is_past(self, point: Expr) -> bool:
        """Whether the index is at least ``point``.

        Raises:
            UndecidedError: the segment does not decide it.
        """
        return _settled(self._past(point))

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, Truth):
            return self._truth(value)
        if isinstance(value, Expr):
            return self._number(value) if self.index in value.free_symbols else value
        if isinstance(value, Choice):
            cases = [(self._truth(truth), self._resolved(item)) for truth, item in value.cases]
            known = [item for truth, item in cases if truth is YES]
            return known[0] if known else Choice(tuple(case for case in cases if case[0] is not NO))
        if isinstance(value, tuple):
            return tuple(self._resolved(item) for item in value)
        return value

    def _number(self, value: Expr) -> Expr:
        atoms = [atom for atom in value.atoms(AtLeast, Equal, Contains) if self.index in atom.free_symbols]
        decided = {atom: Integer(_settled(self._atom(atom))) for atom in sorted(atoms, key=text_of)}
        return value.xreplace(decided).subs(self.index, self.position)

    def _truth(self, truth: Truth) -> Truth:
        if not any(self.index in atom.free_symbols for product in truth.terms for atom in product):
            return truth
        total = NO
        for product, factor in sorted(truth.terms.items(), key=lambda term: str(sorted(map(str, term[0])))):
            rest = frozenset(atom for atom in product if self.index not in atom.free_symbols)
            if all(_settled(self._atom(atom)) for atom in sorted(product - rest, key=text_of)):
                total = total.plus(Truth({rest: 1}), factor)
        return total

    def _atom(self, atom: Expr) -> Decision:
        """The truth of one bracket in this segment."""
        canonical = atom.xreplace({self.index: self.repeat.canonical})
        if canonical in self.selected:
            return self.selected[canonical]
        if canonical in self.repeat.selectors:
            value = canonical.xreplace({self.repeat.canonical: self.position}).xreplace(_residues(self.position, canonical))
            if value.is_Integer:
                return bool(value)
        if isinstance(atom, (AtLeast, Equal)) and all(isinstance(arg, Expr) for arg in atom.args):
            difference = expand(atom.args[0] - atom.args[1])
            slope = difference.coeff(self.index, 1)
            if slope in (1, -1):
                rest = expand(difference - slope * self.index)
                if self.index not in rest.free_symbols:
                    return self._in_run(atom, slope, rest)
        return Select(self.index, atom)

    def _in_run(self, atom: Expr, slope: Expr, rest: Expr) -> Decision:
        """The truth of a bracket that holds for a run of indices."""
        if isinstance(atom, AtLeast):
            return self._past(-rest) if slope == 1 else _negated(self._past(rest + 1))
        point = -rest if slope == 1 else rest
        reached = self._past(point)
        return _negated(self._past(point + 1)) if reached is True else reached

    def _past(self, point: Expr) -> Decision:
        """Whether the index is at least ``point``."""
        if point in self.segment.passed:
            return self.segment.passed[point]
        if (self.repeat.start - point).is_nonnegative:
            return True
        if (point - self.repeat.end).is_nonnegative:
            return False
        for known, passed in self.segment.passed.items():
            if passed and (known - point).is_nonnegative:
                return True
            if not passed and (point - known).is_nonnegative:
                return False
        return Cut(self.index, point)


def _settled(decision: Decision) -> bool:
    if isinstance(decision, bool):
        return decision
    raise UndecidedError(decision)


def _negated(decision: Decision) -> Decision:
    return not decision if isinstance(decision, bool) else decision


def _residues(position: Expr, atom: Expr) -> dict[Expr, Expr]:
    """The remainders in ``atom`` at ``position``, whatever the turn: ``(P*u + r) % P`` is ``r % P``."""
    found = {}
    for inner in atom.atoms(Modulo):
        ((symbol,), modulus) = (tuple(inner.args[0].free_symbols), inner.args[1])
        shifted = expand(inner.args[0].subs(symbol, position))
        terms = shifted.as_coefficients_dict()
        rest = sum(((factor % modulus) * term for term, factor in terms.items() if factor.is_Integer), Integer(0))
        found[Modulo(inner.args[0].subs(symbol, position), modulus)] = Modulo(rest, modulus)
    return found


def renamed(truth: Truth, old: Symbol, new: Symbol) -> Truth:
    """``truth`` with ``new`` in place of the symbol ``old``."""
    if truth in (YES, NO):
        return truth
    terms = truth.terms.items()
    return Truth({frozenset(atom.xreplace({old: new}) for atom in product): factor for product, factor in terms})
