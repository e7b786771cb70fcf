"""Structures that are written out: many layers, and how many operators are too many."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symflops.api import Model, load
from symflops.build.scopes import MAX_OPERATORS
from symflops.formula.table import ConfigError
from symflops.ir.nodes import Operator, walk
from symflops.library import naming
from symflops.read.spec_files import roots, specs_in
from symflops.support.findings import SpecError
from symflops.verify.cases import LiveCase
from symflops.verify.live import verify_live
from tests import shipped
from tests.fuzz.guard import SECONDS, Limits

RECORDS = Path(__file__).resolve().parents[1] / "data" / "truth"
SHAPED = [file.name for file in specs_in(roots()[-1]) if "variants:" in file.source().text]
"""The specs of which a config decides the structure."""
UNET = {"block_out_channels": [16, 32], "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]}
UNET_3D = {key: [kind.replace("2D", "3D") for kind in kinds] if "types" in key else kinds for key, kinds in UNET.items()}
SMALL = {"cross_attention_dim": 24, "attention_head_dim": 4, "norm_num_groups": 4, "layers_per_block": 12}
TWICE = """language: 2
name: doubled
sizes: {D: width}
streams: {text: [x]}
inputs: {x: {stream: text, width: D}}
blocks:
  b0: {inputs: [x], outputs: [x], graph: [o: {op: linear, from: x, width: width(x), to: x}]}
"""


@cache
def records() -> list[dict[str, Any]]:
    return [record for path in sorted(RECORDS.glob("*.json")) for record in json.loads(path.read_text("utf-8"))]


def published(model: Model) -> Iterator[dict[str, Any] | None]:
    """The configs of all structures that are known of a spec: of its defaults, its variants, its records and its witnesses."""
    yield {}
    yield from model.variants.values()
    classes = {reference.rpartition(".")[2] for reference in model.spec.references}
    yield from (record["config_json"] for record in records() if record["class"] in classes)
    witnesses = json.loads((model.file.root / "published.json").read_text("utf-8"))["specs"].get(model.spec.name, [])
    yield from (witness["config"] for witness in witnesses)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "config", "lengths"), [("unet_2d_condition", UNET, [8, 12]), ("unet_3d_condition", UNET_3D, [2, 8, 12])])
def test_twelve_layers_are_those_of_the_real_class(name, config, lengths):
    """All parameters by name, and the work of every module."""
    report = verify_live(load(name), LiveCase({**config, **SMALL}, {"latent": [lengths], "prompt": [5]}))
    assert report.exact, report


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHAPED)
def test_the_limit_is_above_three_times_what_is_published(name):
    model = shipped.load(name)
    counts = [len(list(walk(Model(model.file, model.spec).graph(config).body, Operator))) for config in published(model)]
    assert 3 * max(counts) < MAX_OPERATORS


def test_a_config_of_too_many_layers_is_told_which_field_says_so():
    with Limits(10), pytest.raises(SpecError) as caught:
        load("unet_3d_condition").graph({"layers_per_block": 64})
    (found,) = caught.value.diagnostics
    assert found.code == "structure-too-large"
    assert "6,000 operators" in found.message and "64 times" in found.message
    assert "'layers_per_block'" in found.hint and found.span is not None and found.span.text == "n"
    told = "'layers_per_block' is 64.*more than 6,000 operators.*repeats 64 times"
    with Limits(10), pytest.raises(ConfigError, match=told):
        naming.estimate({"layers_per_block": 64}, {"latent": [[2, 8, 8]], "prompt": [4]}, spec="unet_3d_condition")


def test_blocks_that_double_each_other_end(tmp_path):
    blocks = "".join(
        f"  b{n}: {{inputs: [x], outputs: [x], graph: [a: {{block: b{n - 1}, from: x, to: x}}, b: {{block: b{n - 1}, from: x, to: x}}]}}\n"
        for n in range(1, 31)
    )
    path = tmp_path / "doubled.yaml"
    path.write_text(TWICE + blocks + "graph:\n  - all: {block: b30, from: x, to: x}\noutputs: [x]\n", "utf-8")
    with Limits(3 * SECONDS), pytest.raises(SpecError) as caught:
        load(path).graph()
    (found,) = caught.value.diagnostics
    assert found.code == "structure-too-large" and "calls another twice" in found.hint
    assert found.span is not None and "block: b30" in found.span.source.line(found.span.line)
