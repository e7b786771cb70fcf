"""The package and the oracle give the same integers, whatever the spec."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, assume, given, strategies as st

from tests.sampling import draws

from .interpreter import Result, run
from .package import CONVENTIONS, closed_form, generated, interpreted, program_of, symbolic
from .specs import Case, make_case, small_specs, to_yaml

EXAMPLES = draws(25, 60, 1000, derandomize="CI" in os.environ, suppress_health_check=list(HealthCheck))


def told(case: Case, convention: str, want: object, got: object) -> str:
    """A failure with everything that is needed to run it again."""
    return (
        f"\n{to_yaml(case.document)}\nconfig: {case.config}\nbatch: {case.batch}\ntrain: {case.train}\n"
        f"convention: {convention}\nwant: {want}\ngot:  {got}"
    )


def oracle(case: Case, convention: str, freeze: tuple[str, ...] = ()) -> Result:
    """The four numbers by unrolling."""
    return run(case.document, case.config, case.batch, train=case.train, freeze=freeze, convention=convention)


@EXAMPLES
@given(small_specs())
def test_the_package_agrees_with_the_oracle(case: Case) -> None:
    """Parameters, trainable parameters, forward and backward, under both conventions."""
    program = program_of(case)
    for convention in CONVENTIONS:
        want, got = oracle(case, convention), interpreted(program, case, convention)
        assert want == got, told(case, convention, want, got)


def test_a_repeat_whose_last_layer_is_of_another_kind() -> None:
    """What must be known of a repeat is what its layers depend on, also where the count of a part of it is 1; found by chance."""
    case = make_case(18304, 9, further=False)
    assert symbolic(case) is None
    want, got = oracle(case, "symflops"), interpreted(program_of(case), case, "symflops")
    assert want == got, told(case, "symflops", want, got)


@EXAMPLES
@given(small_specs(), st.lists(st.sampled_from(["*.weight", "*.bias", "a1.*", "*.a*", "a?", "*"]), max_size=3))
def test_frozen_parameters_agree(case: Case, freeze: list[str]) -> None:
    """Patterns that freeze win over those that train."""
    frozen = tuple(freeze)
    want, got = oracle(case, "symflops", frozen), interpreted(program_of(case, frozen), case, "symflops")
    assert want == got, told(case, f"symflops, frozen {frozen}", want, got)


@EXAMPLES
@given(small_specs())
def test_the_closed_forms_agree(case: Case) -> None:
    """The coefficients that are printed, multiplied out by moment, against the oracle."""
    program = program_of(case)
    for convention in CONVENTIONS:
        want, got = oracle(case, convention), closed_form(program, case, convention)
        assert (want.forward, want.backward) == got, told(case, convention, want, got)


@EXAMPLES
@given(small_specs())
def test_the_generated_module_agrees(case: Case) -> None:
    """The printed Python, where the structure needs no config, gives what the interpreted program gives."""
    program = symbolic(case)
    assume(program is not None)
    assert program is not None
    for convention in CONVENTIONS:
        want, got = interpreted(program, case, convention), generated(program, case, convention)
        assert want == got, told(case, convention, want, got)
        assert got == oracle(case, convention), told(case, convention, oracle(case, convention), got)


SYMBOLIC = [seed for seed in range(24) if symbolic(make_case(seed, 3 + seed % 9)) is not None][:12]


@pytest.mark.parametrize("seed", SYMBOLIC)
def test_one_program_serves_every_config(seed: int) -> None:
    """A program that needs no config to be derived is right for the configs of other cases too."""
    case = make_case(seed, 3 + seed % 9)
    program = symbolic(case)
    assert program is not None
    for other in range(100, 110):
        config = make_case(other, 2).config
        moved = Case(case.document, config, case.batch, case.train)
        try:
            want = oracle(moved, "symflops")
        except ValueError:  # this config does not fit this spec
            continue
        got = interpreted(program, moved, "symflops")
        assert want == got, told(moved, "symflops", want, got)
