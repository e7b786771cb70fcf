"""The symbols of a draft: sizes, lengths, and the vectors that they have over the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.vary.variables import Slot

RESERVED = {
    "m", "tokens", "steps", "rows", "columns", "frames", "y", "n", "in", "is", "or", "if", "and", "not", "for", "as", "on",
    "off", "no", "yes", "true", "false", "null",
}  # fmt: skip


@dataclass(slots=True)
class Names:
    """The symbols of a draft.

    Attributes:
        sizes: The key in the config of each letter.
        lengths: The slot of each length.
        dims: The symbol of each dimension of the inputs that moves.
        vectors: The values of each symbol over the samples.
        solo: For each symbol, the samples in which its variable alone moved.
        batch: The number of items over the samples.
        listed: Lists that conditions read; true for one that may be missing.
        filled: The default, as an expression, of fields that the class fills in.
    """

    sizes: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    lengths: dict[str, Slot] = field(default_factory=dict)
    dims: dict[Slot, str] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    solo: dict[str, list[int]] = field(default_factory=dict)
    batch: Vector = ()
    listed: dict[str, bool] = field(default_factory=dict)
    filled: dict[str, str] = field(default_factory=dict)

    @property
    def taken(self) -> set[str]:
        """The names of sizes and lengths."""
        return {*self.sizes, *self.lengths}


def value_at(config: Any, key: Sequence[Any]) -> Any:
    """The value at a key of a config or of inputs; None if there is none."""
    found = config
    for part in key:
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, (list, tuple)) and isinstance(part, int) and part < len(found):
            found = found[part]
        else:
            return None
    return found


def fresh(name: str, taken: set[str]) -> str:
    """A name that nothing else has, and that means nothing in a spec: the name itself, or with a number after it."""
    if name not in taken and (name.lower() not in RESERVED or name == "y"):
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"
