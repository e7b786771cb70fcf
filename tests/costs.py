"""CPU time of the tests, by file: ``python -m pytest --costs FILE`` writes it as JSON; `.ci/budget.py` compares it with the budget.

A test's time is that of its process and of the processes that it started and waited for, fixtures included. Collection, and the end
of the fixtures of a whole run (a browser, which the last test would pay for), are summed over all workers. Times are seconds of CPU,
user and system.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest


def seconds() -> float:
    """CPU seconds of this process so far, and of the processes that it has waited for."""
    return sum(os.times()[:4])


class Costs:
    """Plugin of each process; the one that the user started sums what the others report."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.started = 0.0
        self.last = False
        self.collection = 0.0
        self.files: dict[str, float] = defaultdict(float)
        self.items: dict[str, float] = defaultdict(float)

    def pytest_collection_finish(self) -> None:
        self.collection += seconds()

    def pytest_runtest_logstart(self) -> None:
        self.started = seconds()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> None:
        self.last = nextitem is None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report, now = (yield).get_result(), seconds()
        report.cpu, self.started = now - self.started, now
        if report.when == "teardown" and self.last:
            self.collection, report.cpu = self.collection + report.cpu, 0.0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.files[report.nodeid.partition("::")[0]] += report.cpu
        self.items[report.nodeid] += report.cpu

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            session.config.workeroutput["collection"] = self.collection
            return
        record = {"collection": self.collection, "files": self.files, "items": self.items}
        Path(self.output).write_text(json.dumps(record, indent=1))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self.collection += getattr(node, "workeroutput", {}).get("collection", 0.0)
