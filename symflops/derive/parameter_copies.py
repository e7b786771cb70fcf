"""Counts the copies of parameters over repeats, each path once, however many operators read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sympy import Expr, Integer, Mul, Symbol

from symflops.algebra.functions import AtLeast
from symflops.algebra.truth import NO, Truth, any_of
from symflops.derive.facts import Trace, iterations
from symflops.model.derivation import ParameterCount
from symflops.model.nodes import Loop, Parameter, mentions
from symflops.model.path import Path

Within = tuple[tuple[Symbol, Truth], ...]
_ALL = (Trace([()], [], 0), 0)


class Copies:
    """The parameters that a derivation meets, and in which classes of iterations each of them exists."""

    def __init__(self, trains: Callable[[Parameter], bool], lengths: frozenset[Symbol]) -> None:
        self.trains = trains
        self.lengths = lengths
        self.met: dict[tuple[Path, tuple[Expr, ...]], tuple[Parameter, tuple[Loop, ...]]] = {}
        self.exists: dict[tuple[Path, tuple[Expr, ...]], dict[Within, Truth]] = {}

    def enter(self, parameter: Parameter, around: Sequence[tuple[Loop, Truth]]) -> None:
        """Note that an operator reads ``parameter`` in the loops ``around`` it, each with the bracket of the class it is in."""
        identity = (parameter.path, parameter.shape)
        indices = parameter.path.indices if around else frozenset()
        inside = [(loop, bracket) for loop, bracket in around if loop.index in indices]
        exists = parameter.exists
        for loop, _ in around:
            if loop.index not in indices:
                count = self.turns(loop, parameter)
                if not count.free_symbols & self.lengths:
                    exists = exists & Truth.of(AtLeast(count, Integer(1)))
        within = tuple((loop.index, bracket) for loop, bracket in inside)
        known = self.exists.setdefault(identity, {})
        known[within] = exists | known.get(within, NO)
        self.met[identity] = (parameter, tuple(loop for loop, _ in inside))

    @staticmethod
    def turns(loop: Loop, parameter: Parameter) -> Expr:
        """How many iterations of a loop read a parameter."""
        classes = any_of(bracket for bracket, body in loop.classes if mentions(body, parameter))
        return iterations(loop, classes, _ALL, _ALL)

    def counts(self) -> tuple[ParameterCount, ...]:
        """Each parameter with its copies: once, or once a class where it exists under other conditions in each."""
        found: list[ParameterCount] = []
        for identity, (parameter, loops) in self.met.items():
            exists, trains = self.exists[identity], self.trains(parameter)
            if not loops and not parameter.lists and len(exists) == 1:
                found.append(ParameterCount(parameter, Integer(1), next(iter(exists.values())), trains))
                continue
            listed = Mul(*(count for _, count in parameter.lists))
            if len(set(exists.values())) == 1:
                copies = listed * Mul(*(self.turns(loop, parameter) for loop in loops))
                found.append(ParameterCount(parameter, copies, next(iter(exists.values())), trains))
                continue
            for within, truth in exists.items():
                brackets = dict(within)
                copies = listed * Mul(*(iterations(loop, brackets[loop.index], _ALL, _ALL) for loop in loops))
                found.append(ParameterCount(parameter, copies, truth, trains, within))
        return tuple(found)
