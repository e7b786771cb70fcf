"""``symflops check`` speaks for all configs: it derives the structures that sizes of the declared types decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from symflops.api import load
from symflops.cli.actions.check import findings
from symflops.cli.main import main
from symflops.evaluate.batch import BatchError
from symflops.evaluate.typical_values import typical_batch
from symflops.support.findings import Diagnostic, SpecError
from tests.standalone import published

HEAD = """language: 2
name: small
sizes:
  D: {key: width, default: 4}
  E: {key: other, default: 8}
  L: {key: layers, default: 3}
  flag: {key: flag, default: false}
  maybe: {key: maybe, type: int, optional: true}
  word: {key: word, default: "'a'"}
  kinds: {key: kinds, type: ints, default: [1]}
streams: {text: [x], words: [y]}
inputs: {h: {stream: text, width: D}, t: {stream: words, width: D}}
graph:
"""
TAIL = "outputs: [h]\n"
PICK = "  - kinds: {repeat: kinds, item: k, graph: [{up: {op: linear, from: h, width: D, to: h}}]}\n"


def found_in(folder: Path, graph: str, head: str = HEAD, **more: object) -> list[Diagnostic]:
    """The findings about a graph, without warnings on sizes that it does not read."""
    path = folder / "small.yaml"
    path.write_text(head + graph + TAIL, "utf-8")
    return [one for one in findings(load(path).file, **more) if one.code != "unused-size"]  # type: ignore[arg-type]


def repeated(width: str, count: str = "kinds") -> str:
    """A repeat over the list, whose body carries a value out with ``width``."""
    return f"  - kinds: {{repeat: {count}, graph: [{{up: {{op: linear, from: h, width: D, add_to: h, when: '{width}'}}}}]}}\n"


WRONG = {  # each is right with the defaults
    "a flag": ("  - a: {op: linear, from: h, width: '[D, E][flag]', to: a}\n  - b: {op: add, from: [h, a], to: h}\n", "width-mismatch", "'flag': True"),
    "a word": ("  - a: {op: linear, from: h, width: \"[E, D][word == 'a']\", to: a}\n  - b: {op: add, from: [h, a], to: h}\n", "width-mismatch", "'word': 'other'"),
    "null": ("  - a: {op: linear, from: h, width: '[E, D][maybe == null]', to: a}\n  - b: {op: add, from: [h, a], to: h}\n", "width-mismatch", "'maybe': 2"),
    "the length of a list": (
        "  - a: {op: linear, from: h, width: '[D, E, E][len(kinds[:]) - 1]', to: a}\n  - b: {op: add, from: [h, a], to: h}\n",
        "width-mismatch", "'kinds': (1, 2)",
    ),
    "a flag beside a list": (PICK + "  - a: {op: linear, from: h, width: '[D, E][flag]', to: a}\n  - b: {op: add, from: [h, a], to: h}\n", "width-mismatch", "'flag': True"),
    "a flag behind a flag": (
        "  - a: {op: linear, from: h, width: '[D, [D, E][maybe != null]][flag]', to: a}\n  - b: {op: add, from: [h, a], to: h}\n",
        "width-mismatch", "'flag': True, 'maybe': 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_other_values_is_found(tmp_path: Path, case: str) -> None:
    """A structure that the defaults do not have is derived, and the finding says which config has it."""
    graph, code, config = WRONG[case]
    told = [one for one in found_in(tmp_path, graph) if one.severity == "error"]
    assert [one.code for one in told] == [code], told
    fields = {"flag": "'flag'", "maybe": "'maybe'", "word": "'word'", "kinds": "'kinds'"}
    assert all(field in told[0].note for name, field in fields.items() if field in config) and config in told[0].note, told[0].note


def test_the_other_classes_are_derived(tmp_path: Path) -> None:
    """A mistake in the structure of a class that is not the first."""
    head = HEAD.replace("sizes:\n", "reference: {'a:One': {}, 'a:Two': {head: two}}\nsizes:\n  head: {type: text, default: \"'one'\"}\n")
    graph = "  - a: {op: linear, from: h, width: D, when: head == 'one', to: a}\n  - b: {op: linear, from: a, width: D, to: h}\n"
    (told,) = [one for one in found_in(tmp_path, graph, head) if one.severity == "error"]
    assert told.code == "absent-value" and "Two" in told.note


def test_lengths_of_a_batch_that_fill_a_stack(tmp_path: Path) -> None:
    """What only a late stage refuses."""
    graph = "  - a: {repeat: {axis: x}, graph: [{op: push, from: t, stack: s}]}\n  - b: {repeat: {axis: y, of: t}, graph: [{op: pop, stack: s, to: u}]}\n"
    (told,) = [one for one in found_in(tmp_path, graph) if one.severity == "error"]
    assert told.code == "stack-left" and "batch" in told.message


@pytest.mark.parametrize(
    ("default", "value"),
    [("len(kinds)", 1), ("sum(kinds) + D", 5), ("kinds[0]", 1), ("maybe if maybe != null else 7", 7), ("E if flag else D", 4), ("D if word == 'a' else E", 4)],
)
def test_a_default_may_read_any_size_above_it(tmp_path: Path, default: str, value: int) -> None:
    """Lists, words, flags and nullable sizes."""
    head = HEAD.replace("streams:", f"  K: {{key: count, default: \"{default}\"}}\nstreams:")
    told = found_in(tmp_path, "  - a: {op: linear, from: h, width: K, bias: false, to: h}\n", head)
    assert not [one for one in told if one.severity == "error"], told
    assert load(tmp_path / "small.yaml").estimator({}).parameters == 4 * value


def test_sizes_that_decide_the_structure_are_noted(tmp_path: Path) -> None:
    """What is not closed, and why; nothing is noted where every config has one closed form."""
    (told,) = found_in(tmp_path, PICK)
    assert (told.code, told.severity) == ("structural-size", "note") and told.span is not None and told.span.text == "kinds"
    assert "depends on 'kinds'" in told.message and "the list 'kinds' decides how often this repeats; checked with 1 other value" in told.note
    assert found_in(tmp_path, "  - a: {repeat: L, index: i, graph: [{b: {op: linear, from: h, width: D, to: h, when: i % 2 == 1 or flag}}]}\n") == []


def test_a_config_is_derived_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--config`` derives the structure of a config that is several changes away."""
    graph = "  - a: {op: linear, from: h, width: '[D, E][maybe == 7]', to: a}\n  - b: {op: add, from: [h, a], to: h}\n"
    assert not [one for one in found_in(tmp_path, graph) if one.severity == "error"]
    (tmp_path / "config.json").write_text(json.dumps({"maybe": 7}))
    assert main(["check", str(tmp_path / "small.yaml"), "--config", str(tmp_path / "config.json")]) == 1
    assert "width-mismatch" in capsys.readouterr().err


