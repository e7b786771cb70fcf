"""Work by module in the form of PyTorch's counter: a container has all work that runs while it does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

INDEX = re.compile(r"(?:(?<=^)|(?<=\.))\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number (elements, or FLOPs of one step): that of the real model, and the derived one."""

    expected: int
    derived: int

    @property
    def equal(self) -> bool:
        """Whether both agree, to the last unit."""
        return self.expected == self.derived


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


def different(
    real: Mapping[str, int], work: Mapping[tuple[str, ...], int], known: Iterable[str]
) -> Iterator[tuple[str, Figure]]:
    """The modules whose forward FLOPs differ: those that the counter reports, and derived work at unknown paths."""
    expected: Counter[str] = Counter()
    for path, flops in real.items():
        expected[starred(path)] += flops
    derived = rolled_up(work)
    unknown = {starred(modules[-1]) for modules, flops in work.items() if flops and modules} - {starred(path) for path in known}
    for path in sorted(expected.keys() | unknown):
        figure = Figure(expected[path], derived[path])
        if not figure.equal:
            yield path, figure
