"""Each stage visits each line of its code at most as often as a spec has operators or streams: twice the spec, twice the visits.

The visits are executed lines, counted by a trace function, so that a loop over all operators inside a loop over all operators
shows however fast it is. ``benchmarks/scale.py`` has the specs, and alone looks at a clock.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

import symflops
from symflops.ir.regime import Recompute, Regime
from tests.sampling import sampled

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = str(Path(symflops.__file__).parent)
REENTRANT = Regime("reentrant", recompute=Recompute(("layers.*",), reentrant=True))
SIZES = (24, 48, 96)
REGIMES = {"repeat": ("full", "forward", "checkpointed"), "flat": ("full", REENTRANT), "streams": ("full", "checkpointed", REENTRANT)}


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import scale

    return scale


def visits(run) -> Counter[tuple[str, int]]:
    """How often each line of the package is executed while something runs."""
    found: Counter[tuple[str, int]] = Counter()

    def line(frame, event, argument):
        if event == "line":
            found[frame.f_code.co_filename, frame.f_lineno] += 1
        return line

    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: line if frame.f_code.co_filename.startswith(PACKAGE) else None)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def steep(few: int, more: int, most: int) -> bool:
    """Whether visits grow faster than the operators, which double twice; a few visits may be those of anything."""
    return most - more > 2.2 * (more - few) + 200


def steep_lines(counts: list[Counter[tuple[str, int]]]) -> list[str]:
    few, more, most = counts
    return [f"{Path(name).name}:{line} {few[name, line]} {more[name, line]} {most[name, line]}" for name, line in most if steep(few[name, line], more[name, line], most[name, line])]


@pytest.mark.parametrize("family", sampled(["flat", "repeat", "repeats", "attention", "tied", "streams", "conditions"], 7, 1))
def test_visits_are_linear_in_operators_and_streams(scale, family):
    spec, regimes = scale.FAMILIES[family], REGIMES.get(family, ("full", "forward"))
    for _, run in scale.stages(spec(SIZES[-1]), regimes):  # fills the caches of functions without context
        run()
    counts: dict[str, list[Counter[tuple[str, int]]]] = {}
    for size in SIZES:
        for stage, run in scale.stages(spec(size), regimes):
            counts.setdefault(stage, []).append(visits(run))
    assert set(counts) == set(scale.STAGES)
    assert all(sum(most.values()) > SIZES[-1] for _, _, most in counts.values())
    assert {stage: steep_lines(found) for stage, found in counts.items()} == dict.fromkeys(scale.STAGES, [])


def test_a_walk_in_a_walk_is_found():
    def quadratic(count):
        return lambda: [symflops.ir.patterns.Path(("a",)).join(str(n)) for n in range(count) for _ in range(count)]

    assert steep_lines([visits(quadratic(count)) for count in (10, 20, 40)])


@pytest.mark.nightly
def test_the_benchmark_tells_what_grows_too_fast(scale, monkeypatch, capsys, tmp_path):
    """With a clock of its own: each reading is one second after the last one, or, in the steep run, as many as there were readings."""
    seconds = [0.0]
    monkeypatch.setattr(scale, "ROUNDS", 1)
    monkeypatch.setattr(scale.yaml_nodes, "MAX_NODES", scale.yaml_nodes.MAX_NODES)  # restored at the end
    monkeypatch.setattr(scale, "QUICK", (4, 8))
    monkeypatch.setattr(scale, "FURTHER_QUICK", {"lengths": (10, 20), "samples": (10, 20), "specs": (1, 2)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    history, plot = tmp_path / "history.jsonl", tmp_path / "plot.svg"
    monkeypatch.setattr(sys, "argv", ["scale.py", "--quick", "--json", "--history", str(history), "--plot", str(plot)])
    for step, code in ((lambda: 1.0, 0), (lambda: max(1.0, seconds[0]), 1)):
        seconds[0] = 0.0

        def clock(step=step):
            seconds[0] += step()
            return seconds[0]

        monkeypatch.setattr(scale, "clock", clock)
        assert scale.main() == code
        rows = json.loads(capsys.readouterr().out)["families"]
        assert [row["family"] for row in rows] == [*scale.FAMILIES, *scale.FURTHER]
        assert all(set(row["seconds"]) == {*scale.STAGES, "all"} for row in rows if "operators" in row)
        assert all(len(row["points"]) == 2 for row in rows)
    told = [json.loads(line) for line in history.read_text().splitlines()]
    assert [list(run["families"]) for run in told] == 2 * [[*scale.FAMILIES, *scale.FURTHER]]
    assert plot.read_text().count("<polyline") == len(told[0]["families"])


def test_the_families_have_as_many_operators_as_they_say(scale):
    for name, spec in scale.FAMILIES.items():
        graph = scale.build(scale.read(scale.Source("scale.yaml", spec(80)), lambda name: None))
        assert sum(1 for _ in graph.operators()) == 80, name