def test_a_config_says_what_the_defaults_lack(tmp_path: Path) -> None:
    """A spec whose structure needs a list without a default is checked with configs; other sizes may lack defaults, too."""
    head = HEAD.replace("kinds: {key: kinds, type: ints, default: [1]}", "kinds: {key: kinds, type: ints}").replace("default: 8", "default: missing//2")
    head = head.replace("sizes:\n", "sizes:\n  missing: {key: missing}\n")
    (told,) = [one for one in found_in(tmp_path, PICK, head) if one.severity == "error"]
    assert told.code == "structural-size" and "'kinds'" in told.hint
    config = {"kinds": [1, 2], "missing": 4}
    assert not [one for one in found_in(tmp_path, PICK, head, configs=[config]) if one.severity == "error"]
    assert load(tmp_path / "small.yaml").estimator(config).parameters == 2 * 20


@pytest.mark.parametrize("name", ["SwinBackbone", "ConvNextBackbone"])
def test_a_class_whose_size_decides_a_derived_one(name: str) -> None:
    """A derived size is made of one that the class decides and of one of the config: the latter is what must be known."""
    model = load({"SwinBackbone": "swin", "ConvNextBackbone": "convnext"}[name])
    assert dict(model.graph({"architectures": [name]}).fixed)["depths"]


