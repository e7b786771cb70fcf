"""Lists the parameters of a program one by one, under the names of the real model, and compares them with real ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symflops.evaluate.stored import Stored, stored_of

if TYPE_CHECKING:
    from symflops.ir.program import Program


Shape = tuple[int, ...]


def instances_of(program: Program | Mapping[str, Any] | Stored, sizes: Mapping[str, Any]) -> dict[str, Shape]:
    """Map every parameter, adapters excluded, to its shape at ``sizes``; names have numeric indices."""
    stored = program if isinstance(program, Stored) else stored_of(program)
    rows = [stored.document["all_tensors"][position] for position in stored.document["tensors"]]
    found: dict[str, Shape] = {}
    for row in rows:
        for name, shape in copies(stored, row, sizes):
            found.setdefault(name, shape)
    return found


def trained_of(stored: Stored, regime: str, sizes: Mapping[str, Any]) -> dict[str, tuple[Shape, bool]]:
    """Map every parameter under a regime, adapters included, to (shape, whether it is trained)."""
    chosen = stored.regimes[regime]
    trains = chosen.get("trains") or [True] * len(chosen["tensors"])
    found: dict[str, tuple[Shape, bool]] = {}
    for position, train in zip(chosen["tensors"], trains, strict=True):
        for name, shape in copies(stored, stored.document["all_tensors"][position], sizes):
            found.setdefault(name, (shape, train))
    return found


def copies(stored: Stored, row: Sequence[Any], sizes: Mapping[str, Any]) -> Iterator[tuple[str, Shape]]:
    """Expand a row of the stored parameter table: yield (name, shape) for each copy in a repeat."""
    name, position, *own = row
    template, ranges = (own[0].get("template", [name]), own[0].get("ranges", [])) if own else ([name], [])
    shared, value = stored.document["shapes"][position], stored.formulas.checked
    runs: dict[str, list[Sequence[Any]]] = {}
    for index, *run in ranges:
        runs.setdefault(index, []).append(run)
    for names in _indices(stored, list(runs.items()), sizes):
        if value(shared["exists"], names):
            text = "".join(part if isinstance(part, str) else str(value(part, names)) for part in template)
            yield text, tuple(int(value(size, names)) for size in shared["shape"])


def _indices(
    stored: Stored, runs: Sequence[tuple[str, list[Sequence[Any]]]], names: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield ``names``, the values of letters, extended by each combination of loop indices.

    ``runs`` lists each index, outermost first, with the ranges that it runs over: first value, end value and condition.
    """
    if not runs:
        yield names
        return
    (index, own), *rest = runs
    value = stored.formulas.checked
    values: set[int] = set()
    for low, high, bracket in own:
        values |= {turn for turn in range(value(low, names), value(high, names)) if value(bracket, {**names, index: turn})}
    for turn in sorted(values):
        yield from _indices(stored, rest, {**names, index: turn})


def parameter_differences(
    expected: Mapping[str, Shape], instances: Mapping[str, Shape], aliases: Mapping[str, str]
) -> dict[str, Any]:
    """Compare derived parameters (``instances``) with real ones (``expected``), by name.

    ``aliases`` maps each name of a real parameter to the first of its names.

    Returns:
        ``missing``: (name, shape) of real parameters that are not derived. ``extra``: (name, shape) of derived ones that are
        not real, or that name a real parameter a second time. ``wrong``: (name, real shape, derived shape) where these differ.
    """
    derived: dict[str, Shape] = {}
    twice = []
    for name, shape in instances.items():
        known = aliases.get(name, name)
        if known in derived:
            twice.append((name, shape))
        derived[known] = derived.get(known, shape)
    return {
        "missing": tuple((name, shape) for name, shape in expected.items() if name not in derived),
        "extra": tuple((name, shape) for name, shape in derived.items() if name not in expected) + tuple(twice),
        "wrong": tuple((name, s, derived[name]) for name, s in expected.items() if derived.get(name, s) != s),
    }
