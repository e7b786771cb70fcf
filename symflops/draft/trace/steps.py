"""The plan of a module: steps, loops over module lists, branches within loops, and the references between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ref:
    """An operand: a step's value, a value carried into an iteration, a parameter or input by name, or a constant."""

    kind: str
    id: int = -1
    name: str = ""


CONSTANT = Ref("constant")


@dataclass(frozen=True, slots=True)
class Step:
    """One operator. ``numbers`` may differ between samples; ``words`` may not."""

    id: int
    kind: str
    path: str
    operands: tuple[Ref, ...]
    numbers: tuple[int, ...]
    words: tuple[Any, ...] = ()
    parameters: tuple[str, ...] = ()
    quiet: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class Loop:
    """Items of a module list with equal bodies: the steps of the first item, and the number of items.

    ``carried`` are the loop-carried values as pairs: what the first item reads, and the step of the body whose value every
    later item reads in its place. ``others`` are further lists whose modules of the same index run in the body. A ``shared``
    loop runs the same modules in every iteration.
    """

    prefix: str
    start: int
    count: int
    body: tuple[Any, ...]
    carried: tuple[tuple[Ref, int], ...] = ()
    others: tuple[str, ...] = ()
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that a branch chooses: one source per case, like a phi node."""

    id: int
    sources: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a loop's body in which items differ: the steps of each case, and the case ``chosen`` by each item.

    ``items`` has an example for each case: the index of the item whose paths the case's steps have.
    """

    cases: tuple[tuple[Any, ...], ...]
    items: tuple[int, ...]
    chosen: tuple[int, ...]
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A module as steps and loops: its outputs, shapes of its parameters and inputs, and dtypes (``words``) of its inputs."""

    entries: tuple[Any, ...]
    outputs: tuple[Ref, ...]
    parameters: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
