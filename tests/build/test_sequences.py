"""Stacks that one loop fills and another one empties: closed, they count what the written-out loops count."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from symflops.compiler import Compiled, Goal, NeedsSizeError, Request, compile_spec
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.convention import Convention
from symflops.ir.nodes import Loop, Pop, Push
from symflops.ir.regime import Adapter, Recompute, Regime
from symflops.support.findings import Source, SpecError, SymflopsError
from tests import shipped

LORA = Adapter("lora", 4, ("*.to_q", "*proj_out"), ("lora_A", "lora_B", ""))
REGIMES = [
    Regime("full"), Regime("forward", train=()), Regime("head", train=("proj_out.*",)), Regime("last", train=("blocks.-1.*",)),
    Regime("late", freeze=("blocks.:2.*", "*embed*")), Regime("first", train=("blocks.0.*",)), Regime("lora", train=(), adapters=(LORA,)),
    Regime("checkpointed", recompute=Recompute(("blocks.*",))), Regime("reentrant", recompute=Recompute(("blocks.*",), reentrant=True)),
    Regime("reentrant-lora", train=(), adapters=(LORA,), recompute=Recompute(("blocks.*",), reentrant=True)),
]  # fmt: skip
BATCH = {"wan_vace": {"latent": [[5, 12, 16], [3, 8, 8]], "prompt": [7, 9]}, "hunyuan_dit": {"latent": [[16, 24], [32, 8]], "prompt": [7, 7], "prompt_t5": [4, 4]}}
CONFIGS = {"hunyuan_dit": {"sample_size": 32, "in_channels": 4, "patch_size": 2, "activation_fn": "gelu-approximate", "text_len": 7, "text_len_t5": 4}}


def figures(name: str, config: dict[str, Any], sizes: dict[str, Any], regime: Regime) -> list[int]:
    """Parameters, trained ones, and FLOPs of the passes."""
    config = CONFIGS.get(name, {}) | config
    made = compile_spec(shipped.load(name).spec, Request(config=config, sizes=sizes, steps=(((regime, 1),),)))
    assert isinstance(made, Compiled), made
    model = InterpretedEstimator(made.program, config, regime=regime.name, convention="")
    m = model.moments(**BATCH[name])
    return [model.parameters, model.trainable_parameters, model.forward(m), model.backward(m), model.recomputed(m)]


@given(layers=st.integers(1, 6), data=st.data(), regime=st.sampled_from(REGIMES))
@settings(max_examples=6, deadline=None)
def test_hints_are_as_if_written_out(layers, data, regime):
    at = tuple(sorted(data.draw(st.sets(st.integers(0, layers - 1), min_size=1))))
    config = {"num_layers": layers, "vace_layers": list(at)}
    assert figures("wan_vace", config, {}, regime) == figures("wan_vace", config, {"L": layers, "at": at}, regime)


@given(half=st.integers(1, 4), regime=st.sampled_from(REGIMES))
@settings(max_examples=6, deadline=None)
def test_skips_are_as_if_written_out(half, regime):
    assert figures("hunyuan_dit", {"num_layers": 2 * half}, {}, regime) == figures("hunyuan_dit", {"num_layers": 2 * half}, {"L": 2 * half}, regime)


@pytest.mark.parametrize("name", BATCH)
def test_the_structure_is_one_of_all_sizes(name):
    graph = shipped.load(name).graph()
    loops = [node for node in graph.body if isinstance(node, Loop)]
    kinds = [type(node) for loop in loops for _, body in loop.classes for node in body if isinstance(node, (Push, Pop))]
    assert graph.fixed == () and len(loops) < 5 and {Push, Pop} == set(kinds)


STACKED = """language: 2
name: stacked
sizes: {{D: width, L: layers, M: others, bias: {{key: bias, default: false}}}}
streams: {{text: [x]}}
inputs: {{x: {{stream: text, width: D}}}}
graph:
  - down: {{repeat: L, index: i, graph: [a: {{op: linear, from: x, width: D, to: x}}, put: {{op: push, from: {what}, stack: s{when}}}]}}
  - up: {{repeat: M, index: i, graph: [both: {{graph: [take: {{op: pop, stack: s, take: {take}, to: skip}}, b: {{op: linear, from: skip, width: D, add_to: x}}]{pop}}}]}}
