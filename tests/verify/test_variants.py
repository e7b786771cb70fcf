"""Published models whose structure their config decides: each has a module, and the module says what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.evaluate.layouts import batch_of
from symflops.ir.regime import Regime
from symflops.library import lookup
from symflops.verify.records import arguments_of, config_of_record, expected_of, read_records, regime_of_record
from tests.sampling import sampled
from tests.shipped import load

DATA = Path(__file__).resolve().parents[1] / "data" / "truth"
STRUCTURED = {
    reference.rpartition(".")[2]: name
    for name, entry in lookup.catalogs()[-1].specs.items()
    if entry["structures"]
    for reference in entry["references"]
}
PUBLISHED = {record["id"]: record for record in read_records(DATA) if "/pub-" in record["id"] and record["class"] in STRUCTURED}
NAMES = {"sd15-512px": "sd15", "sd21-768px-B2": "sd21", "sdxl-1024px": "sdxl", "audioldm2": "audioldm2", "sd-512px": "sd", "1.5-5b": "v1_5"}


def test_there_are_published_models():
    assert len(PUBLISHED) >= 9


@pytest.mark.parametrize("name", sampled(PUBLISHED, 16, 1))
def test_a_published_model_has_a_module_that_is_exact(name):
    record = PUBLISHED[name]
    spec, config = STRUCTURED[record["class"]], config_of_record(load(STRUCTURED[record["class"]]), record)
    module, made = lookup.estimator(lookup.by_name(spec), spec, config, "full", "torch")
    wanted = NAMES.get(name.rpartition("pub-")[2])
    assert module.VARIANT == wanted if wanted else module.VARIANT in lookup.by_name(spec).specs[spec]["structures"]
    model = load(spec)
    moments = made.moments(**batch_of(model.program(["forward"], ["torch"], config), arguments_of(model, record)))
    expected = expected_of(record)
    assert (made.parameters, made.forward(moments)) == (expected["parameters"], expected["forward"])
    if regime_of_record(model, record) == Regime("record"):
        assert made.backward(moments) == expected["backward"]


@pytest.mark.parametrize(("depths", "variant"), [([2, 2, 2, 2], "default"), ([3, 4, 6, 3], "default"), ([3, 6, 40, 3], "default")])
def test_depths_alone_are_no_structure_of_segformer(depths, variant):
    """Its stages stay symbols: one module is of b0 to b5."""
    module, _ = lookup.estimator(lookup.by_name("segformer"), "segformer", {"depths": depths})
    assert module.VARIANT == variant
