"""What a regime may cost is bounded: every page of legal size is derived in seconds, or refused with the limit."""

from __future__ import annotations

import pytest

from symflops.api import load
from symflops.compiler import Goal, Request, compile_spec
from symflops.ir.patterns import MOST_SPELLED, Path, spelled
from symflops.read.regimes import MOST_ADAPTERS, MOST_LETTERS, MOST_PATTERNS, MOST_PHASES, read_regime
from symflops.support.findings import Source, SpecError
from tests.fuzz.guard import Limits
from tests.sampling import sampled
from tests.shipped import load as shipped


def listed(patterns) -> str:
    return "[" + ", ".join(f'"{pattern}"' for pattern in patterns) + "]"


def adapters(count: int, target: str) -> str:
    return "adapters: [" + ", ".join([f'{{targets: ["{target}"]}}'] * count) + "]"


LARGE = {
    "a thousand patterns": ("train: " + listed(["*", *(f"none.{i}.*" for i in range(MOST_PATTERNS))]), "at most 1,000 texts"),
    "a long pattern": ("train: " + listed(["a" * (MOST_LETTERS + 1)]), "at most 500 characters"),
    "adapters": (adapters(MOST_ADAPTERS + 1, "*.mlp.*"), "at most 16 adapters"),
    "phases": ("phases: [" + "{regime: forward}, " * (MOST_PHASES + 1) + "]", "at most 16 phases"),
    "single layers": ("train: " + listed(f"*.layers.{i}.*" for i in range(0, 800, 2)), "more than 256 segments"),
    "layers from both ends": ("train: " + listed(f"*.layers.{sign}{i}.*" for i in range(1, 40, 2) for sign in ("", "-")), "more than 256 segments"),
    "groups": ("recompute: {groups: " + listed(f"model.layers.{i}" for i in range(0, 800, 2)) + "}", "more than 256 segments"),
    "times": ("phases: [{regime: forward, times: 1000001}]", "at most a million"),
    "a digit of another script": ("adapters: [{targets: [x], rank: ²}]", "a whole number"),
}


@pytest.mark.parametrize("name", sampled(list(LARGE), 12, 2))
@pytest.mark.parametrize("config", [None, {}], ids=["symbolic", "numbers"])
def test_a_regime_that_is_too_large_is_refused_with_the_limit(name, config):
    text, told = LARGE[name]
    load("llama").program(["full"], config=config)
    with Limits(10, 300), pytest.raises(SpecError) as caught:
        load("llama").program([read_regime(Source("mine.yaml", f"name: mine\n{text}\n"))], config=config)
    assert told in str(caught.value)


def test_adapters_of_many_linears_are_bounded():
    entries = "\n".join(f"  - a{i}: {{op: linear, from: t, width: D, to: t}}" for i in range(200))
    spec = Source("many.yaml", f"language: 2\nname: many\nsizes: {{D: width}}\nstreams: {{text: [x]}}\ninputs: {{t: {{stream: text, width: D}}}}\ngraph:\n{entries}\noutputs: [t]\n")
    regime = read_regime(Source("mine.yaml", f"name: mine\n{adapters(MOST_ADAPTERS, '*')}\n"))
    with Limits(20, 600), pytest.raises(SpecError, match="more than 6,000 operators"):
        compile_spec(spec, Request(Goal.DERIVATION, (((regime, 1),),)))


@pytest.mark.parametrize("text", ["train: " + listed(f"*.layers.{i}.*" for i in range(0, 32, 2)), adapters(MOST_ADAPTERS, "*.mlp.*"), "phases: [" + "{regime: forward, times: 1000000}, " * MOST_PHASES + "]"], ids=["every second layer by its index", "adapters", "phases"])
def test_a_large_regime_is_derived(text):
    with Limits(10, 300):
        assert load("llama").program([read_regime(Source("mine.yaml", f"name: mine\n{text}\n"))], config={})


def test_every_second_layer_by_index_is_every_second_layer():
    """Sixteen cuts have seventeen segments, not two to the sixteenth."""
    by_index, by_step = (
        shipped("llama").estimator({}, read_regime(Source("mine.yaml", f"name: mine\ntrain: {listed(patterns)}\n"))).trainable_parameters
        for patterns in ([f"model.layers.{i}.*" for i in range(0, 32, 2)], ["model.layers.::2.*"])
    )
    assert by_index == by_step


def test_a_pattern_stands_for_so_many_choices_of_unrolled_iterations():
    def turns(count):
        return [(Path(("layers",)), index, frozenset({"::2"})) for index in range(0, 2 * count, 2)]

    assert spelled("layers.::2.b", turns(3)) == ("layers.::2.b", "layers.0.b", "layers.2.b", "layers.4.b")
    assert spelled("other.::2.b", turns(3)) == ("other.::2.b",)
    assert len(spelled("layers.::2.b", turns(MOST_SPELLED - 1))) == MOST_SPELLED
    with pytest.raises(SpecError, match="more than 1,000"):
        spelled("layers.::2.b", turns(MOST_SPELLED))
