"""The examples on the page of the language are entries that build."""

from __future__ import annotations

import re
import textwrap

import pytest

from symflops.analysis.baseline import against
from symflops.support.errors import SymflopsError
from tests.docs.pages import DOCS, blocks
from tests.shipped import load

FRAME = """language: 2
name: example
sizes:
  D: width
  F: hidden
  H: heads
  d: head_dim
  L: layers
  W: window
  E: experts
  k: chosen
  V: vocabulary
  first: {key: first_dense, default: 1}
  tied: {key: tied, default: false}
  qk_norm: {key: qk_norm, default: false}
streams: {text: [x], sample: []}
inputs:
  h: {stream: text, width: D}
  n: {stream: text, width: D}
  a: {stream: text, width: H*d}
  q: {stream: text, width: H*d}
  mod: {stream: sample, width: D}
  state: {stream: sample, width: D}
  input_ids: {stream: text}
graph:
"""
EXAMPLES = [block for block in blocks(DOCS / "reference" / "language.md") if block.language == "yaml"]
ENTRIES = [block for block in EXAMPLES if block.text.startswith("- ")]


@pytest.mark.parametrize("block", ENTRIES, ids=lambda block: f"line-{block.line}")
def test_entries_build(block, tmp_path):
    path = tmp_path / "example.yaml"
    path.write_text(FRAME + textwrap.indent(block.text, "  ") + "outputs: [h]\n", "utf-8")
    assert list(load(path).graph().operators())


def test_streams_build(tmp_path):
    (block,) = [block for block in EXAMPLES if block.text.startswith("streams:")]
    path = tmp_path / "example.yaml"
    path.write_text(f"language: 2\nname: example\n{block.text}inputs: {{v: {{stream: video, width: 3}}}}\ngraph: [{{o: {{op: linear, from: v, width: 2}}}}]\noutputs: [o]\n", "utf-8")
    (operator,) = load(path).graph().operators()
    assert str(operator.contractions[0].extent.executed) == "f*h*w"


def example(start: str, tmp_path, name: str):
    (block,) = [block for block in EXAMPLES if block.text.startswith(start)]
    path = tmp_path / f"{name}.yaml"
    path.write_text(block.text if start.startswith("language") else FRAME.replace("graph:\n", block.text) + "outputs: [h]\n", "utf-8")
    return load(path)


def test_relative_positions_are_counted_once_per_batch_and_per_item(tmp_path):
    found = example("language: 2\nname: relative", tmp_path, "relative").estimator({"width": 8})
    table, positions = 2 * 7 * 8 * 8, 2 * 8 * (4 * 7 + 3 * 5)
    assert found.forward(found.moments(text=[4, 3])) == 3 * 2 * 7 * 8 * 8 + table + positions + 4 * 8 * (4**2 + 3**2)


def test_a_block_of_a_spec_is_called(tmp_path):
    operators = list(example("blocks:", tmp_path, "example").graph().operators())
    assert [str(operator.path) for operator in operators if operator.kind == "linear"] == ["mlp.w12", "mlp.w3"]


def test_a_spec_that_extends_another_one_differs_as_the_page_says(tmp_path):
    found = list(example("language: 2\nname: windowed", tmp_path, "windowed").graph().operators())
    parameters = {str(one.path) for operator in found for one in operator.parameters}
    assert "model.layers.*.self_attn.q_norm.weight" in parameters and "model.layers.*.mlp.up_proj.bias" not in parameters
    assert {contraction.extent.mask for operator in found if operator.kind == "attention" for contraction in operator.contractions} == {"sliding", "causal"}


def test_a_variant_has_another_structure(tmp_path):
    model = example("language: 2\nname: levels", tmp_path, "levels")
    assert model.variants == {"large": {"block_out_channels": (320, 640, 1280)}}
    assert [len([one for one in (model.graph(variant=name) if name else model.graph({})).operators() if one.kind == "conv"]) for name in ("", "large")] == [2, 3]


def test_a_baseline_has_a_page_section(tmp_path):
    told = against(example("language: 2\nname: thinner", tmp_path, "thinner"))
    assert (told.baseline, told.letter, told.points[-1].own < told.points[-1].base) == ("dense_decoder", "n", True)


