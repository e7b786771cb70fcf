"""Repeats whose iterations would share a parameter by accident: an error that says how to write the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError, SymflopsError

HEAD = """language: 2
name: turns
sizes: {D: {key: width, default: 4}, L: {key: layers, default: 3}, depths: {key: depths, default: [1, 2]}}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
"""
TAIL = "\n  - o: {op: linear, from: t, width: D}\noutputs: [o]\n"
A = "{op: linear, from: t, width: D, bias: false, add_to: t}"


def parameters(body: str, **config: object) -> int:
    text = HEAD + body + TAIL
    model = Model(SpecFile(Path("."), Path("turns.yaml"), "turns.yaml"), read(Source("turns.yaml", text), lambda name: None))
    return model.estimator(config, "full").parameters


def message(body: str, **config: object) -> str:
    with pytest.raises(SpecError) as error:
        parameters(body, **config)
    return str(error.value)


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (f"  - repeat: L\n    graph: [{{a: {A}}}]", "begin the paths in it with its index, as '{j}.name' and 'index: j'"),
        (f"  - repeat: L\n    index: i\n    graph: [{{a: {A}}}]", "as '{i}.name';"),
        (f"  - repeat: depths\n    index: k\n    graph: [{{a: {A}}}]", "as '{k}.name';"),
        (f"  - stages:\n      repeat: depths\n      item: n\n      graph:\n        - repeat: range(n)\n          index: j\n          graph: [{{a: {A}}}]", "as '{j}.name';"),
        (f"  - layers:\n      repeat: L\n      graph: [{{/a: {A}}}]", "if all iterations use one module, write 'shared: true'"),
        (f"  - layers:\n      repeat: L\n      graph: [{{b: {A}}}, {{/a: {A}}}]", "if all iterations use one module, write 'shared: true'"),
    ],
)  # fmt: skip
def test_a_parameter_that_all_iterations_would_share_is_told(body: str, hint: str) -> None:
    found = message(body)
    assert "error[parameter-twice]" in found and hint in found


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (f'  - repeat: L\n    index: i\n    graph: [{{"{{i}}.a": {A}}}]', 3), (f"  - layers: {{repeat: L, graph: [{{a: {A}}}]}}", 3),
        (f"  - layers: {{repeat: L, shared: true, graph: [{{a: {A}}}]}}", 1), (f"  - {{repeat: L, shared: true, graph: [{{a: {A}}}]}}", 1),
        (f'  - stages:\n      repeat: depths\n      item: n\n      graph:\n        - repeat: range(n)\n          index: j\n          graph: [{{"{{j}}.a": {A}}}]', 3),
        (f"  - layers:\n      repeat: L\n      graph: [{{/a: {A.replace('bias: false', 'bias: false, shared: true')}}}]", 1),
        (f"  - cell: {{repeat: {{axis: x}}, graph: [{{a: {A}}}]}}", 1),
        ("  - {repeat: L, graph: [{op: add, from: [t, t], to: t}]}", 0),
    ],
)  # fmt: skip
def test_what_has_an_index_or_is_shared_on_purpose_is_taken(body: str, count: int) -> None:
    assert parameters(body) == 16 * count + 20


@pytest.mark.parametrize("chunks", ["{c: x/L, t: L}", "{c: x//L, t: L}"])
def test_an_axis_of_a_quotient_is_repeated_over(chunks: str) -> None:
    made = "  - {op: reshape, from: t, stream: STREAM, to: s}\n  - {op: zeros, like: t, stream: {}, width: D, to: state}\n  - repeat: {axis: c, of: s}\n    graph: [{a: {op: linear, from: state, width: D, bias: false, to: state}}]"
    head = HEAD.replace("streams:", "requires: {whole chunks: x % L == 0}\nstreams:")
    text = head + made.replace("STREAM", chunks) + TAIL.replace("from: t", "from: state")
    model = Model(SpecFile(Path("."), Path("turns.yaml"), "turns.yaml"), read(Source("turns.yaml", text), lambda name: None))
    found = model.estimator({}, "full", "torch")
    assert found.forward(found.moments(text=[12, 3])) == 2 * ((4 + 1) * 16 + 2 * 16)
    assert found.backward(found.moments(text=[12])) == 2 * (3 * 16 + 4 * 16 + 2 * 16)
    with pytest.raises(SymflopsError, match="whole chunks|does not divide"):
        found.forward(found.moments(text=[10]))
