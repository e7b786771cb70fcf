"""Census of lengths: runs a spec's real class at short, odd and limiting lengths, and estimates the same batches.

A class that fails at a length that the spec answers lacks a condition under ``requires``; a spec that refuses what the class
runs has one too many.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase
from symflops.verify.census.observation import in_time
from symflops.verify.classes import in_evaluation
from symflops.verify.live import build, reference_of
from symflops.verify.running import arguments_of, filled, light_counter, needed, plain_attention

LONGEST = {1: 140, 2: 48, 3: 20}
"""Longest length that is tried, by the number of axes of an item; larger limits in configs are not tested."""
Arguments = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""Makes the further arguments of a model from a batch; None if no arguments express the batch."""
TOKEN = 3
"""The token of every text: neither padding nor a special token of a class's defaults."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Outcome of one batch: whether the class fails on it, and whether the spec refuses it.

    Attributes:
        batch: Lengths per stream.
        failed: The class's error, or that its FLOPs differ from the derived ones; else empty.
        refused: The spec's message, or empty.
    """

    batch: Mapping[str, Any]
    failed: str
    refused: str

    @property
    def agrees(self) -> bool:
        """Whether both the class and the spec accept the batch, or neither does."""
        return bool(self.failed) == bool(self.refused)

    def __str__(self) -> str:
        return (
            f"the class fails: {self.failed.splitlines()[0]}"
            if self.failed
            else f"the class runs, and the spec says: {self.refused}"
        )


