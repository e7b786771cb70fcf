"""The analysis agrees with the estimator: polynomials in a length, cost of a token, crossovers, shares."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import islice
from math import isqrt, lcm, prod
from typing import Any

import pytest

from symflops.evaluate.growth import analysis
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.item_analysis import ATTENTION, BOTH, FORWARD, Analysis, Growth, part_of
from symflops.evaluate.length_polynomials import LONG, SHORT, holds
from symflops.evaluate.typical_values import default_sizes, typical_batch, typical_lengths
from symflops.formula.formula import Apply, Num, Power, Sym, evaluate, symbols, walk
from symflops.formula.table import ConfigError
from symflops.ir.program import Line, Program
from symflops.read.spec_files import roots, specs_in
from tests.sampling import sampled
from tests.shipped import typical

NAMES = sampled(sorted(file.name for root in roots() for file in specs_in(root)), 25)
DRAWS, MOST = 4, 200
SIZES = (1, 2, 3, 4, 6, 12, 24, 48, 96)
WHOLE = 96  # a multiple of all sizes


@cache
def derived(name: str) -> tuple[Program, Analysis]:
    program = typical(name, "symflops")
    return program, analysis(program, "full", "symflops", default_sizes(program))


def config_of(program: Program, rng: random.Random) -> dict[str, Any]:
    """A config with random numbers; lists, texts and what decided the structure are as they are by default."""
    config: dict[str, Any] = {}
    fixed = dict(program.fixed)
    for field in program.fields:
        if field.letter in fixed:
            value = fixed[field.letter]
        elif field.kind in ("number", "count") and (field.required or rng.random() < 0.7):
            value = rng.choice(SIZES) if field.kind == "number" else rng.randint(1, 9)
        elif field.kind == "flag":
            value = rng.random() < 0.5
        elif field.kind == "number or list" and field.required:
            value = rng.choice(SIZES)
        elif field.kind == "list" and (field.required or isinstance(field.default, tuple) and all(isinstance(item, int) for item in field.default)):
            value = [rng.choice(SIZES) for _ in range(12 if field.required else len(field.default))]
        else:
            continue
        *path, last = field.keys[0].split(".")
        inner = config
        for word in path:
            inner = inner.setdefault(word, {})
        inner[last] = value
    return config


@pytest.fixture(autouse=True)
def at_all_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed forms hold at all lengths: also at those that a model cannot run, where a total may be negative."""

    def whole(value: Any) -> int:
        assert getattr(value, "denominator", 1) == 1
        return int(value)

    monkeypatch.setattr("symflops.evaluate.interpreted.whole_total", whole)


class Witness:
    """The estimator of a config, of the lines of some parts that are of one index set, for a batch of one item of each set."""

    def __init__(self, program: Program, config: dict[str, Any]) -> None:
        self.program, self.config = program, config
        self.sizes = InterpretedEstimator(program, config).sizes

    @cache
    def of(self, parts: frozenset[str] | None, items: str) -> InterpretedEstimator:
        regime = self.program.regimes[0]
        lines = tuple(line for line in regime.lines if (parts is None or part_of(line) in parts) and self.sets(line) == {items})
        return InterpretedEstimator(replace(self.program, regimes=(replace(regime, lines=lines),), inner=()), self.config)

    def sets(self, line: Line) -> set[str]:
        """The index sets whose items a line is of."""
        found = set()
        for place in {place for place, _ in (*line.amount.useful, *line.amount.executed)}:
            moment = self.program.moments[place]
            names = set(symbols(moment.formula))
            found |= {moment.items} if moment.items != "once" else {one.items for one in self.program.statistics if one.name in names}
        return found

    def flops(self, parts: frozenset[str] | None, work: str, lengths: dict[str, int], items: str) -> int:
        batch: dict[str, Any] = {}
        for stream in self.program.streams:
            if stream.given:
                entry: Any = [lengths[name] for name in stream.variables]
                batch[stream.name] = 1 if stream.counts else [entry[0] if len(entry) == 1 else entry]
        estimator = self.of(parts, items)
        moments = estimator.moments(**batch)
        return estimator.forward(moments) if work == FORWARD else estimator.total(moments)


def every(name: str, seed: int) -> Iterator[tuple[Program, Analysis, Witness, random.Random]]:
    """Configs that the model takes."""
    program, found = derived(name)
    for draw in range(MOST):
        rng = random.Random(f"{name} {seed} {draw}")
        try:
            witness = Witness(program, config_of(program, rng))
            witness.flops(None, BOTH, lengths_of(program, rng), "samples")
        except ConfigError:
            continue  # such as a window of no patches, or fewer layers than take images
        yield program, found, witness, rng


