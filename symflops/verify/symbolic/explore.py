"""Finds an example of a class that runs: its inputs, few layers, and numbers of which no two are equal by accident."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from symflops.ir.regime import Regime
from symflops.support.errors import SymflopsError
from symflops.verify.applied import check
from symflops.verify.running import needed
from symflops.verify.symbolic.inputs import LENGTHS, RANK, Given, ranks
from symflops.verify.symbolic.target import LiveTarget, Place, Target, dotted, places
from symflops.verify.symbolic.tracer import FULL, Example

FEW = (2, 4)
"""Numbers of layers that are tried in place of the config's."""
PATIENCE = 60
"""Runs of a class that may be made to find the steps of one number of layers."""
DEEPEST = 200
"""Largest number that may be a number of layers."""
CANDIDATES = 24
PERIODS = (1, 2, 3, 4, 5, 6, 8)
"""Numbers of layers after which their kinds may repeat."""
STEPS = 4
"""Steps at which a class is built, so that a multiple of a step is not taken for another one."""
LATEST = 6
"""Number of layers at which a model has all its kinds of layers, at the latest."""
FAR = 24
"""Number of layers up to which a class runs in search of layers of other kinds, if its own number is no larger."""


def example_of(target: Target | LiveTarget, given: Given | None = None, regime: Regime = FULL) -> Example:
    """An example that runs on the meta device.

    Args:
        target: What is traced.
        given: Inputs of the user; None for those that the class is known to take.
        regime: What trains, is adapted and recomputed.

    Raises:
        SymflopsError: the class does not run with its config, its inputs are not known, or the regime changes nothing of it.
    """
    lengths = dict(given.lengths if given else LENGTHS) | dict(ranks(regime))
    try:
        settings = target.settings({})
        with needed("torch").device("meta"):
            model = target.build(settings)
    except Exception as error:
        raise SymflopsError(f"{target.kind.__name__} cannot be built: {said(error)}") from error
    own = dict(places(settings))
    if (both := lengths.keys() & map(dotted, own)) and (not given or RANK in both):
        raise SymflopsError(f"{target.kind.__name__} has the field '{min(both)}', like a length of its inputs: give inputs")
    check(model, regime)
    layers = depths_in(target, model, own)
    errors: dict[str, None] = {}
    for few in (*FEW, None):
        depths = {place: min(number, few or number) for place, number in layers.items()}
        for device, candidate in itertools.product(("meta", "cpu"), range(CANDIDATES)):
            found = Example(target, depths, {}, lengths, candidate, device, given, regime=regime)
            try:
                found.real({}, lengths)
            except StopIteration:
                continue
            except Exception as error:
                errors.setdefault(said(error))
                continue
            with_steps(found, layers)
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


def with_steps(example: Example, own: Mapping[Place, int]) -> None:
    """Find from which number of layers on, and by which steps, the figures of a class are linear in it.

    A number of layers of which that is not found keeps the config's value and is no symbol.

    Args:
        example: Gets its numbers of layers, the steps, and the least numbers; the largest where more layers are of other kinds.
        own: The numbers of layers of the config.
    """
    for place, number in own.items():

        @cache
        def built(layers: int, place: Place = place) -> tuple[int, ...]:
            with needed("torch").device("meta"):
                model = example.target.build(example.target.settings({**example.depths, place: layers}))
            return sum(one.numel() for one in model.parameters()), sum(1 for _ in model.modules())

        @cache
        def counted(layers: int, place: Place = place) -> tuple[int, ...]:
            found = replace(example, depths={**example.depths, place: layers}).real({}, example.lengths)
            return found.parameters, found.forward, found.backward

        def same(first: int, step: int, steps: int, run: bool = True) -> bool:
            """Whether the figures after many steps continue those after one; those of a run if it is wanted."""
            places = (first, first + step, first + steps * step)
            figures = (built, counted) if run else (built,)
            return all(equal_steps([figure(at) for at in places], steps - 1) for figure in figures)

        def last_of(first: int, step: int, number: int = number) -> int:
            """Number of steps that tells a period from a shorter one, and reaches the config's own number."""
            return max(step + 2, LATEST // step, (number - first) // step)

        def linear(first: int, step: int) -> bool:
            places = range(first, first + max(STEPS * step, LATEST) + 1, step)
            with suppress(Exception):  # the class fails with so few layers
                rows = [built(at) for at in places], [counted(at) for at in places[:3]]
                return all(map(equal_steps, rows)) and same(first, step, last_of(first, step))
            return False

        until = time.process_time() + PATIENCE * max(0.2, seconds_of(example))
        firsts = ((step, first) for step in PERIODS for first in range(1, min(number, max(step, LATEST)) + 1))
        choices = ((step, first) for step, first in firsts if (number - first) % step == 0)
        found = next((pair for pair in choices if time.process_time() < until and linear(pair[1], pair[0])), None)
        if found is None:
            example.depths[place] = number
            continue
        step, first = found
        with suppress(Exception):  # the class fails with so many layers
            low, high = last_of(first, step), FAR // step
            while time.process_time() < until and first + high * step <= DEEPEST:
                run = high <= FAR // step
                if high > low and not same(first, step, high, run):
                    while high - low > 1:
                        middle = (low + high) // 2
                        low, high = (middle, high) if same(first, step, middle, run) else (low, middle)
                    example.most[place] = first + low * step
                    break
                low, high = max(low, high), 2 * high
        example.depths[place] = first if first > 1 else first + step
        example.steps[place], example.least[place] = step, first


def equal_steps(rows: Sequence[tuple[int, ...]], last: int = 1) -> bool:
    """Whether figures grow by the same amounts from row to row; the last row is ``last`` steps after the one before it."""
    steps = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(rows)]
    return all(tuple(last * one for one in steps[0]) == step for step in steps[-1:]) and len(set(steps[:-1])) <= 1


def with_distinct_numbers(example: Example) -> Example:
    """An example in which equal fields are made different where the class still runs with more layers; else they stay equal."""
    more = replace(example, depths={place: number + example.steps.get(place, 0) for place, number in example.depths.items()})
    settings = example.target.settings(example.depths)
    fields = {place: value for place, value in places(settings) if value >= 2 and place not in example.depths}
    own, taken = dict(fields), set(example.lengths.values())
    began = time.process_time()
    patience = 8 * max(0.2, seconds_of(more))
    for place, value in list(fields.items()):
        if value not in taken or time.process_time() - began > patience:
            taken.add(value)
            continue
        for other in (value // 2, value // 4, value * 2, value * 3, value + 1):
            if other < 2 or other in taken:
                continue
            try:
                more.real({**example.fields, place: other}, example.lengths)
            except Exception:
                continue
            example.fields[place] = fields[place] = other
            break
        taken.add(fields[place])
    example.fields, example.own = fields, own
    return example


def seconds_of(example: Example) -> float:
    """Seconds of one run on the meta device."""
    began = time.process_time()
    example.real({}, example.lengths)
    return time.process_time() - began
