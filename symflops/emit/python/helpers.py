"""The functions that modules hold where their formulas call them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from operator import index
from typing import Any


class NullList(tuple[object, ...]):
    """A list that is null: it counts as 0, and so do its items."""

    def __getitem__(self, index: Any) -> Any:
        return 0


def each(size: Any, place: int) -> int:
    """The number at ``place`` of a list, or the one that stands at every place; a word counts 0."""
    found: int = 0 if isinstance(size, str) else size[place] if isinstance(size, (list, tuple)) else size
    return found


def exact(product: int, divisor: int) -> int:
    """A quotient of lengths that the model divides without a remainder."""
    quotient, rest = divmod(product, divisor)
    if rest:
        raise ValueError(f"a length of the batch does not divide as the model divides it: {product} by {divisor}")
    return quotient


def columns(name: str, given: Any, axes: int = 1, count: int | None = None, absent: int = 0) -> list[list[int]]:
    """The lengths of a stream as a column per axis; ``count`` is the number of items of the streams beside it."""
    if given is None or (absent and isinstance(given, int)):
        return [[absent if given is None else given] * (count or 0)] * axes
    rows = [[index(length) for length in (item if axes > 1 else (item,))] for item in given]
    if count not in (None, len(rows)) or any(len(row) != axes or min(row) < 0 for row in rows):
        raise ValueError(f"'{name}' has {axes} whole numbers per item, and as many items as the streams beside it")
    return [[row[axis] for row in rows] for axis in range(axes)]


def total(parts: Any) -> int:
    """A sum that is a whole number, and not negative."""
    found = sum(parts)
    if found < 0 or found != int(found):
        raise ValueError(f"config and batch do not fit the model: a total of {found}")
    return int(found)


HELPERS = {"_Null": NullList, "_each": each, "_exact": exact, "_columns": columns, "_total": total}
"""Functions and classes by their names in modules: no letter of a spec begins with an underscore."""


def source(own: Any, name: str) -> str:
    """The source of a function or a class under another name."""
    return re.sub(rf"^(def|class) {own.__name__}\b", rf"\1 {name}", inspect.getsource(own).strip())


def helpers_of(text: str) -> Iterator[str]:
    """The sources of the helpers that a text calls."""
    return (source(own, name) for name, own in HELPERS.items() if re.search(rf"\b{name}\(", text))