def lengths_of(program: Program, rng: random.Random) -> dict[str, int]:
    choices = (WHOLE, 2 * WHOLE, 3 * WHOLE) if divides(program) else (1, 2, 8, 32, WHOLE, 2 * WHOLE)
    return {name: 1 if length == 1 else rng.choice(choices) for name, length in typical_lengths(program).items()}


def divides(program: Program) -> bool:
    """Whether lengths have to be multiples of sizes."""
    return any(isinstance(part, Power) and part.exponent < 0 for moment in program.moments for part in walk(moment.formula))


def valid(assumed: tuple[Any, ...], values: dict[str, Any]) -> bool:
    if any(one.relation == "at_least" and values[key] is None for one in assumed for key in symbols(one.right)):
        return False  # what is beyond a bound is of models that have it
    assumed = tuple(one for one in assumed if one.relation != "at_most" or all(values[key] is not None for key in symbols(one.right)))
    sides = ((one, evaluate(one.left, values), evaluate(one.right, values)) for one in assumed)
    return all(holds(one, Fraction(left), Fraction(right)) for one, left, right in sides)


def stride(assumed: tuple[Any, ...], values: dict[str, Any], program: Program) -> int:
    """What each axis may be a multiple of, so that all is divided as assumed."""
    rights = [Fraction(evaluate(one.right, values)) for one in assumed if one.relation == "multiple"]
    return lcm(WHOLE if divides(program) else 1, *(right.numerator for right in rights))


def at(program: Program, growth: Growth, values: dict[str, Any], step: int) -> tuple[dict[str, Any], int]:
    """The lengths with the unknown's variables at ``step`` strides, and the unknown itself."""
    variables = growth.unknown.variables
    length = step * stride(growth.assumed, {**values, **dict.fromkeys(variables, 1), growth.unknown.letter: 1}, program)
    if any(isinstance(axis, Apply) for axis in growth.unknown.axes):
        length *= WHOLE  # so that patches are whole
    here = {**values, **dict.fromkeys(variables, length)}
    unknown = int(prod(evaluate(axis, here) for axis in growth.unknown.axes)) if growth.unknown.kind == "tokens" else length
    here |= {product.letter: prod(evaluate(axis, here) for axis in product.axes) for product in derived(program.name)[1].tokens}
    return {**here, growth.unknown.letter: unknown}, unknown


def polynomial(terms: tuple[tuple[int, Any], ...], values: dict[str, Any], unknown: int) -> Any:
    return sum(evaluate(formula, values) * unknown**power for power, formula in terms)


def steps(program: Program, growth: Growth, values: dict[str, Any]) -> Iterator[int]:
    """Steps at which what is assumed holds."""
    for step in (1, 2, 3, 5, 8, 13, 21, 40, 300, 400):
        if valid(growth.assumed, at(program, growth, values, step)[0]):
            yield step


@pytest.mark.parametrize("name", NAMES)
def test_the_cost_is_a_polynomial_and_a_token_costs_its_difference(name: str) -> None:
    checked = set()
    for program, found, witness, rng in islice(every(name, 1), DRAWS):
        attention = frozenset({ATTENTION})
        others = frozenset(part_of(line) for line in program.regimes[0].lines) - attention
        for place, growth in enumerate(growth for items in found.items for growth in items.growth):
            values = {**witness.sizes, **lengths_of(program, rng)}
            before: tuple[int, dict[str, int]] | None = None
            for step in list(steps(program, growth, values))[:3]:
                here, unknown = at(program, growth, values, step)
                lengths = {key: here[key] for stream in program.streams for key in stream.variables}
                for parts, terms in ((attention, growth.attention), (others, growth.others)):
                    assert polynomial(terms, here, unknown) == witness.flops(parts, FORWARD, lengths, growth.unknown.items)
                now = {work: witness.flops(None, work, lengths, growth.unknown.items) for work in (FORWARD, BOTH)}
                for work, formula, _ in growth.marginal if before is not None else ():
                    first, second, third = (evaluate(formula, {**here, growth.unknown.letter: before[0] + z}) for z in range(3))
                    assert third - second == second - first  # so that what tokens cost adds up as below
                    count = unknown - before[0]
                    assert count * first + (second - first) * Fraction(count * (count - 1), 2) == now[work] - before[1][work]
                    checked.add(place)
                before = unknown, now
    assert checked or not derived(name)[1].items or name in TOO_LONG


TOO_LONG: set[str] = set()


EARLIER, LATER = Fraction(999_999, 1_000_000), Fraction(1_000_001, 1_000_000)


def whole_below(program: Program, growth: Growth, values: dict[str, Any], where: Fraction) -> int:
    """The greatest step whose unknown is at most ``where``."""
    first = at(program, growth, values, 1)[1]
    ratio = int(where / first)
    return ratio if growth.unknown.kind != "tokens" else next(step for step in range(ratio + 1, -1, -1) if step ** len(growth.unknown.variables) <= ratio)


