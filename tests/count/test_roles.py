"""Roles: what is inferred is shown and noted, what a spec says does not hang on names, and exceptions match classes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings, strategies as st

from symflops.api import Model, convention_of, load
from symflops.build.build import build
from symflops.build.roles import rules
from symflops.cli.actions.check import findings, notes, role_rows
from symflops.cli.main import main
from symflops.count.count import count
from symflops.derive.derive import derive
from symflops.ir.convention import ROLES, inferred_of
from symflops.ir.nodes import with_operators
from symflops.ir.patterns import Path
from symflops.ir.regime import Regime
from symflops.read.conventions import read_convention
from symflops.read.spec_files import pages, shipped, specs_in
from symflops.support.findings import Source, SpecError
from tests.sampling import sampled
from tests.shipped import load as model

FEED_FORWARD = """
language: 2
name: small
sizes: {D: {key: width, default: 8}, F: {key: hidden, default: 24}, V: {key: vocab, default: 50}}
streams: {text: [x]}
inputs:
  ids: {stream: text}
graph:
  - embed: {op: embedding, from: ids, rows: V, width: D, to: h}
  - layers:
      repeat: 3
      graph:
        - mlp.GATE: {op: linear, from: h, width: F, bias: false, to: g}
        - mlp.up_proj: {op: linear, from: h, width: F, bias: false, to: u}
        - mlp.act: {op: mul, from: [g, u], to: y}
        - mlp.down_proj: {op: linear, from: y, width: D, bias: false, add_to: h}
outputs: [h]
"""
EXPERTS = """
language: 2
name: small
sizes: {D: {key: width, default: 8}, F: {key: hidden, default: 24}, E: {key: experts, default: 4}, V: {key: vocab, default: 50}}
streams: {text: [x]}
inputs:
  ids: {stream: text}
graph:
  - embed: {op: embedding, from: ids, rows: V, width: D, to: h}
  - layers:
      repeat: 3
      graph:
        - moe.SCORES: {op: linear, from: h, width: E, bias: false, to: logits}
        - moe.top: {op: map, from: logits, width: 2, to: scores}
        - moe.experts:
            experts: E
            choose: 2
            from: h
            weights: scores
            to: y
            graph:
              - up: {op: linear, from: x, width: F, bias: false, to: u}
              - down: {op: linear, from: u, width: D, bias: false, to: y}
        - {op: add, from: [h, y], to: h}
