"""What the fuzzer and the audit of commands found, each as small as it was made."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.layouts import shape_of
from symflops.library.catalog import by_name
from symflops.read.conventions import read_convention
from symflops.read.regimes import read_regime
from symflops.support.errors import did_you_mean
from symflops.support.findings import Diagnostic, Source, Span, SpecError, SymflopsError
from symflops.verify.cases import read_cases
from symflops.verify.peers import Conforming, explain, same, systems
from symflops.verify.records import read_records
from tests.fuzz.cases import SMALL_SPEC, Case
from tests.fuzz.guard import Limits
from tests.fuzz.structure import Mutator, of_json, of_yaml
from tests.sampling import sampled

ROOT = Path(__file__).resolve().parents[2]
RECORD = json.loads((ROOT / "tests" / "data" / "truth" / "Linear.json").read_text("utf-8"))[0]
SPOILED = {
    "no id": ("id", None), "a text for a module's FLOPs": ("by_module_fwd", {"a": "b"}), "a text for a tensor": ("params_by_tensor", {"weight": "1"}), "inputs that are a text": ("inputs", "small"),
    "operations without FLOPs": ("uncounted_ops", {"fwd": {"a": 1}, "bwd": {}}), "tokens that are a list": ("tokens", [1]), "a regime that is a text": ("regime", "full"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_a_record_with_a_field_of_another_kind_is_refused(tmp_path, name):
    field, value = SPOILED[name]
    record = {key: found for key, found in {**RECORD, field: value}.items() if found is not None}
    (tmp_path / "a.json").write_text(json.dumps([record]))
    with pytest.raises(SymflopsError, match=f"record 1 has no valid '{field}'"):
        list(read_records(tmp_path))


@pytest.mark.parametrize("inputs", [{"args": [{"shape": [2, "null", 10]}]}, {"args": [{"shape": [8, [[512]]]}]}, {"args": [{"shape": [-1, 10]}]}, {"args": "text"}, {"args": [{"shape": 3}]}, {"args": [7]}])
@pytest.mark.parametrize("regime", [None, {"adapters": [{"kind": "lora", "rank": -4, "targets": ["*"]}]}, {"train": 3}, {"adapters": [3]}])
def test_a_record_that_cannot_be_derived_says_why(tmp_path, capsys, inputs, regime):
    (tmp_path / "a.json").write_text(json.dumps([{**RECORD, "inputs": inputs, "regime": regime}]))
    assert main(["verify", "linear", "--records", str(tmp_path), "--json"]) == 1
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["status"] == "error"


@pytest.mark.parametrize("shape", [["x"], [1.5], [-1], 3, [None], ["3"]])
def test_a_shape_is_of_whole_numbers(shape):
    with pytest.raises(SymflopsError, match="no lengths"):
        shape_of({"shape": shape})


PEER = json.loads((ROOT / "tests" / "data" / "peers" / "megatron_lm.json").read_text("utf-8"))[0]


@pytest.mark.parametrize("change", [{"flops": "veomni/81"}, {"flops": [1]}, {"flops": float("nan")}, {"flops": 1e999}])
def test_a_figure_is_a_number(tmp_path, change):
    (tmp_path / "megatron_lm.json").write_text(json.dumps([{**PEER, **change}]))
    with pytest.raises(SymflopsError, match="is no number"):
        list(systems(tmp_path))


@pytest.mark.parametrize("change", sampled([{"config": "1"}, {"config": None}, {"config": {"num_layers": -1e999}}, {"config": {"num_layers": "x"}}, {"config": {"num_layers": 10**12}}, {"system": "x" * 5000}, {"system": "../../x"}, {"seqlens": {"tokens": 7}}, {"seqlens": 3}], 4, 1))
def test_a_figure_that_cannot_be_derived_says_why(change):
    with Limits(10, 300):
        found = Conforming().judge("megatron_lm", 0, {**PEER, **change})
    assert found.status in ("refused", "unmapped", "equal", "different") and json.dumps(found.as_json())


def test_figures_beyond_floats_are_compared():
    assert same(1e300, 10**300) and not same(1.0, 10**400) and not same(2.0, "text")
    case = type("Case", (), {"because": ""})()
    assert explain(2.0, 10**400, case).startswith("derived is 5" + "0" * 20)
    assert explain(4, 3, case) == "derived is 0.750000 of it (difference -1)"


@pytest.mark.parametrize("number", ["²", "1/²", "1/" + "9" * 5000, "9" * 5000, "1e5", ".", "/2", "1/0", "٣"])
def test_a_number_of_a_page_is_of_plain_digits(number):
    with pytest.raises(SpecError):
        read_convention(Source("c.yaml", f'name: c\nbackward: "{number}"\n'))
    with pytest.raises(SpecError):
        read_regime(Source("r.yaml", f'name: r\npasses: {{forward: "{number}"}}\n'))


@pytest.mark.thorough
@pytest.mark.parametrize("entry", sampled(["q#: {op: linear, from: tt#, width: D}", "q#: {op: linear, from: t, width: DD#*F}", "q#: {op: linear, from: t, width: D, hedas: 3}"], 3, 1))
def test_thousands_of_mistakes_are_told_in_seconds(tmp_path, entry):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_SPEC.replace("  - c: {op: linear", "".join(f"  - {entry.replace('#', str(number))}\n" for number in range(3000)) + "  - c: {op: linear"))
    with Limits(10, 300), pytest.raises(SpecError):
        load(path).program(config={})


def test_a_line_of_megabytes_is_shown_in_part():
    source = Source("f.yaml", "a: " + "x" * 900_000 + " BAD " + "y" * 10_000)
    place = source.text.index("BAD") + 1
    shown = Diagnostic("bad-name", "no", Span(source, 1, place, place + 3), "hint").render().split("\n")
    assert len("".join(shown)) < 1500
    assert shown[2][shown[3].index("^") :].startswith("BAD ")


def test_names_are_compared_with_so_many():
    assert "'llama'" in did_you_mean("lama", ["llama", "x" * 5000])
    with Limits(2):
        assert did_you_mean("x" * 100_000, ["x" * 99_999], "none") == "none"
        did_you_mean("name0", [f"name{number}" for number in range(50_000)])


def test_a_default_that_nests_deep(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_SPEC.replace('"[]"', '"' + "[" * 4000 + "]" * 4000 + '"'))
    with Limits(10, 300), pytest.raises(SpecError):
        load(path).program(config={})


def test_an_item_that_is_too_short_is_refused_not_subtracted(capsys):
    """Its convolutions would have outputs of a negative length, which longer items beside it would hide."""
    for lengths in ("[4]", "[4, 100000]"):
        assert main(["estimate", "wav2vec2", "--batch", f'{{"audio": {lengths}}}']) == 2
        assert "audio" in capsys.readouterr().err
    assert main(["estimate", "wav2vec2", "--batch", '{"audio": [400]}']) == 0


def test_a_stream_has_so_many_axes(tmp_path):
    path = tmp_path / "small.yaml"
    for axes in ("[" + ", ".join(["x"] * 3000) + "]", "{" + ", ".join(f"x{number}: x" for number in range(3000)) + "}", "[" + ", ".join(["{x: x}"] * 3000) + "]"):
        path.write_text(SMALL_SPEC.replace("text: [x]", f"text: {axes}"))
        with Limits(10, 300), pytest.raises(SpecError, match="at most 16 axes"):
            load(path).program(config={})


def test_a_batch_of_a_case_has_names():
    with pytest.raises(SpecError, match="is a number"):
        read_cases(Source("x.cases.yaml", "- {config: {}, batch: {0: []}}\n"))


def test_a_profile_is_read_line_by_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Name,aic_cube_fops\n" + "a,1\n" * 300_000)
    with Limits(10, 20):
        assert main(["mfu", "--kernel-details", str(path), "--seconds", "1", "--peak", "100", "--json"]) == 0
    path.write_text("aic_cube_fops," + "x" * 300_000)
    assert main(["mfu", "--kernel-details", str(path), "--seconds", "1", "--peak", "100"]) == 2


def test_trees_survive_their_text():
    """A document that no mutation changed is the same document again."""
    from tests.fuzz.structure import to_bytes

    tree = of_yaml(SMALL_SPEC)
    assert of_yaml(to_bytes(tree, False).decode()) == tree
    assert json.loads(to_bytes(of_json(RECORD), True)) == RECORD
    rng = random.Random(1)
    assert len({Mutator("spec", rng).mutated(tree) for _ in range(50)}) > 40
    assert Case("spec", b"").beside == {}


@pytest.mark.parametrize("part", ["census", "reading", "references", "fields", "units", "shapes", "regimes", "streams"])
@pytest.mark.parametrize("value", [[], {}, "text", 3, {"LlamaForCausalLM": "text"}, [["text"]]])
def test_a_stored_program_with_a_damaged_part_is_a_diagnostic_or_has_no_need_of_it(part, value):
    program = {**by_name("llama").program("llama"), part: value}
    try:
        estimator = InterpretedEstimator(program, {"architectures": ["LlamaForCausalLM"], "hidden_act": "silu"})
    except SymflopsError as error:
        assert "\n" not in str(error)
    else:
        assert estimator.parameters == 6_738_415_616
