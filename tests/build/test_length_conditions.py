"""Conditions on lengths under ``requires``: of an item, of the longest, of a batch; in every way that a batch is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from symflops.analysis.explanation import default_batch
from symflops.api import Model
from symflops.emit.javascript.script import render as script
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.typical import example_of
from symflops.formula.table import Formulas
from symflops.library.records.census import spec_digest
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError, SymflopsError
from tests.emit.javascript import value
from tests.standalone import published

SPEC = """language: 2
name: limited
sizes:
  D: {key: width, default: 3}
  X: {key: places, default: 1500}
  Y: {key: most, default: 448}
  S: {key: side, default: 224}
requires:
  "{2*X} frames, {X//50} s": x == 2*X
  "at most {Y} tokens": y <= Y
  "images of {S} x {S}": h == S and w == S
  at least 1 token: longest(y) >= 1
  "{together(h*w//256)} tokens or more": together(y) >= together(h*w//256)
streams: {audio: [x], target: [y], images: {over: images, axes: [h, w]}}
inputs: {a: {stream: audio, width: D}, t: {stream: target, width: D}, i: {stream: images, width: D}}
graph:
  - one: {op: linear, from: a, width: D, to: u}
  - two: {op: linear, from: t, width: D, to: v}
  - three: {op: linear, from: i, width: D, to: w}
outputs: [u, v, w]
"""


def model(text: str) -> Model:
    return Model(SpecFile(Path("."), Path("limited.yaml"), "limited.yaml"), read(Source("limited.yaml", text), lambda name: None))


PROGRAM = model(SPEC).program(["full"], ["torch"])
MODULE = published(PROGRAM)


def estimators(config: dict[str, int]) -> list[Any]:
    module = MODULE.Estimator(MODULE.Sizes.from_config(config), convention="torch")
    return [InterpretedEstimator(PROGRAM, config, convention="torch"), module]


def told(estimator: Any, batch: dict[str, Any]) -> str:
    """The message with which an estimator refuses a batch; empty if it answers."""
    found = []
    for price in (lambda: estimator.forward(estimator.moments(**batch)), lambda: estimator.per_item(**batch)):
        try:
            assert price()
            found.append("")
        except (SymflopsError, ValueError) as error:
            found.append(str(error))
    assert found[0] == found[1]
    return found[0]


def expected(x: list[int], y: list[int], images: list[list[int]], config: dict[str, int]) -> str:
    """What is wrong with a batch, in words; conditions in their order, those of a batch first."""
    most, frames, side = config["most"], 2 * config["places"], config["side"]
    if max(y) < 1:
        return "the batch does not fit the model: the class takes at least 1 token"
    patches = sum(h * w // 256 for h, w in images)
    if images and sum(y) < patches:
        return f"the batch does not fit the model: the class takes {patches} tokens or more"
    for place, length in enumerate(x):
        if length != frames:
            return f"item {place} of 'audio' has length {length}, and the class takes {frames} frames, {frames // 100} s"
    for place, length in enumerate(y):
        if length > most:
            return f"item {place} of 'target' has length {length}, and the class takes at most {most} tokens"
    for place, (h, w) in enumerate(images):
        if (h, w) != (side, side):
            return f"item {place} of 'images' (h = {h}, w = {w}): the class takes images of {side} x {side}"
    return ""


@settings(max_examples=25)
@given(st.data(), st.integers(1, 3), st.integers(1, 4), st.integers(1, 20))
def test_a_batch_is_refused_exactly_if_a_condition_does_not_hold(data: st.DataObject, places: int, most: int, side: int) -> None:
    config = {"places": places, "most": most, "side": side}
    count = data.draw(st.integers(1, 3))
    x = data.draw(st.lists(st.sampled_from([2 * places] * 4 + [2 * places - 1, 2 * places + 1, 0]), min_size=count, max_size=count))
    y = data.draw(st.lists(st.sampled_from([most, most, 1, 0, most + 1]), min_size=count, max_size=count))
    sides = st.sampled_from([side, side, side, side + 1])
    images = data.draw(st.lists(st.tuples(sides, sides).map(list), max_size=2))
    words = expected(x, y, images, config)
    for estimator in estimators(config):
        assert told(estimator, {"audio": x, "target": y, "images": images}) == words
        times = 60  # long enough for vectors
        if images:
            many = {"audio": np.array(x * times), "target": np.array(y * times), "images": np.array(images * times)}
            assert told(estimator, many) == expected(x * times, y * times, images * times, config)


def test_padded_lengths_are_lengths_too_and_no_items_are_nothing_to_refuse() -> None:
    for estimator in estimators({}):
        padded = {"audio": [3000], "target": {"lengths": [400], "padded": [449]}}
        assert "length 449, and the class takes at most 448 tokens" in told(estimator, padded)
        assert not told(estimator, {"audio": [3000, 3000], "target": [5, 0]})
        assert estimator.forward(estimator.moments(audio=[], target=[])) == 0


def test_a_batch_of_padding_alone_runs_on_its_padding() -> None:
    for estimator in estimators({}):
        fits, alone = ({"audio": [3000], "target": {"lengths": [0], "padded": [padded]}} for padded in (5, 0))
        assert not told(estimator, fits) and told(estimator, alone) == "the batch does not fit the model: the class takes at least 1 token"
        assert estimator.total(estimator.moments(**fits)) == sum(map(sum, estimator.per_item(**fits).values())) == 2 * 2 * 3 * 3 * 3005
        assert told(estimator, {"audio": [3000], "target": [0]})


def test_where_no_example_fits_the_error_comes_without_one() -> None:
    """The lengths that the class takes are longer than any list may hold."""
    with pytest.raises(SymflopsError, match="'audio' must be a list") as error:
        estimators({"places": 10**13})[0].moments(audio="x", target=[3])
    assert "e.g." not in str(error.value)


def test_examples_and_typical_batches_fit() -> None:
    for estimator in estimators({}):
        assert example_of(estimator) == '{"audio": [3000, 3000], "target": [448, 448]}'
        with pytest.raises((SymflopsError, ValueError), match="e.g. .*3000, 3000"):
            estimator.moments(audio="x", target=[3])
    assert default_batch(estimators({})[0]) == {"audio": [3000], "target": [448], "images": [[224, 224]]}


def test_the_script_has_the_same_conditions() -> None:
    text = script(PROGRAM, "0")
    rows = text.partition("const $inner")[2].partition("];\n  };")[0].splitlines()
    found = [row.strip().removesuffix("],").partition("=> ")[2].partition(", `") for row in rows if "=>" in row and row.strip().startswith("[[")]
    names = {"X": 1500, "Y": 448, "S": 224, "x": 3000, "y": 448, "h": 224, "w": 224}
    assert [words.rstrip("`") for _, _, words in found] == ["${2n*X} frames, ${$div(X, 50n)} s", "at most ${Y} tokens", "images of ${S} x ${S}"]
    for place, letter in enumerate("xyw"):
        shown = found[place][0].removeprefix("BigInt(").removesuffix(")") if found[place][0].startswith("BigInt(") else found[place][0]
        assert value(shown, names) == 1 and value(shown, names | {letter: names[letter] + 1}) == 0
    assert "longest_y = $largest([$c.y], (y) => y)" in text and "`at least 1 token`" in text


def test_formulas_of_conditions_are_stored() -> None:
    from symflops.ir.serialise import document_of, program_of

    again = program_of(document_of(PROGRAM))
    assert again.inner == PROGRAM.inner and again.conditions == PROGRAM.conditions and len(again.conditions) == 2
    assert Formulas(document_of(PROGRAM)["formulas"]).nodes


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("x == h", "compares items of several sets"), ("x <= longest(y)", "compares items of several sets, or of a batch"),
        ("together(D) > 1", "together takes a length of items"), ("longest(x, y) > 1", "longest takes one length"),
        ("together(x*h) > 1", "these are lengths of images and samples"), ("x", "is no condition"), ("q > 1", "'q'"),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_a_finding(condition: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        model(SPEC.replace("y <= Y", f'"{condition}"')).program(["full"], ["torch"])


def test_words_hold_whole_numbers() -> None:
    with pytest.raises(SpecError, match="is no whole number"):
        model(SPEC.replace("at most {Y} tokens", "at most {Y/2} tokens")).program(["full"], ["torch"])
    odd = model(SPEC.replace("at most {Y} tokens", "at most }{ {Y} `$")).estimator({})
    assert "takes at most }{ 448 `$" in told(odd, {"audio": [3000], "target": [449]})


def test_conditions_on_lengths_make_no_census_stale() -> None:
    kept = spec_digest(model(SPEC).spec)
    assert kept == spec_digest(model(SPEC.replace("y <= Y", "y <= Y + 1")).spec)
    assert kept != spec_digest(model(SPEC.replace("y <= Y", "D >= 2")).spec)
