"""A draft says exact only if it is: faults that its hold-outs do not see make it partial, or are guarded by its census."""

import contextlib
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

import symflops.draft.draft as drafting
from symflops.api import load
from symflops.cli.draft import save
from symflops.cli.main import main
from symflops.draft.draft import draft
from symflops.draft.prove.prove import VALUES
from symflops.draft.prove.verdict import prove
from symflops.draft.trace.steps import Subject
from symflops.support.errors import SymflopsError

MODULE = Path(__file__).parent / "faulty_models.py"
X = {"x": {"shape": [2, 7, 24], "dtype": "float32"}}
CONFIGS = {
    "SharedLayer": {"width": 24, "hidden": 40, "depth": 3},
    "OneLayerTwice": {"width": 24, "hidden": 40},
    "Halves": {"width": 24, "hidden": 40},
    "TwoResults": {"width": 24, "first": 10, "second": 30},
    "Growing": {"width": 24, "depth": 3},
    "OwnList": {"width": 24, "widths": [36, 60]},
    "Grouped": {"width": 24, "heads": 4, "key_heads": 4},
    "InTurns": {"width": 24, "hidden": 40, "turns": 3},
    "Divided": {"width": 24, "heads": 4},
    "Crossed": {"width": 24, "hidden": 40},
    "Gated": {"width": 24, "hidden": 40},
}
INPUTS = {"Halves": {**X, "mask": {"shape": [2, 7], "dtype": "bool"}}}
known = {}


def drafted(name, monkeypatch, **config):
    """The draft of a module, once, and what its proof was made from."""
    key = (name, *config)
    if key not in known:
        with monkeypatch.context() as patched:
            patched.setattr(drafting, "prove", lambda found, *rest: (known.__setitem__(key, (found, rest)), prove(found, *rest)))
            draft(Subject(f"{MODULE}:{name}", CONFIGS[name] | config, INPUTS.get(name, X)), 300.0)
    return known[key]


def reasons(name, monkeypatch, **config):
    found, _ = drafted(name, monkeypatch, **config)
    assert found.exact == (not list(found.partial))
    return " | ".join(found.partial)


def planted(name, monkeypatch, old, new):
    """Why a draft is partial in which a text is replaced by another one."""
    found, (document, studies, *_) = drafted(name, monkeypatch)
    assert found.exact, list(found.partial)
    assert found.text.count(old) == 1, found.text
    wrong = replace(found, text=found.text.replace(old, new), proofs=[], reasons=[], decide=[])
    prove(wrong, document, studies, [], time.monotonic() + 300, 300.0)
    assert not wrong.exact
    return " | ".join(wrong.partial)


@pytest.mark.thorough
def test_layers_at_their_tiny_count_are_partial(monkeypatch):
    found = reasons("Growing", monkeypatch)
    assert "depth decides how many layers there are, but no size of the draft is read from it" in found


@pytest.mark.thorough
def test_shared_layers_at_their_tiny_count_are_partial(monkeypatch):
    found = reasons("InTurns", monkeypatch)
    assert "turns decides how many layers there are, but no size of the draft is read from it" in found


@pytest.mark.thorough
def test_shapes_that_depend_on_values_are_proven_on_values(monkeypatch):
    found, _ = drafted("Halves", monkeypatch)
    (proof,) = (one for one in found.proofs if one.kind == VALUES)
    assert "26,880 measured, 53,760 drafted" in proof.differences[0]  # 2 * 14 * 24 * 40, and twice that
    assert not found.exact


@pytest.mark.thorough
def test_the_loss_sums_every_tensor_that_is_returned(monkeypatch):
    found, _ = drafted("TwoResults", monkeypatch)
    assert found.exact, list(found.partial)
    assert "outputs: [first, second]" in found.text


@pytest.mark.thorough
def test_a_class_whose_own_defaults_the_draft_refuses_is_partial(monkeypatch):
    assert "the class's own defaults are not described: gated = true" in reasons("Gated", monkeypatch, gated=False)


