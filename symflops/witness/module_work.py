"""Work by module in the form of PyTorch's counter: a container has all work that runs while it does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

INDEX = re.compile(r"(?:(?<=^)|(?<=\.))\d+(?=\.|$)")


def starred(path: str) -> str:
    """A path with ``*`` for every index."""
    return INDEX.sub("*", path)


def rolled_up(work: Mapping[tuple[str, ...], int]) -> Counter[str]:
    """FLOPs by module, with ``*`` for indices; the keys of ``work`` are the modules that run at the same time."""
    found: Counter[str] = Counter()
    for modules, flops in work.items():
        for module in {starred(module) for module in modules}:
            found[module] += flops
    return found