class LengthCensus:
    """Runs a case's real class on the CPU at many lengths, and estimates the same batches by the spec.

    Args:
        model: The spec.
        case: The case, whose batch is varied.
        arguments: Makes the further arguments of each batch; by default those of the case, with lengths replaced.
    """

    def __init__(self, model: Model, case: LiveCase, arguments: Arguments | None = None) -> None:
        self.case = replace(case, device="cpu")
        self.arguments = arguments or self.resized
        self.real, built = build(reference_of(model, case), self.case, model.file.path.parent)
        self.config = in_evaluation(model.spec, built)
        self.program = model.program(["forward"], ["torch"], self.config)
        self.optional = {stream.name for stream in self.program.streams if stream.optional and not stream.absent}
        self.estimator = InterpretedEstimator(self.program, self.config, regime="forward", convention="torch")

    def rows(self) -> Iterator[Tried]:
        """Yield the outcome of each batch of :func:`batches_of` that has arguments, at lengths that the config suggests."""
        for batch in batches_of(self.case.batch, lengths_of_interest(self.config)):
            further = self.arguments(batch)
            if further is not None:
                yield self.tried(batch, further)

    def resized(self, batch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Replace the lengths of the case's batch by those of ``batch`` in the case's further arguments."""
        found: Mapping[str, Any] = resized(self.case.arguments, dict(changes_of(self.case.batch, batch)))
        return found

    def tried(self, batch: Mapping[str, Any], further: Mapping[str, Any]) -> Tried:
        """Run the class on a batch, estimate the batch with the spec, and return both outcomes."""
        counted, failed = self.run(batch, further)
        try:
            derived = self.estimator.forward(self.estimator.moments(**batch))
        except SymflopsError as error:
            return Tried(batch, failed, str(error))
        return Tried(batch, failed or (f"{counted} FLOPs, and not {derived}" if counted != derived else ""), "")

    def run(self, batch: Mapping[str, Any], further: Mapping[str, Any]) -> tuple[int, str]:
        """Run a copy of the real model on a batch; return (forward FLOPs, error or empty text)."""
        batch = {name: items for name, items in batch.items() if name not in self.optional or any_length(items)}
        try:
            with needed("torch").no_grad(), in_time(), plain_attention(), light_counter() as counter:
                given = arguments_of(self.program, batch, self.estimator.sizes, further)
                copy.deepcopy(self.real)(**filled(given, real_tensor))
        except Exception as error:  # any error of the class
            return 0, f"{type(error).__name__}: {error}"
        return counter.total, ""


def any_length(items: Any) -> bool:
    """Whether some item of a stream has a length above 0; True for a stream that is not a list."""
    return not isinstance(items, list) or any(any(item) if isinstance(item, list) else item for item in items)


def real_tensor(tensor: Any, _: str) -> Any:
    """Return a CPU tensor for a meta tensor: token ids are ``TOKEN``, floats and one-axis indices are 0."""
    token = TOKEN if tensor.dim() > 1 and not tensor.is_floating_point() else 0
    return needed("torch").full(tensor.shape, token, dtype=tensor.dtype)


def lengths_of_interest(config: Any) -> list[int]:
    """List the lengths to try: 0 to 5, and those within 1 of an integer in the config or of its double."""
    numbers = {number for number in whole_numbers(config) if 0 < number <= max(LONGEST.values())}
    near = {around + step for number in numbers for around in (number, 2 * number) for step in (-1, 0, 1)}
    return sorted({*range(6), *near})


def whole_numbers(value: Any) -> Iterator[int]:
    """Yield all integers in a config, nested ones included."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from whole_numbers(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from whole_numbers(item)


def batches_of(base: Mapping[str, Any], lengths: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield ``base``, then copies with a new length of all items of a stream along one axis or all axes.

    Equal lengths, such as those of tokens and of their timesteps, are also replaced together.
    """
    yield dict(base)
    for length in lengths:
        for name, items in base.items():
            if not isinstance(items, list) or not items:
                continue
            axes = len(items[0]) if isinstance(items[0], list) else 0
            if length > LONGEST[max(axes, 1)]:
                continue
            for changed in ({axis} for axis in range(axes)) if axes else [set()]:
                yield {**base, name: [replaced(item, length, changed) for item in items]}
            if axes > 1:
                yield {**base, name: [[length] * axes for _ in items]}
            for other, axis in [] if axes else equal_axes(base, name):
                both = [replaced(item, length, () if axis is None else {axis}) for item in base[other]]
                yield {**base, name: [length for _ in items], other: both}


def equal_axes(base: Mapping[str, Any], name: str) -> Iterator[tuple[str, int | None]]:
    """Yield (stream, axis) whose lengths equal those of the stream ``name``; the axis of a stream of one axis is None."""
    names = list(base)
    for other in names:
        items = base[other]
        if isinstance(items, list) and items and isinstance(items[0], list):
            yield from ((other, axis) for axis in range(len(items[0])) if [item[axis] for item in items] == base[name])
        elif items == base[name] and names.index(other) > names.index(name):
            yield other, None


def replaced(item: Any, length: int, axes: Container[int]) -> Any:
    """Return ``item`` with ``length`` along the numbered ``axes``; a number becomes ``length``."""
    return [length if axis in axes else old for axis, old in enumerate(item)] if isinstance(item, list) else length


def changes_of(base: Mapping[str, Any], batch: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield (length in ``base``, length in ``batch``) of items where they differ, in streams of one axis."""
    for name, items in base.items():
        for one, two in zip(items, batch[name], strict=True) if isinstance(items, list) else ():
            if isinstance(one, int) and one != two:
                yield one, two


def resized(value: Any, changes: Mapping[int, int]) -> Any:
    """Replace lengths in a forward argument (shapes, numbers, value rows); ``changes`` maps old to new."""
    if isinstance(value, Mapping):
        if "value" in value:
            return {**value, "value": [_row(row, changes) for row in value["value"]]}
        if "shape" in value:
            place = next((place for place, side in enumerate(value["shape"]) if side in changes), None)
            shape = [changes[side] if at == place else side for at, side in enumerate(value["shape"])]
            return {**value, "shape": shape}
        return {name: resized(item, changes) for name, item in value.items()}
    if isinstance(value, list):
        return [resized(item, changes) for item in value]
    return changes.get(value, value) if isinstance(value, int) and not isinstance(value, bool) else value


def _row(row: Any, changes: Mapping[int, int]) -> Any:
    length = changes.get(len(row)) if isinstance(row, Sequence) else None
    if length is None:
        return row
    return [row[0]] * (length - len(row)) + list(row[len(row) - length if length < len(row) else 0 :])
