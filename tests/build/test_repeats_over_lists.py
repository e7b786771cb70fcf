"""Models in stages: lists of a config give widths, heads, kernels and counts of layers; flags may decide the structure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symflops.api import Model, load
from symflops.support.findings import SpecError

SPEC = """
language: 2
name: staged
sizes:
  depths: {key: depths, default: "[1, 2]"}
  W: {key: widths, default: "[8, 12]"}
  H: {key: heads, default: "[2, 3]"}
  k: {key: kernels, default: "[2, 3]"}
  C: {key: channels, default: 4}
  deep: {key: deep, default: false}
derived: {hidden: "[[1], [2, 4]][deep]"}
streams: {images: [h, w]}
inputs: {pixels: {stream: images, width: C}}
graph:
  - {op: pad, from: pixels, axes: {h: "round_up(h, 6)"}, to: x}
  - stages:
      repeat: hidden
      index: s
      item: wide
      graph:
        - patch: {op: conv, from: x, width: "W[s]", kernel: "[k[s], 1]", stride: "[k[s], 1]", groups: 2, bias: false, to: x}
        - layers:
            repeat: depths[s]
            graph:
              - {op: attention, heads: "H[s]", query: x, key: x, value: x, to: a}
              - up: {op: linear, from: a, width: "wide*W[s]", bias: false, to: f}
              - down: {op: linear, from: f, width: "W[s]", bias: false, add_to: x}
outputs: [x]
"""


def model(folder: Path, *changes: tuple[str, str]) -> Model:
    text = SPEC
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "staged.yaml").write_text(text, "utf-8")
    return load(folder / "staged.yaml")


def work(config: dict[str, Any], h: int, w: int) -> int:
    """Forward FLOPs of one image, stage by stage."""
    full = {"depths": [1, 2], "widths": [8, 12], "kernels": [2, 3], **config}
    total, width, h = 0, 4, -(-h // 6) * 6
    for s, wide in enumerate([2, 4] if config.get("deep") else [1]):
        out, side = full["widths"][s], full["kernels"][s]
        h //= side
        total += 2 * h * w * width * out // 2 * side
        total += full["depths"][s] * (4 * (h * w) ** 2 * out + 2 * 2 * h * w * out * wide * out)
        width = out
    return total


@pytest.mark.parametrize(
    "config", [{}, {"deep": True}, {"deep": True, "depths": [0, 3], "widths": [6, 24], "kernels": [3, 2]}, {"deep": False, "widths": [10, 3]}], ids=str
)
def test_lists_of_a_config_are_numbers(config: dict[str, Any], tmp_path: Path) -> None:
    estimator = model(tmp_path).estimator(config, "forward", "torch")
    assert estimator.forward(estimator.moments(images=[[9, 4], [12, 3]])) == work(config, 9, 4) + work(config, 12, 3)


def test_a_length_that_divides_is_a_plain_quotient(tmp_path: Path) -> None:
    """What is rounded up to a multiple of the stride needs no second rounding."""
    changed = model(tmp_path, ('"round_up(h, 6)"', '"round_up(h, C)"'), ("[k[s], 1]\", stride: \"[k[s], 1]", "[C, 1]\", stride: \"[C, 1]"))
    program = changed.program(["forward"], ["torch"], {"deep": False})
    assert any("up_C" in moment.name or "C" in moment.sizes for moment in program.moments)
    assert all("floordiv" not in repr(moment.formula) for moment in program.moments)


def test_heads_of_a_plain_size_divide_its_width(tmp_path: Path) -> None:
    """Heads that a list gives may divide a multiple of a width; a plain size of heads must be seen to."""
    two = ("width: \"W[s]\", kernel", "width: 2*C, kernel")
    one = ("width: \"W[s]\", bias: false, add_to", "width: 2*C, bias: false, add_to")
    model(tmp_path, two, one).graph({})
    with pytest.raises(SpecError, match="does not divide into C\\+1 heads|does not divide"):
        model(tmp_path, two, one, ('heads: "H[s]"', "heads: C + 1")).graph({})


def test_without_a_config_the_flag_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="must be a known number"):
        model(tmp_path).graph()


def test_a_list_before_a_list_of_a_config(tmp_path: Path) -> None:
    """The list must be known: a config gives it, else the default."""
    pieces = ("{hidden:", "{before: \"[0] + depths\", hidden:")
    changed = model(tmp_path, pieces, ('repeat: depths[s]', "repeat: depths[s] + before[s]"))
    estimator = changed.estimator({"deep": True}, "forward", "torch")
    assert estimator.forward(estimator.moments(images=[[9, 4]])) == work({"deep": True, "depths": [1, 3]}, 9, 4)
    with pytest.raises(SpecError, match="not a list"):
        model(tmp_path, ("{hidden:", "{before: \"[0] + C\", hidden:")).graph({})


def test_a_shared_module_is_there_even_if_the_list_is_empty(tmp_path):
    text = """language: 2
name: again
sizes: {kinds: {key: kinds, type: list}, N: {key: times, default: 0}, D: {key: width, default: 4}}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - first: {op: linear, from: t, width: D, to: h}
  - listed:
      repeat: kinds
      shared: true
      graph:
        - up: {op: linear, from: h, width: D, to: h}
  - counted:
      repeat: N
      shared: true
      graph:
        - up: {op: linear, from: h, width: D, to: h}
outputs: [h]
"""
    path = tmp_path / "again.yaml"
    path.write_text(text, "utf-8")
    for kinds in ([], [1], [1, 1]):
        for times in (0, 2):
            one = load(path).estimator({"kinds": kinds, "times": times})
            assert one.parameters == 3 * (4 * 4 + 4)
            assert one.forward(one.moments(text=[5])) == 2 * 5 * 16 * (1 + len(kinds) + times)
