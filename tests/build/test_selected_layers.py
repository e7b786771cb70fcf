"""Conditions that choose single layers, with what guards them: the closed forms count the layers that Python counts one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from symflops.api import Model
from symflops.build.build import build
from symflops.ir.graph import Graph
from symflops.ir.nodes import Loop
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

HEAD = """language: 2
name: chosen
sizes:
  L: {key: layers, default: 3}
  D: {key: width, default: 4}
  s: {key: step, default: 2}
  k: {key: first, default: 1}
  wide: {key: wide, default: false}
  dense: {key: dense, default: []}
  moe: {key: moe, type: ints, optional: true}
  kinds: {key: kinds, type: texts, optional: true}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
"""
FIELDS = {"L": "layers", "s": "step", "k": "first", "wide": "wide", "dense": "dense", "moe": "moe", "kinds": "kinds"}
ATOMS = (
    "wide", "i < k", "i == k", "(i+1) % s == 0", "i % 2 == 0", "i in dense",
    "(i in moe if moe != null else (i+1) % s == 0)", "(kinds[i] == 'a' if kinds != null else i % 2 == 0)",
    "(kinds != null and kinds[i] == 'b')",
)  # fmt: skip
CONDITIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} and {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} or {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} if wide else {two[1]})"),
    ),
    max_leaves=3,
)


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, object]:
    layers = draw(st.integers(0, 7))
    some = st.lists(st.integers(0, 8), unique=True)
    return {
        "L": layers,
        "s": draw(st.integers(1, 4)),
        "k": draw(st.integers(0, 8)),
        "wide": draw(st.booleans()),
        "dense": draw(some),
        "moe": draw(st.none() | some),
        "kinds": draw(st.none() | st.lists(st.sampled_from("abc"), min_size=layers, max_size=layers)),
    }


LINEAR = "op: linear, from: t, bias: false"


def layers(*entries: str) -> Model:
    """A model of layers with some entries, of which conditions on the index choose."""
    body = "".join(f"        - {entry}\n" for entry in entries)
    text = f"{HEAD}  - layers:\n      repeat: L\n      index: i\n      graph:\n{body}  - o: {{{LINEAR}, width: D}}\noutputs: [o]\n"
    return Model(SpecFile(Path("."), Path("chosen.yaml"), "chosen.yaml"), read(Source("chosen.yaml", text), lambda name: None))


def model(first: str, second: str) -> Model:
    """Layers of which some have a linear, a wide one or a narrow one, and some another one."""
    return layers(
        f'a: {{{LINEAR}, width: D, add_to: t, when: "{first}"}}',
        f'b: {{{LINEAR}, width: "2*D if ({second}) else D"}}',
        f'c: {{{LINEAR}, width: 3*D, when: "({first}) and not ({second})"}}',
    )


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(CONDITIONS, st.sampled_from(ATOMS), st.lists(sizes(), min_size=4, max_size=4))
def test_closed_forms_count_the_layers_that_conditions_choose(first: str, second: str, configs: list[dict[str, object]]) -> None:
    try:
        made = model(first, second)
        estimators = [made.estimator({FIELDS[name]: value for name, value in config.items()}, "full") for config in configs]
    except SpecError as error:
        assert "too many different conditions" in str(error)  # the one thing that a repeat may refuse here
        return
    for config, estimator in zip(configs, estimators, strict=True):
        total = 16
        for i in range(int(str(config["L"]))):
            one, two = (bool(eval(text, {"null": None, "i": i, **config})) for text in (first, second))
            total += 16 * one + (32 if two else 16) + 48 * (one and not two)
        assert estimator.parameters == total, (first, second, config)


def test_a_guarded_choice_is_one_condition() -> None:
    """Five fields choose the layers of two kinds: four classes of layers, where single conditions would make 32."""
    chunks = "kinds[i] == 'a' if kinds != null else (i in dense if wide else (i+1) % s == 0)"
    experts = "i in moe if moe != null else i % 2 == 0"
    graph = build(layers(f'a: {{{LINEAR}, width: D, when: "{chunks}"}}', f'b: {{{LINEAR}, width: D, when: "{experts}"}}').spec)
    assert isinstance(graph, Graph)
    assert [len(loop.classes) for loop in graph.body if isinstance(loop, Loop)] == [4]


def test_what_chooses_layers_in_too_many_ways_is_told() -> None:
    many = "(i in dense or i in moe) and (kinds[i] == 'a' or kinds[i] == 'b') or (i+1) % s == 0 or i % 2 == 0"
    with pytest.raises(SpecError, match="too many different conditions"):
        model("i in dense", many).typical()
