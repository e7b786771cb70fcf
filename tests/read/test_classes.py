"""Classes of one spec: what a row under ``reference`` changes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import load
from symflops.evaluate.classes import class_in, of_class
from symflops.library.lookup import by_config, estimator
from symflops.library.naming import estimate
from symflops.support.findings import SpecError, SymflopsError

SPEC = """\
language: 2
name: two
reference:
  mine:Whole: {}
  mine:Base: {head: false, rename: {core: ""}}
  mine:Wide: {factor: 3, rename: {core: body.core}}
sizes:
  D: {key: width, default: 4}
  V: {key: vocab, default: 10}
  C: {key: labels, default: 2}
  head: {default: true}
  factor: {default: 1}
streams: {text: [x]}
inputs:
  x: {stream: text, width: D}
graph:
  - core.up: {op: linear, from: x, width: factor*D, to: h}
  - core.down: {op: linear, from: h, width: D, weight: "/core.up.weight", in_out: true, to: h, when: factor == 1}
  - out: {op: linear, from: h, width: V, to: h, when: head}
outputs: [h]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(SPEC)
    return path


@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("", ["core.up.weight", "core.up.bias", "core.down.bias", "out.weight", "out.bias"]),
        ("Whole", ["core.up.weight", "core.up.bias", "core.down.bias", "out.weight", "out.bias"]),
        ("Base", ["up.weight", "up.bias", "down.bias"]),
        ("Wide", ["body.core.up.weight", "body.core.up.bias", "out.weight", "out.bias"]),
    ],
)
def test_a_row_decides_sizes_and_renames_paths_absolute_ones_too(spec: Path, name: str, tensors: list[str]) -> None:
    found = load(spec).estimator(of_class({"width": 4}, f"mine:{name}") if name else {"width": 4})
    assert list(found.tensors()) == tensors


def test_a_program_names_the_classes_that_it_is_of_and_reads_their_fields_alone(spec: Path) -> None:
    model = load(spec)
    assert model.program().references == ("mine:Whole",)
    base = model.program(config={"architectures": ["Base"]})
    assert base.references == ("mine:Base",)
    assert [field.letter for field in base.fields] == ["D"]
    assert [field.letter for field in model.program().fields] == ["D", "V"]


def test_an_estimator_of_one_class_refuses_a_config_of_another(spec: Path) -> None:
    whole = load(spec).derive()
    assert whole.estimator({"width": 4}).parameters == whole.estimator({"width": 4, "architectures": ["Whole"]}).parameters
    for config in ({"architectures": ["Base"]}, {"_class_name": "Base"}):
        with pytest.raises(SymflopsError, match="the config is of the class Base, and 'two' describes Whole"):
            whole.estimator(config)
    with pytest.raises(SymflopsError, match="of the class Other, and 'two' describes Whole, Base, Wide"):
        load(spec).estimator({"architectures": ["Other"]})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{head: false, rename", "{haed: false, rename", "did you mean 'head'"),
        ("{head: false, rename", "{head: 3, rename", "'head' is 3, not a flag"),
        ("{head: false, rename", "{V: 3, rename", "'V' is no size without a 'key'"),
        ('rename: {core: ""}', 'rename: {/core: ""}', "no beginning of a path"),
        ("mine:Base", "Base", "'Base' is not a class"),
        ("head: {default: true}", "head: {doc: no default}", "size 'head' needs 'key'"),
        ("factor: {default: 1}", "factor: {default: D}", "'D' is not declared"),
    ],
)
def test_a_mistake_in_a_row_has_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert SPEC.count(old) == 1
    path = tmp_path / "two.yaml"
    path.write_text(SPEC.replace(old, new))
    with pytest.raises(SpecError, match=message):
        load(path)


