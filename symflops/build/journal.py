"""Dictionaries with undo, for attempts, conditions and iterations; no state is copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Journaled(dict[K, V]):
    """A dictionary that remembers the value before each assignment; keys are assigned and never deleted.

    >>> known = Journaled({"a": 1})
    >>> mark = known.mark
    >>> known["a"], known["b"] = 2, 3
    >>> known.undo(mark), known
    ({'a': 2, 'b': 3}, {'a': 1})
    """

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(items)
        self._before: list[tuple[K, tuple[V] | tuple[()]]] = []

    def __setitem__(self, key: K, value: V) -> None:
        self._before.append((key, (self[key],) if key in self else ()))
        super().__setitem__(key, value)

    def update(self, items: Any = (), /, **more: V) -> None:
        """Assign several items."""
        for key, value in dict(items, **more).items():
            self[key] = value

    @property
    def mark(self) -> int:
        """The number of assignments so far, which :meth:`undo` takes to restore this state."""
        return len(self._before)

    def assigned_by(self, action: Callable[[], object]) -> dict[K, V]:
        """Run ``action``, undo its assignments, and return them as key -> assigned value."""
        mark = self.mark
        try:
            action()
        finally:
            assigned = self.undo(mark)
        return assigned

    def undo(self, mark: int) -> dict[K, V]:
        """Undo all but the first ``mark`` assignments.

        Returns key -> undone value, in order of first assignment.
        """
        assigned = {key: self[key] for key, _ in self._before[mark:]}
        while len(self._before) > mark:
            key, before = self._before.pop()
            if before:
                super().__setitem__(key, before[0])
            else:
                del self[key]
        return assigned
