"""Inputs with a name: each ends quickly, in little memory, in the diagnostic that it should."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import parse_expression
from symflops.library import lookup, naming
from symflops.read.spec_files import find_spec
from symflops.read.yaml_nodes import read_yaml
from symflops.support.findings import Source, SpecError, SymflopsError
from tests.fuzz.cases import NAMES, SPAN
from tests.fuzz.guard import SECONDS, Limits

HEAD = "language: 2\nname: small\nsizes: {L: {key: layers, default: 2}, D: {key: width, default: 4}}\nstreams: {text: [x], sample: []}\ninputs: {t: {stream: text, width: D}, s: {stream: sample, width: D}}\n"
GOOD = HEAD + "graph:\n  - o: {op: linear, from: t, width: D}\noutputs: [o]\n"


@pytest.fixture
def spec(tmp_path):
    def write(data: str | bytes):
        path = tmp_path / "small.yaml"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def codes(path) -> set[str]:
    """The codes of the findings about a spec, within the limits of a case."""
    with Limits(), pytest.raises(SymflopsError) as caught:
        load(path).graph({})
    return {diagnostic.code for diagnostic in caught.value.diagnostics} if isinstance(caught.value, SpecError) else {str(caught.value)}


def graph(*entries: str) -> str:
    return HEAD + "graph:\n" + "".join(f"  - {entry}\n" for entry in entries) + "outputs: [o]\n"


EXPRESSIONS = {
    "9**9**9": "expression-too-large",
    "(9**16)**16": "expression-too-large",
    "10**16*10**16*10**16*10**16*10**16*10**16*10**16*10**16*10**16*10**16": "expression-too-large",
    "range(10**9)": "bad-expression",
    "per(1, 10**9)": "bad-expression",
    "9" * 300: "expression-too-large",
    "(" * 250: "bad-expression",
    "not " * 90 + "tied": "expression-too-large",
    "-" * 300 + "1": "expression-too-large",
    "1/0": "bad-expression",
    "1e999": "bad-expression",
    "sum()": "bad-expression",
    "__import__('os').system('true')": "bad-expression",
    "().__class__": "bad-expression",
    "open('x', 'w')": "unknown-function",
    "eval('1')": "unknown-function",
    "lambda: 1": "bad-expression",
    "[i for i in range(3) for j in range(3)]": "bad-expression",
    "(x := 3)": "bad-expression",
    "f'{L}'": "bad-expression",
    "L\x00": "bad-expression",
    "𝐋": "bad-expression",
}  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS, ids=lambda text: text[:24])
def test_an_expression_is_refused(text):
    with Limits(megabytes=100), pytest.raises(SpecError) as caught:
        evaluate(parse_expression(text, SPAN), NAMES)
    assert caught.value.diagnostics[0].code == EXPRESSIONS[text]


def test_a_billion_laughs():
    lines = ["a0: &a0 [lol, lol]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 30)]
    with Limits(), pytest.raises(SpecError, match="anchors and aliases"):
        read_yaml(Source("x.yaml", "\n".join(lines)))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
@pytest.mark.parametrize("depth", [100, 100_000, 1_000_000])
def test_deep_nesting_in_a_spec(spec, opening, depth):
    found = codes(spec("graph: " + "\n" * (opening in "- ? ") + opening * depth))
    assert found & {"too-deep", "file-too-large", "bad-yaml"} or "larger than 4,000,000 bytes" in "".join(found)


@pytest.mark.parametrize("text", ["[" * 10**6, '{"a":' * 10**6, "[" * 10**6 + "]" * 10**6])
def test_deep_nesting_in_json(tmp_path, text, capsys):
    path = tmp_path / "config.json"
    path.write_text(text)
    with Limits(), pytest.raises(SymflopsError, match="nests deeper"):
        lookup.read_config(str(path))
    assert main(["estimate", "llama", "--batch", f"@{path}"]) == 2
    assert "nests deeper" in capsys.readouterr().err


def test_fifty_megabytes_are_not_read(spec):
    path = spec(b"# " + b"x" * 50 * 2**20)
    with Limits(megabytes=20), pytest.raises(SymflopsError, match="larger than 4,000,000 bytes"):
        find_spec(path).source()
    done = subprocess.run([sys.executable, "-m", "symflops.cli.main", "check", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and "larger than 4,000,000 bytes" in done.stderr and "Traceback" not in done.stderr


def test_a_file_between_the_two_bounds(spec):
    assert codes(spec(GOOD + "# " + "x" * 1_500_000)) == {"file-too-large"}


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", GOOD.encode().replace(b"small", b"sm\xc3"), b"\x80" * 100])
def test_bytes_that_are_not_utf8(spec, data):
    assert "not UTF-8" in "".join(codes(spec(data)))


def test_zero_bytes(spec):
    assert codes(spec(GOOD.replace("text", "te\x00xt"))) == {"bad-yaml"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, -(10**30), 10**15, 10**400, "7", [7], {"a": 7}, True])
@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "vocab_size"])
def test_sizes_that_are_none(tmp_path, key, value, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value}))
    assert main(["estimate", "llama", "--config", str(path), "--batch", '{"text": [3]}']) == 2
    assert f"'{key}'" in capsys.readouterr().err


@pytest.mark.parametrize("batch", ['{"text": [NaN]}', '{"text": [-1]}', '{"text": [Infinity]}', '{"text": [0.5]}', '{"text": ["3"]}', '{"text": 10000000000}', '{"text": {"lengths": 3}}', '{"text": [[[1]]]}', '{"text": null}', '{"": [1]}', '"x"', "x", '{"text": [true]}'])
def test_batches_that_are_none(batch, capsys):
    with Limits():
        assert main(["estimate", "llama", "--batch", batch]) == 2
    assert capsys.readouterr().err


def test_an_operand_list_that_is_empty(spec):
    assert codes(spec(graph("o: {op: attention, heads: 2, query: t, key: t, value: []}"))) == {"missing-field"}


def test_an_enormous_repeat_of_equal_layers_is_a_number(spec):
    model = load(spec(graph("m: {repeat: L, graph: [a: {op: linear, from: t, width: D, to: t}]}", "o: {op: linear, from: t, width: D}")))
    with Limits():
        assert model.estimator({"layers": 10**5}).parameters == (10**5 + 1) * (16 + 4)
        with pytest.raises(SymflopsError, match="layers"):
            model.estimator({"layers": 10**14})


def test_range_of_a_billion(spec):
    assert codes(spec(graph("m: {repeat: range(10**9), graph: [a: {op: linear, from: t, width: D, to: t}]}", "o: {op: mul, from: t}"))) == {"bad-expression"}


def test_a_hundred_thousand_entries(spec):
    assert codes(spec(graph(*["o: {op: mul, from: t}"] * 100_000))) == {"file-too-large"}


@pytest.mark.parametrize("blocks", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a"}])
def test_blocks_that_call_themselves(spec, blocks):
    bodies = "".join(f"  {name}: {{inputs: [x], outputs: [y], graph: [m: {{block: {other}, from: x, to: y}}]}}\n" for name, other in blocks.items())
    assert codes(spec(graph("o: {block: a, from: t}").replace("graph:\n", f"blocks:\n{bodies}graph:\n", 1))) == {"recursive-block"}


@pytest.mark.parametrize("width", ["false", "[]", "[D]", "null", "'a'"])
def test_a_width_that_is_no_number(spec, width):
    assert codes(spec(GOOD.replace("width: D}, s", f"width: {width}}}, s")))


def test_an_enormous_repeat_that_must_be_written_out(spec):
    model = load(spec(graph("m: {repeat: L, graph: [a: {op: mul, from: s2, to: q}, b: {op: mul, from: s, to: s2}]}", "o: {op: linear, from: t, width: D}").replace("graph:\n", "graph:\n  - s2: {op: linear, from: s, width: D}\n", 1).replace("repeat: L", 'repeat: L, index: i').replace("to: q}", "to: q, when: '[1, 2][i % 2] == 1'}")))
    with Limits(), pytest.raises(SymflopsError):
        model.estimator({"layers": 10**14})


def test_an_enormous_number_of_layers_that_are_counted_one_by_one(tmp_path):
    with Limits(), pytest.raises(SymflopsError):
        naming.estimate({"num_hidden_layers": 10**12}, {"text": [3]}, spec="qwen3_moe")


def test_a_config_field_named_like_a_word_of_python_is_an_argument_of_another_name(spec, tmp_path, capsys):
    path = spec(GOOD.replace("key: width", "key: else"))
    assert main(["generate", str(path), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    (module,) = (tmp_path / "out").rglob("small.py")
    text = module.read_text("utf-8")
    compile(text, str(module), "exec")
    assert "else_D" in text


@pytest.mark.parametrize(("before", "after"), [("width, default: 4", "width, default: 2.5"), ("layers, default: 2", "layers, default: 2.5")])
def test_a_fraction_where_a_whole_number_is_needed(spec, before, after):
    text = graph("m: {repeat: L, graph: [a: {op: linear, from: t, width: D, to: t}]}", "o: {op: linear, from: t, width: D}")
    assert before in text and codes(spec(text.replace(before, after)))


def test_a_list_that_decides_each_of_many_written_out_layers(tmp_path):
    """Whether a layer exists is asked of a list, in a repeat that an alternating window writes out: the list is known, too."""
    path = tmp_path / "long.yaml"
    path.write_text(LONG)
    config = {"layers": 200, "listed": [1, 3], "width": 8}
    with Limits(3 * SECONDS):
        estimator = load(path).estimator(config, convention="torch")
    assert estimator.parameters == 200 * 3 * 8 * (8 + 1) + 2 * 3 * 8 * (8 + 1)
    with Limits(3 * SECONDS), pytest.raises(SpecError, match="gives the count"):
        load(path).program()


LONG = """language: 2
name: long
sizes:
  L: {key: layers}
  D: {key: width}
  listed: {key: listed, default: "[]"}
