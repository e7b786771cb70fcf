"""What libyaml reads of a spec is what ruamel.yaml reads of it, places and all; the rest is left to ruamel.yaml."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from symflops.read import yaml_nodes
from symflops.read.spec_files import shipped
from symflops.read.yaml_nodes import Mapping, Node, Scalar
from symflops.support.findings import Source, SpecError
from tests.sampling import sampled

TEXTS = [path.read_text("utf-8") for path in sorted(shipped("specs").rglob("*.yaml"))]
PIECES = [*"{}[]:,-?#&*!|>'\"%@` \n\t\r.\\~0aé\x85\u2028\ufeff\U0001f600", "---\n", "...\n", "? ", ": ", "- ", "!!str ", "&a ", "*a", "<<: ", "a:b",
          "{a: b}", "[a, b]", "''", '"\\x41"', "| \n  x\n", "> \n  x\n", "\n    ", "\n\n", " #", "]:", "}:", "- - ", "'a\n b'", '"a\n\n b"', "\\\n"]  # fmt: skip


def told(node: Node) -> Any:
    """A node with its places, which its own comparison leaves out in part."""
    children: Any = node.text if isinstance(node, Scalar) else None
    if children is None:
        children = [(told(key), told(value)) for key, value in node.entries] if isinstance(node, Mapping) else list(map(told, node.items))
    span = node.span
    return type(node).__name__, children, getattr(node, "plain", None), node.extent, (span.line, span.column, span.end)


def by_ruamel(source: Source, monkeypatch: pytest.MonkeyPatch) -> Node | None:
    """The document of ruamel.yaml alone; None if there is a finding."""
    with monkeypatch.context() as patch:
        patch.setattr(yaml_nodes, "_by_libyaml", lambda source: None)
        try:
            document, findings = yaml_nodes._document.__wrapped__(source)
        except SpecError:
            return None
    return None if findings else document


@pytest.mark.parametrize("text", sampled(TEXTS, 6, 1))
def test_each_spec_is_read_by_libyaml(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("spec.yaml", text)
    quick, other = yaml_nodes._by_libyaml(source), by_ruamel(source, monkeypatch)
    assert quick is not None and other is not None
    assert told(quick) == told(other)


@settings(max_examples=400)
@given(st.data())
def test_what_is_written_otherwise_is_read_alike_or_left(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from(TEXTS)).splitlines(keepends=True)
    start = data.draw(st.integers(0, len(lines) - 1))
    text = "".join(lines[start : start + data.draw(st.integers(1, 8))])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + data.draw(st.integers(0, 1)) :]
    source = Source("spec.yaml", text)
    quick = yaml_nodes._by_libyaml(source)
    if quick is not None:
        with pytest.MonkeyPatch.context() as patch:
            other = by_ruamel(source, patch)
        assert other is not None and told(quick) == told(other)


@pytest.mark.parametrize("text", ["|# a\n# b\n", "a: b\n...\n...\n", "a: [? ]\n", "a: [b, ? ]\n", "a: [!!*b :10]\n", "a: !!str b\n", "- a\n-\n", "a: b"])
def test_what_both_read_differently_is_left_to_ruamel(text: str) -> None:
    assert yaml_nodes._by_libyaml(Source("spec.yaml", text)) is None
