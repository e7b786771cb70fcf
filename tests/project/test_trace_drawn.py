"""The script that traces drawn classes: what it draws, and what its table says of results."""

import sys
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import trace_drawn

    names = {group: [f"{group}.{number}" for number in range(40)] for group in ("causal", "other", "diffusers")}
    monkeypatch.setattr(trace_drawn, "population", lambda: {group: list(each) for group, each in names.items()})
    yield trace_drawn
    sys.modules.pop("trace_drawn", None)


def test_a_seed_draws_the_same_classes_each_once(script):
    first, again, other = (list(islice(script.drawn(seed), 40)) for seed in (5, 5, 6))
    assert first == again != other and len(set(first)) == 40
    assert [group for group, _ in first[:8]] == [*script.TURN, *script.TURN]


def test_classes_that_cannot_be_built_are_replaced(script, monkeypatch):
    kinds = iter(["not built", "all sizes", "in part", "not built", "no inputs"])
    monkeypatch.setattr(script, "in_process", lambda work, seconds, what: {"outcome": next(kinds), "why": what})
    args = type("Args", (), {"count": 3, "timeout": 1.0, "seed": 1, "out": None})
    found = list(script.run(script.drawn(1), {}, args))
    assert [one["outcome"] for one in found] == ["not built", "all sizes", "in part", "not built", "no inputs"]


def test_a_wrong_form_is_told(script):
    traced = {"symbols": 3, "seconds": 4.0, "MB": 300, "proven at": 4, "checked": 3}
    good = {"class": "a.A", "group": "causal", "outcome": "all sizes", **traced}
    bad = {"class": "a.B", "group": "other", "outcome": "in part", "wrong": ["x"], "numbers": {"n": "dropped: it fails"}, **traced}
    gone = {"class": "a.C", "group": "other", "outcome": "not built", "why": "no default"}
    lines = list(script.summary([good, bad, gone]))
    assert lines[2:5] == ["| causal | 1 | 1 | 0 | 0 | 0 | 0 | 0 |", "| other | 1 | 0 | 1 | 0 | 0 | 0 | 1 |", "| all | 2 | 1 | 1 | 0 | 0 | 0 | 1 |"]
    assert lines[6:] == ["14 unseen configs were compared; 1 classes cannot be built with their defaults.", "Traces took a median of 4 s of one core and 300 MB."]
    assert script.line(bad) == "a.B  in part  WRONG ['x']  4.0 s  300 MB  n dropped: it fails"
