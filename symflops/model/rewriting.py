"""Rewrites formulas wherever they stand in frozen types and tuples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from operator import is_
from typing import Any

from symflops.model.formula import Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text

NODES = frozenset((Num, Sym, Text, Sum, Prod, Power, Apply, Bracket, TallyOf))
PLAIN = frozenset({str, int, bool, float, Fraction, type(None)})


class Rewriting:
    """Replaces each formula by ``change`` of it; None leaves the formula, whose parts are rewritten then.

    A value without changed formulas stays the same object, and a shared object is rewritten once.
    """

    def __init__(self, change: Callable[[Formula], Formula | None]) -> None:
        self.change = change
        self.fields: dict[type, tuple[str, ...]] = {}
        self.known: dict[int, tuple[Any, Any]] = {}  # by identity, with the value itself, so that its id is not reused

    def __call__(self, value: Any) -> Any:
        if type(value) in PLAIN:
            return value
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = (value, self.rewritten(value))
        return found[1]

    def rewritten(self, value: Any) -> Any:
        """``value`` with its formulas replaced."""
        formula = self.change(value) if type(value) in NODES else None
        if formula is not None:
            return formula
        if isinstance(value, tuple):
            items = [self(item) for item in value]
            return value if all(map(is_, items, value)) else tuple(items)
        old = {name: getattr(value, name) for name in self.names(type(value))}
        new = {name: self(part) for name, part in old.items()}
        changed = {name: part for name, part in new.items() if part is not old[name]}
        return replace(value, **changed) if changed else value

    def names(self, kind: type) -> tuple[str, ...]:
        """The fields of a dataclass; other types have none."""
        if kind not in self.fields:
            self.fields[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
        return self.fields[kind]
