"""The flat operator list, and the two facts of section 13 over it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

Part = tuple[tuple[str, int], ...]  # ordered axes of one part: (name, length)


@dataclass(frozen=True)
class Stream:
    """For every item of an index set its parts."""

    over: str
    items: tuple[tuple[Part, ...], ...]

    def rows(self) -> list[int]:
        """Rows of each item."""
        return [sum(math.prod(n for _, n in part) for part in parts) for parts in self.items]

    def total(self) -> int:
        """Rows of the whole batch."""
        return sum(self.rows())


@dataclass(frozen=True, eq=False)
class Value:
    """One value of the unrolled program; its identity is the object."""

    stream: Stream
    width: int | None


Operand = tuple[Value | str, ...]  # the values and parameter names that one operand of a contraction depends on


@dataclass(frozen=True)
class Contraction:
    """FLOPs of the forward product; each operand's gradient costs the same."""

    label: str
    flops: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Operator:
    """One executed operator."""

    path: str
    kind: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    parameters: tuple[str, ...] = ()
    contractions: tuple[Contraction, ...] = ()
    constant: bool = False  # detach, zeros, no_grad: the results never need a gradient


@dataclass
class Program:
    """What unrolling produces."""

    operators: list[Operator] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    untrainable: set[str] = field(default_factory=set)
    outputs: list[Value] = field(default_factory=list)

    def declare(self, name: str, shape: Iterable[int], trainable: bool = True) -> str:
        """Record a parameter; a second use must agree on the shape."""
        dims = tuple(shape)
        if self.shapes.setdefault(name, dims) != dims:
            raise ValueError(f"parameter {name} has two shapes: {self.shapes[name]} and {dims}")
        if not trainable:
            self.untrainable.add(name)
        return name

    def trains(self, train: Iterable[str], freeze: Iterable[str]) -> set[str]:
        """Names of the parameters that train."""

        def hit(name: str, patterns: Iterable[str]) -> bool:
            return any(fnmatchcase(name, pattern) for pattern in patterns)

        train, freeze = tuple(train), tuple(freeze)
        return {n for n in self.shapes if hit(n, train) and not hit(n, freeze) and n not in self.untrainable}


def need_facts(program: Program, trains: set[str]) -> Callable[[Operand], bool]:
    """Forward analysis: does an operand need a gradient?"""
    needs: set[Value] = set()
    for op in program.operators:
        if not op.constant and (any(v in needs for v in op.operands) or any(p in trains for p in op.parameters)):
            needs.update(op.results)
    return lambda operand: any((o in trains) if isinstance(o, str) else (o in needs) for o in operand)


def live_operators(program: Program, need: Callable[[Operand], bool]) -> list[Operator]:
    """Backward analysis: operators with a result that is live and needs a gradient."""
    live: set[Value] = set(program.outputs)
    found: list[Operator] = []
    for op in reversed(program.operators):
        if any(r in live and need((r,)) for r in op.results):
            live.update(op.operands)
            found.append(op)
    return found


def forward_flops(program: Program) -> int:
    """All contractions, once."""
    return sum(c.flops for op in program.operators for c in op.contractions)


def backward_flops(program: Program, trains: set[str]) -> int:
    """One product per operand that needs a gradient, of live operators."""
    need = need_facts(program, trains)
    return sum(c.flops for op in live_operators(program, need) for c in op.contractions for o in c.operands if need(o))