NAMED = {
    "an unknown class of a known model type": ({"architectures": ["Qwen2ForNothing"], "model_type": "qwen2"}, "Qwen2ForCausalLM"),
    "an unknown class alone": ({"architectures": ["QwenImageTransformer2D"]}, "did you mean"),
    "an unknown diffusers class": ({"_class_name": "NoSuchTransformer"}, "symflops list"),
    "an unknown model type": ({"model_type": "qwen22"}, "no spec describes qwen22"),
    "a model like another": ({"architectures": ["Nova"], "model_type": "nova", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 9,
                              "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 99, "tie_word_embeddings": True},
                             r"a config like this one has (\w+), (\w+), (\w+); 'symflops list'"),
    "a class of one model and the type of another": ({"architectures": ["LlamaForCausalLM"], "model_type": "mistral"}, "which of the two"),
    "nothing": ({"hidden_size": 4}, "says not what it is"),
}


@pytest.mark.parametrize(("config", "message"), NAMED.values(), ids=NAMED)
def test_a_class_is_named_or_refused(config: dict[str, object], message: str) -> None:
    with pytest.raises(SymflopsError, match=message):
        by_config(config)


CONTRADICTIONS = [
    ("llama", {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe"}),
    ("llama", {"model_type": "qwen3_moe"}),
    ("llama", {"_class_name": "QwenImageTransformer2DModel"}),
    ("qwen_image", {"_class_name": "FluxTransformer2DModel"}),
    ("qwen_image", {"architectures": ["LlamaForCausalLM"]}),
]


@pytest.mark.parametrize(("name", "config"), CONTRADICTIONS)
def test_a_spec_that_contradicts_the_config_is_refused(name: str, config: dict[str, object]) -> None:
    with pytest.raises(SymflopsError, match="the config is of the"):
        estimate(config, {}, spec=name)
    catalog = by_config({"architectures": ["LlamaForCausalLM"]})[0]
    with pytest.raises(ValueError, match="the config is of the"):
        catalog.module(name).Sizes.from_config(config)


def test_the_estimator_of_a_class_is_found_from_the_config_alone() -> None:
    small = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 50}
    found = {}
    for name in load("llama").spec.references:
        config = of_class(small, name)
        catalog, spec = by_config(config)
        found[class_in(config)] = estimator(catalog, spec, config, tell=lambda text: None)[1].parameters
    body = found["LlamaModel"]
    assert found == {
        "LlamaForCausalLM": body + 50 * 64,
        "LlamaModel": body,
        "LlamaForSequenceClassification": body + 2 * 64,
        "LlamaForTokenClassification": body + 2 * 64 + 2,
        "LlamaForQuestionAnswering": body + 2 * 64 + 2,
    }


PARTS = """\
language: 2
name: parts
reference:
  mine:Both: {}
  mine:Left: {both: false}
sizes: {D: {key: width, default: 4}, both: {default: true}}
streams: {text: [x], images: [y]}
inputs:
  x: {stream: text, width: D, layout: "b x d"}
  y: {stream: images, width: D, layout: "b y d", when: both}
graph:
  - left: {op: linear, from: x, width: D, to: a}
  - right: {op: linear, from: y, width: D, when: both, to: b}
outputs: [a, b]
"""


def test_a_class_has_the_inputs_streams_and_outputs_of_its_own_graph(tmp_path: Path) -> None:
    path = tmp_path / "parts.yaml"
    path.write_text(PARTS)
    model = load(path)
    both, left = (model.program(config={"architectures": [name]}) for name in ("Both", "Left"))
    found = [[[item.name for item in items] for items in (program.inputs, program.streams)] for program in (both, left)]
    assert found == [[["x", "y"], ["text", "images"]], [["x"], ["text"]]]
    assert model.estimator({"architectures": ["Left"]}).parameters == 4 * 4 + 4
    path.write_text(PARTS.replace("to: a}", "when: both, to: a}"))
    with pytest.raises(SpecError, match="output 'a' is not a value of the graph"):
        load(path).program(config={"architectures": ["Left"]})
