"""Batches whose items a model pads to the longest: executed and useful work, item by item; and moments that do not add."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from ruamel.yaml import YAML

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
name: padded
sizes: {D: width, H: heads, L: layers, p: {key: patch, default: 2}}
streams: {text: [x], prompt: {y: "round_up(y, 4)"}, pictures: {over: pictures, axes: [h, w]}, sample: []}
inputs:
  t: {stream: text, width: D}
  s: {stream: prompt, width: 3}
  v: {stream: pictures, width: 2}
  e: {stream: sample, width: D}
graph:
"""
ATTENTION = """
  - q: {op: linear, from: %(x)s, width: H*2, to: q}
  - k: {op: linear, from: %(x)s, width: H*2, to: k}
  - v: {op: linear, from: %(x)s, width: H*2, to: u}
  - attn: {op: attention, heads: H, query: q, key: k, value: u%(more)s, to: a}
  - out: {op: linear, from: a, width: D, gate: e, add_to: %(x)s}
"""
SPECS = {
    "tokens": """
  - embed: {op: linear, from: t, width: D, to: rows}
  - pad: {op: pad_batch, from: rows, to: rows}
  - norm: {op: rms_norm, from: rows, with: e, to: rows}
""" + ATTENTION % {"x": "rows", "more": ", mask: causal, sliding: 3"} + """
  - crop: {op: slice, from: rows, like: t, to: h}
  - head: {op: linear, from: h, width: 5, to: o}
outputs: [o]
""",
    "joint": """
  - embed: {op: linear, from: s, width: D, to: txt}
  - pad: {op: pad_batch, from: txt, to: rows}
  - refiner:
      repeat: L
      graph:
        - mlp: {op: linear, from: rows, width: D, to: rows}
  - crop: {op: slice, from: rows, like: txt, to: txt}
  - join: {op: concat, along: tokens, from: [t, txt], to: joint}
  - pad: {op: pad_batch, from: joint, to: joint}
""" + ATTENTION % {"x": "joint", "more": ""} + """
  - pool: {op: select, from: joint, stream: sample, to: first}
  - head: {op: linear, from: first, width: 5, to: o}
outputs: [o]
""",
    "memory": """
  - pad: {op: pad_batch, from: s, to: memory}
  - q: {op: linear, from: t, width: H*2, to: q}
  - k: {op: linear, from: memory, width: H*2, to: k}
  - v: {op: linear, from: s, width: H*2, to: u}
  - spread: {op: pad_batch, from: u, to: u}
  - attn: {op: attention, heads: H, query: q, key: k, value: u, to: o}
outputs: [o]
""",
    "pictures": """
  - pad: {op: pad_batch, from: v, to: v}
  - conv: {op: linear, from: v, width: D, to: v}
  - merge: {op: pool, from: v, axes: {h: h//p, w: w//p}, to: m}
  - mlp: {op: linear, from: m, width: D, to: m}
""" + ATTENTION.replace("gate: e, ", "") % {"x": "m", "more": ", fold: [h]"} + """
outputs: [m]
""",
}  # fmt: skip
BATCH = st.integers(0, 4).flatmap(
    lambda count: st.fixed_dictionaries({
        "text": st.lists(st.integers(0, 9), min_size=count, max_size=count),
        "prompt": st.lists(st.integers(0, 9), min_size=count, max_size=count),
        "pictures": st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).map(list), max_size=3),
    })
)  # fmt: skip
CONFIG = st.fixed_dictionaries(
    {"width": st.integers(1, 5), "heads": st.integers(1, 3), "layers": st.integers(0, 3)}, optional={"patch": st.integers(1, 4)}
)
TRAIN = st.sampled_from([("*",), ("out.*",), ("embed.*",), ("k.*", "head.*"), ("mlp.*", "refiner.*")])
PROGRAMS: dict[tuple[str, tuple[str, ...]], Any] = {}


