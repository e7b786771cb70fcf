"""Structures decided by a list of the config: the module has the default one and says so; others are derived on request."""

from __future__ import annotations

import json

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.support.findings import SymflopsError
from tests.standalone import published_file

STAGES = """language: 2
name: stages
title: Stages of a list
sizes:
  C: {key: channels, default: 3}
  W: {key: widths, default: "[8, 16]"}
streams: {latent: [h, w]}
inputs:
  x: {stream: latent, width: C, layout: "b c h w"}
graph:
  - down:
      repeat: W
      index: i
      item: c
      graph:
        - conv: {op: conv, from: x, width: c, kernel: '[3, 3]', padding: 1, bias: false, to: y}
        - skip: {op: push, from: y, stack: s}
  - all: {op: gather, stack: s, like: x, to: z}
outputs: [z]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "specs" / "nn").mkdir(parents=True)
    (tmp_path / "specs" / "nn" / "stages.yaml").write_text(STAGES)
    monkeypatch.chdir(tmp_path)
    assert main(["generate"]) == 0
    return tmp_path


def module(project):
    return published_file(project / "generated" / "nn" / "stages.py")


def forward(channels: int, widths: list[int]) -> int:
    return 2 * 9 * 20 * channels * sum(widths)


def test_the_module_is_of_the_defaults(project):
    stages = module(project)
    one = stages.Estimator(stages.Sizes.from_config({"channels": 5}))
    assert one.forward(stages.moments(latent=[[4, 5]])) == forward(5, [8, 16])
    with pytest.raises(stages.OtherStructure, match=r"'.*' is \(8, 16\), not \(8,\)"):
        stages.Estimator(stages.Sizes.from_config({"widths": [8]}))


def test_another_structure_is_derived_on_the_spot(project, capsys):
    (project / "config.json").write_text(json.dumps({"channels": 2, "widths": [4, 4, 6]}))
    for extra, widths, variant in (([], [8, 16], "default"), (["--config", "config.json"], [4, 4, 6], "derived")):
        assert main(["estimate", "stages", "--batch", '{"latent": [[4, 5]]}', "--json", *extra]) == 0
        told = capsys.readouterr()
        found = json.loads(told.out)
        assert found["forward"] == forward(2 if extra else 3, widths) and found["variant"] == variant
        assert "derived on the spot" in told.err


def test_the_pages_say_of_which_models_they_are(project):
    for ending in ("md", "tex"):
        assert "[8, 16]" in (project / "generated" / "nn" / f"stages.{ending}").read_text()


def test_a_derivation_of_one_structure_refuses_another(project):
    program = load("specs/nn/stages.yaml").program(config={"widths": [4]})
    assert InterpretedEstimator(program, {"widths": [4]}).parameters == 9 * 3 * 4
    with pytest.raises(SymflopsError, match="'W' is"):
        InterpretedEstimator(program, {"widths": [5]})
