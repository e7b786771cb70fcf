"""``extends``: a spec as what differs from another one."""

from __future__ import annotations

import pytest

from symflops.build.build import build
from symflops.read.read import read
from symflops.support.findings import Source, SpecError

BASE = """language: 2
name: base
title: the first
reference: transformers.Base
sizes:
  L: {key: layers}
  D: {key: width}
  F: {key: hidden, default: 4*D}
streams: {text: [x]}
inputs:
  t: {stream: text, width: D}
graph:
  - first: {op: linear, from: t, width: D, to: h}
  - blocks:
      repeat: L
      graph:
        - up: {op: linear, from: h, width: F, bias: false, to: u}
        - act: {op: mul, from: u, to: u}
        - down: {op: linear, from: u, width: D, add_to: h}
  - last: {op: linear, from: h, width: 1, to: o}
outputs: [o]
"""


def bases(name: str) -> Source | None:
    return {"base": Source("base.yaml", BASE), "loop": Source("loop.yaml", "language: 2\nname: loop\nextends: loop\n")}.get(name)


def parameters(text: str) -> dict[str, str]:
    spec = read(Source("own.yaml", text), lambda name: None, bases)
    return {str(parameter.path): str(parameter.count) for operator in build(spec).operators() for parameter in operator.parameters}


def findings(text: str) -> dict[str, tuple[int, str]]:
    try:
        parameters(text)
    except SpecError as error:
        return {diagnostic.code: (diagnostic.span.line, diagnostic.hint) for diagnostic in error.diagnostics}
    return {}


def own(*lines: str) -> str:
    return "language: 2\nname: own\nextends: base\n" + "".join(f"{line}\n" for line in lines)


PLAIN = {"first.weight": "D**2", "first.bias": "D", "blocks.*.up.weight": "D*F", "blocks.*.down.weight": "D*F", "blocks.*.down.bias": "D", "last.weight": "D", "last.bias": "1"}


def test_nothing_changed_is_the_other_one_under_another_name():
    assert parameters(own()) == PLAIN
    spec = read(Source("own.yaml", own("reference: transformers.Own")), lambda name: None, bases)
    assert spec.name == "own" and spec.references == ("transformers.Own",) and not spec.title
    assert [source.path for source in spec.sources] == ["own.yaml", "base.yaml"]


def test_a_field_of_an_entry_inside():
    changed = parameters(own("graph:", "  - blocks:", "      graph:", "        - up: {bias: true}"))
    assert changed == {**PLAIN, "blocks.*.up.bias": "F"}


def test_an_entry_replaced_dropped_and_added():
    changed = parameters(own(
        "graph:", "  - first: {op: linear, from: t, width: D, bias: false, to: h}", "  - norm: {op: rms_norm, from: h, to: h, after: blocks}",
        "  - blocks:", "      graph:", "        - act: null", "        - gate: {op: linear, from: h, width: F, to: g, before: up}",
    ))  # fmt: skip
    rest = {name: count for name, count in PLAIN.items() if name != "first.bias"}
    assert changed == {**rest, "norm.weight": "D", "blocks.*.gate.weight": "D*F", "blocks.*.gate.bias": "F"}


def test_sizes_are_merged_by_name():
    spec = read(Source("own.yaml", own("sizes:", "  F: {key: inner}", "  K: {key: kinds}")), lambda name: None, bases)
    assert [(size.name.text, size.keys) for size in spec.sizes] == [("L", ("layers",)), ("D", ("width",)), ("F", ("inner",)), ("K", ("kinds",))]
    assert "unknown-size" in findings(own("sizes:", "  F: null"))


@pytest.mark.parametrize(
    ("text", "code", "line", "hint"),
    [
        (own("graph:", "  - frist: {bias: false}"), "unknown-entry", 5, "did you mean 'first'"),
        (own("graph:", "  - new: {op: mul, from: h}"), "unknown-entry", 5, "'after' or 'before'"),
        (own("graph:", "  - new: {op: mul, from: h, after: blocs}"), "unknown-entry", 5, "did you mean 'blocks'"),
        (own("graph:", "  - first"), "bad-entry", 5, "{op: ...}"),
        ("language: 2\nname: own\nextends: bass\n", "unknown-spec", 3, "symflops list"),
        ("language: 2\nname: own\nextends: [base]\n", "unknown-spec", 3, "symflops list"),
        ("language: 2\nname: own\nextends: loop\n", "unknown-spec", 3, "symflops list"),
    ],
)
def test_mistakes_are_found_at_their_place(text, code, line, hint):
    found = findings(text)
    assert code in found and found[code][0] == line and hint in found[code][1]


def test_of_several_entries_of_a_path_the_one_of_the_same_kind_is_replaced_and_none_is_guessed():
    base = BASE.replace("  - last:", "  - first: {op: mul, from: h, to: h}\n  - last:")
    with pytest.raises(SpecError, match="there are 2 entries 'first' here"):
        read(Source("own.yaml", own("graph:", "  - first: {bias: false}")), lambda name: None, lambda name: Source("base.yaml", base))
    changed = own("graph:", "  - first: {op: linear, from: t, width: D, bias: false, to: h}")
    spec = read(Source("own.yaml", changed), lambda name: None, lambda name: Source("base.yaml", base))
    assert [(entry.path.text, entry.kind.text) for entry in spec.graph if hasattr(entry, "kind")] == [
        ("first", "linear"), ("first", "mul"), ("last", "linear"),
    ]  # fmt: skip
    assert "first.bias" not in {str(item.path) for operator in build(spec).operators() for item in operator.parameters}
