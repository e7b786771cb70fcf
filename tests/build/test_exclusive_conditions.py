"""Conditions of which exactly one holds: a value that each of them makes is there, in any order of their entries."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from symflops.api import Model
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

HEAD = """language: 2
name: exclusive
sizes:
  L: {key: layers, default: 5}
  D: {key: width, default: 4}
  P: {key: prefix, default: 0}
  full: {key: full, default: [1, 3]}
  causal: {key: causal, default: true}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
"""
LINEAR = "op: linear, from: t, width: D, bias: false"
LAYERS = [
    ("l in full and causal", "l in full and not causal", "not (l in full)"),
    ("l in full or causal", "not causal and not (l in full)"),
    ("l < P and causal", "l >= P or not causal"),
    ("P == 0", "P > 0 and causal", "P > 0 and not causal"),
]
PLAIN = [("P == 0", "P > 0"), ("P < 3", "P >= 3"), ("P == 2", "P < 2", "P > 2"), ("P == 3", "not (P == 3)"), ("P <= 1", "1 < P")]


def model(text: str) -> Model:
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", HEAD + text), lambda name: None))


def entries(conditions: tuple[str, ...], indent: str) -> str:
    """One linear per condition, each of which makes 'a', and one that reads it."""
    rows = [f'{indent}- {chr(98 + number)}: {{{LINEAR}, to: a, when: "{text}"}}\n' for number, text in enumerate(conditions)]
    return "".join(rows) + f"{indent}- o: {{op: linear, from: a, width: D, bias: false, to: t}}\n"


@pytest.mark.parametrize("conditions", [order for some in LAYERS for order in permutations(some)])
def test_one_entry_runs_in_each_layer(conditions: tuple[str, ...]) -> None:
    made = model(f"  - layers:\n      repeat: L\n      index: l\n      graph:\n{entries(conditions, ' ' * 8)}outputs: [t]\n")
    for causal in (False, True):
        for prefix in (0, 2):
            assert made.estimator({"causal": causal, "prefix": prefix}, "full").parameters == 5 * 2 * 16


@pytest.mark.parametrize("conditions", [order for some in PLAIN for order in permutations(some)])
def test_one_entry_runs(conditions: tuple[str, ...]) -> None:
    made = model(f"{entries(conditions, '  ')}outputs: [t]\n")
    assert {made.estimator({"prefix": prefix}, "full").parameters for prefix in range(6)} == {32}


def test_entries_that_exclude_each_other_share_a_path() -> None:
    made = model(f'  - a: {{{LINEAR}, to: t, when: P == 0}}\n  - a: {{op: linear, from: t, width: 2*D, bias: false, to: b, when: P > 0}}\noutputs: [t, b]\n')
    assert [made.estimator({"prefix": prefix}, "full").parameters for prefix in range(3)] == [16, 32, 32]


@pytest.mark.parametrize("conditions", [("P == 0", "P > 1"), ("l in full and causal", "not (l in full)")])
def test_a_case_that_is_left_out_is_told(conditions: tuple[str, ...]) -> None:
    with pytest.raises(SpecError, match="absent"):
        model(f"  - layers:\n      repeat: L\n      index: l\n      graph:\n{entries(conditions, ' ' * 8)}outputs: [t]\n").typical()