@pytest.mark.thorough
def test_a_list_that_is_null_by_default_has_no_default(monkeypatch):
    found, _ = drafted("OwnList", monkeypatch)
    assert "{key: widths, type: list}" in found.text
    assert found.exact, list(found.partial)


@pytest.mark.thorough
def test_a_part_that_runs_twice_counts_once(monkeypatch):
    for name in ("SharedLayer", "OneLayerTwice"):
        found, _ = drafted(name, monkeypatch)
        assert found.exact, list(found.partial)
    once = "first.up: {op: linear, from: between, width: h, to: up2, shared: true}"
    twice = "second.up: {op: linear, from: between, width: h, to: up2}"
    wrong = planted("OneLayerTwice", monkeypatch, once, twice)
    assert "second.up.weight: counted twice" in wrong


@pytest.mark.thorough
def test_half_of_the_results_is_not_the_loss(monkeypatch):
    assert "backward" in planted("TwoResults", monkeypatch, "outputs: [first, second]", "outputs: [first]")


@pytest.mark.thorough
def test_a_wrong_default_is_seen_where_a_config_leaves_the_field_out(monkeypatch):
    assert "default of hidden: 44 drafted, 40 real" in planted("OneLayerTwice", monkeypatch, "default: 40", "default: 44")


@pytest.mark.thorough
def test_heads_that_move_together_are_moved_apart(monkeypatch):
    found = planted("Grouped", monkeypatch, "kv_heads: H2", "kv_heads: H")
    assert "heads" in found


@pytest.mark.thorough
def test_a_baked_count_is_seen_although_no_hold_out_moves_it(monkeypatch):
    found, (document, studies, *_) = drafted("SharedLayer", monkeypatch)
    wrong = replace(found, text=found.text.replace("repeat: L", "repeat: 3").replace("  L: {key: depth, default: 6}\n", ""))
    wrong.proofs, wrong.reasons = [], []
    prove(wrong, document, studies, [], time.monotonic() + 300, 300.0)
    assert "depth" in " | ".join(wrong.partial)


@pytest.mark.thorough
def test_switches_that_matter_together_are_guarded(monkeypatch):
    found, _ = drafted("Crossed", monkeypatch)
    assert found.exact, list(found.partial)
    guarded = found.fields["guarded"]
    assert {"twice", "deep"} & guarded.keys()
    assert all(True not in guarded[name]["values"] for name in guarded)


@pytest.mark.thorough
def test_what_is_left_over_of_a_width_is_refused(monkeypatch, tmp_path):
    found, _ = drafted("Divided", monkeypatch)
    assert found.exact, list(found.partial)
    save(tmp_path / "divided.yaml", found.text, found.census)
    model = load(tmp_path / "divided.yaml")
    for width, heads in ((25, 4), (24, 5), (48, 6), (50, 8)):
        real = Subject(f"{MODULE}:Divided", {"width": width, "heads": heads}).build()
        with contextlib.suppress(SymflopsError):
            assert model.estimator({"width": width, "heads": heads}).parameters == sum(one.numel() for one in real.parameters())
    assert model.estimator({"width": 48, "heads": 6}).parameters


@pytest.mark.thorough
def test_the_reader_refuses_what_the_draft_does_not_hold_for(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["Crossed"] | {"twice": True}))
    (tmp_path / "inputs.json").write_text(json.dumps(X))
    spec = tmp_path / "crossed.yaml"
    files = ["--config", str(tmp_path / "config.json"), "--inputs", str(tmp_path / "inputs.json")]
    code = main(["draft", f"{MODULE}:Crossed", *files, "--timeout", "300", "--json", "-o", str(spec)])
    report = json.loads(capsys.readouterr().out)
    assert code == 0, report["partial"]
    assert any(line.startswith("deep: false") for line in report["holds_for"])
    assert report["census"] == json.loads((tmp_path / "crossed.census.json").read_text("utf-8"))
    model = load(spec)
    assert model.estimator({"width": 8, "hidden": 3, "twice": True, "deep": False}).parameters == 8 * 3 + 3 + 3 * 8 + 8
    with pytest.raises(SymflopsError, match="deep"):
        model.estimator({"width": 8, "hidden": 3, "twice": True, "deep": True})
