"""Routed or executed: useful work is of the experts that a token is routed to, whatever the class runs."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest

from symflops.api import convention_of
from symflops.compiler import Request, compile_spec
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.formula.table import ConfigError
from symflops.ir.convention import Convention
from symflops.library.catalog import by_name
from symflops.library.lookup import interpreter
from symflops.read.spec_files import pages
from symflops.support.findings import Source
from tests import shipped
from tests.sampling import sampled

EXPERTS = re.compile(r"(num|n)_(local_|routed_)?experts|moe_num_experts|num_routed_experts|zero_expert_num")


def number_of_experts(name: str) -> list[str]:
    """The fields of a spec that hold the number of routed experts, those without weights among them."""
    return [size.keys[0] for size in shipped.load(name).spec.sizes if EXPERTS.fullmatch(size.keys[0].rpartition(".")[2])]


def is_mixture(name: str) -> bool:
    """Whether the catalog says that a spec reads such a field, which costs less than to load all specs."""
    return any(EXPERTS.fullmatch(key.rpartition(".")[2]) for key in by_name(name).specs[name]["keys"])


MIXTURES = [name for name in shipped.NAMES if is_mixture(name)]


def work(name: str, times: int, rules: str) -> dict[str, int]:
    """Forward FLOPs of a live case by module, with that many times as many experts."""
    model, case = shipped.load(name), shipped.cases_of(shipped.FILES[name])[0]
    plain, config = model.estimator(case.config, "forward", "symflops"), deepcopy(dict(case.config))
    for field in number_of_experts(name):
        size = next(one for one in plain.program.fields if field in one.keys)
        *around, last = field.split(".")
        inner = config
        for key in around:
            inner = inner.setdefault(key, {})
        inner[last] = times * plain.sizes[size.letter]
    estimator = model.estimator(config, "forward", rules)
    return {module: flops.forward for module, flops in estimator.by_module(estimator.moments(**case.batch)).items()}


def test_the_mixtures_are_found():
    assert {"llama4", "mixtral", "deepseek_v3", "qwen3_moe", "gpt_oss", "hidream"} <= set(MIXTURES)


@pytest.mark.parametrize("name", sampled(MIXTURES, 4, 1))
def test_twice_the_experts_cost_their_router(name):
    case = shipped.cases_of(shipped.FILES[name])[0]
    lines = shipped.load(name).estimator(case.config, "forward", "symflops").program.regimes[0].lines
    roles = {line.module for line in lines if line.role == "router"}
    one, two = work(name, 1, "symflops"), work(name, 2, "symflops")
    assert roles and {module for module in one if one[module] != two[module]} == roles
    assert all(two[module] == 2 * one[module] for module in roles)


@pytest.mark.parametrize("rules", sampled(["torch", "deepspeed", "calflops", "ascend-profiler", "ascend-guide", "megatron", "verl", "kempnerforge", "palm"], 4, 1))
def test_profilers_count_what_runs(rules):
    one, two = work("llama4", 1, rules), work("llama4", 2, rules)
    executed = convention_of(rules).experts == "executed"
    experts = "model.layers.*.feed_forward.experts"
    assert executed == (rules in ("torch", "deepspeed", "calflops", "ascend-profiler"))
    assert two[experts] == (2 if executed else 1) * one[experts]


def test_pairs_and_experts_are_two_questions():
    masked = Convention("masked", pairs="useful", experts="executed")
    dense = Convention("dense", pairs="all", experts="routed")
    assert not masked.is_plain and not dense.is_plain


ATTENDING = """language: 2
name: attending
sizes: {D: width, E: experts, K: chosen}
streams: {text: [x]}
inputs: {h: {stream: text, width: D}}
graph:
  - router: {op: linear, from: h, width: E, bias: false, role: router, to: r}
  - moe:
      experts: E
      WHICH
      from: h
      weights: r
      to: h
      graph:
        - {op: linear, from: x, width: D, weight: q, bias: false, to: q}
        - attend: {op: attention, heads: 1, query: q, key: q, value: q, mask: causal, to: y}
outputs: [h]
"""


@pytest.mark.parametrize("rules", pages("conventions"))
def test_attention_inside_of_experts_counts_as_routed_or_executed(rules):
    """Experts that run densely count like as many chosen ones: all of them, or those that a token is routed to."""
    convention, config, found = convention_of(rules), {"width": 8, "experts": 6, "chosen": 2}, []
    for which in ("routed: K", "choose: K" if convention.experts == "routed" else "choose: E"):
        made = compile_spec(Source("attending.yaml", ATTENDING.replace("WHICH", which)), Request(conventions=(convention,)))
        model = InterpretedEstimator(made.program, config, regime="", convention=rules)
        found.append([model.forward(model.moments(text=[5, 3])), model.backward(model.moments(text=[5, 3]))])
    assert found[0] == found[1] and found[0][0] > 0


@pytest.mark.parametrize(("name", "experts", "chosen"), [("mixtral", "num_local_experts", 2), ("qwen3_moe", "num_experts", 8), ("gpt_oss", "num_local_experts", 4), ("kimi_linear", "num_experts", 8)])
def test_a_token_has_no_more_experts_than_there_are(name, experts, chosen):
    """The class can be built with fewer, and fails when it chooses among them."""
    few = interpreter(name, {experts: chosen - 1})
    assert few.parameters > 0
    with pytest.raises(ConfigError, match=f"is {chosen}: it has {chosen - 1} expert"):
        few.forward({"text": [16]})
    assert interpreter(name, {experts: chosen}).forward({"text": [16]}) > 0
