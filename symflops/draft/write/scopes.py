"""Values of a draft, and scopes: the lists of entries that produce them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Loop

Fields = dict[str, Any]
Entry = tuple[str, Fields]


@dataclass(frozen=True, slots=True)
class Val:
    """A value in the graph of the draft; numbers are vectors with the values in all samples.

    Attributes:
        name: Its name in entries.
        rows: Rows per item of the batch, or per batch if ``once``.
        width: Elements per row; empty for token ids.
        once: Whether the value exists once per batch, not once per item.
        tag: Identifies the stream: values with equal rows may still have different axes.
    """

    name: str
    rows: Vector
    width: Vector
    once: bool = False
    tag: Any = None


@dataclass(frozen=True, slots=True)
class Unsolved:
    """A dimension without a formula.

    ``place`` says in words where it is in the graph; ``values`` has its value in each sample.
    """

    place: str
    values: Vector


@dataclass
class Scope:
    """A list of entries under construction: the graph or the body of a loop or branch.

    Attributes:
        prefix: The module that paths in this list are relative to.
        parent: The list that this one is nested in.
        loop: The loop whose body this is.
        index: The letter of the loop's index.
        count: The loop's number of items, as a formula.
        indexed: Paths of the loop's first item -> the same path with the index, if the loop runs several lists.
        entries: The entries so far.
        parameters: Parameters declared as values in this list.
        views: Cache of reshaped values: (name, rows, width, once) -> value.
    """

    prefix: str
    parent: Scope | None = None
    loop: Loop | None = None
    index: str = ""
    count: str = ""
    indexed: dict[str, str] = field(default_factory=dict)
    entries: list[Any] = field(default_factory=list)
    parameters: dict[str, Val] = field(default_factory=dict)
    views: dict[Any, Val] = field(default_factory=dict)

    @property
    def outwards(self) -> Iterator[Scope]:
        """This scope, followed by its enclosing scopes."""
        yield self
        if self.parent is not None:
            yield from self.parent.outwards

    def add(self, fields: Fields, key: str = "_") -> None:
        """Append an entry; ``key`` is its path, ``_`` for an operator without parameters."""
        self.entries.append((key, fields))
