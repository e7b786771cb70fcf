"""Passes and timesteps from pipeline data, against the cases of the rule's own project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.evaluate.diffusion_passes import forward_passes, timesteps

CASES = json.loads((Path(__file__).resolve().parents[1] / "data" / "cfg_passes.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_passes_are_those_of_the_peer(case):
    assert forward_passes(case["pipeline"], case["transformer"]) == case["passes"]


def test_timesteps_are_the_second_axis():
    assert timesteps((4, 10)) == 10
    assert timesteps((4, 10), preference=True) == 1
    assert timesteps(None) == 1 and timesteps((4,)) == 1
