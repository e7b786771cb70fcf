"""Where an entry is built: the values and names that it sees, its path, and the conditions that it stands under."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from sympy import Expr, Symbol

from symflops.algebra.truth import NO, YES, Truth
from symflops.model.nodes import Node, Value
from symflops.model.path import Path, Visit


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for: a value, and when it is there at all. An absent value is present under no condition."""

    value: Value | None
    present: Truth = YES


ABSENT = Binding(None, NO)


@dataclass
class Frame:
    """One scope: a document, a block call, the body of a loop, or a branch."""

    path: Path
    names: dict[str, Any]
    values: dict[str, Binding]
    nodes: list[Node]
    guard: Truth = YES
    no_grad: bool = False
    copies: tuple[Expr, ...] = ()
    regions: tuple[str, ...] = ()
    lists: tuple[tuple[Symbol, Expr], ...] = ()
    sizes: dict[str, Any] = field(default_factory=dict)
    decide: Callable[[Any], Any] = lambda value: value
    visits: tuple[Visit, ...] = ()

    def inside(self, **changes: Any) -> Frame:
        """A scope within this one that shares its region."""
        found = copy(self)
        found.__dict__.update(changes)
        return found
