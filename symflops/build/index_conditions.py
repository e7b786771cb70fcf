"""Decides conditions on the index of a repeat within one segment; if it cannot, asks for a cut or a selection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from sympy import Expr, Integer, Symbol, expand

from symflops.build.scopes import Frame
from symflops.formula.domain import Choice
from symflops.formula.functions import AtLeast, Contains, Equal, Excess, Least, Modulo
from symflops.formula.truth import NO, YES, Truth, all_of
from symflops.formula.written import text_of


@dataclass(frozen=True, slots=True)
class Cut:
    """Request to cut the repeat over ``index`` before the iteration ``point``."""

    index: Symbol
    point: Expr


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of iterations of a repeat, from ``low`` to ``high - 1``.

    ``passed`` maps each point where the repeat is cut to whether these iterations lie at or behind it.
    """

    low: Expr
    high: Expr
    passed: dict[Expr, bool]

    @property
    def bounds(self) -> tuple[Expr, Expr]:
        """``(low, high)``, the key of the segment within its repeat."""
        return self.low, self.high

    @property
    def count(self) -> Expr:
        """The number of iterations in the segment."""
        return span(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Select:
    """Request to divide the iterations of ``segment`` into those where ``condition`` holds, and others.

    A cut would not do, since the condition does not hold for a contiguous run of iterations.
    """

    index: Symbol
    segment: Segment
    condition: Truth


Decision = bool | Cut


class UndecidedError(Exception):
    """An expression has a condition on a loop index that the segment does not decide.

    Expressions are evaluated deep inside entries (fields, widths, paths, block arguments), but only the surrounding repeat
    can cut itself. The exception carries the required cut or selection up to that repeat.
    """

    def __init__(self, needs: Cut | Select) -> None:
        super().__init__(str(needs.index))
        self.needs = needs


def span(low: Expr, high: Expr) -> Expr:
    """The number of integers in ``[low, high)``: ``max(0, high - low)``, simplified."""
    if isinstance(low, Excess):
        rest = high - low.args[0]
        if rest.is_Integer and rest > 0 and high.is_nonnegative:
            return AtLeast(high, Integer(1)) if rest == 1 else Least(high, rest)
    return Excess(expand(high - low))


class Cutting(Protocol):
    """Interface through which :class:`Decider` reads the repeat that is being cut.

    Attributes:
        start: The first index.
        end: The index after the last.
        canonical: The symbol of the index in conditions that divide segments into classes.
    """

    start: Expr
    end: Expr
    canonical: Symbol


class Decider:
    """Decides conditions on the index of one repeat, for the iterations of one segment.

    The segment becomes a loop with an index of its own. In expressions whose conditions are decided, the repeat's index
    ``index`` is replaced by ``position``, the same index in terms of that of the loop. ``selected`` maps conditions that
    divide the segment into classes to their truth in the current class.
    """

    def __init__(
        self, repeat: Cutting, segment: Segment, index: Symbol, position: Expr, selected: dict[Truth, bool], frame: Frame
    ) -> None:
        self.repeat, self.segment, self.index, self.position, self.selected = repeat, segment, index, position, selected
        self.outer = frame.decide

    def decide(self, value: Any) -> Any:
        """Resolve conditions in ``value`` on the index of this repeat, and on those of the repeats around it.

        Raises:
            UndecidedError: the segment does not decide a condition.
        """
        return self.outer(self._resolved(value))

    def is_past(self, point: Expr) -> bool:
        """Whether the index is at least ``point``.

        Raises:
            UndecidedError: the index is at least ``point`` in some iterations of the segment, or that is unknown.
        """
        return _decided(self._past(point))

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
        decided = {atom: Integer(self._truth(Truth.of(atom)) is YES) for atom in sorted(atoms, key=text_of)}
        return value.xreplace(decided).subs(self.index, self.position)

    def _truth(self, truth: Truth) -> Truth:
        """Resolve the brackets of ``truth`` that depend on the index."""
        atoms = {atom for product in truth.terms for atom in product if self.index in atom.free_symbols}
        decisions = {atom: self._atom(atom) for atom in sorted(atoms, key=text_of)}
        found = with_known(truth, {atom: decision for atom, decision in decisions.items() if isinstance(decision, bool)})
        left = sorted(atoms.intersection(chain.from_iterable(found.terms)), key=text_of)
        cuts = [decision for atom in left if isinstance(decision := decisions[atom], Cut)]
        if cuts:
            raise UndecidedError(cuts[0])
        return self._divided(found)

    def _divided(self, truth: Truth) -> Truth:
        """Resolve conditions that divide the segment into classes, by their truth in the current class.

        A condition and its complement share one decision. Factors of ``truth`` that do not depend on the index are not part of
        the condition.
        """
        selecting = {atom for product in truth.terms for atom in product if self.index in atom.free_symbols}
        if not selecting:
            return truth
        if frozenset() in truth.terms:
            return ~self._divided(~truth)
        shared = frozenset.intersection(*truth.terms) - selecting
        condition = Truth({product - shared: factor for product, factor in truth.terms.items()})
        mixed = any(not product <= selecting and product & selecting for product in condition.terms)
        if mixed and (parts := factored(condition, selecting)) is not None:
            condition, times = parts
            return times & all_of(map(Truth.of, shared)) if self._divided(condition) is YES else NO
        condition = self._canonical(condition)
        if condition in self.selected:
            return all_of(map(Truth.of, shared)) if self.selected[condition] else NO
        one = {atom: self._canonical(Truth.of(atom)) for atom in selecting}
        known = {atom: self.selected[alone] for atom, alone in one.items() if alone in self.selected}
        if not known:
            raise UndecidedError(Select(self.index, self.segment, condition))
        return self._divided(with_known(truth, known))

    def _canonical(self, truth: Truth) -> Truth:
        return renamed(truth, self.index, self.repeat.canonical)

    def _atom(self, atom: Expr) -> Decision | None:
        """Decide the bracket ``atom`` for the segment: its truth, or the cut that it requires.

        None if it holds for single iterations instead of a run, so that no cut decides it.
        """
        if cycle(atom) is not None:
            value = atom.xreplace({self.index: self.position}).xreplace(_residues(self.position, self.index, atom))
            if value.is_Integer:
                return bool(value)
        if isinstance(atom, (AtLeast, Equal)) and all(isinstance(arg, Expr) for arg in atom.args):
            difference = expand(atom.args[0] - atom.args[1])
            slope = difference.coeff(self.index, 1)
            if slope in (1, -1):
                rest = expand(difference - slope * self.index)
                if self.index not in rest.free_symbols:
                    return self._in_run(atom, slope, rest)
        return None

    def _in_run(self, atom: Expr, slope: Expr, rest: Expr) -> Decision:
        """Decide a bracket that holds for a run of iterations: its truth, or the cut that it requires.

        ``atom`` compares ``slope * index + rest`` with 0.
        """
        if isinstance(atom, AtLeast):
            return self._past(-rest) if slope == 1 else _negated(self._past(rest + 1))
        point = -rest if slope == 1 else rest
        reached = self._past(point)
        return _negated(self._past(point + 1)) if reached is True else reached

    def _past(self, point: Expr) -> Decision:
        """Compare the indices of the segment's iterations with ``point``.

        True if all of them are at least ``point``, False if all are less. Otherwise, or if that is unknown, the cut before
        ``point``, which divides the segment into one part of each kind.
        """
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


def factored(truth: Truth, selecting: Collection[Expr]) -> tuple[Truth, Truth] | None:
    """Return (condition, times) with ``truth == condition * times``; None if there are none.

    ``condition`` has brackets in ``selecting`` alone, ``times`` has no such brackets.
    """
    groups: dict[frozenset[Expr], dict[frozenset[Expr], int]] = defaultdict(dict)
    for atoms, factor in truth.terms.items():
        groups[atoms.intersection(selecting)][atoms.difference(selecting)] = factor
    times = min(groups.values(), key=lambda terms: max(map(abs, terms.values())))
    some, factor = next(iter(times.items()))
    scales = {atoms: terms.get(some, 0) // factor for atoms, terms in groups.items()}
    if any({one: scales[atoms] * value for one, value in times.items()} != terms for atoms, terms in groups.items()):
        return None
    for sign in (1, -1):
        condition = NO.plus(Truth(scales), sign)
        if (condition & ~condition) == NO:
            return condition, NO.plus(Truth(times), sign)
    return None


def _decided(decision: Decision) -> bool:
    if isinstance(decision, bool):
        return decision
    raise UndecidedError(decision)


def _negated(decision: Decision) -> Decision:
    return not decision if isinstance(decision, bool) else decision


def cycle(atom: Expr) -> int | None:
    """The period P of a bracket such as ``[(i + 1) % P = 0]`` in the index; None if it is not periodic."""
    rest, value = atom.args[:2]
    is_cyclic = isinstance(rest, Modulo) and rest.args[1].is_Integer and value.is_Integer
    return int(rest.args[1]) if is_cyclic and len(rest.free_symbols) == 1 else None


def _residues(position: Expr, index: Symbol, atom: Expr) -> dict[Expr, Expr]:
    """Map the remainder in ``atom``, with ``position`` as the index, to one without multiples of P.

    For example, it maps ``(P*u + r) % P`` to ``r % P``.
    """
    inner, modulus = atom.args[0].args
    shifted = expand(inner.xreplace({index: position}))
    terms = shifted.as_coefficients_dict()
    rest = sum(((factor % modulus) * term for term, factor in terms.items() if factor.is_Integer), Integer(0))
    return {Modulo(inner.xreplace({index: position}), modulus): Modulo(rest, modulus)}


def with_known(truth: Truth, known: Mapping[Expr, bool]) -> Truth:
    """Simplify ``truth`` by brackets whose truth is ``known``."""
    found = NO
    for product, factor in truth.terms.items():
        if all(known.get(atom, True) for atom in product):
            found = found.plus(Truth({product.difference(known): 1}), factor)
    return found


def renamed(truth: Truth, old: Symbol, new: Symbol) -> Truth:
    """``truth`` with the symbol ``old`` replaced by ``new``."""
    if truth in (YES, NO):
        return truth
    terms = truth.terms.items()
    return Truth({frozenset(atom.xreplace({old: new}) for atom in product): factor for product, factor in terms})
