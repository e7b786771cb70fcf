"""The config of every measured record, and of every live case, is admitted by the reading and the census of its class."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from symflops.evaluate.classes import class_name, of_class
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import Stored
from symflops.library.catalog import Catalog, catalogs
from symflops.library.lookup import by_config
from symflops.read.spec_files import find_spec
from symflops.verify.cases import cases_of
from symflops.verify.records import read_records

RECORDS = list(read_records(Path(__file__).parents[1] / "data" / "truth"))
SHIPPED = catalogs()[-1].specs


@lru_cache
def stored(name: str) -> Stored:
    catalog: Catalog = catalogs()[-1]
    return Stored(catalog.program(name))


@pytest.mark.parametrize("name", sorted({record["class"] for record in RECORDS}))
def test_measured_records_are_admitted(name: str) -> None:
    _, spec = by_config({"architectures": [name]})
    for record in RECORDS:
        if record["class"] == name:
            assert sizes_of(stored(spec), of_class(record["config_json"], name))


@pytest.mark.parametrize("spec", sorted(SHIPPED))
def test_live_cases_are_admitted(spec: str) -> None:
    first = next(iter(SHIPPED[spec]["references"]), "")
    for case in cases_of(find_spec(spec)):
        assert sizes_of(stored(spec), of_class(case.config, class_name(case.reference or first))) is not None
