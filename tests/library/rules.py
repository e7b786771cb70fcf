"""Writes ``specs/measured.json``: the operator kinds on which records measure each rule of a regime.

    python -m tests.library.rules

A record measures the rules of its regime if its figures are exact. The rules and the kinds that they act on follow from the derivation.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from symflops.library.catalog import catalogs
from symflops.library.records.verified import RULES
from symflops.read.spec_files import shipped
from symflops.verify.records import Record, config_of_record, read_records, regime_of_record, verify_record
from tests.shipped import load

DATA = Path(__file__).resolve().parents[1] / "data"
OWNERS = {
    reference.rpartition(".")[2]: name for name, entry in catalogs()[-1].specs.items() for reference in entry["references"]
}


def records() -> Iterator[Record]:
    """The records of regimes, and those of whole steps whose inputs need a gradient or whose loss leaves outputs out."""
    yield from read_records(DATA / "regimes")
    for record in read_records(DATA / "truth"):
        if record["class"] in OWNERS and not is_plain(record):
            yield record


def is_plain(record: Record) -> bool:
    """Whether everything trains, the loss is over all outputs, and no input needs a gradient."""
    regime = regime_of_record(load(OWNERS[record["class"]]), record)
    return not (regime.input_grad or regime.loss)


def rules_in(record: Record) -> Mapping[str, frozenset[str]]:
    """The rules that a record measures, each with the operator kinds that it acts on; none if the record is not exact.

    What a reentrant group with several results does depends on how its module returns them, which no kind of operator says.
    """
    model = load(OWNERS[record["class"]])
    if verify_record(model, record).status != "exact":
        return {}
    found = model.derivation(regime_of_record(model, record), "torch", config_of_record(model, record))
    return {name: kinds for name, kinds in found.rules if not name.endswith("of several results")}


def table(some: Sequence[Record]) -> dict[str, list[str]]:
    """The operator kinds on which records measure each rule."""
    found: dict[str, set[str]] = defaultdict(set)
    for record in some:
        for name, kinds in rules_in(record).items():
            found[name] |= kinds
    return {name: sorted(kinds) for name, kinds in sorted(found.items())}


def text(rules: Mapping[str, Sequence[str]]) -> str:
    """The contents of the file."""
    lines = (f" {json.dumps(name)}: {json.dumps(kinds)}" for name, kinds in rules.items())
    return '{"schema": 1, "rules": {\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    Path(shipped("specs") / RULES).write_text(text(table(list(records()))), "utf-8")
