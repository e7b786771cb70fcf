"""``expect``: stated figures are compared to their digits, and a difference comes with its modules and possible causes."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.analysis.explanation import default_batch
from symflops.analysis.stated import agrees, wrong_figures
from symflops.api import load
from symflops.cli.actions.check import findings
from symflops.cli.main import main
from symflops.library.lookup import result
from symflops.read.spec_files import find_spec
from symflops.support.findings import Diagnostic

SPEC = """language: 2
name: small
sizes:
  L: {{key: layers, default: 3}}
  D: {{key: width, default: 64}}
  V: {{key: vocabulary, default: 1000}}
  tied: {{key: tied, default: false}}
  E: {{key: experts, default: 8}}
variants: {variants}
expect: {expect}
streams: {{text: [x]}}
inputs: {{ids: {{stream: text}}}}
graph:
  - table: {{op: embedding, from: ids, rows: V, width: D, to: h}}
  - layers:
      repeat: L
      graph:
        - norm: {{op: rms_norm, from: h, to: h}}
        - up: {{op: linear, from: h, width: D, bias: false, add_to: h}}
  - mlp: {{block: routed_mlp, experts: E, choose: 2, from: h, hidden: D, width: D, act: "'silu'", add_to: h}}
  - head: {{op: linear, from: h, width: V, bias: false, tie: {{to: table.weight, when: tied}}, to: logits}}
outputs: [logits]
"""
LAYERS, TABLE, NORMS, ROUTER, EXPERT = 3 * 64**2, 64_000, 3 * 64, 8 * 64, 3 * 64**2
WHOLE = 2 * TABLE + LAYERS + NORMS + ROUTER + 8 * EXPERT


def told(folder: Path, expect: str, variants: str = "{}") -> list[Diagnostic]:
    """The errors of a small spec that states these figures."""
    (folder / "small.yaml").write_text(SPEC.format(expect=expect, variants=variants), "utf-8")
    return [one for one in findings(find_spec(folder / "small.yaml")) if one.severity == "error"]


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [("8.03e9", 8_025_000_000, True), ("8.03e9", 8_035_000_001, False), ("8.03e9", 8_024_999_999, False), ("671e9", 671_026_404_352, True), ("8030261248", 8_030_261_249, False), ("6.7e9", 6_738_415_616, True), ("6.70e9", 6_738_415_616, False), ("7e0", 7, True)],
)
def test_figures_agree_to_the_digits_given(text: str, value: int, same: bool) -> None:
    assert agrees(text, value) is same


def test_figures_of_the_defaults_of_a_variant_and_of_a_published_size(tmp_path: Path) -> None:
    flops = load_flops(tmp_path)
    expect = f"{{parameters: {WHOLE}, active: {WHOLE - 6 * EXPERT}, flops_per_token: {flops}, big: {{config: {{layers: 5}}, parameters: {WHOLE + 2 * (64**2 + 64)}}}}}"
    assert told(tmp_path, expect) == []
    (other,) = told(tmp_path, expect.replace("layers: 5", "layers: 6"))
    assert other.code == "other-figure" and other.message.startswith("'big' has") and other.span and other.span.text == str(WHOLE + 2 * (64**2 + 64))


def load_flops(folder: Path) -> int:
    """FLOPs per token as an estimate of one item of typical length has them."""
    (folder / "small.yaml").write_text(SPEC.format(expect="{parameters: 1}", variants="{}"), "utf-8")
    model = load(folder / "small.yaml").estimator({})
    return int(result(model, default_batch(model))["flops_per_token"])


@pytest.mark.parametrize(
    ("figure", "value", "cause"),
    [
        ("parameters", WHOLE - TABLE, "tied: true"),
        ("parameters", WHOLE - NORMS, "no all parameters of rms_norm"),
        ("parameters", WHOLE + 3 * 64 + 1000 + 8, "a bias in every linear"),
        ("parameters", WHOLE + LAYERS, "layers.*.up twice"),
        ("active", WHOLE - 6 * EXPERT - TABLE, "no table"),
    ],
)
def test_a_difference_is_explained(tmp_path: Path, figure: str, value: int, cause: str) -> None:
    (other,) = told(tmp_path, f"{{{figure}: {value}}}")
    assert f"it is {value} with {cause}" in other.note.split("\n")
    assert any(line.split()[:2] == ["table", "64,000"] for line in other.note.split("\n")) and max(map(len, other.note.split("\n"))) < 75


def test_a_table_has_whole_names(tmp_path: Path) -> None:
    name = "a_" + "long_" * 12 + "name"
    (tmp_path / "small.yaml").write_text(SPEC.format(expect="{parameters: 5}", variants="{}").replace("- up:", f"- {name}:"), "utf-8")
    (other,) = [one for one in findings(find_spec(tmp_path / "small.yaml")) if one.code == "other-figure"]
    lines = [line for line in other.note.split("\n") if line.endswith("%")]
    assert any(line.startswith(f"layers.*.{name} ") for line in lines) and len(set(map(len, lines))) == 1


def test_flops_of_other_rules_are_recognised(tmp_path: Path) -> None:
    rules = "{flops_per_token: 1, regime: forward, convention: linears}"
    (other,) = told(tmp_path, rules)
    value = other.message.split()[4].replace(",", "")
    assert told(tmp_path, rules.replace("1", value, 1)) == []
    (other,) = told(tmp_path, f"{{flops_per_token: {value}}}")
    assert f"it is {value} with regime: forward, convention: linears" in other.note


@pytest.mark.parametrize(
    ("expect", "code", "place", "hint"),
    [
        ("{parameters: 8.03B}", "bad-number", "8.03B", "write 8.03e9"),
        ("{parameters: 7 billion}", "bad-number", "7 billion", "write 7e9"),
        ("{paramters: 8e9}", "unknown-field", "paramters", "'parameters'"),
        ("{big: {parameters: 8e9}}", "missing-field", "big", "differ from the defaults"),
        ("{big: {config: {layers: 2}}}", "missing-field", "big", "8.03e9"),
        ("{big: {config: {layer: 2}, parameters: 8e9}}", "unknown-size", "layer", "'layers'"),
        ("{Big: {config: {layers: 2}, parameters: 8e9}}", "bad-name", "Big", "lower case"),
        ("{flops_per_token: 8e9, convention: pam}", "bad-value", "{", "batch"),
        ("{flops_per_token: 8e9, batch: {txt: [8]}}", "bad-value", "{", "batch"),
    ],
)
def test_mistakes_are_found_at_their_place(tmp_path: Path, expect: str, code: str, place: str, hint: str) -> None:
    (found,) = told(tmp_path, expect)
    assert found.code == code and found.span is not None and found.span.text.startswith(place) and hint in found.hint


def test_a_spec_that_extends_another_states_its_own_figures() -> None:
    assert load("llama").spec.expect and not load("mistral").spec.expect and not wrong_figures(load("llama"))


def test_without_a_class_verify_compares_stated_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for value, code in ((WHOLE, 0), (WHOLE + 1, 1)):
        (tmp_path / "small.yaml").write_text(SPEC.format(expect=f"{{parameters: {value}}}", variants="{}"), "utf-8")
        assert main(["verify", str(tmp_path / "small.yaml")]) == code
        told = capsys.readouterr().err
        assert "small: 1 stated figures compared; masks not seen:" in told and f"1 stated figures, {code} not as derived" in told
        assert ("other-figure" in told) is bool(code) and " 0 cases" not in told
        assert main(["check", str(tmp_path / "small.yaml")]) == code
