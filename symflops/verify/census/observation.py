"""Observes a real class at one config: its parameters by name and shape, and the FLOPs of both passes."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.parameters import Shape, instances_of
from symflops.ir.program import Program
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase
from symflops.verify.census.variations import Changes
from symflops.verify.limits import TooLongError, within
from symflops.verify.live import build, parameters_of
from symflops.verify.running import arguments_of, both_passes, light_counter, moved

SECONDS = 12
"""Limit of CPU time for one build or run; CPU time, so that a busy machine changes no verdict."""


class TooSlowError(SymflopsError):
    """Building or running a model exceeds the limit of CPU time."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A real model that was built at one config.

    Attributes:
        model: The PyTorch module.
        config: The complete config, defaults included.
        parameters: First name of each parameter -> its shape.
        aliases: Every name of a parameter -> the first name of the same parameter (tied weights have several names).
    """

    model: Any
    config: Mapping[str, Any]
    parameters: Mapping[str, Shape]
    aliases: Mapping[str, str]

    @property
    def elements(self) -> int:
        """The number of elements in all parameters."""
        return sum(map(math.prod, self.parameters.values()))


@dataclass(frozen=True, slots=True)
class Derived:
    """Program and estimator that a spec derives for one config."""

    program: Program
    estimator: InterpretedEstimator

    def parameters(self, aliases: Mapping[str, str]) -> dict[str, Shape] | None:
        """Map each derived parameter's first name to its shape; None if the spec claims a parameter twice.

        ``aliases`` maps every name of a real parameter to its first name.
        """
        found = instances_of(self.program, self.estimator.sizes)
        named = {aliases.get(name, name): shape for name, shape in found.items()}
        return named if len(named) == len(found) else None

    def passes(self, batch: Mapping[str, Any]) -> tuple[int, int]:
        """Derive (forward FLOPs, backward FLOPs) of a training step on a batch."""
        moments = self.estimator.moments(**batch)
        return self.estimator.forward(moments), self.estimator.backward(moments)


def observed(reference: str, case: LiveCase, folder: Any = None) -> Observed:
    """Build the real model of a case, within the time limit.

    Raises:
        SymflopsError: the class does not accept the config.
    """
    with in_time():
        model, config = build(reference, case, folder)
    return Observed(model, config, *parameters_of(model))


def flops(seen: Observed, case: LiveCase, derived: Derived, outputs: tuple[str, ...]) -> tuple[int, int]:
    """Count (forward FLOPs, backward FLOPs) of a real model on the batch of a case.

    ``derived`` gives the inputs and sizes. ``outputs`` are the names of the outputs that the loss sums.

    Raises:
        SymflopsError: the model does not run on the batch.
    """
    arguments = moved(arguments_of(derived.program, case.batch, derived.estimator.sizes, case.arguments), case.device)
    with in_time():
        forward, backward = both_passes(seen.model, arguments, outputs, light_counter)
    return forward.total, backward.total


def with_values(
    config: Mapping[str, Any], changes: Changes, complete: Mapping[str, Any], aliases: Mapping[str, str]
) -> dict[str, Any]:
    """Return a copy of a config with ``changes`` (path -> value).

    ``aliases`` maps other names of a field to its name; those of changed fields are removed. Nested configs that ``config``
    lacks come from ``complete``.
    """
    found: dict[str, Any] = copy.deepcopy(dict(config))
    for path, value in changes.items():
        *outer, last = path.split(".")
        inner, whole = found, complete
        for word in outer:
            whole = whole.get(word) or {}
            if not isinstance(inner.get(word), dict):
                inner[word] = copy.deepcopy(dict(whole))
            inner = inner[word]
        for alias, name in aliases.items():
            if last in (alias, name):
                inner.pop(alias, None)
                inner.pop(name, None)
        inner[last] = copy.deepcopy(value)
    return found


def fitting(case: LiveCase, base: Mapping[str, Any], changes: Changes) -> Iterator[LiveCase]:
    """Yield versions of a case, one of which may run under its changed config.

    They are: the case itself; with changed numbers replaced in batch and arguments; and with longer batches.

    Args:
        case: The case, with the changed config.
        base: Path -> value of the changed fields before the change.
        changes: Path -> new value.
    """
    given = {name: value for name, value in case.arguments.items() if value is not None}
    if len(given) < len(case.arguments):  # an input that the case leaves out may be needed now
        yield replace(case, arguments=given)
    yield case
    pairs = {old: new for name, value in changes.items() for old, new in _pairs(base.get(name), value)}
    if pairs:
        yield replace(case, batch=_renumbered(case.batch, pairs), arguments=_renumbered(case.arguments, pairs))
        yield replace(case, arguments=_renumbered(case.arguments, pairs))
    sizes = [axis for items in case.batch.values() for item in items for axis in (item if isinstance(item, list) else [item])]
    for factor in dict.fromkeys((2, *(new for new in pairs.values() if 2 < new < 5 and max(sizes, default=0) <= 32))):
        batch = {name: [_times(item, factor) for item in items] for name, items in case.batch.items()}
        longer = {axis: factor * axis for axis in sizes if axis > 1}
        yield replace(case, batch=batch, arguments={name: _lengthened(value, longer) for name, value in case.arguments.items()})


def _pairs(old: Any, new: Any) -> Iterator[tuple[int, int]]:
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        for one, two in zip(old, new, strict=False):
            yield from _pairs(one, two)
    elif isinstance(old, int) and isinstance(new, int) and not isinstance(old, bool) and old != new and old > 1:
        yield old, new


def _renumbered(value: Any, pairs: Mapping[int, int]) -> Any:
    if isinstance(value, Mapping):
        return {name: item if name == "dtype" else _renumbered(item, pairs) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renumbered(item, pairs) for item in value]
    return pairs.get(value, value) if isinstance(value, int) and not isinstance(value, bool) else value


def _lengthened(value: Any, longer: Mapping[int, int]) -> Any:
    """Replace lengths in the shapes and numbers of a forward argument; ``longer`` maps old to new lengths."""
    if isinstance(value, Mapping):
        return {name: item if name == "value" else _lengthened(item, longer) for name, item in value.items()}
    return [_lengthened(item, longer) for item in value] if isinstance(value, list) else _renumbered(value, longer)


def _times(item: Any, factor: int) -> Any:
    if isinstance(item, (list, tuple)):
        return [_times(axis, factor) for axis in item]
    return item * factor if isinstance(item, int) else item


@contextmanager
def in_time() -> Iterator[None]:
    """Context manager that limits CPU time to ``SECONDS``.

    Raises:
        TooSlowError: the limit is exceeded.
    """
    try:
        with within(SECONDS):
            yield
    except TooLongError:
        raise TooSlowError(f"takes more than {SECONDS} s of the processor") from None
