"""The benchmark runs, and its rivals count what they are said to. Only ``python benchmarks/speed.py`` itself looks at a clock."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from symflops.catalog import lookup

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "speed.py"


@pytest.fixture
def speed(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import speed

    return speed


def test_every_row_runs_and_a_missed_ratio_is_told(speed, monkeypatch, capsys):
    """With a clock of its own: each run takes a second, so that no ratio is met."""
    monkeypatch.setattr(speed, "timed", lambda work, number: (work(), 1.0)[1])
    monkeypatch.setattr(speed, "ROUNDS", 1)
    monkeypatch.setattr("sys.argv", ["speed.py", "--quick", "--json"])
    assert speed.main() == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["seconds"] for row in rows] == [1.0] * len(rows) and len(rows) == 6
    assert [row["rival_seconds"] for row in rows if row["at_most"] == 1] == [8.0]


def test_rivals_count_what_they_claim(speed):
    config = SimpleNamespace(**speed.LLAMA)
    one = lookup.estimator(lookup.by_name("llama"), "llama", speed.LLAMA)[1]
    lengths = [100, 4096, 7]
    ours = one.total(one.moments(text=lengths))
    embedding = 6 * config.vocab_size * config.hidden_size * sum(lengths)  # counted by verl as a matmul, and by us not at all
    diagonal = 6 * 32 * 4096 * sum(lengths)  # a token sees itself: s (s + 1) / 2 pairs, not s^2 / 2
    assert speed.dense_loop(config, lengths) == pytest.approx(ours + embedding - diagonal, rel=1e-12)
