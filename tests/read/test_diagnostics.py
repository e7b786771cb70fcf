"""Mistakes in specs: each is found at its place, says what is wrong, and hints at the fix; none ends in a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.build.build import build
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

HEAD = """language: 2
name: small
sizes:
  L: {key: layers}
  D: {key: width}
  H: {key: heads, default: 2}
  tied: {key: tied, default: false}
streams: {text: [x], image: [z], sample: []}
inputs:
  t: {stream: text, width: D}
  v: {stream: image, width: D}
  s: {stream: sample, width: D}
graph:
"""
TAIL = "outputs: [o]\n"


def findings(text: str) -> list:
    try:
        build(read(Source("small.yaml", text), lambda name: None))
    except SpecError as error:
        return list(error.diagnostics)
    return []


def graph(*lines: str, head: str = HEAD, tail: str = TAIL) -> str:
    return head + "".join(f"  {line}\n" for line in lines) + tail


MISTAKES = {
    "unknown-size": (graph("- a: {op: linear, from: t, width: DD, to: o}"), "DD", "did you mean 'D'"),
    "unknown-value": (graph("- a: {op: linear, from: tt, width: D, to: o}"), "tt", "did you mean 't'"),
    "unknown-operator": (graph("- a: {op: linaer, from: t, width: D, to: o}"), "linaer", "did you mean 'linear'"),
    "unknown-field": (graph("- a: {op: linear, from: t, widht: D, width: D, to: o}"), "widht", "did you mean 'width'"),
    "missing-field": (graph("- a: {op: linear, from: t, to: o}"), "a", "width of the result"),
    "unknown-block": (graph("- a: {block: mlp, from: t, to: o}"), "mlp", "blocks"),
    "unknown-stream": (graph("- a: {op: zeros, stream: txt, width: D, to: o}"), "txt", "did you mean 'text'"),
    "width-mismatch": (graph("- a: {op: linear, from: t, width: 2*D, add_to: t, to: o}"), "t", ""),
    "row-mismatch": (graph("- o: {op: add, from: [t, v]}"), "v]", "expand"),
    "reshape-mismatch": (graph("- o: {op: reshape, from: t, stream: {x: x/2}, width: 3*D}"), "3*D", "expand"),
    "split-mismatch": (graph("- o: {op: linear, from: t, width: 3*D, split: '[D, D]', to: [o, p]}"), "'[D, D]'", ""),
    "head-mismatch": (graph("- o: {op: attention, heads: H, query: t2, key: t2, value: t2}", head=HEAD + "  - t2: {op: linear, from: t, width: D+1}\n"), "H", ""),
    "parameter-twice": (graph("- a: {op: linear, from: t, width: D}", "- a: {op: linear, from: t, width: D, to: o}"), "a", "shared: true"),
    "parameter-shape": (graph("- a: {op: linear, from: t, width: D}", "- b: {op: linear, from: t, width: 2*D, tie: a.weight, to: o}"), "", ""),
    "absent-value": (graph("- a: {op: linear, from: t, width: D, when: tied, to: u}", "- o: {op: linear, from: u, width: D}"), "u", "only if"),
    "result-count": (graph("- a: {op: linear, from: t, width: D, to: [o, p]}"), "o", "to"),
    "index-hides": (graph("- m: {repeat: L, index: D, graph: [a: {op: linear, from: t, width: 3, to: o}]}"), "D", "another letter"),
    "carried-mismatch": (graph("- m: {repeat: L, graph: [a: {op: linear, from: t, width: 2*D, to: t}]}", "- o: {op: mul, from: t}"), "", "bind another one"),
    "index-set-mismatch": (graph("- o: {op: concat, along: tokens, from: [t, i]}", head=HEAD.replace("sample: []}", "sample: [], pics: {over: images, axes: [w]}}").replace("graph:", "  i: {stream: pics, width: D}\ngraph:")), "", ""),
    "bad-expression": (graph("- o: {op: linear, from: t, width: 'D +'}"), "", ""),
    "not-whole": (graph("- o: {op: linear, from: t, width: D/2}"), "D/2", "int(...)"),
    "expression-too-large": (graph("- o: {op: linear, from: t, width: 9**9**9}"), "9**9**9", ""),
    "unknown-function": (graph("- o: {op: linear, from: t, width: floor(D)}"), "floor", "int"),
    "bad-condition": (graph("- o: {op: linear, from: t, width: D, when: D}"), "D", "compare"),
    "unknown-word": (graph("- o: {op: attention, heads: H, mask: casual, query: t, key: t, value: t}"), "casual", "did you mean 'causal'"),
    "duplicate-key": (graph("- o: {op: linear, from: t, width: D, width: D}"), "width", "first one"),
    "bad-yaml": (graph("- o: {op: linear, from: t, width: D"), "", ""),
    "bad-name": (graph("- o: {op: mul, from: t}", head=HEAD.replace("  D: {", "  lambda: {key: q}\n  D: {")), "lambda", "word of Python"),
    "bad-entry": (graph("- o: linear"), "linear", "{op: ...}"),
}  # fmt: skip


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_is_found_at_its_place(code):
    text, under, hint = MISTAKES[code]
    found = [diagnostic for diagnostic in findings(text) if diagnostic.code == code]
    assert found, [diagnostic.render() for diagnostic in findings(text)]
    first = found[0]
    assert first.span is not None and first.message[0].islower() or first.message[0] in "'[0123456789D"
    assert not first.message.endswith(".")
    line = text.split("\n")[first.span.line - 1]
    assert under in line[first.span.column - 1 : first.span.end - 1] or under in line
    assert hint in first.hint + first.message
    rendered = first.render()
    assert rendered.startswith(f"small.yaml:{first.span.line}:{first.span.column}: error[{code}]: ")
    assert any("^" in line for line in rendered.split("\n")[2:])


@pytest.mark.parametrize("heads", ["H+1", "2*H"])
def test_a_derived_width_divides_into_heads_whatever_the_config_says(heads):
    head = HEAD.replace("streams:", "derived: {E: H*D}\nstreams:") + "  - u: {op: linear, from: t, width: E}\n"
    assert not findings(graph("- o: {op: attention, heads: H, query: u, key: u, value: u}", head=head))
    (found,) = findings(graph(f"- o: {{op: attention, heads: {heads}, query: u, key: u, value: u}}", head=head))
    assert found.code == "head-mismatch"


def test_the_rendering_is_as_designed():
    (found,) = findings(graph("- up: {op: linear, from: t, width: D_ff, to: o}"))
    assert found.render() == (
        "small.yaml:14:38: error[unknown-size]: size 'D_ff' is not declared\n"
        "   |\n"
        "14 |   - up: {op: linear, from: t, width: D_ff, to: o}\n"
        "   |                                      ^^^^\n"
        "   = hint: declare it under 'sizes' as 'D_ff: <field of the config>', or derive it under 'derived'; a text has quotes of its own: \"'D_ff'\""
    )


def test_every_mistake_of_a_file_is_told_in_one_run_and_none_follows_from_another():
    found = findings(
        graph(
            "- a: {op: linear, from: t, width: DD, to: p}",
            "- b: {op: linear, from: p, width: D, to: q}",
            "- c: {op: linear, from: q, width: EE, to: r}",
            "- d: {op: linear, from: nobody, width: D, to: o}",
        )
    )
    assert [diagnostic.code for diagnostic in found] == ["unknown-size", "unknown-size", "unknown-value"]


def test_a_swapped_pair_of_carried_values_alternates_and_is_counted():
    text = graph(
        "- p: {op: linear, from: t, width: D}",
        "- m: {repeat: L, graph: [a: {op: mul, from: p, to: q}, b: {op: mul, from: t, to: p}, c: {op: mul, from: q, to: t}]}",
        "- o: {op: linear, from: t, width: D}",
    )
    assert findings(text) == []


def test_a_parameter_may_have_another_shape_where_it_has_not_the_first_one():
    one, other = "- a: {op: linear, from: t, width: D, when: tied, to: o}", "- a: {op: linear, from: t, width: D, shape: '[D, D, 1]', %s}"
    assert findings(graph(one, other % "when: not tied, to: o")) == []
    assert [found.code for found in findings(graph(one, other % "to: o"))] == ["parameter-shape"]


def test_a_size_that_may_be_null_is_a_number_where_it_is_given():
    head = HEAD.replace("  tied:", "  k: {key: k, optional: true}\n  tied:")
    line = "- o: {op: linear, from: t, width: 2*(k if %s else 1)}"
    assert findings(graph(line % "k != null", head=head)) == []
    assert findings(graph(line % "k != null and tied", head=head)) == []
    assert [found.code for found in findings(graph(line % "tied", head=head))] == ["bad-expression"]


def test_a_block_that_is_called_twice_says_so():
    head = HEAD.replace("graph:", "blocks:\n  half: {inputs: [x], outputs: [y], graph: [a: {op: linear, from: x, width: D, to: y}]}\ngraph:")
    one, other = "- m: {block: half, from: t, to: o}", "- m: {block: half, from: v, %sto: q}"
    assert [found.code for found in findings(graph(one, other % "", head=head))] == ["parameter-twice"]
    assert findings(graph(one, other % "shared: true, ", head=head)) == []


def test_a_path_that_holds_an_item_of_a_list_needs_the_list() -> None:
    """The names of parameters are the structure: the list is read from a config before anything is built."""
    text = """language: 2
name: one
sizes: {D: width, sides: {key: sides, default: "[2]"}}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - "embedders.{sides[0]}-{sides[-1]}": {op: linear, from: t, width: D, bias: false, to: t}
outputs: [t]
"""
    model = Model(SpecFile(Path(), Path("one.yaml"), "one.yaml"), read(Source("one.yaml", text), lambda name: None))
    names = [str(parameter.path) for operator in model.graph({"width": 4, "sides": [3, 5]}).operators() for parameter in operator.parameters]
    assert names == ["embedders.3-5.weight"]
