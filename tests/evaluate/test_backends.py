"""Every back end against the exact sum over items, one by one: lists, arrays, tensors, every shipped spec."""

from __future__ import annotations

import ast
import builtins
import random
import re
from array import array
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from symflops.evaluate import vectors
from symflops.evaluate.columnwise import LIMIT, Bound, bounds_of
from symflops.library import lookup
from symflops.read.spec_files import shipped, specs_in
from symflops.support.errors import SymflopsError
from symflops.training.meter.accumulate import Accumulator
from tests.sampling import amount, sampled
from tests.shipped import cases_of, load

ROOT = Path(__file__).resolve().parents[2]
FILES = {file.name: file for file in specs_in(shipped("specs"))}
BATCHES = amount(100, 1000)
POOL = 24


@cache
def model(name):
    """The estimator of a spec, of its defaults or, where a config has to be given, of its first live case.

    It is the generated one, or the interpreted one where the module is of models of another structure.
    """
    for config in ({}, *(case.config for case in cases_of(FILES[name]))):
        try:
            return lookup.estimator(lookup.by_name(name), name, dict(config))[1]
        except SymflopsError:
            continue
    raise AssertionError(f"no config for {name}")


TOO_SHORT = "the model needs at least|too short for the model|the class takes"


def drawn(model, draw):
    """One item of each index set that the model can run, as a batch; lengths of several axes are multiples of 48, which all shipped models divide, or those that the class takes."""
    for _ in range(3000):
        batch, most, taken = {}, draw.choice((100, 1000, 10_000, 1_000_000)), draw.choice(({}, model.taken)) if model.taken else {}
        for streams in model.sets.values():
            for name, axes, _ in streams:
                lengths = [draw.choice((0, 1, draw.randint(0, min(most, taken.get(axis, most))), taken.get(axis, 1))) if len(axes) == 1 else taken.get(axis) or 48 * draw.randint(0, 4) for axis in axes]
                batch[name] = 1 if not axes else [lengths[0]] if len(axes) == 1 else [lengths]
        try:
            model.moments(**batch)
        except (ValueError, SymflopsError) as error:
            assert re.search(TOO_SHORT, str(error)), error
        else:
            return batch
    raise AssertionError("no batch that the model can run")


def together(items, axes):
    """Batches of one item each as one batch."""
    return {name: [item[name][0] for item in items] if axes[name] else len(items) for name in items[0]}


def in_columns(given, axes):
    """One array per axis."""
    if not axes:
        return [np.zeros(given, np.int64)]
    return list(np.array(given).reshape(-1, axes).T.copy())


@pytest.mark.parametrize("name", sampled(list(FILES), 12, 3))
def test_back_ends_are_exact(name):
    one = model(name)
    draw = random.Random(name)
    axes = {stream: len(axes) for streams in one.sets.values() for stream, axes, _ in streams}
    pool = [drawn(one, draw) for _ in range(POOL)]
    if one.whole:
        whole_batches(one, axes, pool, draw)
        return
    exact = [list(one.moments(**item).as_dict().values()) for item in pool]
    once = [items == "once" for items in one.moment_sets.values()]
    accumulator = Accumulator(one)
    for _ in range(BATCHES):
        chosen = [draw.randrange(POOL) for _ in range(draw.randint(1, 6))]
        expected = [column[0] if single else sum(column) for single, column in zip(once, zip(*(exact[place] for place in chosen)))]
        batch = together([pool[place] for place in chosen], axes)
        columns = [column for stream, given in batch.items() for column in in_columns(given, axes[stream])]
        summed = vectors.sums(lambda *c: one.terms(*c), lambda *c: one.rests(*c), one.sets, one.moment_sets, columns)
        assert list(one.moments(**batch).as_dict().values()) == summed == expected
        accumulator.add(**{stream: torch.tensor(given) if axes[stream] else given for stream, given in batch.items()})
        sums = accumulator.read()
        assert sums.faults == 0 and list(sums.real) == expected
    for _ in range(20):
        chosen = [draw.randrange(POOL) for _ in range(draw.randint(1, 300))]
        expected = tuple(column[0] if single else sum(column) for single, column in zip(once, zip(*(exact[place] for place in chosen))))
        batch = together([pool[place] for place in chosen], axes)
        assert tuple(one.moments(**batch).as_dict().values()) == expected
        accumulator.add(**{stream: torch.tensor(given) if axes[stream] else given for stream, given in batch.items()})
        sums = accumulator.read()
        assert sums.faults == 0 and sums.real == expected
        total = one.total(one.moments(**batch))
        assert sums.flops(one.coefficients["total"]) == total
        arrays = {stream: np.array(given) if axes[stream] else given for stream, given in batch.items()}
        for given in (batch, arrays):
            costs = one.per_item(**given)
            assert sum(int(cost) for items in costs.values() for cost in items) == total
            assert all(len(costs[items]) == len(chosen) for items in one.sets)


