"""The structures that frameworks take models for are found by name, and never by a config."""

from __future__ import annotations

import pytest

from symflops.cli.main import main
from symflops.library.catalog import assumed, by_name, catalogs
from symflops.library.lookup import interpreted
from symflops.library.naming import estimate
from symflops.read.spec_files import ASSUMED, find_spec, shipped, specs_in

NAMES = [file.name for file in specs_in(shipped("specs"), ASSUMED)]
KEMPNER = {"n_layers": 2, "dim": 64, "n_heads": 4, "computed_ffn_hidden_dim": 128, "vocab_size": 100}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_found_by_its_name(name):
    assert find_spec(name).path == find_spec(f"{ASSUMED}/{name}").path == by_name(name).file(name).path
    assert all(name not in catalog.specs for catalog in catalogs())


def test_all_are_there():
    assert set(NAMES) == set(assumed().specs) and {"kempnerforge", "latte_fork", "verl_omni_wan"} <= set(NAMES)


def test_an_estimate_is_as_specified():
    model = interpreted(by_name("kempnerforge"), "kempnerforge", KEMPNER, tell=lambda text: None)
    assert model.evidence["grade"] == "as specified"
    found = estimate(KEMPNER, {"text": [10]}, spec="kempnerforge")
    assert estimate(KEMPNER, {"text": [10]}, spec="assumed/kempnerforge") == found
    assert found["parameters"] == 95_040  # 2*(4*64^2 + 3*64*128 + 2*64) + 2*100*64 + 64
    assert found["parameters"] == 2 * (4 * 64**2 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64


def test_lengths_are_scalar_where_the_source_has_them_so():
    assert estimate({}, {"latent": [1024], "prompt": [12]}, spec="verl_omni_wan")["forward"] > 0


def test_they_are_listed_under_a_heading_of_their_own(capsys):
    assert main(["list"]) == 0
    shown, _, others = capsys.readouterr().out.partition("structures that frameworks take models for")
    assert {line.split()[0] for line in others.splitlines()[1:] if line[2] != " "} == set(NAMES)
    assert not {line.split()[0] for line in shown.splitlines() if line.startswith("  ")} & set(NAMES)
    groups = [line.removesuffix(":") for line in shown.splitlines() if line.strip() and not line.startswith(" ")]
    assert groups == sorted(groups) and {"language", "diffusion", "vision"} <= set(groups)
