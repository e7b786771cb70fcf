"""Module paths in which the indices of repeats are expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from sympy import Expr, Symbol


@dataclass(frozen=True, slots=True)
class Path:
    """A module path: texts, and expressions for the indices of repeats, e.g. ``('layers.', i, '.mlp')``."""

    parts: tuple[str | Expr, ...]

    def __str__(self) -> str:
        """The path with ``*`` for each index of a repeat."""
        if len(self.parts) == 1 and isinstance(self.parts[0], str):
            return self.parts[0]
        return "".join(part if isinstance(part, str) else str(part) if part.is_Integer else "*" for part in self.parts)

    def join(self, name: str) -> Path:
        """The path of ``name`` inside this one."""
        return self.extend((name,)) if name else self

    def extend(self, parts: tuple[str | Expr, ...]) -> Path:
        """This path, a dot, and ``parts``; neighbouring texts are merged."""
        if len(self.parts) <= 1 and all(isinstance(part, str) for part in (*self.parts, *parts)):
            text = "".join((*self.parts, "." if self.parts and parts else "", *parts))
            return Path((text,) if text else ())
        merged: list[str | Expr] = []
        glue: tuple[str, ...] = (".",) if self.parts and parts else ()
        for part in (*self.parts, *glue, *parts):
            if isinstance(part, str) and merged and isinstance(merged[-1], str):
                merged[-1] += part
            elif part != "":
                merged.append(part)
        return Path(tuple(merged))

    @property
    def parent(self) -> Path:
        """The path without its last component."""
        parts = list(self.parts)
        while parts:
            last = parts.pop()
            if isinstance(last, str) and "." in last:
                head = last.rpartition(".")[0]
                return Path((*parts, head) if head else tuple(parts))
        return Path(())

    @property
    def depth(self) -> int:
        """The number of its components."""
        return str(self).count(".") + 1 if self.parts else 0

    @property
    def indices(self) -> frozenset[Symbol]:
        """The loop indices that occur in it."""
        found = (part.free_symbols for part in self.parts if not isinstance(part, str))
        return frozenset().union(*found)


@dataclass(frozen=True, slots=True)
class Visit:
    """``caller`` invokes ``module``, which is registered under another parent that is not itself run."""

    caller: Path
    module: Path


def prefixes(path: Path) -> Iterator[Path]:
    """The prefixes of ``path``, shortest first, itself included."""
    if len(path.parts) == 1 and isinstance(path.parts[0], str):  # the case of every path in an unrolled structure
        heads = accumulate(path.parts[0].split("."), "{}.{}".format)
        return (Path((head,)) for head in heads if head)
    chain = [path]
    while chain[-1].parent.parts:
        chain.append(chain[-1].parent)
    return reversed(chain)


def running(path: Path, visits: Sequence[Visit]) -> Iterator[Path]:
    """The modules that run while ``path`` does, outermost first: its parents, or the callers in ``visits`` instead."""
    if not visits:
        yield from prefixes(path)
        return
    start = 1
    for end, module in [*((visit.caller, visit.module) for visit in visits), (path, path)]:
        yield from (prefix for prefix in prefixes(end) if prefix.depth >= start)
        start = module.depth


@lru_cache(maxsize=1 << 14)
def running_texts(path: Path, visits: tuple[Visit, ...]) -> tuple[str, ...]:
    """The modules of :func:`running` as texts."""
    return tuple(map(str, running(path, visits)))
