"""Counts the copies of each parameter over the loops around it: each path once, however many operators read it."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Integer, Mul, Symbol

from symflops.algebra.functions import AtLeast
from symflops.algebra.truth import NO, Truth, any_of
from symflops.derive.iterations import all_iterations
from symflops.derive.needs import Trains
from symflops.derive.parameter_readers import Identity, ParameterReaders, identity_of
from symflops.model.derivation import ParameterCount
from symflops.model.nodes import Loop, Node, Parameter

Within = tuple[tuple[Symbol, Truth], ...]


class Copies:
    """The parameters that operators read, and the classes of iterations in which each exists."""

    def __init__(self, nodes: tuple[Node, ...], trains: Trains, lengths: frozenset[Symbol]) -> None:
        self.readers = ParameterReaders(nodes)
        self.trains = trains
        self.lengths = lengths
        self.parameters: dict[Identity, tuple[Parameter, tuple[Loop, ...]]] = {}
        self.exists: dict[Identity, dict[Within, Truth]] = {}

    def enter(self, parameter: Parameter, around: Sequence[tuple[Loop, Truth]]) -> None:
        """Record that an operator reads ``parameter`` in the loops ``around`` it, each with the bracket of its class.

        A module that a loop calls again and again, in the same way each time (``shared``), exists even if the loop never runs.
        """
        identity = identity_of(parameter)
        indices = parameter.path.indices if around else frozenset()
        inside = [(loop, bracket) for loop, bracket in around if loop.index in indices]
        exists = parameter.exists
        for loop, _ in around:
            if loop.index not in indices and not loop.shared:
                count = self.reads(loop, parameter)
                if not count.free_symbols & self.lengths:
                    exists = exists & Truth.of(AtLeast(count, Integer(1)))
        within = tuple((loop.index, bracket) for loop, bracket in inside)
        known = self.exists.setdefault(identity, {})
        known[within] = exists | known.get(within, NO)
        self.parameters[identity] = (parameter, tuple(loop for loop, _ in inside))

    def reads(self, loop: Loop, parameter: Parameter) -> Expr:
        """The number of iterations of a loop that read a parameter."""
        return all_iterations(loop, any_of(self.readers.brackets(loop, parameter)))

    def counts(self) -> tuple[ParameterCount, ...]:
        """Each parameter with its copies; one entry per class if the condition of its existence differs by class."""
        found: list[ParameterCount] = []
        for identity, (parameter, loops) in self.parameters.items():
            exists, trains = self.exists[identity], self.trains(parameter)
            if not loops and not parameter.lists and len(exists) == 1:
                found.append(ParameterCount(parameter, Integer(1), next(iter(exists.values())), trains))
                continue
            listed = Mul(*(count for _, count in parameter.lists))
            if len(set(exists.values())) == 1:
                copies = listed * Mul(*(self.reads(loop, parameter) for loop in loops))
                found.append(ParameterCount(parameter, copies, next(iter(exists.values())), trains))
                continue
            for within, truth in exists.items():
                brackets = dict(within)
                copies = listed * Mul(*(all_iterations(loop, brackets[loop.index]) for loop in loops))
                found.append(ParameterCount(parameter, copies, truth, trains, within))
        return tuple(found)
