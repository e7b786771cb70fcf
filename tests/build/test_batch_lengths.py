"""Lengths of one item where the rows of a batch are taken together, and axes that mean two lengths, are findings with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

HEAD = """language: 2
name: pairs
sizes: {D: {key: width, default: 4}}
streams: {query: [x], document: [y]}
inputs: {q: {stream: query, width: D}, d: {stream: document, width: D}}
graph:
  - {op: flatten_batch, from: q, to: a}
  - {op: flatten_batch, from: d, to: b}
"""
TAIL = "outputs: [s]\n"


def model(entry: str) -> Model:
    source = Source("pairs.yaml", f"{HEAD}  - {entry}\n{TAIL}")
    return Model(SpecFile(Path("."), Path("pairs.yaml"), "pairs.yaml"), read(source, lambda name: None))


def finding(entry: str) -> tuple[str, str, str]:
    with pytest.raises(SpecError) as error:
        model(entry).program(["full"], ["torch"])
    first = error.value.diagnostics[0]
    return first.code, first.message, first.hint


@pytest.mark.parametrize(
    "entry",
    [
        "{op: matmul, from: [a, b], dims: [x, y, D], axes_of: [a, b], like: a, to: s}",
        "{op: matmul, from: [a, b], dims: [tokens, y, D], like: a, to: s}",
        "{op: matmul, from: [a, d], dims: [tokens, D], axes_of: [a], stream: {n: tokens}, to: s}\n  - {op: reshape, from: s, stream: {n: y}, to: s}",
        "{op: matmul, from: [a, b], dims: [tokens, D], stream: {n: y}, to: s}",
        "{op: pad, from: a, axes: {query: 2*x}, to: s}",
        "{op: pad, from: a, axes: {samples: x + samples}, to: s}",
    ],
)
def test_a_length_of_one_item_is_refused_where_all_are_together(entry: str) -> None:
    """Each was accepted, and failed where it was estimated; an axis that is not there is another finding."""
    code, message, hint = finding(entry)
    assert (code == "length-of-items" and "of one item" in message and "tokens" in hint) or (code == "unknown-axis" and "samples" in hint)


@pytest.mark.parametrize("dims", ["[samples, samples, D]", "[tokens, samples, D]"])
def test_an_axis_of_two_lengths_is_refused(dims: str) -> None:
    code, message, hint = finding(f"{{op: matmul, from: [a, b], dims: {dims}, axes_of: [a, b], like: a, to: s}}")
    assert code == "shadowed-length" and "'samples' is an axis of two values" in message and "stream: {m: tokens}" in hint


def test_what_the_hints_say_counts_all_with_all() -> None:
    entry = "{op: reshape, from: b, stream: {m: tokens}, to: b}\n  - {op: matmul, from: [a, b], dims: [tokens, m, D], axes_of: [a, b], like: a, to: s}"
    estimator = model(entry).estimator({"width": 8}, "full", "torch")
    assert estimator.forward(estimator.moments(query=[3, 4], document=[5, 6])) == 2 * 7 * 11 * 8


def test_an_unknown_axis_is_told_with_those_that_there_are() -> None:
    code, _, hint = finding("{op: matmul, from: [q, q], dims: [tokens, rows, D], like: q, to: s}")
    assert code == "unknown-size" and hint.startswith("the axes here are 'x', 'tokens'; or declare it")


def test_the_width_of_a_value_is_a_length() -> None:
    estimator = model("{op: matmul, from: [q, q], dims: [tokens, width(q), width(q)], stream: {}, width: D*D, to: s}").estimator({"width": 8}, "full", "torch")
    assert estimator.forward(estimator.moments(query=[3], document=[1])) == 2 * 3 * 8 * 8
