"""Finds an example of a class that runs: its inputs, few layers, and numbers of which no two are equal by accident."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from symflops.support.errors import SymflopsError
from symflops.verify.symbolic.inputs import LENGTHS, Given
from symflops.verify.symbolic.target import LiveTarget, Place, Target, places
from symflops.verify.symbolic.tracer import Example
from symflops.verify.tensors import needed

FEW = (2, 4)
"""Numbers of layers that are tried in place of the config's."""
DEEPEST = 200
"""Largest number that may be a number of layers."""
CANDIDATES = 24


def example_of(target: Target | LiveTarget, given: Given | None = None) -> Example:
    """An example that runs on the meta device.

    Args:
        target: What is traced.
        given: Inputs of the user; None for those that the class is known to take.

    Raises:
        SymflopsError: the class does not run with its config, or its inputs are not known.
    """
    lengths = dict(given.lengths if given else LENGTHS)
    try:
        settings = target.settings({})
        with needed("torch").device("meta"):
            model = target.build(settings)
    except Exception as error:
        raise SymflopsError(f"{target.kind.__name__} cannot be built: {said(error)}") from error
    layers = depths_in(target, model, dict(places(settings)))
    errors: dict[str, None] = {}
    for few in (*FEW, None):
        depths = {place: min(number, few or number) for place, number in layers.items()}
        for device, candidate in itertools.product(("meta", "cpu"), range(CANDIDATES)):
            found = Example(target, depths, {}, lengths, candidate, device, given)
            try:
                found.real({}, lengths)
            except StopIteration:
                continue
            except Exception as error:
                errors.setdefault(said(error))
                continue
            return with_distinct_numbers(found)
        if not layers:
            break
    reason = "; ".join(list(errors)[:3]) or "no inputs are known for it"
    raise SymflopsError(f"{target.kind.__name__} does not run: {reason}")


def said(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def depths_in(target: Target | LiveTarget, model: Any, numbers: Mapping[Place, int]) -> dict[Place, int]:
    """The fields that are the length of a list of modules: with a smaller number the class has fewer modules."""
    torch = needed("torch")
    lists = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict)
    lengths = {len(one) for one in model.modules() if isinstance(one, lists)}
    every = sum(1 for _ in model.modules())
    found = {}
    for place, number in numbers.items():
        if not FEW[0] <= number <= DEEPEST or number not in lengths or isinstance(place[-1], int):
            continue
        with suppress(Exception), torch.device("meta"):
            fewer = sum(1 for _ in target.build(target.settings({place: number - 1})).modules())
            if fewer < every:
                found[place] = number
    return found


def with_distinct_numbers(example: Example) -> Example:
    """An example in which equal fields are made different where the class still runs; else they stay equal."""
    settings = example.target.settings(example.depths)
    fields = {place: value for place, value in places(settings) if value >= 2 and place not in example.depths}
    own, taken = dict(fields), set(example.lengths.values())
    began = time.monotonic()
    example.real({}, example.lengths)
    patience = 9 * max(0.2, time.monotonic() - began)
    for place, value in list(fields.items()):
        if value not in taken or time.monotonic() - began > patience:
            taken.add(value)
            continue
        for other in (value // 2, value // 4, value * 2, value * 3, value + 1):
            if other < 2 or other in taken:
                continue
            try:
                example.real({**example.fields, place: other}, example.lengths)
            except Exception:
                continue
            example.fields[place] = fields[place] = other
            break
        taken.add(fields[place])
    example.fields, example.own = fields, own
    return example
