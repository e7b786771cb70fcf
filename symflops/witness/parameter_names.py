"""Lists the parameters of a program one by one, under the names of the real model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from symflops.model.formula import Formula, evaluate
from symflops.model.program import Program, Tensor

Shape = tuple[int, ...]
Range = tuple[Formula, Formula, Formula]


def instances_of(program: Program, sizes: Mapping[str, Any]) -> dict[str, Shape]:
    """Every parameter that exists for these sizes: its name with real indices -> its shape."""
    found: dict[str, Shape] = {}
    for tensor in program.tensors:
        for names in _indices(_ranges(tensor), sizes):
            if evaluate(tensor.exists, names):
                name = "".join(part if isinstance(part, str) else str(evaluate(part, names)) for part in tensor.template)
                found.setdefault(name, tuple(int(evaluate(size, names)) for size in tensor.shape))
    return found


def _ranges(tensor: Tensor) -> list[tuple[str, list[Range]]]:
    """The indices of a parameter, outermost first, each with the runs in which the parameter occurs."""
    found: dict[str, list[Range]] = {}
    for index, low, high, bracket in tensor.ranges:
        found.setdefault(index, []).append((low, high, bracket))
    return list(found.items())


def _indices(ranges: list[tuple[str, list[Range]]], names: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """``names`` with every combination of the indices."""
    if not ranges:
        yield names
        return
    (index, runs), *rest = ranges
    values: set[int] = set()
    for low, high, bracket in runs:
        values |= {
            value for value in range(evaluate(low, names), evaluate(high, names)) if evaluate(bracket, {**names, index: value})
        }
    for value in sorted(values):
        yield from _indices(rest, {**names, index: value})
