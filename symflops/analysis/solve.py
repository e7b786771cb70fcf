"""Solves for the size, length or tokens that fit a FLOP budget, and prices a training run, exactly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from symflops.analysis.subject import Batch, Subject
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.moments import tokens_of
from symflops.support.errors import SymflopsError

MOST_STEP = 512
"""Largest increase of a value that is tried to find the next valid one."""
CHECKED = 16
"""Extra points at which the cost is evaluated, to check that it is monotonic."""
HOUR = 3600
LARGEST = {"count": 100_000, "number": 10**15 - 1, "length": 10**9}

Cost = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Solution:
    """The value of a size or length whose cost comes closest to a budget without exceeding it.

    ``flops`` is its cost, and ``remainder`` the unspent budget. ``following`` is the next valid value, whose cost exceeds the
    budget, and ``step`` the distance between valid values. ``grows`` is False if the cost falls as the value rises: then
    ``value`` is the least that fits. ``throughout`` is False if the cost is not monotonic at the evaluated points.
    """

    value: int
    flops: int
    remainder: int
    following: int | None
    following_flops: int | None
    step: int = 1
    grows: bool = True
    throughout: bool = True


def solve(subject: Subject, name: str, budget: int, batch: Batch, tokens: int = 0) -> Solution:
    """Find the value of the size or length ``name`` at which the cost fits ``budget`` FLOPs.

    The cost is that of one step on ``batch``, or, unless ``tokens`` is 0, that of training on so many tokens. If ``name`` is
    ``tokens``, the number of tokens is found that the budget pays for.

    Raises:
        SymflopsError: no size or length has that name, or no value has a cost near the budget.
    """
    if name == "tokens":
        return of_tokens(subject, budget, batch)
    kind, letter = subject.variable(name)

    def total(model: InterpretedEstimator, given: Batch) -> int:
        steps = -(-tokens // subject.tokens(model, given)) if tokens else 1
        return model.total(model.moments(**given)) * steps

    if kind == "length":
        start = subject.length(batch, letter)
        return search(
            lambda value: total(subject.estimator, subject.with_length(batch, letter, value)),
            budget, start, LARGEST["length"], name,
        )  # fmt: skip
    start = subject.estimator.sizes[letter]
    field = next(field for field in subject.program.fields if field.letter == letter)
    return search(lambda value: total(subject.at(letter, value), batch), budget, start, LARGEST[field.kind], name)


def of_tokens(subject: Subject, budget: int, batch: Batch) -> Solution:
    """Find the number of tokens in as many whole steps on ``batch`` as the budget pays for."""
    model = subject.estimator
    each, cost = subject.tokens(model, batch), model.total(model.moments(**batch))
    if not cost:
        raise SymflopsError("a step on this batch costs nothing")
    steps = budget // cost
    if not steps:
        raise SymflopsError(f"one step costs {cost:.4g} FLOPs, more than the budget")
    return Solution(steps * each, steps * cost, budget - steps * cost, (steps + 1) * each, (steps + 1) * cost, each)


def search(cost: Cost, budget: int, start: int, most: int, name: str) -> Solution:
    """Bisect for the largest valid value within the budget, or for the smallest if the cost falls.

    Args:
        cost: Maps a value to FLOPs; raises :class:`SymflopsError` if the model rejects the value.
        budget: The largest cost, in FLOPs.
        start: A valid value, from which valid values are sought.
        most: The largest value to try.
        name: The name of the size or length, for error messages.

    Raises:
        SymflopsError: all valid values cost more than the budget, or all cost less; or no value but ``start`` is valid.
    """
    known: dict[int, int] = {}

    def at(value: int) -> int:
        if value not in known:
            known[value] = cost(value)
        return known[value]

    start = max(start, 1)
    at(start)
    try:
        step = step_of(at, start, most)
    except SymflopsError:
        return among(at, start, budget, name)
    first = lowest(at, start - (start - 1) // step * step, start, step)
    low, high = bracket(at, first, step, most, budget, name)
    grows = at(low) <= budget
    while high - low > step:
        middle = low + (high - low) // step // 2 * step
        low, high = (middle, high) if (at(middle) <= budget) == grows else (low, middle)
    value, other = (low, high) if grows else (high, low)
    for place in range(CHECKED):
        at(first + (2 * high - first) // step * place // CHECKED * step)
    seen = [known[place] for place in sorted(known)]
    throughout = seen == sorted(seen, reverse=not grows)
    return Solution(value, at(value), budget - at(value), other, at(other), step, grows, throughout)


def lowest(at: Cost, first: int, start: int, step: int) -> int:
    """Bisect for the smallest valid value from ``first`` to ``start``, in steps of ``step``.

    This assumes that all values between the smallest one and ``start`` are valid.
    """
    low, high = first - step, start
    while high - low > step:
        middle = low + (high - low) // step // 2 * step if low >= first else first
        try:
            at(middle)
            high = middle
        except SymflopsError:
            low = middle
    return high


def among(at: Cost, start: int, budget: int, name: str) -> Solution:
    """Solve by trying every value up to ``start``, for sizes such as groups, which must divide the heads.

    Raises:
        SymflopsError: only one value is valid; or all cost more than the budget, or all cost less.
    """
    costs: dict[int, int] = {}
    for value in range(1, min(start, MOST_STEP) + 1):
        with suppress(SymflopsError):
            costs[value] = at(value)
    values = list(costs)
    if len(values) < 2:
        raise SymflopsError(f"the model takes no value but {start} for this size")
    grows = costs[values[-1]] >= costs[values[0]]
    order = values if grows else values[::-1]
    inside = [value for value in order if costs[value] <= budget]
    if not inside or len(inside) == len(order):
        told = ", ".join(map(str, values))
        raise SymflopsError(f"no value of '{name}' that fits the model ({told}) costs about as much as the budget")
    value, other = inside[-1], order[len(inside)]
    seen = [costs[one] for one in order]
    return Solution(value, at(value), budget - at(value), other, at(other), abs(other - value), grows, seen == sorted(seen))


def step_of(at: Cost, start: int, most: int) -> int:
    """Return the distance from ``start`` to the next larger value that the model accepts."""
    for step in range(1, MOST_STEP + 1):
        if start + step > most:
            break
        try:
            at(start + step)
        except SymflopsError:
            continue
        return step
    raise SymflopsError(f"the model takes no value but {start} for this size")


def bracket(at: Cost, first: int, step: int, most: int, budget: int, name: str) -> tuple[int, int]:
    """Return two valid values (low, high), one of which fits the budget while the other does not.

    Raises:
        SymflopsError: no such pair exists.
    """
    low, width = first, step
    within = at(low) <= budget
    while low + width <= most:
        high = low + width
        if (at(high) <= budget) != within:
            return low, high
        if not within and at(high) >= at(first) and width > 64 * step:
            break
        low, width = high, 2 * width
    if not within:
        raise SymflopsError(f"with {name} = {first} it costs {at(first):.4g} FLOPs, more than the budget")
    if at(low) == at(first):
        raise SymflopsError(f"the cost does not depend on '{name}'")
    raise SymflopsError(f"with {name} = {low:,} it costs {at(low):.4g} FLOPs, still less than the budget")


@dataclass(frozen=True, slots=True)
class Budget:
    """Cost of training on a number of tokens or samples: whole steps, exact FLOPs, and hours of one device.

    ``tokens`` are those of all steps if the number is one of samples; None if the model has no tokens.
    """

    tokens: int | None
    steps: int
    flops: int
    flops_per_step: int
    tokens_per_step: int | None
    device_hours: float


def budget(subject: Subject, amount: int, batch: Batch, rate: float, mfu: float, samples: int = 0, runs: int = 1) -> Budget:
    """Compute the cost of training in steps on ``batch``, at ``mfu`` times ``rate`` FLOP/s.

    ``amount`` is the number of tokens of the training; or of its samples, if ``samples`` says how many a step has. A step
    runs the model ``runs`` times on each sample.

    Raises:
        SymflopsError: the batch has none of the tokens to count, ``amount`` or ``mfu`` is out of range, or the convention
            counts MACs.
    """
    if not 0 < mfu <= 1:
        raise SymflopsError(f"an MFU is a share of the peak, above 0 and at most 1, not {mfu:g}")
    if not amount:
        raise SymflopsError("a training has at least one token or sample")
    model = subject.estimator
    m = model.moments(**batch)
    tokens = tokens_of(model.stored, model.regime, model.sizes, m) if samples else subject.tokens(model, batch)
    each, cost = tokens and tokens // runs, model.total(m)
    if model.unit == "macs":
        raise SymflopsError(f"convention '{subject.convention}' counts MACs, and peak rates are in FLOP/s: take another one")
    steps = -(-amount // (samples or each or 1))
    trained = each and steps * each if samples else amount
    return Budget(trained, steps, steps * cost, cost, each, steps * cost / (rate * mfu) / HOUR)
