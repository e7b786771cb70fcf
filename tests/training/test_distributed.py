"""The sums of a step over real processes, with gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from symflops.library import lookup
from symflops.training.meter.accumulate import Accumulator

SCRIPT = Path(__file__).with_name("distributed.py")


PAIRS = ("empty", "reductions", "phases", "unreadable", "different", "unknown", "arriving", "failing", "broken", "printed", "settled", "late", "dead")
CASES = {2: PAIRS, 3: ("uneven", "images"), 4: ("context",)}


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


@pytest.mark.thorough
def test_a_rank_without_images(run):
    expected = moments("qwen2_vl", text=[100, 101, 102], images=[[1, 4, 8], [2, 8, 8]])
    assert run("images", 3) == [expected] * 3


@pytest.mark.thorough
def test_context_parallel_ranks_share_their_boundaries(run):
    once = moments("llama", text=[10, 20, 10, 21])
    twice = [2 * value for value in once]  # summed over all ranks every sequence is counted once per context rank
    assert run("context", 4) == [[once, twice]] * 4


@pytest.mark.thorough
def test_nothing_at_all(run):
    assert run("empty", 2) == [[0, 0, 0]] * 2


@pytest.mark.thorough
def test_one_reduction_a_step(run):
    one = lookup.estimator(lookup.by_name("llama"), "llama", {})[1]
    flops = one.total(one.moments(text=[16, 32] * 6))
    for count, mfu in run("reductions", 2):
        assert count == 1 and mfu == pytest.approx(flops / 2.0 / 2 / 1e9)


@pytest.mark.thorough
def test_a_rank_with_a_batch_that_cannot_be_read(run):
    assert run("unreadable", 2) == [[[], True]] * 2


def flops(lengths, regime="full"):
    one = lookup.estimator(lookup.by_name("llama"), "llama", {}, regime)[1]
    return one.total(one.moments(text=lengths))


@pytest.mark.thorough
@pytest.mark.thorough
def test_one_reduction_of_all_phases(run):
    assert run("phases", 2) == [[1, flops([16, 17]) + flops([16, 17], "forward")]] * 2


ALL = [2.0, 2.0, 2.0]


@pytest.mark.thorough
def test_ranks_that_count_different_things(run):
    for rank, (models, regimes) in enumerate(run("different", 2)):
        for found, what in ((models, ("'llama', regime full", "'mistral', regime full")), (regimes, ("'llama', regime full", "'llama', regime forward"))):
            assert found["logged"] == [False, False] and found["flops"] == 0 and found["other"] == ALL
            (said,) = found["warnings"]
            assert "1 of 2 processes have another estimator than this one" in said and what[rank] in said


@pytest.mark.thorough
def test_a_rank_without_an_estimator(run):
    known, unknown = run("unknown", 2)
    assert known["logged"] == [False, True] and known["flops"] == flops([16]) and known["other"] == unknown["other"] == ALL
    assert unknown["logged"] == [False, False] and not unknown["warnings"]  # its constructor has told the reason
    assert "processes that have no estimator" in known["warnings"][0] and len(known["warnings"]) == 1


@pytest.mark.thorough
def test_an_estimator_that_arrives_later_on_one_rank(run):
    for found in run("arriving", 2):
        assert found["logged"] == [False, False, True, True] and found["flops"] == 4 * flops([16, 16]) and not found["warnings"]


@pytest.mark.thorough
def test_an_estimator_that_does_not_come_on_one_rank(run):
    known, failed = run("failing", 2)
    assert known["logged"] == [False, False, True] and failed["logged"] == [False] * 3
    assert known["other"] == failed["other"] == ALL and "out of luck" in failed["warnings"][0]
    assert "processes that have no estimator" in known["warnings"][0]


@pytest.mark.thorough
def test_a_rank_that_cannot_make_its_vector(run):
    for first, second in run("broken", 2):
        assert first["logged"] == [False] and second["logged"] == [True] and first["other"] == second["other"] == ALL
        assert second["flops"] == flops([16, 16]) and len(first["warnings"]) == 1


@pytest.mark.thorough
def test_lines_are_of_the_first_rank_alone(run):
    first, second = run("printed", 2)
    assert [line.partition(":")[0] for line in first] == ["step 2", "step 4"] and second == []


@pytest.mark.thorough
def test_counts_before_a_checkpoint(run):
    once = flops([16, 17])
    assert run("settled", 2) == [[once, 2 * once, 66.0]] * 2


@pytest.mark.thorough
def test_a_rank_that_comes_too_late(run):
    for found in run("late", 2):
        assert found["logged"] == [False] * 3 and found["other"] == ALL and "no MFU from step 1 on" in found["warnings"][0]


@pytest.mark.thorough
def test_a_rank_that_dies(run):
    survivor, died = run("dead", 2)
    assert died == [True] and survivor[0] and survivor[2] == {"version": 1, "flops": flops([16, 16]), "executed": flops([16, 16]), "steps": 4}
    assert len(survivor[1]) == 1 and "no MFU from step 2 on" in survivor[1][0]


def test_without_torch_distributed():
    one = lookup.estimator(lookup.by_name("llama"), "llama", {})[1]
    accumulator = Accumulator(one)
    accumulator.add(text=[3, 4])
    assert list(accumulator.read().real) == moments("llama", text=[3, 4])
    assert list(accumulator.read().real) == [0, 0, 0]
