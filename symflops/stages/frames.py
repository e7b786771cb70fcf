"""Where an entry is built: the values and names that it sees, its path, and the conditions that it stands under."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from sympy import Expr, Symbol

from symflops.algebra.truth import NO, YES, Truth
from symflops.model.graph import Node, Value
from symflops.model.path import Path, Visit
from symflops.model.spec import Entry, Faulty, Group, OperatorEntry, Repeat


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


def assigned(entries: Sequence[Entry]) -> frozenset[str]:
    """The names that ``entries`` may bind."""
    found: set[str] = set()
    for entry in entries:
        if isinstance(entry, Faulty):
            found |= set(entry.names)
        elif isinstance(entry, Group) and entry.experts is not None:
            found |= {name.text for name in entry.to} or {entry.path.text}
        elif isinstance(entry, (Repeat, Group)):
            found |= assigned(entry.body)
        else:
            fields = entry.fields if isinstance(entry, OperatorEntry) else entry.common
            names = fields.get("to")
            found |= {name.text for name in names} if names else {entry.path.text}
            found |= {name.text for name in fields.get("add_to") or ()}
    return frozenset(found - {"_"})


def made(entry: Entry) -> frozenset[str]:
    """The names that an entry makes anew: those under ``to``; what it only adds to is not among them."""
    if isinstance(entry, Faulty):
        return frozenset(entry.names) - {"_"}
    if isinstance(entry, Repeat):
        return frozenset()
    fields = (
        {"to": entry.to} if isinstance(entry, Group) else entry.fields if isinstance(entry, OperatorEntry) else entry.common
    )
    return frozenset(name.text for name in fields.get("to") or ()) - {"_"}
