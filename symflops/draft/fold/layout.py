"""The layout of a body for items of several kinds: columns that all kinds have, and columns that are cases of a branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from symflops.draft.fold.align import Column, Key, aligned, key_of
from symflops.draft.fold.matching import beside
from symflops.draft.trace.steps import Step

MOST_KINDS = 6
MOST_CASES = 4
Place = tuple[int, int, int]  # column, case (-1 in a common column), step


def layout_of(bodies: Sequence[list[Step]], prefix: str, indices: Sequence[int], first: int) -> Layout | None:
    """The layout of items; None if they are of one kind, of too many, or have nothing in common."""
    keys = [tuple(key_of(step, f"{prefix}.{index}") for step in body) for body, index in zip(bodies, indices, strict=True)]
    kinds = list(dict.fromkeys(keys))
    if not 1 < len(kinds) <= MOST_KINDS or len(kinds) == len(bodies):
        return None
    columns = aligned(kinds, [0] * len(kinds))
    if not any(column.common for column in columns):
        return None
    layout = Layout(bodies, prefix, indices, [kinds.index(key) for key in keys], kinds, columns, first)
    return layout if layout.sort() else None


@dataclass
class Layout:
    """Where each step of each item stands in one body.

    Attributes:
        kind: The kind of each item.
        kinds: The steps of each kind.
        free: The next number of a value.
        place: The place in the body of every step of every item.
        owner: The item of every step.
        chosen: For each column, the case of each item.
        cases: For each column that differs, its cases.
        model: The value of each place in the body.
        origin: The first step at each place.
    """

    bodies: Sequence[list[Step]]
    prefix: str
    indices: Sequence[int]
    kind: Sequence[int]
    kinds: Sequence[Sequence[Key]]
    columns: Sequence[Column]
    free: int
    place: dict[int, Place] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)
    chosen: dict[int, list[int]] = field(default_factory=dict)
    cases: dict[int, list[tuple[Key, ...]]] = field(default_factory=dict)
    model: dict[Place, int] = field(default_factory=dict)
    origin: dict[Place, Step] = field(default_factory=dict)

    def sort(self) -> bool:
        """Find the cases of each column, and the place of every step; False if there are too many cases."""
        for number, column in enumerate(self.columns):
            if column.common:
                self.chosen[number] = [-1] * len(self.bodies)
            elif not self.find_cases(number, column):
                return False
            for item, steps in enumerate(self.bodies):
                start, end = column.spans[self.kind[item]]
                for offset, step in enumerate(steps[start:end]):
                    self.put(step, (number, self.chosen[number][item], offset), item)
        return True

    def find_cases(self, number: int, column: Column) -> bool:
        """Find the cases of a column; False if there are too many, or if two differ in numbers alone."""
        parts = [tuple(kind[a:b]) for kind, (a, b) in zip(self.kinds, column.spans, strict=True)]
        cases = sorted(set(parts), key=lambda case: repr([key[:2] for key in case]))
        plain = [[key[:2] for key in case] for case in cases]
        self.cases[number] = cases
        self.chosen[number] = [cases.index(parts[kind]) for kind in self.kind]
        return len(cases) <= MOST_CASES and all(plain.count(one) == 1 for one in plain)

    def put(self, step: Step, where: Place, item: int) -> None:
        """Put a step of an item to its place in the body."""
        self.place[step.id], self.owner[step.id] = where, item
        if where not in self.origin:
            # what the last item makes has another name after the loop than within it
            alone = item == len(self.bodies) - 1
            self.origin[where] = step
            self.model[where] = self.free if alone else step.id
            self.free += alone

    def others(self) -> tuple[str, ...] | None:
        """Other lists whose modules run in the body; None if the only item of a kind runs such a module."""
        found: dict[str, None] = {}
        for number, kind in enumerate(self.kinds):
            first, *more = [item for item, one in enumerate(self.kind) if one == number]
            if more:
                at, bt = (f"{self.prefix}.{self.indices[item]}" for item in (first, more[0]))
                found |= dict.fromkeys(beside(self.bodies[first], self.bodies[more[0]], at, bt))
            elif any("*" in name for key in kind for name in (key[0], *key[1][-1])):
                return None
        return tuple(found)