NUMBERED = """language: 2
name: small
sizes: {D: {key: width, default: 4}}
streams: {text: [x], steps: [s]}
inputs: {h: {stream: text, width: D}, num_steps: {stream: steps%s}}
graph:
  - core: {repeat: {axis: s}, shared: true, graph: [{up: {op: linear, from: h, width: D, bias: false, to: h}}]}
outputs: [h]
"""


@pytest.mark.parametrize("layout", ["", ", layout: b s"])
def test_a_batch_says_every_stream_without_a_default(tmp_path: Path, layout: str) -> None:
    """Nothing is counted as 1 unless the spec says so."""
    (tmp_path / "small.yaml").write_text(NUMBERED % layout, "utf-8")
    estimator = load(tmp_path / "small.yaml").estimator({})
    with pytest.raises(BatchError, match="lacks the stream 'steps'"):
        estimator.moments(text=[10])
    assert estimator.forward(estimator.moments(text=[10], steps=[3])) == 3 * 2 * 16 * 10


@pytest.mark.parametrize(("views", "told"), [
    ("  - {op: slice, from: t, axes: {k: k - 1}, to: h}\n", []), ("  - {op: slice, from: t, stream: {m: k}, to: h}\n", []),
    ("  - {op: expand, from: t, stream: {k: k*k}, to: u}\n  - {op: slice, from: u, stream: {m: k - 1}, to: h}\n", ["k"]),
    ("  - {op: slice, from: t, axes: {k: k//2}, to: u}\n  - {op: slice, from: u, stream: {m: k}, to: h}\n", []),
    ("  - {op: slice, from: t, stream: {m: k}, to: u}\n  - {op: expand, from: u, stream: {k: 2*k}, to: u}\n  - {op: slice, from: u, axes: {k: k - 1}, to: h}\n", []),
    ("  - {op: slice, from: t, stream: {m: k}, to: u}\n  - {op: expand, from: u, stream: {k: 2*k}, to: u}\n  - {op: slice, from: u, stream: {m: k}, to: h}\n", ["k"]),
])  # fmt: skip
def test_an_axis_that_hides_a_batch_variable(tmp_path: Path, views: str, told: list[str]) -> None:
    """An axis that is resized goes on to mean its length; one that is made by a formula of its own name hides the variable."""
    head = "language: 2\nname: small\nsizes: {D: {key: width, default: 4}}\nstreams: {text: [k]}\ninputs: {t: {stream: text, width: D}}\ngraph:\n"
    found = [one for one in found_in(tmp_path, views, head) if one.code == "shadowed-length"]
    assert [one.span.text for one in found if one.span] == told, [one.render() for one in found]


@pytest.mark.parametrize("default", [1, 8])
def test_a_stream_has_a_declared_default(tmp_path: Path, default: int) -> None:
    """What a batch leaves out has the length that the spec says: in the interpreter, in modules, and in typical batches."""
    text = (NUMBERED % "").replace("steps: [s]", f"steps: {{over: samples, axes: [s], default: {default}}}")
    (tmp_path / "small.yaml").write_text(text, "utf-8")
    model = load(tmp_path / "small.yaml")
    assert not [one for one in findings(model.file) if one.severity == "error"]
    estimator = model.estimator({})
    assert estimator.forward(estimator.moments(text=[10, 2])) == default * 2 * 16 * 12
    assert estimator.forward(estimator.moments(text=[10, 2], steps=[3, 0])) == 3 * 2 * 16 * 10
    assert f'_columns("steps", steps, 1, len(x_), {default})' in model.structure(targets=("py",)).texts["py"]
    assert typical_batch(model.program()) == {"text": [1024], "steps": [default]}


@pytest.mark.parametrize("default", ["0", "-1", "x", "[1]", "1.5"])
def test_a_default_is_a_whole_number(tmp_path: Path, default: str) -> None:
    """Anything else is a finding."""
    (tmp_path / "small.yaml").write_text((NUMBERED % "").replace("steps: [s]", f"steps: {{over: samples, axes: [s], default: {default}}}"), "utf-8")
    with pytest.raises(SpecError, match="bad-number"):
        load(tmp_path / "small.yaml")