def solution(crossover: Any, values: dict[str, Any]) -> Fraction | None:
    """The closed form as a number, to 30 binary places where it is a root."""
    if crossover.kind == "quotient":
        below = evaluate(crossover.below, values)
        return Fraction(evaluate(crossover.above, values)) / below if below else None
    a, b, c = (Fraction(evaluate(side, values)) for side in (crossover.square, crossover.linear, crossover.constant))
    if not a:
        return -c / b if b else None
    square = b * b - 4 * a * c
    if square < 0:
        return None
    root = Fraction(isqrt(square.numerator * square.denominator << 60), square.denominator << 30)
    return (root - b) / (2 * a)


UNREACHED = {
    "bamba": "no layer has attention, of a model whose list of those is null",
    "swin": "all that does not grow is the head, which less than a window outweighs",
}


@pytest.mark.parametrize("name", NAMES)
def test_attention_overtakes_at_the_crossover(name: str) -> None:
    told, checked = set(), set()
    for program, found, witness, rng in every(name, 2):
        attention = frozenset({ATTENTION})
        others = frozenset(part_of(line) for line in program.regimes[0].lines) - attention

        def lead(values: dict[str, Any], work: str, items: str) -> int:
            lengths = {key: values[key] for stream in program.streams for key in stream.variables}
            one, two = (witness.flops(parts, work, lengths, items) for parts in (attention, others))
            return one - two

        for growth in (growth for items in found.items for growth in items.growth):
            values = at(program, growth, {**witness.sizes, **lengths_of(program, rng)}, 1)[0]
            items = growth.unknown.items
            for crossover in growth.crossovers:
                assert crossover.kind != "open"
                if crossover.kind in ("always", "never"):
                    for step in list(steps(program, growth, values))[:3]:
                        assert lead(at(program, growth, values, step)[0], crossover.work, items) * (1 if crossover.kind == "always" else -1) >= 0
                elif crossover.kind in ("quotient", "root"):
                    told.add((growth.unknown, growth.reach))
                    where = solution(crossover, values)
                    if where is None or where <= 0:
                        continue
                    if crossover.work == FORWARD:
                        one, two = (polynomial(growth.attention, values, z) - polynomial(growth.others, values, z) for z in (where * EARLIER, where * LATER))
                        assert one * two <= 0
                        checked.add((growth.unknown, growth.reach))
                    below = whole_below(program, growth, values, where)
                    if below < 1 or below > 10**6 or not all(valid(growth.assumed, at(program, growth, values, step)[0]) for step in (below, below + 1)):
                        continue
                    one, two = (lead(at(program, growth, values, step)[0], crossover.work, items) for step in (below, below + 1))
                    assert one * two <= 0, (growth.unknown, crossover.kind)
                    checked.add((growth.unknown, growth.reach, "counted"))
        if told <= checked and any("counted" in each for each in checked):
            break
    if name not in UNREACHED:
        assert told <= checked and (not told or any("counted" in each for each in checked))


