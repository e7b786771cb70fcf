"""Sums and costs of many items in blocks: exact at every width, for every spec, and where numpy's own sums would wrap around."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from symflops.generated.language.llama import Estimator, Sizes

from symflops.evaluate import plans, vectors
from symflops.evaluate.exact import Costs
from symflops.support.errors import SymflopsError
from tests.evaluate.test_backends import FILES, drawn, in_columns, model, together
from tests.sampling import sampled

SETS = {"samples": (("text", ("x",), 0), ("other", ("y",), 0))}
MOMENTS = dict.fromkeys("abcdefg", "samples")
COUNTS = (1, 100, plans.ROW - 1)
AROUND_BLOCKS = (plans.ROW, plans.SUMMED, plans.SUMMED + 1, 2 * plans.SUMMED + plans.ROW + 7)
TOPS = (1, 2**13, 2**15 - 1, 2**15, 2**20, 2**26, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1)


def terms(x, y):
    return (3, x, x * y, vectors_least(x, 1000) ** 2, 5 * x**2 * y, (x + 1) // 2 * (y % 7), 1 * (x // 2 == y // 2) * (7 - x))


def vectors_least(one, two):
    return one.clip(max=two) if hasattr(one, "clip") else min(one, two)


def low(x, y):
    """Terms that 64 bits hold for longer lengths."""
    return (3, x, (x + 1) // 2, vectors_least(x, 2**33) + y, 2 - y, (x % 7) * (y // 5), 1 * (x >= y))


def rests(x, y):
    return (0 * x,)


def exact(terms, draw_x, draw_y):
    rows = [terms(x, y) for x, y in zip(draw_x, draw_y)]
    return [[int(row[place]) for row in rows] for place in range(len(MOMENTS))]


@pytest.mark.parametrize("terms", [terms, low])
@pytest.mark.parametrize("top", TOPS)
def test_sums_and_costs_are_those_of_pythons_integers(top, terms, monkeypatch):
    monkeypatch.setattr(vectors, "MANY", 1)
    monkeypatch.setattr(vectors, "quickly", lambda *_: None)
    draw = random.Random(top)
    costs = (7, 11, 2, 13, 3, 1, 5)
    for count in COUNTS if top != 2**15 else AROUND_BLOCKS:
        columns = [[draw.choice((0, 1, top, top - top // 3, draw.randint(0, top))) for _ in range(count)] for _ in "xy"]
        expected = exact(terms, *columns)
        arrays = [np.array(column, np.int64) for column in columns]
        assert vectors.sums(terms, rests, SETS, MOMENTS, arrays) == list(map(sum, expected))
        found = vectors.per_item(terms, rests, SETS, MOMENTS, arrays, costs)["samples"]
        each = [sum(cost * value for cost, value in zip(costs, row)) for row in zip(*expected)]
        assert found.tolist() == each and int(found.sum()) == sum(each)


@pytest.mark.parametrize("bits", range(14, 31))
def test_sums_are_exact_where_floats_would_round_and_32_bits_wrap_around(bits, monkeypatch):
    monkeypatch.setattr(vectors, "quickly", lambda *_: None)
    of = (lambda x, y: (x * y, x)), (lambda x, y: ()), SETS, {"a": "samples", "b": "samples"}
    for seed in range(4):
        x, y = np.random.default_rng(seed).integers(2**bits // 2, 2**bits, (2, plans.SUMMED - 1))
        assert vectors.sums(*of, [x, y]) == [sum(map(int, x * y)), sum(map(int, x))]


@pytest.mark.parametrize("cost", [2**62, 2**63 - 1, -(2**62), Fraction(1, 2)])
def test_large_and_odd_costs(cost):
    columns = [np.array([1, 0, 1]), np.array([0, 1, 1])]
    costs = (0, cost, 0, 0, 0, 0, 0)
    assert list(vectors.per_item(terms, rests, SETS, MOMENTS, columns, costs)["samples"]) == [cost, 0, cost]


def test_a_remainder_in_a_late_block_is_refused():
    lengths = np.full(2 * plans.SUMMED + 5, 8)
    lengths[-1] = 7
    of = (lambda x: (x // 2,)), (lambda x: (x % 2,)), {"samples": (("text", ("x",), 0),)}, {"a": "samples"}
    for work in (lambda: vectors.sums(*of, [lengths]), lambda: vectors.per_item(*of, [lengths], (1,))):
        with pytest.raises(ValueError, match="does not divide"):
            work()
    lengths[-1] = 6
    assert vectors.sums(*of, [lengths]) == [lengths.sum() // 2]


@pytest.mark.parametrize("name", sampled(list(FILES), 24, 3))
def test_plans_of_every_spec(name, monkeypatch):
    one, draw = model(name), random.Random(name)
    axes = {stream: len(axes) for streams in one.sets.values() for stream, axes, _ in streams}
    if one.whole:
        with pytest.raises((ValueError, SymflopsError), match=one.whole[0]):
            one.terms(*[1] * 9)
        return
    items = [drawn(one, draw) for _ in range(20)]
    batch = together(items, axes)
    columns = [column for stream, given in batch.items() for column in in_columns(given, axes[stream])]
    monkeypatch.setattr(vectors, "MANY", 1)
    monkeypatch.setattr(vectors, "quickly", lambda *_: None)
    of = (lambda *c: one.terms(*c)), (lambda *c: one.rests(*c)), one.sets, one.moment_sets
    expected = list(one.moments(**batch).as_dict().values())
    assert vectors.sums(*of, columns) == expected
    costs = [draw.randint(0, 2**20) for _ in expected]
    found = vectors.per_item(*of, columns, costs)
    assert sum(int(cost) for items in found.values() for cost in items) == sum(cost * value for cost, value in zip(costs, expected))


def wide():
    """Costs whose sums leave 64 bits, and the same as Python's integers."""
    lengths = np.arange(90_000, 110_000)
    found = Estimator(Sizes.from_config({})).per_sample(text=lengths)
    return found, found.tolist()


