"""Every generated module against the interpreter: the same integers on every live case under both conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from symflops.catalog import lookup
from symflops.catalog.library import shipped, specs_in
from symflops.runtime.batch import BatchError
from symflops.runtime.sizes import look_up
from tests.sampling import sampled
from tests.shipped import NAMES, cases_of, load

FILES = {file.name: file for file in specs_in(shipped("specs"))}
ROWS = [(name, row) for name, file in FILES.items() for row in range(len(cases_of(file)))]
CASES = [(*row, convention) for place, row in enumerate(ROWS) for convention in ("symflops", "torch")[:: -1 if place % 2 else 1]]
STRUCTURES = [(name, variant) for name in NAMES for variant in lookup.by_name(name).specs[name].get("structures", {})]


def agree(module: Any, made: Any, one: Any, batch: dict[str, Any]) -> None:
    flags = [getattr(made.sizes, name) for name, kind, *_ in getattr(made.sizes, "_fields", ()) if kind == "flag"]
    assert all(flag in (None, False, True) and type(flag) is not int for flag in flags)
    ours, theirs = made.moments(**batch), one.moments(**batch)
    found = (made.parameters, made.trainable_parameters, made.forward(ours), made.backward(ours))
    assert found == (one.parameters, one.trainable_parameters, one.forward(theirs), one.backward(theirs))
    assert {name: size for name, size in made.tensors().items() if size} == {name: size for name, size in one.tensors().items() if size}
    assert all(type(number) is int for number in found)
    parts = made.by_module(ours)
    assert (sum(part.forward for part in parts.values()), sum(part.backward for part in parts.values())) == found[2:]
    assert working(parts) == working(one.by_module(theirs))


def working(parts: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {name: (part.forward, part.backward) for name, part in parts.items() if part.forward or part.backward}


@pytest.mark.parametrize(("name", "row", "convention"), sampled(CASES, 200, 20))
def test_a_module_says_what_the_interpreter_says(name: str, row: int, convention: str) -> None:
    case = cases_of(FILES[name])[row]
    module, made = lookup.estimator(lookup.by_name(name), name, dict(case.config), "full", convention, lambda text: None)
    agree(module, made, load(FILES[name].path).estimator(case.config, "full", convention), dict(case.batch))


@pytest.mark.parametrize(("name", "variant"), sampled(STRUCTURES, 12, 4))
def test_a_variant_says_what_the_interpreter_says(name: str, variant: str) -> None:
    """For a config that says no more than the variant, and what has no default."""
    model = load(FILES[name].path)
    cases = cases_of(FILES[name])
    required = {size.keys[0]: look_up(cases[0].config, size.keys) for size in model.spec.sizes if size.default is None and not size.optional}
    config = {**required, **model.variants.get(variant, {})}
    module, made = lookup.estimator(lookup.by_name(name), name, config, "full", "torch")
    assert module.VARIANT == variant and module.REGIMES[:2] == ("full", "forward")
    batch = next(batch for case in cases for batch in (dict(case.batch), doubled(case.batch)) if fits(made, batch))
    agree(module, made, model.estimator(config, "full", "torch"), batch)


def doubled(batch: Mapping[str, Any]) -> dict[str, Any]:
    """A batch of twice the lengths."""
    return {name: [[2 * side for side in item] if isinstance(item, list) else 2 * item for item in items] for name, items in batch.items()}


def fits(estimator: Any, batch: Mapping[str, Any]) -> bool:
    """Whether the lengths divide as a variant divides them."""
    try:
        return bool(estimator.moments(**batch))
    except ValueError:
        return False


def test_lengths_that_do_not_divide_are_refused():
    module, made = lookup.estimator(lookup.by_name("lumina2"), "lumina2", {}, "full", "symflops")
    one = load(FILES["lumina2"].path).estimator({}, "full", "symflops")
    for batch in ({"latent": [(5, 3)], "prompt": [3]}, {"latent": [(8, 8), (2, 3)], "prompt": [3, 4]}):
        with pytest.raises(ValueError, match="does not divide"):
            made.moments(**batch)
        with pytest.raises(BatchError, match="does not divide"):
            one.moments(**batch)