def case(name: str, config: dict[str, Any], batch: dict[str, Any], train: tuple[str, ...] = ("*",)) -> Case:
    return Case(YAML(typ="safe").load(HEAD + SPECS[name]), config, batch, train)


def compiled(name: str, train: tuple[str, ...] = ("*",)) -> Any:
    if (name, train) not in PROGRAMS:
        PROGRAMS[name, train] = symbolic(case(name, {}, {}, train))
    return PROGRAMS[name, train]


@pytest.mark.parametrize("name", sampled(SPECS, 2, 1))
@draws(30, 100, 100, suppress_health_check=list(HealthCheck))
@given(config=CONFIG, batch=BATCH, train=TRAIN)
def test_ragged_batches_item_by_item(name: str, config: dict[str, Any], batch: dict[str, Any], train: tuple[str, ...]) -> None:
    """The interpreted program and its closed forms."""
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
    given_case, program = case(name, config, batch), compiled(name)
    for convention in CONVENTIONS:
        want = interpreted(program, given_case, convention)
        got = generated(program, given_case, convention)
        assert want == got, told(given_case, convention, want, got)


def test_by_hand() -> None:
    """Three items of 5, 2 and 3 tokens run as three of 5; useful are 10 rows and 5*5 + 2*2 + 3*3 pairs."""
    one = case("joint", {"width": 4, "heads": 1, "layers": 1}, {"text": [5, 2, 3], "prompt": [0, 0, 0], "pictures": []})
    program = compiled("joint")
    head, rows, pairs = 2 * 3 * 4 * 5, 2 * 4 * (2 + 2 + 2 + 2), 2 * 2 * 2
    assert interpreted(program, one, "torch").forward == head + rows * 15 + pairs * 75
    assert interpreted(program, one, "symflops").forward == head + rows * 10 + pairs * 38


def test_items_of_one_length_have_no_padding() -> None:
    """Then both conventions agree."""
    one = case("joint", {"width": 4, "heads": 1, "layers": 2}, {"text": [5] * 3, "prompt": [8] * 3, "pictures": []})
    first, second = (interpreted(compiled("joint"), one, convention) for convention in CONVENTIONS)
    assert first == second


def test_moments_of_two_batches_do_not_add() -> None:
    """Neither those of the interpreter nor those of the module; the FLOPs of the batches do."""
    program = compiled("tokens")
    estimator = InterpretedEstimator(program, {"width": 3, "heads": 1, "layers": 1}, regime=REGIME, convention="torch")
    one, two = ({"text": [x], "prompt": [1], "pictures": []} for x in (3, 7))
    with pytest.raises(SymflopsError, match="do not add .*padded_x"):
        estimator.moments(**one) + estimator.moments(**two)
    both = {"text": [3, 7], "prompt": [1, 1], "pictures": []}
    apart = sum(estimator.forward(estimator.moments(**batch)) for batch in (one, two))
    assert estimator.forward(estimator.moments(**both)) > apart
    module = published(program)
    first, second = module.moments(**one), module.moments(**two)
    assert set(module.WHOLE) < set(first.as_dict())
    with pytest.raises(ValueError, match="do not add .*padded_x"):
        first + second


@pytest.mark.parametrize("name", sampled(SPECS, 2, 1))
def test_useful_work_knows_nothing_of_other_items(name: str) -> None:
    """The closed forms of the convention that counts useful work hold no moment of a batch as a whole."""
    program = compiled(name)
    assert program.whole
    for form in program.cases:
        held = {program.moments[position].name for position, _ in (*form.forward, *form.backward)}
        assert held.isdisjoint(program.whole) == (form.convention == "symflops")


def test_what_is_padded_meets_only_what_is_padded() -> None:
    """Rows of a padded value are not those of one that is not."""
    document = case("tokens", {}, {}).document
    document["graph"].append({"mix": {"op": "add", "from": ["rows", "t"], "to": "o"}})
    with pytest.raises(SymflopsError, match="'rows' has rows longest"):
        program_of(Case(document, {"width": 3, "heads": 1, "layers": 1}, {}, ("*",)))