@pytest.mark.parametrize("name", NAMES)
def test_at_the_default_sizes_the_value_is_the_first(name: str) -> None:
    program, found = derived(name)
    sizes = default_sizes(program)
    if sizes is None:
        return
    witness = Witness(program, {})
    attention = frozenset({ATTENTION})
    others = frozenset(part_of(line) for line in program.regimes[0].lines) - attention
    for growth in (growth for items in found.items for growth in items.growth):
        if growth.unknown.kind == "tokens" or any(one.relation == "multiple" for one in growth.assumed):
            continue
        for crossover in growth.crossovers:
            for value, sign in ((crossover.value, 1), ((crossover.value or 1) - 1, -1)):
                values = {**sizes, **dict(found.lengths), **dict.fromkeys(growth.unknown.variables, value or 0)}
                if not value or not valid(growth.assumed, {**values, growth.unknown.letter: value}):
                    continue
                lengths = {key: values[key] for stream in program.streams for key in stream.variables}
                one, two = (witness.flops(parts, crossover.work, lengths, growth.unknown.items) for parts in (attention, others))
                assert (one >= two) == (sign > 0) or one == two


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_add_up_by_how_they_grow(name: str) -> None:
    """Each order is of one degree, and all orders are the whole: so the greatest is the limit of long sequences."""
    checked, reaches = set(), set()
    for program, found, witness, rng in islice(every(name, 3), DRAWS):
        for items in found.items:
            for orders in items.orders:
                reaches.add((items.items, orders.reach))
                base = {**witness.sizes, **lengths_of(program, rng)}
                mine = [key for stream in program.streams if stream.items == items.items for key in stream.variables if typical_lengths(program)[key] > 1]
                for factor in (1, 2, 7, 40, 300):
                    length = factor * stride(orders.assumed, {**base, **dict.fromkeys(mine, 1)}, program)
                    values = {**base, **dict.fromkeys(mine, length)}
                    values |= {product.letter: prod(evaluate(axis, values) for axis in product.axes) for product in found.tokens}
                    if not valid(orders.assumed, values):
                        continue
                    lengths = {key: values[key] for stream in program.streams for key in stream.variables}
                    for part in {share.part for order in orders.orders for share in order.shares}:
                        work = sum(evaluate(share.work, values) for order in orders.orders for share in order.shares if share.part == part)
                        counted = witness.flops(frozenset({part}), FORWARD, lengths, items.items)
                        assert work == counted if orders.reach != SHORT else work <= counted
                    for order in orders.orders:
                        assert evaluate(order.work, values) == sum(evaluate(share.work, values) for share in order.shares)
                    checked.add((items.items, orders.reach))
                for order in orders.orders:
                    axes = {stream.variables: len(stream.variables) for stream in program.streams if stream.items == items.items and set(stream.variables) & set(mine)}
                    base |= {key: WHOLE * base[key] for key in mine}
                    base |= {product.letter: prod(evaluate(axis, base) for axis in product.axes) for product in found.tokens}
                    scaled = {**base, **{product.letter: base[product.letter] * 64 for product in found.tokens if product.items == items.items}}
                    for variables, count in axes.items():
                        scaled |= {key: base[key] * 2 ** (6 // count) for key in variables}
                    degree = order.power * 6
                    if all(6 % count == 0 for count in axes.values()) and degree.denominator == 1:
                        for share in order.shares:
                            assert evaluate(share.work, scaled) == evaluate(share.work, base) * 2**degree.numerator
    assert checked == reaches or reaches - checked <= {(items, SHORT) for items, _ in reaches}


def test_the_share_of_attention_goes_to_one_and_to_what_is_told() -> None:
    program, found = derived("llama")
    (items,) = found.items
    (orders,) = items.orders
    short, long = orders.orders
    assert [share.share for share in long.shares] == [1]
    witness = Witness(program, {})
    for length, order, error in ((1, short, 1e-4), (10**9, long, 1e-3)):
        whole = witness.flops(None, FORWARD, {"x": length}, "samples")
        for share in order.shares:
            mine = witness.flops(frozenset({share.part}), FORWARD, {"x": length}, "samples")
            assert abs(float(share.share) - mine / whole) < error


def test_a_model_without_attention_has_no_crossover() -> None:
    for name in ("mamba", "mamba2", "resnet"):
        assert not any(growth.crossovers for items in derived(name)[1].items for growth in items.growth)


def test_a_window_makes_long_and_short_sequences_differ() -> None:
    (items,) = derived("gemma2")[1].items
    assert [growth.reach for growth in items.growth] == [LONG, SHORT]
    relations = [[(one.relation, one.left, one.right) for one in growth.assumed] for growth in items.growth]
    assert relations == [[("at_least", Sym("x"), Sym("W"))], [("at_most", Sym("x"), Sym("W"))]]


def test_levels_of_a_unet_ask_for_one_multiple() -> None:
    (items,) = derived("unet_2d")[1].items
    (growth,) = items.growth
    assert growth.unknown.kind == "tokens"
    assert [(one.relation, one.left, one.right) for one in growth.assumed] == [("multiple", Sym(side), Num(Fraction(8))) for side in "hw"]
    assert growth.unknown.axes == (Sym("h"), Sym("w"))


def test_tokens_are_those_after_the_patches_where_all_work_is_of_them() -> None:
    for name in ("wan", "sd3", "dit"):
        found = derived(name)[1]
        growth = found.items[0].growth[0]
        assert growth.unknown.kind == "tokens" and not growth.assumed and found.tokens[0] == growth.unknown
        assert all(isinstance(axis, Apply) for axis in growth.unknown.axes)


def test_a_typical_batch_fits_every_model() -> None:
    for name in ("llama", "wan", "sd3", "unet_2d_condition", "qwen3_vl", "ltx2_video"):
        program, _ = derived(name)
        assert InterpretedEstimator(program, {}).moments(**typical_batch(program)).values


def test_what_one_more_token_costs_at_the_default_sizes() -> None:
    """Told at the length of a typical batch: the difference of two totals."""
    program, found = derived("qwen_image")
    estimator = InterpretedEstimator(program, {})
    (items,) = found.items
    latent, prompt, _ = items.growth
    for growth, longer in ((latent, {"latent": [1025], "prompt": [1024]}), (prompt, {"latent": [1024], "prompt": [1025]})):
        one, two = (estimator.moments(**batch) for batch in (typical_batch(program), longer))
        assert [value for _, _, value in growth.marginal] == [estimator.forward(two) - estimator.forward(one), estimator.total(two) - estimator.total(one)]
