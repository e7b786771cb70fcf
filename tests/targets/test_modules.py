"""Every generated module against the interpreter: the same whole numbers on every live case, under both conventions."""

from __future__ import annotations

import pytest

from symflops import lookup
from symflops.api import load
from symflops.library import shipped, specs_in
from symflops.runtime.batch import BatchError
from symflops.witness.cases import cases_of

FILES = {file.name: file for file in specs_in(shipped("specs"))}
CASES = [(name, row) for name, file in FILES.items() for row in range(len(cases_of(file)))]


@pytest.mark.parametrize("convention", ["symflops", "torch"])
@pytest.mark.parametrize(("name", "row"), CASES)
def test_a_module_says_what_the_interpreter_says(name: str, row: int, convention: str) -> None:
    case = cases_of(FILES[name])[row]
    module, made = lookup.estimator(lookup.by_name(name), name, dict(case.config), "full", convention)
    if lookup.variant(module, made) == "derived":  # a config of another structure: there is no module to hold against it
        assert hasattr(module, "OtherStructure")
        return
    one = load(FILES[name].path).estimator(case.config, "full", convention)
    ours, theirs = made.moments(**case.batch), one.moments(**case.batch)
    found = (made.parameters, made.trainable_parameters, made.forward(ours), made.backward(ours))
    assert found == (one.parameters, one.trainable_parameters, one.forward(theirs), one.backward(theirs))
    assert all(type(number) is int for number in found)
    parts = made.by_module(ours).values()
    assert (sum(part.forward for part in parts), sum(part.backward for part in parts)) == found[2:]


def test_lengths_that_do_not_divide_are_refused():
    module, made = lookup.estimator(lookup.by_name("lumina2"), "lumina2", {}, "full", "symflops")
    one = load(FILES["lumina2"].path).estimator({}, "full", "symflops")
    for batch in ({"latent": [(5, 3)], "prompt": [3]}, {"latent": [(8, 8), (2, 3)], "prompt": [3, 4]}):
        with pytest.raises(ValueError, match="does not divide"):
            made.moments(**batch)
        with pytest.raises(BatchError, match="does not divide"):
            one.moments(**batch)
