"""Specialised programs: with what is known substituted, each figure is that of the general program."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from symflops.evaluate.specialise import specialise
from symflops.evaluate.typical_values import default_sizes
from symflops.formula.formula import Apply, Bracket, Num, TallyOf, evaluate, operators, symbols, walk
from symflops.formula.terms import Terms
from symflops.ir.program import Program
from symflops.support.errors import SymflopsError
from tests import shipped
from tests.sampling import amount, sampled

NUMBERS = (0, 1, 1, 2, 3, 5, 8, 13, 61)
NO_VALUE = (ArithmeticError, LookupError, TypeError, ValueError)


def drawn(program: Program, random: Random) -> dict[str, Any]:
    """Sizes of the defaults with other numbers, flags and nulls; texts, lists and what decides the structure stay."""
    sizes = dict(default_sizes(program) or {})
    fixed = dict(program.fixed)
    for field in program.fields:
        value = sizes.get(field.letter, 1)
        if field.letter in fixed or isinstance(value, (str, tuple, list)):
            continue
        if field.kind == "flag":
            sizes[field.letter] = random.random() < 0.5
        elif field.nullable and random.random() < 0.4:
            sizes[field.letter] = None
        else:
            sizes[field.letter] = random.choice([value or 1, value or 1, random.choice(NUMBERS)])
    return {field.letter: sizes.get(field.letter, 1) for field in program.fields}


def with_derived(program: Program, sizes: dict[str, Any]) -> dict[str, Any]:
    """Sizes and those that follow from them."""
    known = dict(sizes)
    for one in program.definitions:
        known[one.letter] = evaluate(one.formula, known)
    return known


def figures(program: Program, sizes: dict[str, Any], lengths: dict[str, int]) -> list[Any]:
    """All totals: closed forms, tokens, parameters, and the work of the lines, for one item of some lengths."""
    known = with_derived(program, sizes)
    everything = {**known, **lengths}
    everything |= {one.name: evaluate(one.formula, everything) for one in program.statistics}
    moments = [evaluate(moment.formula, everything) for moment in program.moments]

    def total(form: Terms) -> Any:
        return sum(evaluate(formula, known) * moments[place] for place, formula in form)

    found: list[Any] = []
    for case in program.cases:
        found.append([total(form) for form in (case.forward, case.backward, case.recomputed)])
    for regime in program.regimes:
        found.append([evaluate(one, known) for one in (regime.parameters, regime.trainable, *([regime.active] if regime.active else []))])
        found.append(total(regime.tokens))
        found.append(sum(evaluate(tensor.count, known) for tensor in regime.tensors))
        for side in ("useful", "executed"):
            work = (
                (evaluate(line.unit, known) * total(getattr(line.amount, side)), [line.forward, line.recomputed, *line.backward])
                for line in regime.lines
            )
            found.append(sum(size * sum(evaluate(count, known) for count in counts) for size, counts in work))
    return found


def programs(name: str) -> list[Program]:
    """The stored program of a spec, of full training and of adapters."""
    return [shipped.load(name).typical(("full", "forward"), ("symflops", "torch"))]


@pytest.mark.parametrize("name", sampled(shipped.NAMES, 72, 12))
def test_specialised_formulas_equal_the_general_ones(name: str) -> None:
    """For random sizes, zeros and nulls among them: as letters, as numbers, and with some of them known."""
    random, told = Random(name), 0
    for program in programs(name):
        for draw in range(80):
            if draw >= amount(4, 12) and told:
                break
            sizes = drawn(program, random)
            lengths = {letter: random.choice((1, 2, 7, 16, 64)) for stream in program.streams for letter in stream.variables}
            some = [letter for letter in sizes if random.random() < 0.5]
            try:
                expected = figures(program, sizes, lengths)
            except NO_VALUE:
                continue
            for known, numbers in ((sizes, ()), (sizes, tuple(sizes)), ({letter: sizes[letter] for letter in some}, tuple(some))):
                try:
                    made = specialise(program, known, numbers)
                except SymflopsError:
                    continue
                assert figures(made, sizes, lengths) == expected, (sizes, numbers)
                told += 1
    assert told


@pytest.mark.parametrize("name", sampled(shipped.NAMES, 20))
def test_nothing_known_is_left_to_decide(name: str) -> None:
    """Of a whole config, closed forms have no conditions; with numbers they are numbers."""
    (program,) = programs(name)
    sizes = default_sizes(program)
    if sizes is None:
        pytest.raises(SymflopsError, shipped.load(name).derive, numeric=True)
        return
    sizes = {field.letter: sizes[field.letter] for field in program.fields}
    decided, numbers = specialise(program, sizes), specialise(program, sizes, tuple(sizes))
    for made in (decided, numbers):
        forms = [formula for case in made.cases for form in (case.forward, case.backward, case.recomputed) for _, formula in form]
        forms += [one for regime in made.regimes for one in (regime.parameters, regime.trainable)]
        for formula in forms:
            assert not any(isinstance(part, (Bracket, TallyOf)) for part in walk(formula))
            assert not any(isinstance(part, Apply) and part.function in ("min", "max", "excess") for part in walk(formula))
            assert made is decided or isinstance(formula, Num)
    before, after = (sum(operators(formula) for case in one.cases for _, formula in case.forward) for one in (program, decided))
    assert after <= before


def test_assumptions_of_a_user() -> None:
    model = shipped.load("deepseek_v3")
    forms = model.derive(assume="q_lora_rank=null, K=0")
    assert forms.forward == {
        "x": "L*(2*D*(H*(dn + dr + dv) + 3*M*(top + S) + r + dr + E) + H*(2*r*(dn + dv) + dn + dr + dv)) + 2*D*V",
        "xx": "L*H*(dn + dr + dv)",
    }
    assert model.derive(assume={"rq": None, "first_k_dense_replace": 0}).forward == forms.forward
    assert dict(forms.program.fixed) == {"rq": None, "K": 0}
    assert not {"rq", "K"} & {name for case in forms.program.cases for _, formula in case.forward for name in symbols(formula)}
    with pytest.raises(SymflopsError, match="whose 'K' is 0, not 3"):
        forms.estimator({"first_k_dense_replace": 3})


@pytest.mark.parametrize("name", ["mixtral", "phi3", "mistral"])
def test_a_window_that_may_be_null_can_be_assumed_so(name: str) -> None:
    """Also where null is the default, and the class takes a config's null for nothing said."""
    forms = shipped.load(name).derive(assume="W=null")
    assert set(forms.forward) == {"x", "xx"} == set(shipped.load(name).derive(assume={"sliding_window": None}).forward)