def test_arithmetic_of_costs_does_not_wrap_around():
    costs, plain = wide()
    total = sum(plain)
    assert isinstance(costs, Costs) and costs.dtype == np.int64 and total > 2**63
    assert costs.sum() == np.sum(costs) == sum(costs) == np.add.reduce(costs) == total
    assert costs.cumsum()[-1] == np.cumsum(costs)[-1] == total
    assert costs[:5000].sum() == sum(plain[:5000]) and costs[costs > plain[9000]].sum() == sum(plain[9001:])
    assert np.concatenate([costs, costs]).sum() == 2 * total
    assert (costs * 10_000)[-1] == plain[-1] * 10_000 and (costs + costs + costs).sum() == 3 * total
    assert costs.dot(costs) == np.dot(costs, costs) == np.einsum("i,i->", costs, costs) == costs @ costs == sum(cost * cost for cost in plain)
    assert list(np.add.reduceat(costs, [0, 10_000])) == [sum(plain[:10_000]), sum(plain[10_000:])]
    assert costs.reshape(2, -1).sum(axis=1).tolist() == [sum(plain[:10_000]), sum(plain[10_000:])]
    assert costs.mean() == pytest.approx(total / len(plain)) and (costs / 2)[0] == plain[0] / 2
    assert type(costs[0]) is int and costs.max() == plain[-1] and np.sort(costs)[0] == plain[0] and costs.argmax() == len(plain) - 1
    loads = [0, 0]
    for place in range(len(costs)):
        loads[place % 2] += costs[place]
    assert sum(loads) == total


def test_costs_in_64_bits_by_request_are_refused_where_they_do_not_fit():
    costs, _ = wide()
    for work in (lambda: costs.sum(dtype=np.int64), lambda: np.multiply(costs, 10_000, out=costs), lambda: np.add.at(costs, [0, 0], 2**62)):
        with pytest.raises(OverflowError, match="64 bits"):
            work()
    before = costs.tolist()
    costs += 1
    assert isinstance(costs, Costs) and costs.tolist() == [cost + 1 for cost in before]
    assert np.asarray(costs).view(np.ndarray).dtype == np.int64 and costs.sum(dtype=float) == pytest.approx(sum(before))