def whole_batches(one, axes, pool, draw):
    """Where moments are of a batch as a whole: every form of lengths gives the same, micro-batches add as FLOPs, and items cost nothing by themselves."""
    accumulator = Accumulator(one)
    for form in (list, np.array, torch.tensor):
        total = 0
        for number in range(BATCHES):
            most = 6 if (number + 1) % 100 else 200
            batch = together([pool[draw.randrange(POOL)] for _ in range(draw.randint(1, most))], axes)
            plain = one.moments(**batch)
            given = {stream: form(lengths) if axes[stream] else lengths for stream, lengths in batch.items()}
            assert one.moments(**given).as_dict() == plain.as_dict()
            accumulator.add(**given)
            total += one.total(plain)
        found = accumulator.read()
        assert found.faults == 0 and found.flops(one.coefficients["total"], one.padded) == total
    for refused in (lambda: one.terms(*[1] * 9), lambda: one.rests(*[1] * 9), lambda: one.per_item(**batch), lambda: one.per_sample(**batch)):
        with pytest.raises((ValueError, SymflopsError), match=one.whole[0]):
            refused()


@pytest.mark.parametrize("name", ["clip", "mochi", "z_image"])
def test_interpreted_estimators_of_batches_as_a_whole(name):
    one = load(name).estimator({})
    draw = random.Random(name)
    axes = {stream: len(axes) for streams in one.sets.values() for stream, axes, _ in streams}
    whole_batches(one, axes, [drawn(one, draw) for _ in range(POOL)], draw)


def test_real_and_padded_lengths_in_one_convention_have_coefficients():
    one = load("llama").estimator({}, convention="megatron-bridge")
    assert one.total(one.moments(text={"lengths": [3, 5], "padded": [8, 8]})) > one.total(one.moments(text=[3, 5]))
    assert sum(one.per_sample(text=[3, 5])) == one.total(one.moments(text=[3, 5]))


def llama():
    return model("llama")


def test_a_naive_sum_of_64_bits_overflows_and_ours_does_not():
    """A million samples of 10^6 tokens are 10^12 tokens; with 10^7 tokens each the sum of squares leaves 64 bits."""
    lengths = np.full(1_000_000, 1_000_000)
    found = llama().moments(text=lengths)
    assert (found.n, found.x, found.xx) == (10**6, 10**12, 10**18)
    lengths = np.full(1_000_000, 10_000_000)
    exact = 10**6 * 10**14
    with np.errstate(over="ignore"):
        assert int((lengths * lengths).sum()) != exact  # the naive form
    assert llama().moments(text=lengths).xx == exact
    assert llama().moments(text=[10**12, 10**25]).xx == 10**24 + 10**50
    narrow = np.array([65536, 65536], dtype=np.int32)
    assert int((narrow * narrow).sum()) == 0  # the naive form
    assert llama().moments(text=narrow).xx == 2 * 65536**2
    assert llama().moments(text=np.full(200, 2**40)).xx == 200 * 2**80


def test_an_accumulator_that_would_overflow_is_split():
    lengths = torch.full((1000,), 1_000_000)
    naive = torch.zeros((), dtype=torch.int64)
    accumulator = Accumulator(llama())
    exact = 0
    for _ in range(12):
        naive += (lengths * lengths).sum() * 1000
        accumulator.add(times=1000, text=lengths)
        exact += 1000 * 1000 * 10**12
    assert int(naive) != exact  # the naive form
    assert accumulator.read().real == (12 * 10**6, 12 * 10**12, exact)