def test_a_config_decides_and_numbers_are_its_own() -> None:
    model = shipped.load("deepseek_v3")
    config = {"num_hidden_layers": 2, "first_k_dense_replace": 5}
    dense = model.derive().at(config)
    assert "M" not in dense.forward["x"] and "max" not in dense.forward["x"]
    numbers = model.derive(config=config, numeric=True)
    batch = {"text": [100, 7]}
    general = model.estimator(config)
    m = general.moments(**batch)
    assert sum(int(text) * m.sums()[name] for name, text in numbers.forward.items()) == general.forward(m)
    mine = numbers.estimator({})  # what a config does not say is as it was substituted
    assert mine.forward(mine.moments(**batch)) == general.forward(m)


def test_a_list_of_layers_is_counted() -> None:
    """A pattern of layers is a number of layers of each kind, and assumed kinds count as a config's do."""
    layers = ["full_attention", "sliding_attention", "sliding_attention"]
    config = {"layer_types": layers, "num_hidden_layers": 3}
    forms, general = shipped.load("gemma3").derive(assume=config), shipped.load("gemma3").estimator(config)
    mine = forms.estimator(config)
    assert mine.total(mine.moments(text=[5000, 3])) == general.total(general.moments(text=[5000, 3]))
    assert not any("sum(" in text or "count" in text for text in forms.forward.values())


@pytest.mark.parametrize("text, told", [
    ("q=1", "no size 'q': did you mean 'rq'"),
    ("K=", "NAME=VALUE"), ("K", "NAME=VALUE"), ("K=1,", "NAME=VALUE"),
    ("K=[", r"'\[' is no value"), ("K=1, K=2", "'K' is assumed twice"),
    ("tied=null", "which its class refuses"), ("D=abc", "'hidden_size' is 'abc', not a number"),
    ("K=" + "9" * 10_001, "at most 10,000 characters"), ("K=-1", "not a count"),
])  # fmt: skip
def test_a_mistaken_assumption_is_told(text: str, told: str) -> None:
    with pytest.raises(SymflopsError, match=told):
        shipped.load("deepseek_v3").derive(assume=text)


def test_sizes_that_do_not_fit_each_other_are_told() -> None:
    model = shipped.load("hunyuan_dit")
    told = [model.derive(assume={"num_layers": layers}).program.requirements for layers in (4, 40)]
    assert not [one for requirements in told for one in requirements if "stack" in one.text]
    with pytest.raises(SymflopsError, match="as many values from the stack"):
        model.derive(assume={"num_layers": 3})
