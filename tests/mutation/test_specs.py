"""A wrong spec cannot pass: each entry changed once is refused, or some measured record of its class is not exact.

What survives is listed in ``survivors.yaml`` by reason: ``same`` (every parameter and closed form stays what it was, so that
no number that is published changes), ``mask`` (only the useful pairs change, which PyTorch's counter does not see), and
``unmeasured`` (some config would tell, but none that was measured). ``SYMFLOPS_MUTANTS=all`` runs every mutant and not a part;
``python -m tests.mutation.test_specs`` writes the list anew.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.mutation.catching import SPECS, subjects

SURVIVORS = Path(__file__).parent / "survivors.yaml"
REASONS = ("same", "mask", "unmeasured")
STRIDES = {"llama": 2, "deepseek_v3": 6, "qwen3_moe": 10, "sd3": 24, "wan": 6, "flux": 8, "qwen_image": 4}
ALL = os.environ.get("SYMFLOPS_MUTANTS") == "all"


def listed(name: str) -> dict[str, list[str]]:
    """The known survivors of a spec by reason."""
    found = YAML(typ="safe", pure=True).load(SURVIVORS.read_text("utf-8"))["specs"][name]
    return {reason: list(found.get(reason) or ()) for reason in REASONS}


@pytest.mark.parametrize("name", SPECS)
def test_a_wrong_spec_is_caught(name):
    assert name in subjects(), f"{name} is not there, or not exact on the records as it is"
    subject, known = subjects()[name], listed(name)
    expected = {mutant: reason for reason, ids in known.items() for mutant in ids}
    tried = subject.mutants()[:: 1 if ALL else STRIDES[name]]
    outcomes = {mutant.id: subject.outcome(mutant) for mutant in tried}
    survived = {mutant: outcome for mutant, outcome in outcomes.items() if outcome in REASONS}
    assert survived == {mutant: reason for mutant, reason in expected.items() if mutant in outcomes}
    assert len(outcomes) > 10 and any(outcome == "record" for outcome in outcomes.values())


def test_the_list_tells_how_many_of_the_mutants_that_change_a_number_are_caught():
    document = YAML(typ="safe", pure=True).load(SURVIVORS.read_text("utf-8"))
    for name, spec in document["specs"].items():
        counts = spec["counts"]
        for reason in REASONS:
            assert counts.get(reason, 0) == len(spec.get(reason) or ()), name
    counts = [spec["counts"] for spec in document["specs"].values()]
    caught = sum(count["diagnostic"] + count["record"] for count in counts)
    missed = sum(count.get("unmeasured", 0) + count.get("mask", 0) for count in counts)
    assert caught / (caught + missed) >= 0.95


def rewrite(names: list[str]) -> None:
    """Run every mutant and write the list."""
    yaml = YAML()
    document = yaml.load(SURVIVORS.read_text("utf-8")) if SURVIVORS.is_file() else {"specs": {}}
    for name in names or list(subjects()):
        subject = subjects()[name]
        outcomes: dict[str, list[str]] = {}
        for mutant in subject.mutants():
            outcomes.setdefault(subject.outcome(mutant), []).append(mutant.id)
        counts = {key: len(ids) for key, ids in sorted(outcomes.items())}
        document["specs"][name] = {"counts": counts, **{reason: outcomes[reason] for reason in REASONS if reason in outcomes}}
        with SURVIVORS.open("w", encoding="utf-8") as file:
            yaml.dump(document, file)
        print(name, counts, flush=True)


if __name__ == "__main__":
    rewrite(sys.argv[1:])
