"""Worker processes: results in order, faults passed on, and no module of the current folder."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from symflops.support import workers
from symflops.support.findings import Diagnostic, SpecError
from symflops.support.workers import mapped


@pytest.fixture(autouse=True)
def _many(monkeypatch):
    monkeypatch.setattr(workers, "MANY", 2)
    monkeypatch.setattr(workers.os, "cpu_count", lambda: 2)


def test_results_are_in_order():
    assert list(mapped(abs, range(-40, 0))) == list(range(40, 0, -1))


def test_what_is_raised_there_is_raised_here():
    with pytest.raises(ValueError, match="invalid literal"):
        list(mapped(int, ["1", "x", "3"]))


def test_a_worker_that_ends_is_a_fault():
    with pytest.raises(RuntimeError, match="ended with code 7"):
        list(mapped(os._exit, [7, 7]))


def test_findings_pass_from_process_to_process():
    error = SpecError([Diagnostic("bad-name", "no", None, "try")])
    with pytest.raises(SpecError, match="bad-name"):
        list(mapped(raised, [error, error]))


def raised(error):
    raise error


@pytest.mark.parametrize("name", ["pickle", "struct", "copyreg", "signal", "queue", "symflops", "sitecustomize", "threading", "multiprocessing"])
def test_a_module_of_the_current_folder_is_not_imported(tmp_path, monkeypatch, name):
    (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert list(mapped(abs, [-1, -2, -3])) == [1, 2, 3]
    assert not Path("ran").exists()


def test_what_is_left_early_leaves_no_process():
    found = mapped(abs, range(100))
    assert next(found) == 0
    found.close()
    assert not [one for one in threading.enumerate() if "ThreadPool" in one.name]