def test_int32_lengths_on_a_device_are_widened():
    lengths = torch.tensor([65536, 65536], dtype=torch.int32)
    assert int((lengths * lengths).sum()) == 0  # the naive form
    accumulator = Accumulator(llama())
    accumulator.add(text=lengths)
    assert accumulator.read().real == (2, 131072, 2 * 65536**2)


def test_costs_per_sample_are_exact_where_64_bits_are_too_few():
    lengths = [10**6, 10**7, 5]
    big = llama()
    costs = big.per_sample(text=np.array(lengths * 40))
    assert sum(map(int, costs)) == big.total(big.moments(text=lengths * 40)) == sum(big.per_sample(text=lengths * 40))
    wide = big.per_sample(text=np.array([10**9] * 3))
    assert sum(wide) == big.total(big.moments(text=[10**9] * 3)) > 2**63 and wide.dtype == object
    assert big.per_sample(text=np.array([100, 200])).dtype == np.int64
    assert list(big.per_sample(text=[])) == [] and list(big.per_sample(text=np.array([], dtype=np.int64))) == []


def test_costs_of_several_index_sets():
    vision = model("qwen2_vl")
    batch = {"text": [100, 50], "images": [[1, 4, 4]]}
    costs = vision.per_item(**batch)
    assert {name: len(column) for name, column in costs.items()} == {"samples": 2, "images": 1}
    assert sum(costs["samples"]) + sum(costs["images"]) == vision.total(vision.moments(**batch))
    with pytest.raises(ValueError, match="per_item"):
        vision.per_sample(**batch)
    assert sum(vision.per_sample(text=[100, 50])) == vision.total(vision.moments(text=[100, 50]))


@pytest.mark.parametrize("given", [[-1], [1.5], [True, False], "abc", [[3, 4]], np.array([1.5]), np.array([-1]), np.array([[1, 2]]), [None], [2, -1], [2, 1.5]])
def test_what_is_no_length_is_refused(given):
    for lengths in (given, list(given) * 120 if isinstance(given, list) else given):
        with pytest.raises(ValueError, match="whole number"):
            llama().moments(text=lengths)


def test_forms_of_lists_and_arrays_agree():
    one = llama()
    expected = one.moments(text=[3, 5, 7] * 50)
    for given in (tuple([3, 5, 7] * 50), array("q", [3, 5, 7] * 50), np.array([3, 5, 7] * 50, np.uint8), [np.int32(value) for value in [3, 5, 7] * 50],
                  torch.tensor([3, 5, 7] * 50, dtype=torch.int32)):  # fmt: skip
        assert one.moments(text=given) == expected
    assert one.moments(text=np.array([3, 5, 7])) == one.moments(text=[3, 5, 7])
    both = one.moments(text={"lengths": np.array([3, 5] * 60), "padded": np.array([8, 8] * 60)})
    assert both == one.moments(text={"lengths": [3, 5] * 60, "padded": [8, 8] * 60}) and both.padded.xx == 120 * 64


def test_bounds_bound():
    bound = Bound(10)
    for value in ((bound - 3) * 2, -(-bound // 3), bound % 7, bound.clip(max=5), bound.clip(min=5), (bound == 3) * 4, (bound >= 3) * 1, 7 - bound):
        assert isinstance(value, Bound)
    values, most = bounds_of(lambda x: (1, x, x**2 // 100), [20])
    assert values[1] >= 2**20 and most >= 2**40 and most < LIMIT


def of_types(node):
    """Whether a node is a call of ``isinstance``, or a tuple of types alone."""
    if isinstance(node, ast.Tuple):
        return all(isinstance(item, ast.Name) and isinstance(getattr(builtins, item.id, None), type) for item in node.elts)
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"


@pytest.mark.thorough
def test_generated_modules_know_no_float():
    """Neither a literal nor a true division; ``float`` appears only in the types of a config's values, which become fractions."""
    paths = sorted((ROOT / "generated").glob("*/*.py"))
    for path, text in ((path, path.read_text("utf-8")) for path in paths):
        nodes = list(ast.walk(ast.parse(text)))
        allowed = {node for parent in nodes if of_types(parent) for node in ast.walk(parent)}
        for node in nodes:
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), f"{path.name}:{node.lineno}"
            assert not (isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div)), f"{path.name}:{node.lineno}"
            assert not (isinstance(node, ast.Name) and node.id == "float" and node not in allowed), f"{path.name}:{node.lineno}"
