"""Where a graph reads its parameters: for each parameter the classes of loops around its readers, found in one walk."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr

from symflops.algebra.truth import Truth
from symflops.model.nodes import Loop, Node, Operator, Parameter
from symflops.model.path import Path

Identity = tuple[Path, tuple[Expr, ...]]
"""The path and the shape of a parameter, which operators that share it have in common."""
Around = dict[tuple[int, int], tuple[Loop, Truth]]
"""Classes of loops by the number of the loop and their position in it, outer ones first: loop and bracket."""


def identity_of(parameter: Parameter) -> Identity:
    """What two operators that read one parameter have in common."""
    return parameter.path, parameter.shape


class ParameterReaders:
    """The classes of loops in which each parameter of a region is read."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.around: dict[Identity, Around] = {}
        self._region(nodes, {})

    def _region(self, nodes: tuple[Node, ...], around: Around) -> None:
        for node in nodes:
            if isinstance(node, Operator):
                for parameter in node.parameters:
                    self.around.setdefault(identity_of(parameter), {}).update(around)
            elif isinstance(node, Loop):
                for position, (bracket, body) in enumerate(node.classes):
                    self._region(body, {**around, (node.id, position): (node, bracket)})

    def classes(self, parameter: Parameter) -> Iterable[tuple[Loop, Truth]]:
        """The classes of all loops in which an operator reads ``parameter``, outer loops first."""
        return self.around[identity_of(parameter)].values()

    def brackets(self, loop: Loop, parameter: Parameter) -> list[Truth]:
        """The brackets of the classes of one loop in which an operator reads ``parameter``."""
        known = self.around[identity_of(parameter)]
        return [bracket for position, (bracket, _) in enumerate(loop.classes) if (loop.id, position) in known]
