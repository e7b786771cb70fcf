"""Structures that frameworks assume: a recipe from a guide, and the specs themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import load
from symflops.read.spec_files import roots, specs_in

SPECS = sorted((Path(__file__).parents[2] / "specs" / "assumed").glob("*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_structure_is_a_spec(path):
    model = load(f"assumed/{path.stem}")
    assert model.spec.name == path.stem
    assert model.spec.outputs


def test_structures_are_not_shipped_as_specs():
    listed = {file.group for root in roots() for file in specs_in(root)}
    assert "assumed" not in listed
    assert listed


def wan_recipe(latents, prompts, layers=30, width=2048, hidden=8192, text=2048) -> int:
    """The recipe's own terms: 6 for each weight and row, 12 for each pair and channel, modulation once a sample."""
    per_latent = layers * (4 * width**2 + 2 * width**2 + 2 * width * hidden)
    per_prompt = layers * 2 * width * text
    own = sum(s * s for s in latents)
    cross = sum(s * p for s, p in zip(latents, prompts, strict=True))
    return (
        6 * per_latent * sum(latents) + 6 * per_prompt * sum(prompts) + 6 * layers * 6 * width**2 * len(latents)
        + 12 * layers * width * (own + cross)
    )  # fmt: skip


@pytest.mark.parametrize(("latents", "prompts"), [([1024], [256]), ([32760, 1560], [512, 77]), ([0, 5], [3, 0])])
def test_the_wan_recipe_of_verl_omni(latents, prompts):
    estimator = load("assumed/verl_omni_wan").estimator({}, "full", "verl-omni")
    found = estimator.total(estimator.moments(latent=latents, prompt=prompts))
    assert found == wan_recipe(latents, prompts)


def test_the_wan_recipe_grows_as_it_says():
    estimator = load("assumed/verl_omni_wan").estimator({}, "full", "verl-omni")

    def cost(latents):
        return estimator.total(estimator.moments(latent=latents, prompt=[512]))

    assert 2 < cost([65520]) / cost([32760]) < 4
    many = load("assumed/verl_omni_wan").estimator({}, "full:timesteps=10", "verl-omni")
    assert many.total(many.moments(latent=[32760], prompt=[512])) == 10 * cost([32760])
