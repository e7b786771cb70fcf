"""A stage says which size it needs, and a segment answers with the cut that it needs."""

from pathlib import Path

import pytest
from sympy import Integer

from symflops.build.build import build
from symflops.build.index_conditions import Cut, Decider, Segment, Select, UndecidedError
from symflops.build.scopes import Frame, Journaled
from symflops.derive.derive import derive
from symflops.formula.functions import AtLeast, Contains, size_symbol
from symflops.formula.truth import YES, Truth, UnknownSizeError
from symflops.ir.graph import Graph
from symflops.ir.patterns import Path as ModulePath
from symflops.read.read import read
from symflops.read.regimes import read_regime
from symflops.read.spec_files import page
from symflops.support.findings import Source

CASES = Path(__file__).resolve().parents[1] / "support"
L, INDEX, PLACE = size_symbol("L"), size_symbol("i@1"), size_symbol("i@2_")


class Repeat:
    start, end, selectors, canonical = Integer(0), L, (), size_symbol("i@")


def spec_of(name):
    return read(Source("spec.yaml", (CASES / name / "spec.yaml").read_text("utf-8")), lambda block: None)


def decided(condition, passed=()):
    frame = Frame(ModulePath(()), {}, Journaled(), [])
    decider = Decider(Repeat(), Segment(Integer(0), L, dict(passed)), INDEX, PLACE, {}, frame)
    try:
        return decider.decide(condition)
    except UndecidedError as error:
        return error.needs


def test_build_says_which_size_decides_the_structure():
    with pytest.raises(UnknownSizeError) as found:
        build(spec_of("structural-size"))
    assert found.value.diagnostic.code == "structural-size"
    assert isinstance(build(spec_of("structural-size"), {found.value.size: (1, 2)}), Graph)


def test_derive_says_which_count_a_repeat_without_a_closed_form_needs():
    graph = build(spec_of("alternating-repeat"))
    with pytest.raises(UnknownSizeError) as found:
        derive(graph, read_regime(page("regimes", "full")))
    assert (found.value.size, found.value.diagnostic.code) == ("L", "alternating-repeat")


@pytest.mark.parametrize(("point", "answer"), [(Integer(0), True), (L, False), (Integer(3), Cut(INDEX, Integer(3)))])
def test_a_segment_decides_a_bound_or_answers_with_a_cut(point, answer):
    found = decided(Truth.of(AtLeast(INDEX, point)))
    assert found == (Truth.of(answer) if isinstance(answer, bool) else answer)


def test_a_bound_is_decided_once_the_segment_is_cut_there():
    assert decided(Truth.of(AtLeast(INDEX, Integer(3))), [(Integer(3), True)]) is YES


def test_a_condition_that_is_no_run_divides_the_iterations():
    bracket = Contains(INDEX, size_symbol("layers"))
    found = decided(Truth.of(bracket))
    assert isinstance(found, Select) and (found.index, found.condition) == (INDEX, Truth.of(Contains(Repeat.canonical, size_symbol("layers"))))
