"""Sizes that decide the structure and are plain numbers, or a list or one value for all of its items."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError, SymflopsError
from tests.standalone import published

HEAD = """language: 2
name: shaped
sizes: {D: width, pick: {key: pick, default: 0}, F: {key: hidden, type: each, default: 3}}
streams: {text: [x]}
inputs:
  h: {stream: text, width: D}
graph:
"""
PICKED = HEAD + """  - more: {op: pad, from: h, axes: {x: "x + [2, 5][pick]"}, to: h}
  - out: {op: linear, from: h, width: D, bias: false, to: y}
outputs: [y]
"""
EACH = HEAD + """  - layers:
      repeat: per(F, 2)
      item: hidden
      graph:
        - up: {op: linear, from: h, width: hidden, bias: false, to: u}
        - down: {op: linear, from: u, width: D, bias: false, to: h}
outputs: [h]
"""
CHOSEN = """language: 2
name: chosen
sizes:
  D: width
  F: {key: hidden, type: each, default: 3}
  W: {key: widths, default: "[2, 3]"}
  R: {key: others, type: list, optional: true}
derived: {count: len(W), widths: rev(W) if R == null else R, all: "per(F, count)"}
streams: {text: [x]}
inputs:
  h: {stream: text, width: D}
graph:
  - layers:
      repeat: widths
      index: i
      item: width
      graph:
        - up: {op: linear, from: h, width: "width*all[i]", bias: false, to: u}
        - down: {op: linear, from: u, width: D, bias: false, to: h}
outputs: [h]
"""


def model(text: str) -> Model:
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))


def forward(text: str, config: dict) -> int:
    estimator = model(text).estimator(config)
    return estimator.forward(estimator.moments(text=[4]))


@pytest.mark.parametrize(("pick", "more"), [(0, 2), (1, 5)])
def test_a_number_that_picks_from_a_list_is_taken_from_the_config(pick, more):
    assert forward(PICKED, {"width": 5, "pick": pick}) == 2 * 25 * (4 + more)


def test_a_number_that_picks_nothing_is_a_mistake():
    with pytest.raises(SpecError, match="outside a list of 2"):
        forward(PICKED, {"width": 5, "pick": 2})


@pytest.mark.parametrize(("hidden", "widths"), [(7, 14), ([7, 9], 16)])
def test_one_value_stands_for_all_items(hidden, widths):
    assert forward(EACH, {"width": 5, "hidden": hidden}) == 2 * 2 * 5 * widths * 4


@pytest.mark.parametrize(("config", "widths"), [({}, 3 * 3 + 3 * 2), ({"others": [4, 1]}, 3 * 4 + 3), ({"widths": [1], "hidden": [6]}, 6)])
def test_derived_lists_are_known_when_their_sizes_are(config, widths):
    assert forward(CHOSEN, {"width": 5, **config}) == 2 * 2 * 5 * widths * 4


def test_without_a_config_the_list_is_asked_for():
    with pytest.raises(SpecError, match="must be known here"):
        model(CHOSEN).program()


def test_other_things_are_refused():
    with pytest.raises(SymflopsError):
        forward(EACH, {"width": 5, "hidden": {"a": 1}})


def test_the_printed_module_reads_both():
    shaped = published(model(EACH).program(config={"width": 5, "hidden": [7, 9]}))
    one = shaped.Estimator(shaped.Sizes.from_config({"width": 5, "hidden": [7, 9]}))
    assert one.forward(shaped.moments(text=[4])) == 2 * 2 * 5 * 16 * 4
    same = shaped.Estimator(shaped.Sizes.from_config({"width": 5, "hidden": 7}))
    assert same.forward(shaped.moments(text=[4])) == 2 * 2 * 5 * 14 * 4
    with pytest.raises(ValueError, match="is {.a.: 1}"):
        shaped.Sizes.from_config({"width": 5, "hidden": {"a": 1}})


PADDED = HEAD + """  - more: {op: pad, from: h, axes: {x: x + 2}, when: pick == 0, to: h}
  - out: {op: linear, from: h, width: D, bias: false, to: y}
outputs: [y]
"""


@pytest.mark.parametrize(("pick", "more"), [(0, 2), (1, 0)])
def test_a_condition_that_decides_rows_is_taken_from_the_config(pick, more):
    assert forward(PADDED, {"width": 5, "pick": pick}) == 2 * 25 * (4 + more)


def test_a_condition_that_decides_rows_is_asked_for_without_a_config():
    with pytest.raises(SpecError, match="has other rows when"):
        model(PADDED).program()


WIDER = HEAD + """  - wide: {op: linear, from: h, width: 2*D, bias: false, when: pick == 0, to: h}
  - out: {op: linear, from: h, width: 2*D, bias: false, to: y}
  - sum: {op: add, from: [h, y], to: z}
outputs: [z]
"""


@pytest.mark.parametrize("text", [WIDER, WIDER.replace("to: y}\n  - sum: {op: add, from: [h, y], to: z}", "add_to: h}").replace("outputs: [z]", "outputs: [h]")])
def test_a_condition_that_decides_a_width_is_taken_from_the_config(text):
    assert forward(text, {"width": 5, "pick": 0}) == 2 * (5 * 10 + 10 * 10) * 4
    with pytest.raises(SpecError) as found:
        forward(text, {"width": 5, "pick": 1})
    assert {diagnostic.code for diagnostic in found.value.diagnostics} == {"width-mismatch"}
    with pytest.raises(SpecError, match="'pick' decides that"):
        model(text).program()


@pytest.mark.parametrize(("text", "items"), [("[2, 3]*2", (2, 3, 2, 3)), ("([2] + [3]*2)*1 + [4]*0", (2, 3, 3)), ("[2]*5000", None), ("[2]*D", (2, 2, 2))])
def test_a_list_many_times_over(text: str, items: tuple[int, ...] | None) -> None:
    spec = HEAD.replace("pick: {key: pick, default: 0}", f'W: {{key: widths, type: list, default: "{text}"}}') + PICKED[len(HEAD):]
    found = spec.replace('axes: {x: "x + [2, 5][pick]"}', "axes: {x: x + len(W)}")
    if items is None:
        with pytest.raises(SpecError):
            model(found).program(["full"], ["torch"], {"width": 3})
        return
    estimator = model(found).estimator({"width": 3}, "full", "torch")
    assert estimator.sizes["W"] == items
    assert estimator.forward(estimator.moments(text=[7])) == 2 * 9 * (7 + len(items))
