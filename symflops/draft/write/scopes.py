"""Values of a draft, and the lists of entries in which they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Loop

Fields = dict[str, Any]
Entry = tuple[str, Fields]


@dataclass(frozen=True, slots=True)
class Val:
    """A value as the draft names it: rows per item and width over all samples; ``once`` for one that is there once per batch.

    ``tag`` tells streams apart whose rows are written differently.
    """

    name: str
    rows: Vector
    width: Vector
    once: bool = False
    tag: Any = None


@dataclass(slots=True)
class Unsolved:
    """A dimension without a formula: where it is, and its values."""

    place: str
    values: Vector


@dataclass
class Scope:
    """A list of entries being written, the path that they are relative to, and the parameters read in it."""

    prefix: str
    entries: list[Any] = field(default_factory=list)
    parameters: dict[str, Val] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    parent: Scope | None = None
    indexed: dict[str, str] = field(default_factory=dict)
    views: dict[Any, Val] = field(default_factory=dict)
    loop: Loop | None = None
    index: str = ""
    count: str = ""
