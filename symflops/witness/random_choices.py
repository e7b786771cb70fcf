"""Random names, patterns and parts of modules for live verification."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from random import Random
from typing import Any

SHARES = (0.0, 0.02, 0.1, 0.5, 0.9, 1.0)


def parts_of(modules: Any) -> set[str]:
    """The paths of modules with parameters inside ``modules``, without module lists and dicts."""
    return {
        path
        for module in modules
        for path, part in module.named_modules()
        if path and type(part).__name__ not in ("ModuleList", "ModuleDict") and next(part.parameters(), None) is not None
    }


def pattern_of(random: Random, names: Sequence[str]) -> tuple[str, ...]:
    """A pattern from a random name, with one end or some components replaced by ``*``; empty if it matches no name."""
    words = random.choice(names).split(".")
    cut = random.randrange(len(words))
    pattern = random.choice(
        (
            ".".join([*words[:cut], "*"]),
            ".".join(["*", *words[cut:]]),
            ".".join("*" if random.random() < 0.3 else word for word in words),
        )
    )
    return (pattern,) if any(fnmatchcase(name, pattern) for name in names) else ()


def some(random: Random, names: Sequence[str]) -> tuple[str, ...]:
    """A random share of ``names``: of all, of one layer, or of those that end alike."""
    share = random.choice(SHARES)
    kind = random.randrange(3)
    if kind and names:
        example = random.choice(names).split(".")
        start, end = ".".join(example[:2]), example[-1] if kind == 1 else ".".join(example[-2:])
        names = [name for name in names if (name.startswith(start) if kind == 1 else name.endswith(end))]
    return tuple(name for name in names if random.random() < share)
