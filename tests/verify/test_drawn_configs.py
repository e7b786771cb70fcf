"""A config, drawn field by field, gives the same estimate as what its class makes of it; or it is refused."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from symflops.api import load
from symflops.read.spec_files import SpecFile, shipped, specs_in
from symflops.verify.classes import with_value
from tests.sampling import amount, sampled
from tests.verify.drawn_configs import Drawer

FILES = {file.name: file for file in specs_in(shipped("specs")) if file.group not in ("nn", "papers")}
FROM_CONFIG = [name for name, file in FILES.items() if "transformers." in file.source().text]
MADE = [name for name in FILES if name not in FROM_CONFIG]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Warnings of the libraries about odd configs are no output of a test."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@lru_cache(maxsize=4)
def drawer(file: SpecFile) -> Drawer:
    """The drawer of a spec."""
    return Drawer(load(file))


@pytest.mark.parametrize("name", sampled(FROM_CONFIG, 30, 10))
@settings(max_examples=amount(30, 1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_a_config_and_what_its_class_makes_of_it_give_one_estimate(name: str, chance: random.Random) -> None:
    one = drawer(FILES[name])
    config = one.draw(chance)
    made, known = one.round_trip(config), one.sizes(config)
    if made is None or known is None:
        return
    again = one.sizes(made)
    if again is None:  # what the class writes out, the width of a head for one, may be refused before anything that it is computed from
        assert one.estimator(config) is None, f"refused, written by the class: {made}"
    elif again != known:  # a list that the class writes out may be a rule of the spec
        left, right = one.estimator(config), one.estimator(made)
        assert left is None or figures(left) == figures(right)


def figures(model: Any) -> Any:
    """What an estimate is made of."""
    return model and (model.parameters, model.coefficients["forward"])


@pytest.mark.parametrize("name", sampled(FROM_CONFIG, 30, 10))
def test_a_spec_refuses_few_configs_that_its_class_takes(name: str) -> None:
    one = drawer(FILES[name])
    drawn = [one.draw(random.Random(seed)) for seed in range(amount(60, 300))]
    taken = [config for config in drawn if one.round_trip(config) is not None]
    refused = sum(one.sizes(config) is None for config in taken)
    assert taken
    assert refused <= 0.4 * len(taken), f"{refused} of {len(taken)}"


@pytest.mark.parametrize("name", sampled(MADE, 24, 8))
def test_null_is_what_the_constructor_makes_of_it(name: str) -> None:
    one = drawer(FILES[name])
    plain = [size for size in one.model.spec.sizes if size.kind == "flag" or size.null is not None]
    for size in plain:
        config = with_value(one.bases[0], size.keys[0], None)
        real, model = one.built(config), one.estimator(config)
        assert real is None or model is None or model.parameters == real, size.name.text
        assert real is None or model is not None, f"{size.name.text} is refused"