outputs: [x]
"""


def stacked(config: dict[str, Any], regime: Regime = REGIMES[0], what: str = "x", when: str = "", pop: str = "", take: str = "last") -> Any:
    text = STACKED.format(what=what, when=when, pop=pop, take=take)
    return compile_spec(Source("stacked.yaml", text), Request(Goal.PROGRAM, config=config, steps=(((regime, 1),),)))


def test_as_many_are_taken_as_are_put():
    made = stacked({"width": 8, "layers": 3, "others": 3})
    assert made.graph.fixed == ()
    model = InterpretedEstimator(made.program, {"width": 8, "layers": 3, "others": 3}, regime="full", convention="")
    assert model.forward(model.moments(text=[5])) == 6 * 2 * 5 * 64
    for others in (2, 4):
        with pytest.raises(SymflopsError, match="does not take as many values from the stack 's' as it puts there"):
            InterpretedEstimator(made.program, {"width": 8, "layers": 3, "others": others}, regime="full", convention="")


AXES = """language: 2
name: s
sizes: {{D: width, L: layers}}
streams: {{text: [x]}}
inputs: {{h: {{stream: text, width: D}}}}
graph:
  - down: {{repeat: {down}, graph: [a: {{op: linear, from: h, width: D, to: h}}, put: {{op: push, from: h, stack: s}}]}}
  - up: {{repeat: {up}, graph: [take: {{op: pop, stack: s, to: k}}, b: {{op: linear, from: k, width: D, add_to: h}}]}}
outputs: [h]
"""


@pytest.mark.parametrize("up", ["L", "L + 1", "{axis: x}"])
@pytest.mark.parametrize("down", ["L", "{axis: x}"])
def test_a_batch_does_not_decide_what_is_left(down, up):
    source, config = Source("s.yaml", AXES.format(down=down, up=up)), {"width": 8, "layers": 5}
    if ("axis" in down) == ("axis" in up):
        made = compile_spec(source, Request(config=config))
        if up == "L + 1":
            with pytest.raises(SymflopsError, match="does not take as many values"):
                InterpretedEstimator(made.program, config, regime="", convention="")
        else:
            model = InterpretedEstimator(made.program, config, regime="", convention="")
            assert made.graph.fixed == () and model.forward(model.moments(text=[5])) == 2 * 5 * 2 * 5 * 64
    else:
        with pytest.raises(SpecError, match="the lengths of a batch decide how many values are left on the stack 's'") as found:
            compile_spec(source, Request(config=config))
        assert found.value.diagnostics[0].span.line == 8


def test_values_that_differ_are_written_out():
    made = stacked({"width": 8, "layers": 3, "others": 3}, Regime("late", train=("down.2.*",)))
    assert dict(made.graph.fixed).keys() == {"L", "M"}
    with pytest.raises(NeedsSizeError) as needed:
        compile_spec(Source("stacked.yaml", STACKED.format(what="x", when="", pop="", take="last")), Request(steps=(((Regime("late", train=("down.2.*",)), 1),),)))
    assert needed.value.size == "L"


@pytest.mark.parametrize("take", ["first", "last"])
@pytest.mark.parametrize("condition", ["", "i > 0", "bias", "i % 2 == 0", "i in [0, 2]"])
def test_conditions_count(condition, take):
    """Each case is also written out, by its known sizes."""
    when, found = f", when: '{condition}'" if condition else "", []
    for sizes in ({}, {"L": 3, "M": 3}):
        config = {"width": 8, "layers": 3, "others": 3, "bias": True}
        made = compile_spec(Source("stacked.yaml", STACKED.format(what="x", when=when, pop=when, take=take)), Request(config=config, sizes=sizes))
        assert isinstance(made, Compiled) and made.graph.fixed == tuple(sizes.items())
        model = InterpretedEstimator(made.program, config, regime="", convention="")
        m = model.moments(text=[5, 2])
        found.append([model.parameters, model.forward(m), model.backward(m)])
    assert found[0] == found[1]


def test_a_stack_that_is_filled_inside_and_outside_is_written_out():
    text = STACKED.format(what="x", when="", pop="", take="last").replace("  - down", "  - one: {op: push, from: x, stack: s}\n  - down")
    made = compile_spec(Source("stacked.yaml", text), Request(config={"width": 8, "layers": 2, "others": 3}))
    assert isinstance(made, Compiled) and dict(made.graph.fixed).keys() == {"L", "M"}


def test_a_stack_that_is_never_emptied_is_told():
    text = STACKED.format(what="x", when="", pop="", take="last").partition("  - up")[0] + "outputs: [x]\n"
    with pytest.raises(SpecError, match="the stack 's' is filled and never emptied"):
        compile_spec(Source("stacked.yaml", text), Request(config={"width": 8, "layers": 2}))


def test_generated_modules_refuse_sizes_that_do_not_fit(tmp_path):
    made = compile_spec(Source("stacked.yaml", STACKED.format(what="x", when="", pop="", take="last")), Request(Goal.TEXTS, steps=(((REGIMES[0], 1),),), conventions=(Convention("symflops"),), targets=("py",)))
    assert isinstance(made, Compiled)
    (tmp_path / "stacked_model.py").write_text(made.texts["py"], "utf-8")
    script = "import sys; sys.path.insert(0, '.'); from stacked_model import *; print(Sizes(width=8, layers=3, others=int(sys.argv[1])))"
    command = [sys.executable, "-c", script]
    fits, other = (subprocess.run([*command, number], cwd=tmp_path, capture_output=True, text=True, check=False) for number in ("3", "2"))
    assert fits.returncode == 0, fits.stderr
    assert other.returncode != 0 and "does not take as many values from the stack 's' as it puts there" in other.stderr
