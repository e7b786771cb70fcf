"""The table of rules that were measured: each record of a regime is exact, and the table is that of all records."""

from __future__ import annotations

import json
import re

import pytest

from symflops.library.records.verified import RULES, measured_rules
from symflops.read.spec_files import shipped
from symflops.verify.records import read_records, verify_record
from tests.library.rules import DATA, OWNERS, is_plain, records, rules_in, table, text
from tests.sampling import sampled
from tests.shipped import load

RECORDS = {record["id"]: record for record in read_records(DATA / "regimes") if not re.search("_variants/|-decoding/", record["id"])}
"""Those of models that have each kind of operator; ``tests/derive/test_regimes.py`` and ``tests/verify/test_decoding.py`` have the others."""


@pytest.mark.parametrize("name", sampled(list(RECORDS), 17, 3))
def test_a_record_of_a_regime_is_exact_and_in_the_table(name: str) -> None:
    """Of each record one rule, or adapters, what they freeze, and a gradient of what enters."""
    record = RECORDS[name]
    verdict = verify_record(load(OWNERS[record["class"]]), record)
    assert verdict.status == "exact", verdict.why or (verdict.expected, verdict.derived)
    found = rules_in(record)
    expected = 1 + bool(record["regime"]["adapters"]) + bool(record["regime"].get("force_grad"))
    reentrant = bool((record["regime"].get("recompute") or {}).get("reentrant"))  # a group with several results measures nothing
    assert expected - reentrant <= len(found) <= expected
    for rule, kinds in found.items():
        assert kinds <= set(measured_rules()[rule])


def test_a_record_that_is_not_exact_measures_no_rule() -> None:
    record = RECORDS["diffusers/DiTTransformer2DModel/0-recompute"]
    assert set(rules_in(record)) == {"recompute"} and not rules_in({**record, "bwd_flops": record["bwd_flops"] + 2})


def test_no_record_of_a_whole_step_measures_a_rule() -> None:
    (record, *_) = read_records(DATA / "truth")
    assert is_plain(record) and not rules_in(record)


@pytest.mark.nightly
def test_the_table_is_that_of_the_records() -> None:
    assert (shipped("specs") / RULES).read_text("utf-8") == text(table(list(records())))


def test_the_table_is_as_it_is_written() -> None:
    assert (shipped("specs") / RULES).read_text("utf-8") == text(json.loads(json.dumps(measured_rules())))
