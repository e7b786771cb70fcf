"""The budget of ``.ci/run``: what is above it fails the run, and is named."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUDGET = {"stages": {"test": 100, "types": 10}, "file": 5, "files": {"tests/long.py": 20}}


@pytest.fixture(scope="module")
def budget():
    spec = importlib.util.spec_from_file_location("budget", ROOT / ".ci" / "budget.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recorded(folder, **stages):
    for place, (name, (cpu, files)) in enumerate(stages.items()):
        record = {"cpu": cpu, "wall": 1.0, "began": place, "unit": 2.0, "files": files}
        (folder / f"{name}.stage").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("cpu", "files", "above"),
    [
        (200, {"tests/a.py": 10, "tests/long.py": 40}, ""),  # units of two seconds
        (202, {}, "test"),
        (1, {"tests/a.py": 11}, "tests/a.py"),
        (1, {"tests/long.py": 41}, "tests/long.py"),
        (1, {f"tests/{number}.py": 12 - number / 10 for number in range(12)}, "tests/0.py"),
    ],
)
def test_what_is_above_its_budget_fails(budget, tmp_path, capsys, cpu, files, above):
    recorded(tmp_path, types=(20, {}), test=(cpu, files))
    assert budget.report(tmp_path, BUDGET) == bool(above)
    printed = capsys.readouterr()
    assert above in printed.err and bool(above) == bool(printed.err)
    assert printed.out.index("types") < printed.out.index("test ") and "2.00 s" in printed.out
    assert all(file in printed.out for file, cost in files.items() if cost > 10)


def test_a_stage_that_nobody_budgeted_fails(budget, tmp_path):
    recorded(tmp_path, other=(1, {}))
    assert budget.report(tmp_path, BUDGET) == 1


def test_two_files_of_two_stages_are_one(budget, tmp_path):
    recorded(tmp_path, test=(1, {"tests/a.py": 6}), types=(1, {"tests/a.py": 6}))
    assert budget.report(tmp_path, BUDGET) == 1


def test_a_stage_is_recorded_with_its_files_and_its_exit_code(budget, tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "calibration", lambda loops=iter((1.0, *[3.0] * 99)): next(loops))
    monkeypatch.setattr(budget, "SECONDS_BETWEEN", 0.01)
    script = "import os, sys, pathlib; name = os.environ['PYTEST_ADDOPTS'].partition('=')[2]; sum(range(9_000_000)); pathlib.Path(name).write_text('{\"files\": {\"tests/a.py\": 3}}'); sys.exit(3)"
    assert budget.run(tmp_path, "test", [sys.executable, "-c", script]) == 3
    found = json.loads((tmp_path / "test.stage").read_text())
    assert found["files"] == {"tests/a.py": 3} and found["cpu"] > 0.01 and found["wall"] >= 0
    assert 20 <= found["unit"] < 30  # ten loops, more than one beside the stage


def test_the_end_of_a_fixture_of_the_run_is_the_cost_of_no_test(tmp_path):
    busy = "import time\nuntil = time.process_time() + {}\nwhile time.process_time() < until: pass\n"
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom tests.costs import Costs\n"
        "def pytest_configure(config): config.pluginmanager.register(Costs('costs.json'))\n"
        f"@pytest.fixture(scope='session')\ndef browser():\n    yield\n    exec({busy.format(0.4)!r})\n"
    )
    (tmp_path / "test_first.py").write_text(f"def test_busy(browser): exec({busy.format(0.2)!r})\n")
    (tmp_path / "test_last.py").write_text("def test_idle(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini"]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}, check=True, capture_output=True)
    found = json.loads((tmp_path / "costs.json").read_text())
    assert found["files"]["test_last.py"] < 0.1 < found["files"]["test_first.py"] < 0.39 < found["collection"]


def test_the_budget_names_the_stages_of_the_whole_check(budget):
    stages = {line.split()[1] for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line.startswith("stage ")}
    found = tomllib.loads(budget.BUDGET.read_text("utf-8"))
    assert found["stages"].keys() == stages and all((ROOT / file).is_file() for file in found["files"])