outputs: [h]
"""


@pytest.fixture
def spec(tmp_path):
    def written(text: str, name: str = "small") -> Model:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return load(path)

    return written


def totals(one: Model, batch: dict | None = None) -> dict[str, object]:
    found = {}
    for name in pages("conventions"):
        estimator = one.estimator({}, "full", name)
        found[name] = estimator.total(estimator.moments(**(batch or {"text": [7, 3]})))
    return found


# names


@pytest.mark.parametrize("name", sampled(["gate", "w1", "my_gate", "gate.gate"], 2, 1))
def test_a_gated_feed_forward_costs_the_same_whatever_its_linears_are_called(spec, name):
    usual = spec(FEED_FORWARD.replace("GATE", "gate_proj"), "usual")
    other = spec(FEED_FORWARD.replace("GATE", name), "other")
    assert totals(usual) == totals(other)
    assert notes(other) == []


@pytest.mark.parametrize("name", sampled(["gate", "router", "w1", "up_proj", "lm_head"], 3, 1))
def test_a_router_is_the_linear_that_weighs_experts_whatever_it_is_called(spec, name):
    one = spec(EXPERTS.replace("SCORES", name))
    assert {row.role for row in role_rows(one) if row.module.startswith("layers.*.moe.") and row.module.endswith(f".{name}")} == {
        "router"
    }
    assert totals(one) == totals(spec(EXPERTS.replace("SCORES: {op: linear,", "other: {op: linear, role: router,"), "given"))


def test_a_linear_that_others_read_too_is_no_router(spec):
    text = EXPERTS.replace("SCORES", "gate").replace("width: E, bias: false, to: logits", "width: D, bias: false, to: logits")
    text = text.replace("- {op: add, from: [h, y], to: h}", "- {op: add, from: [h, y, logits], to: h}")
    assert not [row for row in role_rows(spec(text)) if row.role == "router"]


DRAWN = [
    "llama",
    "qwen2_moe",
    "deepseek_v3",
    "gpt_oss",
    "bert",
    "gpt2",
    "qwen2_vl",
    "clip",
    "flux",
    "sd3",
    "latte",
    "longcat_flash",
    "lstm",
    "hidream",
]


def neutral(graph, letters):
    """The graph with every operator under a name that says nothing; what was inferred from names is lost."""
    known: dict[str, str] = {}

    def renamed(operator):
        name = known.setdefault(str(operator.path), f"{letters}{len(known)}")
        given_again = replace(operator, path=Path((name,)), inferred="", shown=())
        return [given_again]

    return replace(graph, body=with_operators(graph.body, renamed))


def amounts(graph, convention):
    """What a convention counts of a graph, without the names of modules."""
    found = derive(graph, Regime("full"), convention.elements)
    work = count(found, convention).work
    return [
        (one.contraction.size, one.contraction.extent, one.forward, tuple(gradient.count for gradient in one.gradients))
        for one in work
    ]


@given(st.sampled_from(DRAWN), st.sampled_from(pages("conventions")), st.text("abcxyz", min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_no_count_of_a_shipped_spec_hangs_on_a_name(name, convention, letters):
    one = model(name)
    graph, rule = one.graph({}), convention_of(convention).of(one.spec.called)
    if rule.counts == "parameters" or rule.tied == "once":
        rule = replace(rule, counts="work", tied="each")  # parameters are told apart by name, which renaming operators leaves
    assert amounts(neutral(graph, letters), rule) == amounts(graph, rule)


SPECS = [*specs_in(shipped("specs")), *specs_in(shipped("specs"), "assumed")]


@pytest.mark.parametrize("file", sampled(sorted(SPECS, key=lambda file: file.path.stat().st_size), 60, 16), ids=lambda file: file.name)
def test_no_shipped_spec_relies_on_an_inferred_role(file):
    assert [found for found in findings(file) if found.code == "inferred-role"] == []


def test_renaming_is_seen_where_a_role_is_not_given(spec):
    text = FEED_FORWARD.replace("GATE", "gate_proj").replace(
        "outputs: [h]", "  - lm_head: {op: linear, from: h, width: V, to: h}\noutputs: [h]"
    )
    graph, kaplan = spec(text).graph({}), convention_of("kaplan")
    assert len(amounts(neutral(graph, "a"), replace(kaplan, counts="work"))) > len(
        amounts(graph, replace(kaplan, counts="work"))
    )


# notes


def test_an_inferred_role_is_noted_with_what_it_changes(spec, tmp_path, capsys):
    text = FEED_FORWARD.replace("GATE", "gate_proj").replace(
        "outputs: [h]", "  - lm_head: {op: linear, from: h, width: V, to: h}\noutputs: [h]"
    )
    spec(text)
    (found,) = findings(next(iter([load(tmp_path / "small.yaml").file])))
    assert (found.code, found.severity) == ("inferred-role", "note")
    assert "kaplan" in found.note and "role: lm_head" in found.hint and "role: linear" in found.hint
    assert main(["check", str(tmp_path / "small.yaml")]) == 0
    assert "all fine, 1 note" in capsys.readouterr().err
    for role in ("lm_head", "linear"):
        assert notes(spec(text.replace("lm_head: {op: linear,", f"lm_head: {{op: linear, role: {role},"))) == []


def test_an_inferred_role_without_effect_is_not_noted(spec):
    text = FEED_FORWARD.replace("GATE", "gate_proj").replace(
        "outputs: [h]", "  - proj_out: {op: linear, from: h, width: V, to: h}\noutputs: [h]"
    )
    one = spec(text)
    assert [row.origin for row in role_rows(one) if row.role == "unpatch"] == ["path proj_out"]
    assert notes(one) == []


def test_a_convention_of_the_caller_counts_too(spec, tmp_path):
    text = FEED_FORWARD.replace("GATE", "gate_proj").replace(
        "outputs: [h]", "  - proj_out: {op: linear, from: h, width: V, to: h}\noutputs: [h]"
    )
    page = tmp_path / "mine.yaml"
    page.write_text("name: mine\nroles: {unpatch: no}\n")
    (found,) = notes(spec(text), [page])
    assert found.note.endswith("mine")


def test_a_region_is_noted_once_and_can_be_given_or_denied(spec):
    text = FEED_FORWARD.replace("mlp.GATE", "visual.gate").replace("mlp.", "visual.")
    (found,) = notes(spec(text))
    assert "'vision'" in found.message and "2 more" in found.message and "role: main" in found.hint
    for role in ("vision", "main"):
        one = spec(text.replace("repeat: 3", f"repeat: 3\n      role: {role}"))
        assert notes(one) == []
        assert {name for row in role_rows(one) for name in row.regions} == {role}


def test_the_role_of_an_entry_is_that_of_its_linears(spec):
    text = FEED_FORWARD.replace("GATE", "gate_proj").replace("repeat: 3", "repeat: 3\n      role: modulation")
    roles = {row.module.rpartition(".")[2]: row.role for row in role_rows(spec(text))}
    assert {roles[name] for name in ("gate_proj", "up_proj", "down_proj")} == {"modulation"}
    assert roles["embed"] == "embedding"


def test_the_role_of_a_single_operator_is_not_for_an_entry_of_several(spec):
    with pytest.raises(SpecError, match="role of a single operator"):
        spec(FEED_FORWARD.replace("repeat: 3", "repeat: 3\n      role: norm")).graph({})


def test_an_adapter_has_the_role_of_its_base():
    one = load("qwen2_moe")
    regime = "lora:r=4,targets=*.gate|lm_head|*.gate_proj"
    found = one.derivation(regime, "symflops", {})
    roles = {
        str(work.operator.path): (work.operator.role, work.operator.regions)
        for work in found.work
        if "lora" in str(work.operator.path)
    }
    assert {role for path, (role, _) in roles.items() if path.startswith("lm_head")} == {"lm_head"}
    assert {role for path, (role, _) in roles.items() if ".mlp.gate." in path} == {"router"}
    assert any(regions == ("shared_experts",) for path, (_, regions) in roles.items() if "shared_expert." in path)


# shown


def test_roles_are_shown_with_their_origin(capsys):
    assert main(["check", "qwen_image", "--roles"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(re.fullmatch(r"norm_out\.linear +linear +out_modulation +spec", line) for line in lines)
    assert any(re.fullmatch(r"img_in +linear +patch_embed +path img_in", line) for line in lines)
    assert main(["check", "mixtral", "--roles", "--output-format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["roles"]["mixtral"]
    assert [row for row in rows if row["role"] == "router"] == [
        {"module": "model.layers.*.mlp.gate", "operator": "linear", "role": "router", "origin": "spec", "regions": {}}
    ]


def test_explain_shows_roles(capsys):
    assert main(["explain", "qwen_image"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^  out_modulation +norm_out\.linear$", text, re.MULTILINE)
    assert re.search(r"^  unpatch \(inferred\) +proj_out$", text, re.MULTILINE)


@cache
def paths() -> list[tuple[str, str]]:
    """Kind and path of every operator of the shipped specs."""
    return sorted({(operator.kind, str(operator.path)) for name in DRAWN for operator in model(name).graph({}).operators()})


def test_the_table_has_known_roles_and_no_line_that_another_hides():
    table = rules()
    assert {role for _, _, role in table.roles} <= {name for name, role in ROLES.items() if role.group != "region"}
    assert {region for _, region in table.regions} <= {name for name, role in ROLES.items() if role.group == "region"}
    assert len(set(table.roles)) == len(table.roles) and len(set(table.regions)) == len(table.regions)
    assert build is not None and any(inferred_of(operator) for operator in model("flux").graph({}).operators())


# exceptions


def test_an_exception_is_for_a_class_whatever_the_spec_is_called(spec):
    text = (shipped("specs") / "language" / "qwen2_moe.yaml").read_text().replace("name: qwen2_moe", "name: mine")
    mine = spec(text, "mine")
    for name in ("verl", "megatron"):
        one, other = (each.estimator({}, "full", name) for each in (mine, load("qwen2_moe")))
        assert one.total(one.moments(text=[64])) == other.total(other.moments(text=[64]))
    estimator = mine.estimator({}, "full", "verl")
    (note,) = estimator.notes({"text": [64]})
    assert "exception" in note and estimator.evidence["exception"] in note
    other = mine.estimator({}, "full", "megatron")
    assert other.notes({"text": [64]}) == [] and other.evidence["exception"] is None


def test_a_stored_answer_says_that_an_exception_applied(capsys):
    assert main(["estimate", "apertus", "--batch", '{"text": [8]}', "--convention", "verl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert any("exception" in note for note in found["notes"]) and found["evidence"]["exception"]
    assert main(["explain", "apertus", "--convention", "verl"]) == 0
    assert "makes an exception for this class" in capsys.readouterr().out


def test_no_shipped_convention_names_a_spec():
    names = {file.name for file in SPECS}
    for name in pages("conventions"):
        for exception in convention_of(name).exceptions:
            assert names.isdisjoint(exception.classes)


def test_an_exception_by_spec_says_what_to_write():
    with pytest.raises(SpecError, match="classes"):
        read_convention(Source("mine.yaml", "name: mine\nexceptions: [{specs: [llama], because: so}]\n"))


def test_a_cell_counts_by_its_gates():
    found = {name: {work.operator.regions[-1] for work in model(name).derivation("full", "deepspeed", {"input_size": 3, "hidden_size": 5}).work
                    if work.contraction.role == "cell"} for name in ("rnn", "gru", "gru_cell", "lstm", "lstm_cell")}  # fmt: skip
    assert found == {"rnn": set(), "gru": {"gru"}, "gru_cell": {"gru"}, "lstm": {"lstm"}, "lstm_cell": {"lstm"}}
