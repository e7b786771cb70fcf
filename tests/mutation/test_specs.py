"""A wrong spec cannot pass: each entry changed once is refused, or some measured record of its class is not exact.

What survives is listed in ``survivors.yaml`` per spec, by reason: ``same`` (every parameter and closed form of training and
inference stays what it was), ``unmeasured`` (a closed form is another one, but no measured config tells); so are the swaps
that find no other value to swap with (``none``). Counts are raw: nothing is excluded but those swaps. The figure that is
asserted is of distinct mutants: one of a shared block counts once, however many specs call it, and is caught when it is caught
through any of them. The nightly run tries every mutant, and not a part of those that are caught; ``python -m tests.mutation.test_specs`` writes
the list anew.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from symflops.read.spec_files import find_spec
from tests.mutation.catching import SPECS, Subject, subject
from tests.sampling import NIGHTLY, amount, sampled

SURVIVORS = Path(__file__).parent / "survivors.yaml"
MISSED = ("same", "unmeasured")
REASONS = (*MISSED, "none")
STRIDES = {"llama": 10, "deepseek_v3": 14, "qwen3_moe": 14, "sd3": 40, "wan": 40, "flux": 40, "qwen_image": 22}


def listed(name: str) -> dict[str, list[str]]:
    """The known survivors of a spec by reason."""
    found = YAML(typ="safe", pure=True).load(SURVIVORS.read_text("utf-8"))["specs"][name]
    return {reason: list(found.get(reason) or ()) for reason in REASONS}


@pytest.mark.parametrize("name", sampled(sorted(SPECS, key=STRIDES.__getitem__), 7, 1))
def test_a_wrong_spec_is_caught(name):
    known = {mutant: reason for reason, ids in listed(name).items() for mutant in ids}
    tried = [mutant for mutant in subject(name).mutants() if NIGHTLY or mutant.id not in known][:: amount(STRIDES[name], 1)]
    outcomes = {mutant.id: subject(name).outcome(mutant) for mutant in tried}
    survived = {mutant: outcome for mutant, outcome in outcomes.items() if outcome in REASONS}
    assert survived == {mutant: reason for mutant, reason in known.items() if mutant in outcomes}
    assert len(outcomes) >= 10 and any(outcome == "record" for outcome in outcomes.values())


@pytest.mark.thorough
def test_the_list_tells_how_many_of_the_distinct_mutants_are_caught():
    document = YAML(typ="safe", pure=True).load(SURVIVORS.read_text("utf-8"))
    for name, spec in document["specs"].items():
        for reason in REASONS:
            assert spec["counts"].get(reason, 0) == len(spec.get(reason) or ()), name
        assert sum(spec["counts"].values()) == len(Subject(find_spec(name)).mutants()), name
    assert set(document["specs"]) == set(SPECS)
    caught, mutants = distinct(document["specs"])
    assert document["distinct"] == {"caught": caught, "mutants": mutants}
    assert caught / mutants >= 0.91  # some words of norms and heads are in no record, and those of decoding in none of training


def distinct(specs: Any) -> tuple[int, int]:
    """How many mutants are caught through some spec, and how many there are."""
    caught: set[str] = set()
    built: set[str] = set()
    for name, spec in specs.items():
        ids = {mutant.id for mutant in Subject(find_spec(name)).mutants()} - set(spec.get("none") or ())
        built |= ids
        caught |= ids.difference(*(spec.get(reason) or () for reason in MISSED))
    return len(caught), len(built)


def rewrite(names: list[str]) -> None:
    """Run every mutant and write the list."""
    yaml = YAML()
    document = yaml.load(SURVIVORS.read_text("utf-8")) if SURVIVORS.is_file() else {"distinct": {}, "specs": {}}
    for name in names or SPECS:
        outcomes: dict[str, list[str]] = {}
        for mutant in subject(name).mutants():
            outcomes.setdefault(subject(name).outcome(mutant), []).append(mutant.id)
        counts = {key: len(ids) for key, ids in sorted(outcomes.items())}
        document["specs"][name] = {"counts": counts, **{reason: outcomes[reason] for reason in REASONS if reason in outcomes}}
        caught, mutants = distinct(document["specs"])
        document["distinct"] = {"caught": caught, "mutants": mutants}
        with SURVIVORS.open("w", encoding="utf-8") as file:
            yaml.dump(document, file)
        print(name, counts, f"distinct: {caught} of {mutants}", flush=True)


if __name__ == "__main__":
    rewrite(sys.argv[1:])
