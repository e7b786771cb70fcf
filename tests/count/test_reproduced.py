"""The version of a framework that a convention reproduces: which pages name one, and where it is read."""

from __future__ import annotations

import json
import re
from datetime import date

import pytest

from symflops.api import convention_of
from symflops.cli.main import main
from symflops.library import lookup
from symflops.ops.kind import words_of
from symflops.read.conventions import read_convention
from symflops.read.field_tables import REPRODUCES
from symflops.read.peer_pages import read_peers
from symflops.read.reproduced import NAMES, NEEDED, reproduced_by
from symflops.read.spec_files import PACKAGE, page, pages
from symflops.support.findings import Source

OWN = {"symflops", "linears"}
"""The conventions that are named after no framework, document or paper."""


@pytest.mark.parametrize("name", [name for name in pages("conventions") if name not in OWN])
def test_a_convention_that_is_named_after_a_source_names_its_version_and_date(name):
    found = convention_of(name).reproduces
    assert found is not None and found == reproduced_by(name)
    assert date(2020, 1, 1) < date.fromisoformat(found.date) and found.of
    assert not re.search(r"[Ss]ince then", found.changed)


def test_no_convention_of_our_own_names_one():
    assert {name for name in pages("conventions") if convention_of(name).reproduces is None} == OWN


def test_every_convention_of_a_framework_whose_records_are_compared_names_it():
    found = {path.stem: read_peers(page("conventions", path)) for path in sorted((PACKAGE / "conventions/peers").glob("*.yaml"))}
    used = {case.convention for peers in found.values() for case in peers.cases}
    versions = [one.version for one in (convention_of(name).reproduces for name in used - OWN) if one]
    assert used >= {"latte", "verl", "maxtext"} and len(versions) == len(used - OWN)
    assert all(re.fullmatch(r"[0-9a-f]{40}|\d+(\.\d+)+", version) for version in versions)


def test_a_commit_is_told_short_with_what_has_changed_since():
    text = "name: mine\nreproduces: {of: Frame, version: VERSION, date: 2026-01-02, changed: windows count}\n"
    found = [read_convention(Source("mine.yaml", text.replace("VERSION", version))).reproduces for version in ("1.2", "0123456789abcdef" * 2 + "01234567")]
    assert [one.sentence for one in found if one] == [
        "Frame 1.2 of 2026-01-02; since then: windows count", "Frame at commit 0123456789ab of 2026-01-02; since then: windows count",
    ]  # fmt: skip


def test_a_list_of_conventions_tells_versions(capsys):
    assert main(["list", "conventions", "--json"]) == 0
    rows = {row["name"]: row["reproduces"] for row in json.loads(capsys.readouterr().out)["conventions"]}
    assert rows["symflops"] is None and rows["maxtext"]["version"].startswith("e591f30cbbf2") and rows["levanter"]["changed"]
    assert main(["list", "conventions"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "MaxText at commit e591f30cbbf2 of 2026-08-22" in text and "since then: Levanter moved into Marin" in text


def test_a_stored_program_outlives_a_new_version_and_no_new_rule():
    """What a convention reproduces changes no figure, so programs that are stored under it stay in use."""
    rules = "name: mine\npairs: all\n"
    newer = rules + "reproduces:\n  of: Frame\n  version: 2\n  date: 2026-01-02\n"
    one, two, other = (read_convention(Source("mine.yaml", text)).digest for text in (rules, newer, newer.replace("all", "half")))
    assert one == two != other
    assert all(lookup.is_current(name, convention_of(name).digest) for name in pages("conventions"))


def test_the_reader_and_the_schema_have_the_same_fields():
    assert words_of(REPRODUCES) == NAMES and tuple(field.name for field in REPRODUCES if field.required) == NEEDED