def test_conditions_hold_for_the_configs_that_they_name(tmp_path):
    sizes, *_ = [block for block in EXAMPLES if block.text.startswith("requires:")]
    path = tmp_path / "example.yaml"
    text = FRAME.replace("streams:", f"  widths: {{key: widths, default: [4, 4]}}\n{sizes.text}streams:", 1)
    path.write_text(text + "  - norm: {op: rms_norm, from: h, to: h}\noutputs: [h]\n", "utf-8")
    config = dict.fromkeys(("width", "hidden", "heads", "layers", "window", "experts", "chosen", "vocabulary"), 8)
    assert load(path).estimator(config | {"head_dim": 4}, "full").parameters == 8
    for wrong, words in (({"head_dim": 3}, "'d % 2 == 0'"), ({"head_dim": 4, "widths": [4, 8]}, "widths")):
        with pytest.raises(SymflopsError, match=words):
            load(path).estimator(config | wrong, "full")


MEDIA = "audio: [x], text: {over: texts, axes: [y]}, image: {over: images, axes: [h, w]}"
TAKEN = {"audio": [3000], "text": [1, 448], "image": [[24, 24]]}
PAIRS = "text: [x], images: {over: images, axes: [t, h, w]}"
LENGTHS = [
    ("mel frames", MEDIA, 24, TAKEN, ""),
    ("mel frames", MEDIA, 24, TAKEN | {"audio": [2999]}, "item 0 of 'audio' has length 2999, and the class takes 3000 mel frames, 30 s"),
    ("mel frames", MEDIA, 24, TAKEN | {"text": [1, 449]}, "item 1 of 'text' has length 449, and the class takes at most 448 tokens"),
    ("mel frames", MEDIA, 24, TAKEN | {"image": [[24, 20]]}, "the class takes images of 24 x 24"),
    ("mel frames", MEDIA, 6, TAKEN | {"image": [[6, 6]]}, "the class takes sides that 4 divides"),
    ("those of the images", PAIRS, 24, {"text": [4]}, ""),
    ("those of the images", PAIRS, 24, {"text": [0, 0]}, "the class takes at least 1 token"),
    ("those of the images", PAIRS, 24, {"text": [3, 4], "images": [[1, 4, 6], [1, 2, 2]]}, ""),
    ("those of the images", PAIRS, 24, {"text": [3, 3], "images": [[1, 4, 6], [1, 2, 2]]}, "the class takes at least 7 tokens, those of the images"),
]  # fmt: skip
"""Words of an example, its streams, the side of its images, a batch, and what refuses it: by the arithmetic of its lines."""


@pytest.mark.parametrize(("words", "streams", "side", "batch", "refusal"), LENGTHS)
def test_conditions_on_lengths_refuse_the_batches_that_they_name(words, streams, side, batch, refusal, tmp_path):
    (block,) = [block for block in EXAMPLES if block.text.startswith("requires:") and words in block.text]
    path = tmp_path / "example.yaml"
    sizes = "sizes: {X: {key: frames, default: 1500}, Y: {key: tokens, default: 448}, S: side, K: {key: levels, default: 3}}\n"
    inputs = "".join(f"  {name}: {{stream: {name}, width: 2}}\n" for name in sorted({*batch, "images"}) if f"{name}:" in streams)
    linears = "".join(f"  - {name}_proj: {{op: linear, from: {name}, width: 2, to: {name}}}\n" for name in batch)
    path.write_text(f"language: 2\nname: example\n{sizes}{block.text}streams: {{{streams}}}\ninputs:\n{inputs}graph:\n{linears}outputs: [{', '.join(batch)}]\n", "utf-8")
    estimator = load(path).estimator({"side": side}, "full")
    if refusal:
        with pytest.raises(SymflopsError, match=re.escape(refusal)):
            estimator.moments(**batch)
    else:
        assert estimator.forward(estimator.moments(**batch)) > 0


def test_an_expectation_is_told_where_it_is_one(tmp_path):
    (block,) = [block for block in EXAMPLES if block.text.startswith("expected:")]
    path = tmp_path / "example.yaml"
    path.write_text(FRAME.replace("streams:", f"  Z: {{key: idle, default: 0}}\n{block.text}streams:", 1) + "  - norm: {op: rms_norm, from: h, to: h}\noutputs: [h]\n", "utf-8")
    config = dict.fromkeys(("width", "hidden", "heads", "head_dim", "layers", "window", "experts", "chosen", "vocabulary"), 8)
    told = [[note for note in load(path).estimator(config | {"idle": idle}, "full").notes({}) if "equal shares" in note] for idle in (0, 2)]
    assert [len(notes) for notes in told] == [0, 1]


def test_there_is_an_example_of_each_construct():
    texts = "".join(block.text for block in ENTRIES)
    assert len(ENTRIES) + 12 == len(EXAMPLES)  # the others are whole documents or other parts: classes, conditions, expectations, figures, streams and blocks
    assert all(word in texts for word in ("block:", "repeat: L", "axis: x", "experts: E", "no_grad", "shared: true", "when:", "gate:", "with:", "tie: {"))
