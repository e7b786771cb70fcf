"""The sums of a step over real processes, with gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from symflops.catalog import lookup
from symflops.meter.accumulate import Accumulator

SCRIPT = Path(__file__).with_name("distributed.py")


CASES = {2: ("empty", "reductions", "unreadable"), 3: ("uneven", "images"), 4: ("context",)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The result of every rank in a case; the cases of as many ranks run in the same processes, one after the other."""

    @cache
    def started(world):
        return ranks(",".join(CASES[world]), world, tmp_path_factory.mktemp(f"world{world}"))

    return lambda case, world: [found[case] for found in started(world)]


def ranks(cases, world, folder):
    """The results of every rank."""
    words = [sys.executable, str(SCRIPT), cases]
    started = [
        subprocess.Popen([*words, str(rank), str(world), str(folder / "store")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(world)
    ]
    found = []
    try:
        for process in started:
            out, error = process.communicate(timeout=180)
            assert process.returncode == 0, error
            found.append(json.loads(out.rpartition("RESULT")[2]))
    finally:
        for process in started:
            process.kill()
    return found


def moments(name, **batch):
    one = lookup.estimator(lookup.by_name(name), name, {})[1]
    return list(one.moments(**batch).as_dict().values())


def test_uneven_lengths(run):
    everything = [length for rank in range(3) for length in [*range(1, 5 * rank + 1), *[7] * rank]]
    assert run("uneven", 3) == [moments("llama", text=everything)] * 3


def test_a_rank_without_images(run):
    expected = moments("qwen2_vl", text=[100, 101, 102], images=[[1, 4, 8], [2, 8, 8]])
    assert run("images", 3) == [expected] * 3


def test_context_parallel_ranks_share_their_boundaries(run):
    once = moments("llama", text=[10, 20, 10, 21])
    twice = [2 * value for value in once]  # summed over all ranks every sequence is counted once per context rank
    assert run("context", 4) == [[once, twice]] * 4


def test_nothing_at_all(run):
    assert run("empty", 2) == [[0, 0, 0]] * 2


def test_one_reduction_a_step(run):
    one = lookup.estimator(lookup.by_name("llama"), "llama", {})[1]
    flops = one.total(one.moments(text=[16, 32] * 6))
    for count, mfu in run("reductions", 2):
        assert count == 1 and mfu == pytest.approx(flops / 2.0 / 2 / 1e9)


def test_a_rank_with_a_batch_that_cannot_be_read(run):
    assert run("unreadable", 2) == [[[], True]] * 2


def test_without_torch_distributed():
    one = lookup.estimator(lookup.by_name("llama"), "llama", {})[1]
    accumulator = Accumulator(one)
    accumulator.add(text=[3, 4])
    assert list(accumulator.read().real) == moments("llama", text=[3, 4])
    assert list(accumulator.read().real) == [0, 0, 0]
