"""The list of records that cannot be exact: each is held to its difference, and none stays that is exact after all."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.ir.verification import KnownInexact
from symflops.library.records.verified import INEXACT as FILE, all_verifications, known_inexact
from symflops.read.spec_files import shipped
from symflops.support.findings import SpecError
from symflops.verify.records import verify_record
from symflops.verify.verdicts import judged

ROOT = Path(__file__).resolve().parents[2]
RECORD = next(record for record in json.loads((ROOT / "tests/data/truth/LlamaForCausalLM.json").read_text()) if record["tag"] == "tiny-c")
CHANGED = ("model", "model.layers.*", "model.layers.*.mlp", "model.layers.*.mlp.down_proj")
ENTRY = KnownInexact(RECORD["id"], "the counter is wrong", -6, 4, (("model.layers.*.mlp.down_proj", -6),))


def wrong(forward: int = 6, backward: int = -4, module: int = 6) -> dict:
    """The record as a counter would have it that is wrong by so much."""
    record = copy.deepcopy(RECORD)
    record["fwd_flops"] += forward
    record["bwd_flops"] += backward
    for name in CHANGED:
        record["by_module_fwd"][name] += module
    return record


def status(record: dict, entry: KnownInexact = ENTRY) -> tuple[str, str]:
    verdict = judged(verify_record(load("llama"), record), record, {entry.id: entry})
    return verdict.status, verdict.why


def test_a_record_that_differs_as_stated_is_inexact_and_says_why():
    assert status(wrong()) == ("inexact", "the counter is wrong")


def test_an_entry_about_an_exact_record_is_stale():
    assert status(RECORD)[0] == "stale"


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (wrong(forward=8), "forward is -8, stated is -6"),
        (wrong(backward=-2), "backward is +2, stated is +4"),
        (wrong(module=8), "model.layers.*.mlp.down_proj is -8, stated is -6"),
        (wrong() | {"by_module_fwd": RECORD["by_module_fwd"]}, "model.layers.*.mlp.down_proj is +0, stated is -6"),
        (wrong() | {"params_total": 1}, "parameters differ"),
        (RECORD | {"fwd_flops": RECORD["fwd_flops"] + 6}, "backward is +0, stated is +4"),
    ],
)
def test_a_record_that_differs_otherwise_is_a_mismatch(record, told):
    found, why = status(record)
    assert found == "mismatch" and told in why


def test_a_module_that_is_not_stated_is_a_mismatch():
    record = wrong()
    record["by_module_fwd"]["lm_head"] += 2
    found, why = status(record)
    assert found == "mismatch" and "lm_head is -2, stated is +0" in why


def test_records_that_nobody_stated_are_judged_as_ever():
    entry = KnownInexact("another/record", "why", 0, 0)
    assert status(RECORD, entry) == ("exact", "") and status(wrong(), entry)[0] == "mismatch"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("- {id: a, reason: b}", "missing-field"),
        ("- {id: a, difference: {forward: 1}}", "missing-field"),
        ("- {id: a, reason: b, difference: {forwards: 1}}", "unknown-field"),
        ("- {id: a, reason: b, difference: {forward: 1.5}}", "bad-number"),
        ("- {id: a, reason: b, difference: {modules: {m: [1]}}}", "bad-number"),
        ("- {id: a, reason: b, difference: {forward: 1}}\n" * 2, "twice"),
        ("".join(f"- {{id: a{number}, reason: b, difference: {{forward: 1}}}}\n" for number in range(11)), "too-many"),
    ],
)
def test_mistakes_in_the_list(tmp_path, text, code):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(SpecError) as caught:
        known_inexact(tmp_path)
    assert code in {found.code for found in caught.value.diagnostics}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A library of one spec, with records of it."""
    shutil.copytree(shipped("specs") / "blocks", tmp_path / "specs/blocks")
    (tmp_path / "specs/language").mkdir()
    shutil.copy(shipped("specs") / "language/llama.yaml", tmp_path / "specs/language")
    (tmp_path / "records").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def verify(project: Path, records: list[dict], entry: str, *words: str) -> int:
    (project / "records/records.json").write_text(json.dumps(records))
    (project / "specs" / FILE).write_text(entry)
    return main(["verify", "--records", "records", "--strict", *words])


LISTED = """- id: transformers/LlamaForCausalLM/tiny-c
  reason: the counter is wrong
  difference: {forward: -6, backward: 4, modules: {model.layers.*.mlp.down_proj: -6}}
"""


def test_strict_accepts_what_is_listed_and_nothing_else(project, capsys):
    assert verify(project, [RECORD], "[]") == 0
    assert verify(project, [wrong()], "[]") == 1
    capsys.readouterr()
    assert verify(project, [wrong()], LISTED, "--save", "specs/verified.json") == 0
    told = capsys.readouterr().err
    assert f"inexact (known) {RECORD['id']}: the counter is wrong" in told and "0 exact, 1 inexact (known)" in told
    assert verify(project, [RECORD], LISTED) == 1
    assert f"stale {RECORD['id']}: is exact" in capsys.readouterr().err
    assert verify(project, [RECORD | {"class": "Nobody"}], "[]") == 1
    assert verify(project, [], "[]") == 2


def test_what_is_saved_knows_the_reason(project):
    assert verify(project, [wrong()], LISTED, "--save", "specs/verified.json") == 0
    (found,) = all_verifications(project / "specs")["llama"]
    ((case, known),) = found.inexact
    assert found.cases == () and case.name == "tiny-c" and known.reason == "the counter is wrong"
    assert case.forward == wrong()["fwd_flops"] + known.forward