streams: {text: [x]}
inputs: {h: {stream: text, width: D}}
graph:
  - m:
      repeat: L
      index: i
      graph:
        - qkv: {op: linear, from: h, width: 3*D, split: [D, D, D], to: [q, k, v]}
        - attn: {op: attention, heads: 2, mask: causal, sliding: "4 if i % 2 == 0 else null", query: q, key: k, value: v, to: o}
        - one: {op: linear, from: o, width: D, when: i in listed or i >= L-1, add_to: h}
        - two: {op: linear, from: o, width: D, when: i in listed or i >= L-1, add_to: h}
outputs: [h]
"""


@pytest.mark.parametrize("value", [[[[1]]], [[2, 3]], [[]]])
def test_a_list_where_a_path_asks_for_a_number(value):
    with pytest.raises(SymflopsError):
        load("z_image").estimator({"all_patch_size": [2], "all_f_patch_size": value})


def test_a_name_that_is_too_long_for_a_file(spec, capsys):
    name = "x" * 400
    assert "unknown-spec" in codes(spec(f"language: 2\nname: small\nextends: {name}\n"))
    assert codes(spec(GOOD.replace("{op: linear, from: t, width: D}", f"{{block: {name}, from: t}}"))) == {"unknown-block"}
    for argument in (name, f"{name}.yaml", f"./{name}"):
        assert main(["check", argument]) == 2
        assert "there is no" in capsys.readouterr().err
