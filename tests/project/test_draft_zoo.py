"""The script that drafts all classes: what its table says of results, and what it drafts."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def zoo(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import draft_zoo

    yield draft_zoo
    sys.modules.pop("draft_zoo", None)


def result(exact, **further):
    gate = [{"check": "all", "measured": 12, "taped": 12}]
    proofs = [{"at": "a", "exact": exact, "checks": 9, "differences": [] if exact else ["4 | 5 <s>"]}]
    return {"exact": exact, "gate": gate, "spec": "name: x", "proofs": proofs, "stuck": [], "unsolved": [], "partial": proofs[0]["differences"], **further}


def test_a_row_is_a_row_whatever_is_in_it(zoo):
    row = zoo.row("Thing", result(False, lines=4, processor_seconds=1.5))
    assert row == "| Thing | yes | partial | 0/1 | - | 0 | 4 | 1.5 | 4 / 5 &lt;s> |"
    assert zoo.row("Gone", {**zoo.NOTHING, "error": "timed out"}) == "| Gone | no | none | 0/0 | - | 0 |  |  | timed out |"


def test_shares_are_of_all_classes(zoo):
    stuck = result(True, lines=30, processor_seconds=10.0, stuck=["n"], memory=900)
    some = {"a": result(True, lines=20, processor_seconds=4.0), "b": stuck, "c": result(False), "d": zoo.NOTHING}
    told = zoo.summary(some)
    assert "4 classes: gate 3 (75 %), exact 2 (50 %), exact and nothing stuck 1 (25 %)" in told
    assert "a median of 25 lines and take 7 s of one core; most memory 900 MB" in told


def test_classes_outside_have_no_records(zoo):
    assert len(zoo.outside()) == 8
    assert not zoo.outside().keys() & zoo.records_of(ROOT / "tests" / "data" / "truth").keys()
