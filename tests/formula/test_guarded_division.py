"""A quotient in a branch of a condition has a value where its divisor is 0 or null, in the interpreter and in modules."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from symflops.api import Model
from symflops.support.findings import SymflopsError
from tests.lower.test_requirements import model
from tests.standalone import figures, published, sizes_for

HEAD = """language: 2
name: small
sizes:
  D: {key: width, default: 12}
  C: {key: chunk, default: 0}
  O: {key: other, default: null, optional: true}
streams: {text: [x]}
inputs: {h: {stream: text, width: D}}
graph:
"""
WIDTH = HEAD + '  - q: {op: linear, from: h, width: "D//C if C > 0 else D", bias: false, to: y}\noutputs: [y]\n'
ROWS = HEAD + '  - p: {op: pad, from: h, axes: {x: "ceil(x, O)*O if O != null else x + 1"}, to: g}\n  - q: {op: linear, from: g, width: D, bias: false, to: y}\noutputs: [y]\n'
NESTED = HEAD + '  - q: {op: linear, from: h, width: "(D % C + 1 if C < 5 else D//(2*C)) if C != 0 and D > 1 else 3", bias: false, to: y}\noutputs: [y]\n'
EITHER = HEAD + '  - q: {op: linear, from: h, width: "3 if C == 0 or D % C == 0 else 2", bias: false, to: y}\noutputs: [y]\n'
BOTH = HEAD + '  - q: {op: linear, from: h, width: "3 if C != 0 and D > 1 and D // C > 2 else 2", bias: false, to: y}\noutputs: [y]\n'
PERIOD = HEAD + "  - layers:\n      repeat: 5\n      index: i\n      graph: [{q: {op: linear, from: h, width: D, bias: false, when: WHEN, add_to: h}}]\noutputs: [h]\n"


def width(text: str, config: dict[str, int | None]) -> int:
    found = model(text).estimator({"width": 12, **config}, "full", "torch")
    assert found.parameters % 12 == 0
    return found.parameters // 12


@given(st.integers(0, 12))
def test_a_width(chunk):
    assert width(WIDTH, {"chunk": chunk}) == (12 // chunk if chunk > 0 else 12)
    assert width(NESTED, {"chunk": chunk}) == ((12 % chunk + 1 if chunk < 5 else 12 // (2 * chunk)) if chunk else 3)


@given(st.lists(st.integers(1, 30), max_size=4), st.one_of(st.none(), st.integers(1, 9)))
def test_a_length(lengths, other):
    found = model(ROWS).estimator({"other": other}, "full", "torch")
    rows = sum(-(-x // other) * other if other is not None else x + 1 for x in lengths)
    assert found.forward(found.moments(text=lengths)) == 2 * 12 * 12 * rows


def test_what_no_condition_guards_is_refused():
    text = HEAD + "  - q: {op: linear, from: h, width: D//C, to: y}\noutputs: [y]\n"
    with pytest.raises(SymflopsError, match="does not fit the model"):
        model(text).estimator({"chunk": 0})


@pytest.mark.parametrize("other", [None, 1, 4])
def test_a_module_reads_whether_a_size_in_a_length_is_given(other):
    one: Model = model(ROWS)
    module = published(one.program(["full"], ["torch"]))
    theirs = module.Estimator(module.Sizes.from_config({"other": other}), regime="full", convention="torch")
    ours = one.estimator({"other": other}, "full", "torch")
    assert theirs.forward(theirs.moments(text=[9, 5])) == ours.forward(ours.moments(text=[9, 5]))
    assert figures(module.formulas, sizes_for(module.formulas, ours.stored, ours.sizes), {"text": [9, 5]}, "full", "torch")[2] == ours.forward(ours.moments(text=[9, 5]))
    both = theirs.moments(text=[9])
    assert theirs.terms(9) == tuple(getattr(both, item.name) for item in one.program(["full"], ["torch"]).moments)


@given(st.integers(0, 14))
def test_a_condition_behind_one_that_excludes_its_divisor(chunk):
    assert width(EITHER, {"chunk": chunk}) == (3 if chunk == 0 or 12 % chunk == 0 else 2)
    assert width(BOTH, {"chunk": chunk}) == (3 if chunk != 0 and 12 // chunk > 2 else 2)


@pytest.mark.parametrize("chunk", range(7))
@pytest.mark.parametrize("when", ["C == 0 or i % C != C - 1", "C > 0 and i % C == C - 1"])
def test_a_period_that_may_be_0(when, chunk):
    layers = sum(bool(eval(when, {"C": chunk, "i": i})) for i in range(5))
    assert width(PERIOD.replace("WHEN", when), {"chunk": chunk}) == 12 * layers
