"""The specs of papers equal their witnesses: parameters, both passes in full, with adapters and with random freezes, and useful work."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from symflops.api import Model, load
from symflops.cli.actions.generate import output_of
from symflops.read.spec_files import shipped, specs_in
from symflops.verify.bench import Choice
from tests.papers.bench import PaperBench
from tests.papers.test_papers import NAMES as WITNESSES
from tests.sampling import amount, sampled

FILES = {file.name: file for file in specs_in(shipped("specs"), "papers")}
BASELINES = {"dense_decoder", "dense_encoder"}
NAMES = sorted(FILES.keys() - BASELINES)
SEEDS = range(5)


@cache
def loaded(name: str) -> Model:
    return load(FILES[name])


def test_each_witness_has_a_spec_that_names_it() -> None:
    assert NAMES == sorted(WITNESSES)
    assert all(loaded(name).spec.references == (f"{name}:Model",) for name in NAMES)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_spec_is_at_most_seventy_lines(name: str) -> None:
    assert len(FILES[name].path.read_text("utf-8").splitlines()) <= 70


@pytest.mark.parametrize("name", sampled(NAMES, 9))
def test_no_config_leads_to_it(name: str) -> None:
    entry = output_of(FILES[name]).entry
    assert entry["references"] == entry["model_types"] == entry["pipelines"] == []


@pytest.mark.parametrize(("name", "seed"), sampled([(name, seed) for name in NAMES for seed in SEEDS], 15, 5))
def test_parameters_passes_and_useful_work(name: str, seed: int) -> None:
    bench = PaperBench(loaded(name), name, seed)
    assert bench.parameters() == {}
    outcome, useful = bench.check(Choice(("*",))), bench.useful()
    assert outcome.exact, outcome
    assert useful.equal, useful


@pytest.mark.parametrize(("name", "seed"), sampled([(name, seed) for name in NAMES for seed in SEEDS], 90, 30))
def test_adapters_and_random_freezes(name: str, seed: int) -> None:
    bench = PaperBench(loaded(name), name, seed, partly=True)
    adapters = Choice(targets=tuple(dict.fromkeys(map(bench.alike, bench.linears))))
    for choice in (adapters, *(bench.draw(Random(f"{name}/{seed}/{number}")) for number in range(amount(1, 3)))):
        outcome = bench.check(choice)
        assert outcome.exact, bench.check(bench.smallest(choice))


@pytest.mark.parametrize(("base", "name", "same"), [("dense_decoder", "cross_layer_attention", {"share": 1}), ("dense_encoder", "product_key_memory", {"memory_layers": []})])
def test_a_baseline_is_the_architecture_without_its_idea(base: str, name: str, same: dict[str, object]) -> None:
    """Both witnesses with the idea switched off; names of some parameters differ."""
    bench = PaperBench(loaded(name), name, 0)
    config = bench.config | same
    figures = []
    for model in (loaded(base), loaded(name)):
        estimator = model.estimator(config, "full", "torch")
        moments = estimator.moments(**bench.case.batch)
        figures.append((estimator.parameters, estimator.forward(moments), estimator.backward(moments)))
    assert figures[0] == figures[1]