def test_items_of_their_own_may_be_left_out(tmp_path: Path) -> None:
    """A batch without images has none: nothing is counted for them."""
    text = (NUMBERED % "").replace("steps: [s]", "images: {over: images, axes: [s]}").replace("num_steps: {stream: steps}", "pixels: {stream: images, width: D}")
    graph = "graph:\n  - a: {op: linear, from: h, width: D, bias: false, to: h}\n  - b: {op: linear, from: pixels, width: D, bias: false, to: p}\noutputs: [h, p]\n"
    (tmp_path / "small.yaml").write_text(text.partition("graph:")[0] + graph, "utf-8")
    estimator = load(tmp_path / "small.yaml").estimator({})
    assert estimator.forward(estimator.moments(text=[10])) == 2 * 16 * 10
    assert estimator.forward(estimator.moments(text=[10], images=[3, 4])) == 2 * 16 * 17


@pytest.mark.parametrize("batch", [{"steps": 3}, {"steps": [3, 3]}])
def test_one_number_for_all_items(tmp_path: Path, batch: dict[str, Any]) -> None:
    """A batch may have one number for a stream with a default, that of each item: interpreted, and in modules."""
    text = (NUMBERED % "").replace("steps: [s]", "steps: {over: samples, axes: [s], default: 8}")
    (tmp_path / "small.yaml").write_text(text, "utf-8")
    model = load(tmp_path / "small.yaml")
    estimator = model.estimator({})
    assert estimator.forward(estimator.moments(text=[10, 2], **batch)) == 3 * 2 * 16 * 12
    names = vars(published(model.typical()))
    module = names["Estimator"](names["Sizes"].from_config({}))
    assert module.forward(names["moments"](text=[10, 2], **batch)) == 3 * 2 * 16 * 12
    assert module.forward(names["moments"](text={"lengths": [10, 2], "padded": [10, 10]}, **batch)) == 3 * 2 * 16 * 12
    for wrong in (-1, True, 2.5, "3"):
        with pytest.raises((BatchError, ValueError), match="steps"):
            estimator.moments(text=[10, 2], steps=wrong)
        with pytest.raises(ValueError, match="steps"):
            names["moments"](text=[10, 2], steps=wrong)
    with pytest.raises(BatchError, match="text"):
        estimator.moments(text=3)


@pytest.mark.parametrize(
    ("streams", "owners"),
    [
        ("labels: {z: x + 1}, text: [x]", {"text": ("x",), "labels": ()}),
        ("text: [x], labels: [x]", {"text": ("x",), "labels": ()}),
        ("labels: {z: 4*w}, text: [f, h, w]", {"text": ("f", "h", "w"), "labels": ()}),
        ("labels: {q: y + 1, x: x}, text: {s: x + 1, y: y}", {"labels": ("x",), "text": ("y",)}),
    ],
)
def test_streams_share_a_length(tmp_path: Path, streams: str, owners: dict[str, tuple[str, ...]]) -> None:
    """The stream whose axis is the length has it in a batch, wherever it stands."""
    text = f"language: 2\nname: small\nsizes: {{D: {{key: width, default: 4}}}}\nstreams: {{{streams}}}\ninputs: {{t: {{stream: text, width: D}}, l: {{stream: labels, width: D}}}}\n"
    (tmp_path / "small.yaml").write_text(f"{text}graph: [{{a: {{op: linear, from: t, width: D, to: a}}}}, {{b: {{op: linear, from: l, width: D, to: b}}}}]\noutputs: [a, b]\n", "utf-8")
    model = load(tmp_path / "small.yaml")
    assert {stream.name: stream.variables for stream in model.program().streams} == owners
    if not owners["labels"]:
        with pytest.raises(BatchError, match="leave it out"):
            model.estimator({}).moments(text=[[2] * len(owners["text"])], labels=[3])
