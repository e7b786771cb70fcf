"""A short, deterministic run of the fuzzer; ``python -m tests.fuzz`` is the long one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.cases import Case, Stock
from tests.fuzz.guard import Executed, Limits, OutOfTime
from tests.fuzz.mutators import SENTINEL
from tests.fuzz.run import Fuzz, outcome
from tests.sampling import NIGHTLY, amount


@pytest.mark.thorough
def test_every_case_ends_in_a_result_or_a_diagnostic():
    count = amount(330, 5000)
    fuzz = Fuzz(count, seed=7, jobs=1, few=not NIGHTLY).run()
    assert not fuzz.failures, fuzz.summary()
    assert sum(fuzz.ended.values()) == count
    for kind in fuzz.kinds:
        assert fuzz.ended.get((kind, "diagnostic")), f"no {kind} was refused"
        assert fuzz.ended.get((kind, "result")), f"no {kind} was good"


def test_the_guard_sees_code_that_runs_files_that_are_written_and_time_that_passes(tmp_path):
    with pytest.raises(Executed), Limits():
        exec("1 + 1")
    with pytest.raises(Executed), Limits():
        os.system("true")
    with pytest.raises(Executed), Limits():
        open(tmp_path / SENTINEL, "w")
    with pytest.raises(OutOfTime), Limits(seconds=0.05):
        while True:
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_guard_sees_memory():
    with pytest.raises(MemoryError), Limits(megabytes=50):
        bytearray(400 * 2**20)
    limits = Limits()
    with limits as usage:
        data = bytearray(60 * 2**20)
    assert 50 < usage.megabytes < 90 and data


def test_a_failure_is_told_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stock = Stock(tmp_path)
    monkeypatch.setattr("tests.fuzz.cases.evaluate", lambda *_: 1 // 0)
    assert outcome(stock, Case("expression", b"1 + 1"))[0].startswith("ZeroDivisionError")
