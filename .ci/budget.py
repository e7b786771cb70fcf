"""CPU time of the stages of ``.ci/run``, held against ``.ci/budget.toml``.

``run NAME COMMAND...`` runs a stage and records its CPU time in the folder ``$COSTS``; ``report`` prints all stages and the ten
dearest test files, and exits with 1 if one is above its budget. Machines differ, and a shared one from minute to minute, so
times are in units of a calibration loop that runs every ten seconds beside the stage: ten loops are one unit, about a second.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

BUDGET = Path(__file__).with_name("budget.toml")
FILES_SHOWN = 10
LOOPS_OF_A_UNIT = 10
SECONDS_BETWEEN = 10.0


def calibration() -> float:
    """CPU seconds of a fixed loop over integers, dictionaries and strings, in the calling thread."""
    began, words = time.thread_time(), {}
    for number in range(120_000):
        word = f"{number * 2654435761 % 65521:x}"
        words[word] = words.get(word, 0) + len(word)
    return time.thread_time() - began


def run(folder: Path, name: str, command: list[str]) -> int:
    """Run a stage; its exit code. A stage that runs pytest writes the costs of its test files, too."""
    files, before, began = folder / f"{name}.files", resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    loops = [calibration()]
    with subprocess.Popen(command, env={**os.environ, "PYTEST_ADDOPTS": f"--costs={files}"}) as process:
        while process.poll() is None:
            try:
                process.wait(SECONDS_BETWEEN)
            except subprocess.TimeoutExpired:
                loops.append(calibration())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    record = {
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "wall": time.time() - began,
        "unit": LOOPS_OF_A_UNIT * statistics.fmean(loops),
        "began": began,
        "files": json.loads(files.read_text())["files"] if files.exists() else {},
    }
    (folder / f"{name}.stage").write_text(json.dumps(record))
    return process.returncode


def report(folder: Path, budget: dict[str, Any]) -> int:
    """Print the stages in the order of their start and the dearest test files; 1 if one is above its budget."""
    stages = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.stage")}
    print(f"CPU time in units of {LOOPS_OF_A_UNIT} calibration loops\n")
    print(f"{'stage':<44} {'units':>7} {'budget':>7} {'unit':>8} {'wall':>8}")
    above, files = [], dict[str, float]()
    for name, stage in sorted(stages.items(), key=lambda item: item[1]["began"]):
        more = f"{stage['unit']:6.2f} s {stage['wall']:6.0f} s"
        above += row(name, stage["cpu"] / stage["unit"], budget["stages"].get(name, 0), more)
        for file, cpu in stage["files"].items():
            files[file] = files.get(file, 0.0) + cpu / stage["unit"]
    print(f"\n{'test file':<44} {'units':>7} {'budget':>7}")
    for place, (file, units) in enumerate(sorted(files.items(), key=lambda item: -item[1])):
        limit = budget["files"].get(file, budget["file"])
        if place < FILES_SHOWN or units > limit:
            above += row(file, units, limit)
    if above:
        print(f"\nabove the budget of {BUDGET.parent.name}/{BUDGET.name}: {', '.join(above)}", file=sys.stderr)
    return 1 if above else 0


def row(name: str, units: float, limit: float, more: str = "") -> list[str]:
    """Print a row; its name if it is above the limit."""
    print(f"{name:<44} {units:7.1f} {limit:7} {more}".rstrip(), flush=True)
    return [name] if units > limit else []


def main(words: list[str]) -> int:
    """``run NAME COMMAND...`` or ``report``."""
    folder = Path(os.environ["COSTS"])
    return run(folder, words[1], words[2:]) if words[0] == "run" else report(folder, tomllib.loads(BUDGET.read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
