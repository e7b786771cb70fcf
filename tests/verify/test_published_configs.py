"""Configs as published, and configs written anew in their spelling: exact in every parameter by name and shape, or refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from symflops.evaluate.classes import class_in
from symflops.library.lookup import by_config, interpreted
from tests.sampling import sampled
from tests.verify.published_configs import verdict

DATA = Path(__file__).parent.parent / "data/published_configs"
KNOWN: dict[str, dict[str, Any]] = json.loads((DATA / "reconstructed.json").read_text("utf-8"))


def config_of(name: str) -> dict[str, Any]:
    """A config that was written anew."""
    found: dict[str, Any] = json.loads((DATA / "reconstructed" / f"{name}.json").read_text("utf-8"))
    return found


def sources() -> dict[str, dict[str, str]]:
    """The public files, by repository and path."""
    with (DATA / "sources.csv").open(encoding="utf-8", newline="") as file:
        return {f"{row['repository']}:{row['path']}": row for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", sampled(sorted(KNOWN), 6))
def test_the_real_class_built_from_the_config_has_the_parameters_that_are_derived(name: str) -> None:
    assert verdict(config_of(name)) == ("exact", KNOWN[name]["parameters"], "")


@pytest.mark.parametrize("name", sampled(sorted(KNOWN), 3))
def test_a_config_gives_the_recorded_parameters_without_torch(name: str) -> None:
    config = config_of(name)
    assert class_in(config) == KNOWN[name]["class"]
    catalog, spec = by_config(config)
    assert interpreted(catalog, spec, config, "forward", "torch", tell=lambda text: None).parameters == KNOWN[name]["parameters"]


def test_a_config_written_anew_has_the_parameters_of_the_public_file_that_it_stands_for() -> None:
    public = sources()
    cited = {name: public[row["source"]] for name, row in KNOWN.items() if "source" in row}
    assert len(cited) >= 20
    for name, row in cited.items():
        assert (row["class"], int(row["parameters"])) == (KNOWN[name]["class"], KNOWN[name]["parameters"]), name


def test_every_public_file_was_exact_or_refused() -> None:
    verdicts = Counter(row["verdict"] for row in sources().values())
    assert set(verdicts) == {"exact", "refused"}
    assert len({row["sha256"] for row in sources().values() if row["verdict"] == "exact"}) >= 60


def test_every_file_that_was_written_anew_is_listed() -> None:
    assert {path.stem for path in (DATA / "reconstructed").glob("*.json")} == set(KNOWN)
