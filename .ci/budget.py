"""CPU time of the stages of ``.ci/run``, held against ``.ci/budget.toml``.

``run NAME COMMAND...`` runs a stage and records its CPU time in the folder ``$COSTS``; ``report`` prints all stages and the ten
dearest test files, and exits with 1 if one is above its budget. Machines differ, so times are in units of a calibration loop that
runs before each stage: the median of its CPU times is one unit, about a second.
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


def calibration() -> float:
    """CPU seconds of a fixed loop over integers, dictionaries and strings."""
    began, words = time.process_time(), {}
    for number in range(1_350_000):
        word = f"{number * 2654435761 % 65521:x}"
        words[word] = words.get(word, 0) + len(word)
    sorted(words.items())
    return time.process_time() - began


def run(folder: Path, name: str, command: list[str]) -> int:
    """Run a stage; its exit code. A stage that runs pytest writes the costs of its test files, too."""
    loops = [calibration() for _ in range(3)]
    files, before, began = folder / f"{name}.files", resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    code = subprocess.run(command, env={**os.environ, "PYTEST_ADDOPTS": f"--costs={files}"}, check=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    record = {
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "wall": time.monotonic() - began,
        "loops": loops,
        "began": time.time() - (time.monotonic() - began),
        "files": json.loads(files.read_text())["files"] if files.exists() else {},
    }
    (folder / f"{name}.stage").write_text(json.dumps(record))
    return code


def report(folder: Path, budget: dict[str, Any]) -> int:
    """Print the stages in the order of their start and the dearest test files; 1 if one is above its budget."""
    stages = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.stage")}
    unit = statistics.median(loop for stage in stages.values() for loop in stage["loops"])
    print(f"CPU time, in units of {unit:.3f} s (the calibration loop)\n\n{'stage':<44} {'units':>7} {'budget':>7} {'wall':>8}")
    above = []
    for name, stage in sorted(stages.items(), key=lambda item: item[1]["began"]):
        above += row(name, stage["cpu"] / unit, budget["stages"].get(name, 0), f"{stage['wall']:6.0f} s")
    print(f"\n{'test file':<44} {'units':>7} {'budget':>7}")
    files: dict[str, float] = {}
    for stage in stages.values():
        for file, cpu in stage["files"].items():
            files[file] = files.get(file, 0.0) + cpu / unit
    for place, (file, units) in enumerate(sorted(files.items(), key=lambda item: -item[1])):
        limit = budget["files"].get(file, budget["file"])
        if place < FILES_SHOWN or units > limit:
            above += row(file, units, limit)
    if above:
        print(f"\nabove the budget of {BUDGET.parent.name}/{BUDGET.name}: {', '.join(above)}", file=sys.stderr)
    return 1 if above else 0


def row(name: str, units: float, limit: float, wall: str = "") -> list[str]:
    """Print a row; its name if it is above the limit."""
    print(f"{name:<44} {units:7.1f} {limit:7} {wall}".rstrip(), flush=True)
    return [name] if units > limit else []


def main(words: list[str]) -> int:
    """``run NAME COMMAND...`` or ``report``."""
    folder = Path(os.environ["COSTS"])
    return run(folder, words[1], words[2:]) if words[0] == "run" else report(folder, tomllib.loads(BUDGET.read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
