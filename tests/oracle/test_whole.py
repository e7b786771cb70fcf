"""Figures of a batch as a whole: products of two numbers of items, totals, and the longest, against a batch that is unrolled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from ruamel.yaml import YAML

from symflops.evaluate.batch import BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.support.findings import SymflopsError
from tests.sampling import draws, sampled
from tests.standalone import published

from .interpreter import run
from .package import CONVENTIONS, REGIME, closed_form, generated, interpreted, program_of, symbolic
from .specs import Case
from .test_agreement import told

HEAD = """
language: 2
name: whole
sizes: {D: width, P: shared, L: layers, p: {key: patch, default: 2}}
streams:
  text: [x]
  images: {over: images, axes: [h, w]}
  grid: {over: once, axes: {h: longest(h)//p, w: longest(w)//p}}
  pair: {over: once, axes: {n: longest(h*w), x: longest(x)}}
inputs:
  t: {stream: text, width: D}
  i: {stream: images, width: 3}
graph:
"""
SPECS = {
    "all_pairs": """
  - last: {op: select, from: t, stream: {one: 1}, to: u}
  - text_projection: {op: linear, from: u, width: P, to: u}
  - mean: {op: pool, from: i, stream: {one: 1}, to: v}
  - image_projection: {op: linear, from: v, width: P, to: v}
  - texts: {op: flatten_batch, from: u, to: texts}
  - images: {op: flatten_batch, from: v, to: pictures}
  - logits: {op: matmul, from: [texts, pictures], dims: [samples, images, P], stream: {a: images, b: samples}, to: o}
  - scale: {op: parameter, shape: "[1]", to: scale}
  - scaled: {op: mul, from: [o, scale], to: o}
outputs: [o]
""",
    "all_tokens": """
  - text_projection: {op: linear, from: t, width: P, to: u}
  - blocks:
      repeat: L
      graph:
        - mlp: {op: linear, from: u, width: P, to: u}
  - sides: {op: pool, from: i, axes: {h: h//p, w: 2}, to: v}
  - join: {op: concat, along: tokens, from: [v, i], to: v}
  - image_projection: {op: linear, from: v, width: P, to: v}
  - words: {op: flatten_batch, from: u, to: words}
  - places: {op: flatten_batch, from: v, to: places}
  - scores: {op: matmul, from: [words, places], dims: [samples, images, P], width: 1, to: o}
  - head: {op: linear, from: o, width: 2, to: o}
outputs: [o]
""",
    "padded": """
  - pad: {op: pad_batch, from: t, to: u}
  - text_projection: {op: linear, from: u, width: P, to: u}
  - image_projection: {op: linear, from: i, width: P, to: v}
  - words: {op: flatten_batch, from: u, to: words}
  - places: {op: flatten_batch, from: v, to: places}
  - scores: {op: matmul, from: [words, places], dims: [samples, images, P], to: o}
  - table: {op: zeros, stream: grid, width: 2, to: corners}
  - head: {op: linear, from: corners, width: 2, to: c}
outputs: [o, c]
""",
    "positions": """
  - table: {op: zeros, stream: grid, width: 2, to: places}
  - frequencies: {op: parameter, shape: "[2, P]", to: f}
  - rope: {op: matmul, from: [places, f], dims: [tokens, 2, P], width: P, to: rope}
  - to_q: {op: linear, from: i, width: P, gate: rope, to: o}
outputs: [o]
""",
    "two_sets": """
  - table: {op: zeros, stream: pair, width: D, to: places}
  - head: {op: linear, from: places, width: P, to: o}
outputs: [o]
""",
}
BATCH = st.fixed_dictionaries({
    "text": st.lists(st.integers(0, 9), max_size=4),
    "images": st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).map(list), max_size=4),
})  # fmt: skip
CONFIG = st.fixed_dictionaries(
    {"width": st.integers(1, 5), "shared": st.integers(1, 5), "layers": st.integers(0, 3)}, optional={"patch": st.integers(1, 4)}
)
TRAIN = st.sampled_from([("*",), ("text_projection.*",), ("image_projection.*",), ("frequencies", "scale", "blocks.*"), ("head.*",)])
PROGRAMS: dict[tuple[str, tuple[str, ...]], Any] = {}
SIZES = {"width": 3, "shared": 2, "layers": 1}


def case(name: str, config: dict[str, Any], batch: dict[str, Any], train: tuple[str, ...] = ("*",), changed: tuple[str, str] = ("", "")) -> Case:
    text = HEAD + SPECS[name]
    assert changed[0] in text
    return Case(YAML(typ="safe").load(text.replace(*changed) if changed[0] else text), config, batch, train)


def compiled(name: str, train: tuple[str, ...] = ("*",)) -> Any:
    if (name, train) not in PROGRAMS:
        PROGRAMS[name, train] = symbolic(case(name, {}, {}, train))
    return PROGRAMS[name, train]


def runnable(name: str, config: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    """The batch, with heights of at least one patch where images are cut into patches; a smaller one is refused."""
    least = config.get("patch", 2) if name == "all_tokens" else 0
    if any(h < least for h, _ in batch["images"]):
        with pytest.raises(BatchError, match=f"needs at least {least}"):
            interpreted(compiled(name), case(name, config, batch), "torch")
    return {**batch, "images": [[max(h, least), w] for h, w in batch["images"]]}


@pytest.mark.parametrize("name", sampled(SPECS, 2, 1))
@draws(15, 40, 40, suppress_health_check=list(HealthCheck))
@given(config=CONFIG, batch=BATCH, train=TRAIN)
def test_ragged_batches(name: str, config: dict[str, Any], batch: dict[str, Any], train: tuple[str, ...]) -> None:
    """The interpreted program and its closed forms."""
    batch = runnable(name, config, batch)
    given_case, program = case(name, config, batch, train), compiled(name, train)
    for convention in CONVENTIONS:
        want = run(given_case.document, config, batch, train=train, convention=convention)
        got = interpreted(program, given_case, convention)
        assert want == got, told(given_case, convention, want, got)
        assert closed_form(program, given_case, convention) == (want.forward, want.backward)


@pytest.mark.parametrize("name", sampled(SPECS, 2, 1))
@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(config=CONFIG, batch=BATCH)
def test_the_generated_module_agrees(name: str, config: dict[str, Any], batch: dict[str, Any]) -> None:
    given_case, program = case(name, config, runnable(name, config, batch)), compiled(name)
    want = interpreted(program, given_case, "torch")
    got = generated(program, given_case, "torch")
    assert want == got, told(given_case, "torch", want, got)


def test_by_hand() -> None:
    """Three texts and two images are six pairs, two batches of them twelve, and one batch of all of them twenty-four."""
    one = {"text": [5, 2, 3], "images": [[2, 2], [1, 4]]}
    both = {stream: items * 2 for stream, items in one.items()}
    per_pair, per_text, per_image = 2 * 2, 2 * 3 * 2, 2 * 3 * 2
    for batch, pairs, times in ((one, 6, 1), (both, 24, 2)):
        found = interpreted(compiled("all_pairs"), case("all_pairs", SIZES, batch), "torch")
        assert found.forward == pairs * per_pair + times * (3 * per_text + 2 * per_image)
        assert found.backward == pairs * 2 * per_pair + times * (3 * per_text + 2 * per_image)


def test_positions_are_computed_once() -> None:
    """However many images a batch has, their grid is that of the longest sides."""
    for images in ([[4, 6]], [[4, 6]] * 3, [[4, 2], [2, 6]]):
        found = interpreted(compiled("positions"), case("positions", SIZES, {"text": [], "images": images}), "torch")
        assert found.forward == 2 * (2 * 3) * 2 * 2 + 2 * 3 * 2 * sum(h * w for h, w in images)


@pytest.mark.parametrize(("name", "whole"), [("all_pairs", "o"), ("positions", "rope")])
def test_moments_of_two_batches_do_not_add(name: str, whole: str) -> None:
    """Neither those of the interpreter nor those of the module."""
    program = compiled(name)
    assert program.whole == (whole,)
    estimator = InterpretedEstimator(program, SIZES, regime=REGIME, convention="torch")
    batch = {"text": [3], "images": [[4, 4]]}
    with pytest.raises(SymflopsError, match=f"do not add .*{whole}"):
        estimator.moments(**batch) + estimator.moments(**batch)
    module = published(program)
    assert whole == module.WHOLE[0]
    with pytest.raises(ValueError, match=f"do not add .*{whole}"):
        module.moments(**batch) + module.moments(**batch)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("all_pairs", "from: [texts, pictures]", "from: [u, v]", "items of images and samples"),
        ("all_pairs", "flatten_batch, from: v", "flatten_batch, from: texts", "'texts' is there once per batch already"),
        ("all_pairs", "flatten_batch, from: v", "flatten_batch, from: v, axes: {h: 2}", "has no field 'axes'"),
        ("all_pairs", "dims: [samples, images, P]", "dims: [samples, pictures, P]", "'pictures' is not declared"),
        ("positions", "h: longest(h)//p,", "h: h//p,", "'h//p' is of one item"),
        ("positions", "h: longest(h)//p,", "h: longest(q)//p,", "'q' is no size"),
        ("two_sets", "longest(h*w)", "longest(h*x)", "lengths of images and samples"),
        ("two_sets", "longest(h*w)", '"longest(h, w)"', "longest takes one length"),
    ],
)
def test_mistakes(name: str, old: str, new: str, told: str) -> None:
    with pytest.raises(SymflopsError, match=told):
        program_of(case(name, SIZES, {}, changed=(old, new)))
