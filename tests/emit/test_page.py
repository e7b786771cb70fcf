"""The tables of a page add up: saved work, merged rows, figures of a typical batch."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest

from symflops.emit.emit import page_of
from symflops.emit.math.definitions import abbreviated
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.emit.page.page import page, regime_notes
from symflops.emit.page.sections_work import sum_row
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.step import Step, sweep
from symflops.evaluate.typical_values import LevelLengths, default_sizes, typical_batch
from symflops.evaluate.worked_figures import worked
from symflops.formula.formula import ZERO, Formula, Sum, TallyOf, evaluate, parts, symbols, walk
from symflops.library.records.verified import published, verifications
from tests import shipped
from tests.emit.math_reader import read
from tests.emit.programs import page_text
from tests.parts import of_parts
from tests.sampling import sampled
from tests.shipped import load

NAMES = ("llama", "qwen_image", "deepseek_v3", "wan", "sd3", "t5", "mamba", "gemma3", "whisper", "unet_2d", "qwen2_vl")


@pytest.mark.parametrize("name", sampled(NAMES, 3, 1))
def test_twice_forward_less_what_is_missing_is_backward(name: str) -> None:
    program = load(name).typical(["full"], ["symflops"])
    sizes = default_sizes(program)
    assert sizes is not None
    rng = random.Random(name)
    values = {**sizes, **{f"moment@{place}": 1 if moment.constant else rng.randint(1, 999) for place, moment in enumerate(program.moments)}}
    forward, backward = (sum(evaluate(formula, sizes) * values[f"moment@{place}"] for place, formula in terms) for terms in (program.cases[0].forward, program.cases[0].backward))
    missing = sum(evaluate(note.missing, values) for note in regime_notes(program.regimes[0], program))
    assert 2 * forward - missing == backward and missing >= 0


@pytest.mark.parametrize("name", sampled(NAMES, 3, 1))
def test_rows_add_up_however_they_are_folded(name: str) -> None:
    program = load(name).typical(["full"], ["symflops"])
    sizes = default_sizes(program)
    assert sizes is not None
    values = {**sizes, **{f"moment@{place}": 1 if moment.constant else 3 + place for place, moment in enumerate(program.moments)}}
    shown = page(program)
    forward = sum(evaluate(formula, sizes) * values[f"moment@{place}"] for place, formula in program.cases[0].forward)
    assert sum(evaluate(row.count, sizes) for row in shown.tensors) == evaluate(program.parameters, sizes)
    amounts = {row.name: row.useful for row in shown.amounts}
    total = sum(evaluate(row.unit, sizes) * evaluate(row.forward, sizes) * evaluate(amounts[row.amount], values) for row in shown.regimes[0].rows)
    assert total == forward


@pytest.mark.parametrize("name", sampled(NAMES, 15))
def test_each_step_follows_from_the_ones_before(name: str) -> None:
    """By the printed text alone: rows give the sums that name them, sums and amounts the closed forms."""
    program = abbreviated(load(name).typical(["full"], ["symflops"]))
    shown, sizes = page(program), default_sizes(program)
    assert sizes is not None
    names = letters(program)
    moments = {f"moment@{place}": 1 if moment.constant else 3 + place for place, moment in enumerate(program.moments)}
    values = {names[letter]: value for letter, value in {**sizes, **moments}.items() if names[letter]}
    printer = LatexPrinter(names)

    def value(formula: Formula) -> int:
        found: int = read(printer.text(formula), values)
        return found

    regime = shown.regimes[0]
    rows = {row.number: row for row in regime.rows}
    assert [*rows] == list(range(1, len(rows) + 1)) and sorted(number for made in regime.sums for number in made.rows) == [*rows]
    for made in regime.sums:
        some = [rows[number] for number in made.rows]
        assert {row.amount for row in some} == {made.amount}
        assert value(made.forward) == sum(value(row.forward) * value(row.unit) for row in some)
        assert value(made.backward) == sum(value(cell.count) * value(row.unit) for row in some for cell in (*row.inputs, *row.weights))
    amounts = {row.name: value(row.useful) for row in shown.amounts}
    for form in regime.groups[0].forms:
        expected = sum(value(getattr(made, form.name)) * amounts[made.amount] for made in regime.sums)
        assert sum(value(formula) * moments[moment] for moment, (_, formula) in zip(form.moments, form.terms, strict=True)) == expected


SHOWN = ("llama", "unet_2d_condition", "longcat_flash", "bilinear")


@pytest.mark.parametrize("name", [*sampled(SHOWN, 2, 1), "lstm", *sampled(tuple(name for name, file in shipped.FILES.items() if published(file)), 100, 15)])
def test_the_last_step_is_the_measured_figure(name: str) -> None:
    file = shipped.FILES[name]
    found = page(abbreviated(load(name).typical(["full"], ["symflops", "torch"])), verifications(file)).inserted
    assert found is not None  # each spec that has records has one of the structure of its page, measured as the page derives
    more = (found.known.forward, found.known.backward) if found.known else (0, 0)
    assert (found.forward, found.backward) == tuple(map(sum, zip(found.counted, more, strict=True)))


@pytest.mark.parametrize("name", sampled(["llama", "qwen3_next", "unet_2d_condition", "wan"], 2, 1))
def test_steps_refer_to_each_other_and_nothing_inside_leaks(name: str) -> None:
    text = page_text(load(name).typical(["full", "forward"], ["symflops", "torch"]), "0", verifications(shipped.FILES[name]))
    assert not re.search(r"Excess\(|Given\(|FloorDiv\(|AtLeast\(|_modulo|@\d", text)
    sums = re.findall(r"^\| S(\d+) \| `[^`]+` \| ([\d\u2013, ]+) \|", text, re.MULTILINE)
    rows = {int(row) for row in re.findall(r"^\| (\d+) \| `", text, re.MULTILINE)}
    named = [int(number) for _, some in sums for number in re.findall(r"\d+", some)]
    assert [int(number) for number, _ in sums] == list(range(1, len(sums) + 1)) and set(named) <= rows and max(rows) in named
    tags = {int(tag) for tag in re.findall(r"\\tag\{(\d+)\}", text)}
    assert {int(number) for number in re.findall(r"equation \((\d+)\)", text)} <= tags


def test_levels_of_a_unet_are_folded() -> None:
    program = load("unet_2d").typical(["full"], ["symflops"])
    shown = page(program)
    assert len(shown.regimes[0].rows) < 0.6 * len(program.regimes[0].lines) and len(shown.tensors) < 0.6 * len(program.tensors)
    assert any("{0-2}" in row.module for row in shown.regimes[0].rows)


@pytest.mark.parametrize("name", ("llama", "qwen_image", "wan", "whisper"))
def test_figures_are_those_of_the_estimator(name: str) -> None:
    program = load(name).typical(["full", "forward", "lora"])
    figures = worked(program)
    assert figures is not None
    for each in figures.regimes:
        estimator = InterpretedEstimator(program, {}, regime=each.name)
        moments = estimator.moments(**typical_batch(program))
        assert (each.forward, each.backward, each.recomputed) == (estimator.forward(moments), estimator.backward(moments), estimator.recomputed(moments))
        assert each.trainable == estimator.trainable_parameters
        assert each.to_first == Fraction(each.executed, figures.regimes[0].executed)
    for told in figures.conventions:
        estimator = InterpretedEstimator(program, {}, convention=told.name)
        assert told.total == estimator.total(estimator.moments(**typical_batch(program)))
        assert bool(told.reason) == (told.total != figures.conventions[0].total)


def test_a_page_tells_figures_of_regimes_that_it_does_not_derive() -> None:
    program = load("llama").typical(["full", "forward", "lora"])
    shown = page_of(program)
    assert [regime.name for regime in shown.regimes] == ["full", "forward"]
    assert shown.worked is not None and [each.name for each in shown.worked.regimes] == ["full", "forward", "lora"]


def test_sizes_without_defaults_have_no_figures() -> None:
    program = load("linear").typical()
    assert worked(program) is None and page(abbreviated(program)).default_parameters is None


def test_what_decided_the_structure_is_told_with_it() -> None:
    program = load("unet_2d").program(["full"], ["symflops"], {"layers_per_block": 1})
    sizes = default_sizes(program)
    assert sizes is not None
    fixed = dict(program.fixed)
    assert fixed and all(sizes[letter] == value for letter, value in fixed.items())
    assert 1 in fixed.values() and re.search(r"\d", str(evaluate(program.parameters, sizes)))


@pytest.mark.parametrize("name", sampled(shipped.NAMES, 10, 2))
def test_one_more_is_the_difference_of_two_configs(name: str) -> None:
    model = load(name)
    program = model.typical(["full"], ["symflops"])
    found = worked(program)
    batch = typical_batch(program)
    sizes = default_sizes(program)
    for one in found.more if found else ():
        here, there = (InterpretedEstimator(program, {one.field.keys[0]: one.now + step}, regime="full", convention="symflops") for step in (0, 1))
        if "." in one.field.keys[0] or {**there.sizes, one.field.letter: one.now} != here.sizes:
            continue  # other defaults follow this size
        before, after = (estimator.moments(**batch) for estimator in (here, there))
        assert (one.forward, one.backward) == (there.forward(after) - here.forward(before), there.backward(after) - here.backward(before))
        assert one.parameters == there.parameters - here.parameters
        if one.work != ZERO:
            step = Step(program, sizes, batch)
            sums = {program.sum_key(place, "symflops"): value for place, value in enumerate(step.moments("symflops"))}
            assert evaluate(one.work, sizes | sums) == one.forward
    assert not found or {one.field.letter for one in found.more} >= {"llama": {"L"}, "deepseek_v3": {"L", "E", "top"}}.get(name, set())


@pytest.mark.parametrize("name", ["llama", "jamba", "unet_2d_condition"])
def test_work_per_token_is_that_of_the_estimator(name: str) -> None:
    program = load(name).typical(["full"], ["symflops"])
    over, estimator = worked(program).over, InterpretedEstimator(program, {}, regime="full", convention="symflops")
    grown = sweep(typical_batch(program), over.stream)
    totals = {grown.tokens(side): grown.at(side) for side in grown.sides}
    parts = of_parts(program, {}, program.case("full", "symflops"))
    for row in over.rows:
        batch = totals[row.item]
        total = estimator.total(estimator.moments(**batch))
        attention = parts["attention"]
        assert row.each * Step(program, default_sizes(program), batch).tokens == total
        assert row.attention * total == attention.total(attention.moments(**batch))


def test_lengths_of_levels_have_letters() -> None:
    program = load("unet_2d").typical(["full"], ["symflops"])
    levels, values = LevelLengths(program), {**(default_sizes(program) or {}), "h": 45, "w": 70}
    for row in levels.rows:
        values[row.letter] = evaluate(row.formula, values)
    assert [values[f"h@{number}"] for number in (1, 2, 3)] == [23, 12, 6]
    short = [levels.short(moment.formula) for moment in program.moments]
    assert short != [moment.formula for moment in program.moments]
    assert [evaluate(formula, values) for formula in short] == [evaluate(moment.formula, values) for moment in program.moments]
    assert not LevelLengths(load("llama").typical(["full"], ["symflops"])).rows


@pytest.mark.parametrize("name", sampled(["deepseek_v3", "qwen3_next", "flux"], 3, 1))
def test_sums_in_units_and_shapes_are_factored_and_shapes_have_brackets(name: str) -> None:
    text = page_text(load(name).typical(["full"], ["symflops"]), "0")
    shapes = re.findall(r"^\| `[^`]+` \| ([^|]*\$[^|]*) \|", text.partition("# Parameters")[2], re.MULTILINE)
    sums = [part for shape in shapes for part in re.findall(r"\$([^$]+)\$", shape) if re.search(r"[+-]", re.sub(r"\\left\(.*?\\right\)|\(.*?\)", "", part))]
    assert shapes and not sums, sums
    program = abbreviated(load(name).typical(["full"], ["symflops"]))
    for row in page(program).regimes[0].rows:
        if isinstance(row.unit, Sum):
            assert len(set.intersection(*(set(parts(term)) for term in row.unit.terms))) == 0, row.unit


@pytest.mark.parametrize("name", sampled(list(NAMES), 4, 1))
def test_a_sum_that_is_twice_forward_says_so(name: str) -> None:
    program = abbreviated(load(name).typical(["full"], ["symflops"]))
    shown, sizes = page(program), default_sizes(program)
    assert sizes is not None
    twice = 0
    for made in shown.regimes[0].sums:
        forward, backward = (evaluate(formula, sizes) for formula in (made.forward, made.backward))
        said = sum_row(made, {})[-1] == ("twice forward",)
        assert not said or backward == 2 * forward
        twice += said
    assert twice


def test_what_every_regime_leaves_out_is_told_once() -> None:
    text = page_text(load("deepseek_v3").typical(["full", "forward"], ["symflops"]), "0")
    assert len(re.findall(r"leaves? out", text)) == 1 and "Every regime leaves out" in text


def test_one_more_expert_is_told_in_counts() -> None:
    program = load("qwen3_next").typical(["full"], ["symflops"])
    shown = page(abbreviated(program), (), worked(program))
    assert shown.worked
    works = {one.field.letter: one.work for one in shown.worked.more}
    assert not any(isinstance(part, TallyOf) for part in walk(works["E"])) and any(name.startswith("count@") for name in symbols(works["E"]))
