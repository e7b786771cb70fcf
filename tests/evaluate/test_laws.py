"""What holds for the cost of every model: it adds over samples (or refuses to), knows no order, is never negative, and grows with every length."""

from __future__ import annotations

from typing import Any

import pytest

from symflops.evaluate.batch import BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.read.spec_files import shipped, specs_in
from symflops.support.findings import SymflopsError
from tests.sampling import sampled
from tests.shipped import cases_of, load

FILES = {file.name: file for file in specs_in(shipped("specs"))}
CASES = [(name, row) for name, file in FILES.items() for row in range(len(cases_of(file)))]


def estimator(name: str, row: int) -> tuple[InterpretedEstimator, dict[str, list[Any]]]:
    """The estimator of a live case, and its batch with one entry per item."""
    case = cases_of(FILES[name])[row]
    found = load(name).estimator(case.config, "full", "torch")
    return found, {stream: list(items) for stream, items in case.batch.items() if isinstance(items, (list, tuple))}


def cost(one: InterpretedEstimator, batch: dict[str, list[Any]]) -> tuple[int, int]:
    moments = one.moments(**batch)
    return one.forward(moments), one.backward(moments)


@pytest.mark.parametrize(("name", "row"), sampled(CASES, 45, 15))
def test_costs_add_and_know_no_order(name: str, row: int) -> None:
    one, batch = estimator(name, row)
    whole = cost(one, batch)
    assert whole[0] >= 0 and whole[1] >= 0
    assert cost(one, {stream: items[::-1] for stream, items in batch.items()}) == whole
    if one.program.whole:  # of one batch as a whole
        with pytest.raises(SymflopsError, match="do not add"):
            one.moments(**batch) + one.moments(**batch)
        return
    twice = one.moments(**batch) + one.moments(**batch)
    assert (one.forward(twice), one.backward(twice)) == (2 * whole[0], 2 * whole[1])


@pytest.mark.parametrize(("name", "row"), sampled(CASES, 75, 25))
def test_costs_grow_with_every_length(name: str, row: int) -> None:
    one, batch = estimator(name, row)
    whole = cost(one, batch)
    for stream, items in batch.items():
        for axis in range(len(items[0]) if items and isinstance(items[0], (list, tuple)) else 1):
            longer = [grown(item, axis) for item in items]
            if longer != items:
                try:
                    more = cost(one, {**batch, stream: longer})
                except BatchError as error:  # as many times as there are tokens: the tokens must be more, too
                    limited = "the class takes" in str(error)
                    assert limited or (f"of '{stream}'" not in str(error) and "the model needs at least" in str(error))
                    continue
                assert more[0] >= whole[0] and more[1] >= whole[1], (stream, axis)


def grown(item: Any, axis: int) -> Any:
    """An item that is twice as long along one axis, so that whatever divided it still does."""
    if isinstance(item, (list, tuple)):
        return [2 * length if position == axis else length for position, length in enumerate(item)]
    return 2 * item
