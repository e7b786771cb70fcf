"""Traces of real modules with symbols as their sizes.

Witnesses: arithmetic by hand, PyTorch's own counter on real tensors, and the real class at configs that the trace did not see.
"""

from __future__ import annotations

import itertools
import json
import math
import textwrap
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
from hypothesis import given, strategies as st
from torch import nn

import symflops
from symflops.cli.main import main
from symflops.support.errors import SymflopsError
from symflops.verify.running import counter, plain_attention
from symflops.verify.symbolic.explore import example_of
from symflops.verify.symbolic.forms import forms_of, numbers_in
from symflops.verify.symbolic.inputs import LENGTHS, Given, Inputs
from symflops.verify.symbolic.masks import K, Q, masks_read
from symflops.verify.symbolic.passes import count
from symflops.verify.symbolic.points import cancelled, divisible
from symflops.verify.symbolic.printing import as_json, in_terminal, parsed
from symflops.verify.symbolic.prove import Proof, Prover, cover
from symflops.verify.symbolic.target import LiveTarget, Target
from symflops.verify.symbolic.traced import Traced, replaced, symbol, text_of
from symflops.verify.symbolic.tracer import simplest
from symflops.verify.symbolic.tracing import wrong_as_given
from tests.verify import traced_modules as modules

TEXT = {"x": {"shape": [2, 7, 24]}}


@cache
def traced(name: str, shape: tuple[int, ...], **options: Any) -> Traced:
    return symflops.trace(getattr(modules, name), inputs={"x": {"shape": list(shape)}}, **options)


def equal(found: sympy.Expr, text: str) -> bool:
    names = {one.name: one for one in found.free_symbols}
    return sympy.expand(found - sympy.sympify(text, locals=names)) == 0


def conditions(found: Traced) -> set[str]:
    return {text_of(one) for one in found.domain}


def counted(model: nn.Module, *arguments: Any) -> tuple[int, int]:
    """FLOPs of both passes by PyTorch's counter, on real tensors: attention as two products, grouped convolutions once."""
    with plain_attention(), counter() as forward:
        output = model(*arguments)
    with plain_attention(), counter() as backward:
        (next(iter(output.values())) if isinstance(output, dict) else output).sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def test_sizes_of_a_constructor_and_a_number_of_layers_are_symbols():
    found = traced("Perceptron", (2, 7, 12))
    assert found.proven and found.exact >= 3
    assert equal(found.parameters, "layers*(2*width*hidden + width + hidden)")
    assert equal(found.forward, "4*b*s*layers*width*hidden")
    assert equal(found.backward, "8*b*s*layers*width*hidden - 2*b*s*width*hidden")  # no gradient of the input
    assert found.fields["t"].kind == "derived" and found.fields["t"].note == "t = width"
    assert found.numbers == {"parameters": 3 * 512, "forward": 4 * 14 * 3 * 240, "backward": 8 * 14 * 3 * 240 - 2 * 14 * 240}


def test_attention_counts_all_pairs_and_tells_its_domain():
    found = traced("Attention", (2, 7, 24))
    assert found.proven and equal(found.forward, "8*b*s*width**2 + 4*b*s**2*width")
    assert conditions(found) == {"width % heads == 0"}


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [("Perceptron", (2, 7, 12), {}), ("Attention", (2, 7, 24), {}), ("Convolutions", (2, 3, 9, 12), {}), ("Einsum", (2, 7, 8), {}), ("Strict", (2, 7, 24), {})],
)
def test_numbers_are_those_of_the_counter_on_real_tensors(name, shape, options):
    found, model = traced(name, shape), getattr(modules, name)()
    forward, backward = counted(model, torch.randn(shape))
    assert found.proven
    assert found.numbers == {"parameters": sum(one.numel() for one in model.parameters()), "forward": forward, "backward": backward}


CELLS = [(kind, gates, both) for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)) for both in (False, True)]


@pytest.mark.parametrize(("kind", "gates", "both"), [pytest.param(*cell, marks=[] if cell in (("LSTM", 4, True), ("GRU", 3, False)) else pytest.mark.thorough) for cell in CELLS])
def test_recurrent_layers_are_counted_step_by_step(kind, gates, both):
    found = symflops.trace(modules.Recurrent(kind, 10, 16, 2, both), torch.randn(2, 7, 10))
    ways = 1 + both
    assert found.proven, found.unproven
    below = 16 * ways  # the second layer's input
    assert equal(found.forward, f"2*b*s*{gates}*16*{ways}*({10 + 16} + {below + 16})")
    # the first layer has no gradient of its input, and no layer one of its first state
    assert equal(found.backward, f"2*({gates}*16*{ways}*2*b*s*({10 + 16} + {below + 16}) - {gates}*16*{ways}*b*s*10 - 2*{gates}*16*16*{ways}*b)")


def test_a_live_module_has_numbers_as_sizes_and_letters_as_lengths():
    found = symflops.trace(modules.Shared(), torch.zeros(2, 7, dtype=torch.long))
    assert found.proven and equal(found.parameters, "30*8 + 8*8 + 8")
    assert equal(found.forward, "2*b*s*(3*64 + 240)") and found.fields["b"].origin == "argument 0[0]"
    frozen = symflops.trace(modules.Frozen(), (torch.randn(2, 8), [torch.randn(2, 8)]))
    assert equal(frozen.forward, "2*b*8*32") and equal(frozen.backward, "2*b*8*24")


N = "b*s"
WHOLE = f"{N}*width*hidden"


@pytest.mark.parametrize(
    ("regime", "parameters", "backward"),
    [
        pytest.param("forward", "0", "0", marks=pytest.mark.thorough),
        ("full:freeze=layers.0.*", "0", f"8*(layers - 1)*{WHOLE} - 2*{WHOLE}"),
        pytest.param("checkpointed", "0", f"8*layers*{WHOLE} - 2*{WHOLE} + 2*layers*{WHOLE}", marks=pytest.mark.thorough),
        (
            "lora:r=5,targets=layers.*",
            "2*layers*rank*(width + hidden)",
            f"4*layers*{WHOLE} - 2*{WHOLE} + 8*layers*{N}*rank*(width + hidden) - 2*{N}*rank*width",
        ),
    ],
)
def test_regimes_are_traced_with_a_symbolic_rank(regime, parameters, backward):
    found = traced("Perceptron", (2, 7, 12), regime=regime)
    assert found.proven and equal(found.parameters, f"layers*(2*width*hidden + width + hidden) + {parameters}")
    assert equal(found.backward, backward)  # a checkpoint repeats what is before its last saved tensor
    if "rank" not in backward:
        return
    live = symflops.trace(modules.Perceptron(), torch.zeros(2, 7, 12), regime=regime)
    point = {name: one.value for name, one in live.fields.items() if one.kind == "symbolic"}
    assert live.at(point) == found.at(point) == live.numbers
    assert "rank of the adapters" in in_terminal(live)


@pytest.mark.parametrize(
    ("regime", "told"),
    [
        ("dpo", "'dpo' cannot be applied"),
        ("lora:targets=*.q_proj", "no linear of Perceptron matches \\*.q_proj"),
        ("lora", "no linear of Perceptron matches"),
        ("full:freeze=layer.*", "no parameter of Perceptron matches layer"),
        ("full:train=head.*", "no parameter of Perceptron matches head"),
        ("frozen-vision", "no parameter of Perceptron matches visual"),
        ("checkpointed:groups=blocks.*", "no module of Perceptron matches blocks"),
        ("checkpointed:groups=layers", "'layers' of Perceptron is a list of modules"),
    ],
)
def test_regimes_that_cannot_be_applied_are_refused(regime, told):
    with pytest.raises(SymflopsError, match=told):
        symflops.trace(modules.Perceptron, inputs={"x": {"shape": [2, 7, 12]}}, regime=regime)


def test_nothing_of_a_live_module_or_of_torch_changes():
    model = modules.Perceptron()
    before = {name: (one.device, id(one)) for name, one in model.named_parameters()}
    functions = (nn.functional.pad, nn.functional.group_norm, nn.init.xavier_uniform_, torch.rand, torch._VF.lstm, vars(nn.modules.conv).get("int"))
    symflops.trace(model, torch.randn(2, 7, 12))
    assert before == {name: (one.device, id(one)) for name, one in model.named_parameters()}
    assert functions == (nn.functional.pad, nn.functional.group_norm, nn.init.xavier_uniform_, torch.rand, torch._VF.lstm, vars(nn.modules.conv).get("int"))


def test_the_domain_has_what_the_class_refuses_and_what_costs_something_else():
    strict = traced("Strict", (2, 7, 24))
    assert {"width % heads == 0", "s <= longest"} <= conditions(strict)
    branching = symflops.trace(modules.Branching(), torch.randn(2, 7, 8))
    assert branching.proven and conditions(branching) == {"s < 20"}
    with pytest.raises(SymflopsError, match="outside of the domain of Branching: s < 20"):
        branching.at({"b": 2, "s": 20})
    assert branching.at({"b": 2, "s": 19})["forward"] == 2 * 38 * 64


def test_a_condition_that_matters_at_some_points_alone_is_kept():
    """At kernels of odd width the class costs as much on both sides of it."""
    found, random, exact = symflops.trace(modules.Resized, inputs={"x": {"shape": [2, 3, 16, 24]}}), Random(1), 0
    for _ in range(200):
        sides = {name: random.randint(2, 24) for name in ("t", "u")}
        kernel = random.randint(1, 6)
        with suppress(SymflopsError):
            mine = found.at({"kernel": kernel, "channels": 3, "wide": 5, "b": 2, **sides})
            assert (mine["forward"], mine["backward"]) == counted(modules.Resized(kernel), torch.zeros(2, 3, *sides.values())), (kernel, sides)
            exact += 1
    assert found.proven and exact > 3


@pytest.mark.parametrize(("name", "shape"), [("Pooled", (3, 13, 20)), ("Attention", (2, 7, 24)), ("Alternating", (3, 5, 20))])
def test_a_domain_has_all_sizes_for_which_the_trace_speaks(name, shape):
    found = traced(name, shape)
    assert found.far and all(one.subs({symbol(name): value for name, value in point.items()}) == True for point in found.far for one in found.domain)  # noqa: E712


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_domain_for_which_no_time_was_left_has_all_conditions_of_the_trace(seconds):
    example = example_of(LiveTarget(modules.Branching()), Given((torch.randn(2, 7, 8),), {}, (), False))
    prover, proof = Prover(forms_of(example, 60.0)), Proof()
    prover.reduce(proof, time.process_time() + seconds)
    domain = {text_of(one) for one, _ in proof.domain}
    assert domain == ({"s < 20"} if seconds else {text_of(guard) for guard, _ in prover.guards}) and "s < 20" in domain


def test_a_number_of_unequal_layers_is_a_number():
    found = symflops.trace(modules.Quadratic, inputs={"x": {"shape": [3, 4]}})
    assert found.proven and found.fields["layers"].kind == "dropped" and "not linear" in found.fields["layers"].note
    with pytest.raises(SymflopsError, match="'layers' is dropped"):
        found.estimator({"layers": 5})


def test_kinds_of_layers_that_take_turns_grow_by_their_period():
    found = symflops.trace(modules.Alternating, inputs={"x": {"shape": [3, 5, 20]}})
    assert found.proven and conditions(found) == {"layers % 2 == 0", "layers >= 2"} and found.fields["period"].kind == "dropped"
    assert equal(found.parameters, "layers*width**2 * 3/2")
    with pytest.raises(SymflopsError, match="outside of the domain"):
        found.estimator({"layers": 5})


def test_a_period_of_layers_is_not_taken_for_another():
    given = Given((), {"x": {"shape": [3, 20]}})
    for period, layers in ((4, 34), (3, 22), (2, 16), (8, 24)):
        found = example_of(Target(modules.Alternating, {"layers": layers, "period": period}), given)
        assert found.steps == {("layers",): period}


def test_a_domain_contains_the_example():
    """Two conditions of which each is broken at one good point tell the bad one; the first does not hold at the example."""
    choices = [(symbol("a") >= 2, ""), (symbol("b") >= 2, "")]
    assert cover(choices, [False, True], [[False, True], [True, False]], [[False, False]]) == [1]


def test_a_number_that_changes_values_alone_is_no_condition():
    found = symflops.trace(modules.Scaled, inputs={"x": {"shape": [3, 8]}})
    assert found.proven and equal(found.parameters, "width**2") and equal(found.forward, "10*b*width**2")
    assert (found.fields["scale"].kind, found.fields["repeats"].kind) == ("unused", "specialised")
    assert found.at({"scale": 77}) == found.numbers


def test_no_layer_is_left_out_at_random():
    found = traced("Skipping", (2, 7, 12))
    assert found.proven and equal(found.forward, "2*b*s*layers*width**2")


@pytest.mark.parametrize("condition", ["x > 3", "Ne(x, 3)", "Eq(Mod(3, x), 0)", "Ne(Mod(3, x), 0)", "Eq(floor(3/x), 1)", "Eq(Mod(3, x), 0) | (x > 5)"])
def test_a_field_that_is_compared_with_the_index_of_a_layer_chooses_its_kind(condition):
    names = {"x": sympy.Symbol("x")}
    assert 3 in numbers_in(sympy.sympify(condition, locals=names))
    assert 3 not in numbers_in(sympy.sympify("Eq(floor(-1/x) + 3, 2)", locals=names))  # the number is added to both sides


def test_the_first_layers_may_be_others():
    found = symflops.trace(modules.Late, inputs={"x": {"shape": [3, 20]}})
    assert found.proven and conditions(found) == {"layers >= 3"}
    assert equal(found.parameters, "3*width*hidden + (layers - 3)*width**2")


def test_conditions_may_work_on_bits():
    found = traced("Binary", (3, 20))
    assert found.proven and equal(found.forward, "4*b*codes*width") and conditions(found) == {"BitAnd(codes, codes - 1) == 0"}
    assert parsed(json.loads(json.dumps(as_json(found)))).domain == found.domain
    with pytest.raises(SymflopsError, match="outside of the domain"):
        found.estimator({"codes": 24})


def test_conditions_and_ties_of_further_layers_are_known():
    found = traced("Pooled", (3, 13, 20))
    assert found.proven and conditions(found) == {"rate <= s", "layers >= 3"} and found.fields["width"].note == "width = offset"
    assert equal(found.forward, "6*b*s*offset**2 + 2*b*(layers - 3)*rate*offset**2")


def test_two_numbers_of_layers_may_multiply():
    found = symflops.trace(modules.Nested, inputs={"x": {"shape": [3, 20]}})
    assert found.proven and equal(found.parameters, "outer*inner*width**2") and conditions(found) <= {"outer >= 2", "inner >= 2"}


@pytest.mark.parametrize("config", [{}, SimpleNamespace(), SimpleNamespace(stem_num_channels=5)])
def test_pictures_have_the_channels_of_the_first_convolution(config):
    def forward(self, pixel_values):
        return self.conv(pixel_values)

    model = type("Backbone", (nn.Module,), {"forward": forward, "main_input_name": "pixel_values"})()
    model.conv = nn.Conv2d(5, 8, 3)
    shapes = [next(iter(make().values())).shape for make in Inputs(model, config, LENGTHS, "meta").candidates()]
    assert shapes[0][1] == 5


def test_parts_of_a_width_are_rounded_as_python_rounds_them():
    found = symflops.trace(modules.Proportional, inputs={"x": {"shape": [3, 40]}})
    assert found.proven, found.unproven
    for width in range(2, 200):
        sides = (width, int(width * 0.3), int(8 / 3 * width), math.ceil(width * 0.1), round(width / 4) + 1)
        assert found.at({"width": width})["parameters"] == sum(a * b for a, b in itertools.pairwise(sides)), width


@pytest.mark.parametrize("value", [0.7, 1 / 3, 8 / 3, 0.1, 2.5, 2**0.5, 1e-9, 1e300])
def test_a_float_is_the_simplest_fraction_that_is_rounded_to_it(value):
    found = simplest(value)
    assert float(found) == value and (found.q <= 100 or value in (2**0.5, 1e-9))


def test_a_field_of_one_that_costs_something_else_is_outside_of_the_domain():
    widened = symflops.trace(modules.Widened, inputs={"x": {"shape": [3, 8]}})
    assert widened.proven and conditions(widened) == {"factor >= 2"}
    assert equal(widened.parameters, "2*factor*width**2") and modules.Widened(8, 1).layer.weight.numel() == 64


@pytest.mark.parametrize(
    ("options", "most"), [({}, 15), ({"deep": 999.0}, None), ({"half": 12.0, "deep": 999.0}, 12), ({"layers": 9, "deep": 10.0}, 9)]
)
def test_a_number_of_layers_ends_where_further_layers_are_others(options, most):
    found = symflops.trace(modules.Deep, config=options, inputs={"x": {"shape": [6, 20]}})
    assert found.proven and conditions(found) == ({f"layers <= {most}"} if most else set())
    assert equal(found.parameters, "layers*width**2")


@pytest.mark.parametrize("options", [{"layers": 32}, {"layers": 32, "deep": 99.0, "half": 12.0}])
def test_a_number_of_layers_beyond_a_change_is_a_number(options):
    found = symflops.trace(modules.Deep, config=options, inputs={"x": {"shape": [6, 20]}})
    assert found.proven and found.at({}) == found.numbers and found.fields["layers"].kind == "dropped"


def test_forms_that_differ_from_the_config_as_given_are_not_proven():
    found = traced("Perceptron", (2, 7, 12))
    assert not wrong_as_given(found)
    assert wrong_as_given(replace(found, numbers={**found.numbers, "forward": 1})) == "forward: 40320 by the formula, 1 counted as given"
    assert not wrong_as_given(replace(found, domain=(symbol("layers") >= 9,), lines=("",)))  # nothing is said of it


def test_a_field_that_is_compared_with_the_number_of_layers_is_a_number():
    found = symflops.trace(modules.Compared, inputs={"x": {"shape": [3, 20]}})
    assert found.proven and conditions(found) == {"layers <= 15"} and found.fields["deep"].kind == "dropped"


def test_a_period_that_begins_late_is_found():
    found = symflops.trace(modules.Seldom, inputs={"x": {"shape": [3, 20]}})
    assert found.proven and conditions(found) == {"layers >= 3", "layers % 6 == 3"}, found.unproven
    assert {found.fields[name].kind for name in ("period", "first")} <= {"dropped", "specialised"}


def test_fewer_layers_may_fail():
    found = symflops.trace(modules.Borrowing, inputs={"x": {"shape": [3, 20]}})
    assert found.proven and conditions(found) == {"layers >= 4"} and equal(found.parameters, "(2*layers - 3)*width**2")


def test_numbers_that_were_made_distinct_give_way_to_those_of_the_config():
    """A kernel of 6 in place of 3, which is the number of samples, costs no equal amount in each layer."""
    found = symflops.trace(modules.Same, inputs={"x": {"shape": [3, 10, 18]}})
    assert found.proven and {"kernel", "layers"} <= set(found.symbols())
    assert found.at({"kernel": 5, "layers": 9})["forward"] == 2 * 3 * 18 * 9 * (5 + 1) * 100


def test_a_field_named_rank_is_no_rank_of_adapters():
    found = symflops.trace(modules.Ranked, inputs={"x": {"shape": [3, 12]}})
    assert found.proven and "rank" not in found.lengths and "of the adapters" not in in_terminal(found)


def test_a_config_may_be_an_object():
    found = symflops.trace(modules.Configured, config=modules.Sizes(hidden=33), inputs={"x": {"shape": [2, 12]}})
    assert found.proven and found.fields["hidden"].value == 33 and found.numbers["forward"] == 2 * 2 * 2 * 12 * 33
    with pytest.raises(SymflopsError, match="a config has fields; int has none|has none"):
        symflops.trace(modules.Configured, config=3)


@pytest.mark.parametrize(
    ("given", "told"),
    [({"widths": [6, 9]}, "'widths.2' is symbolic"), ({"widths": [6, 9, 7, 5]}, "'widths.3' is no field"), ({"width": 9}, "'width' is no field")],
)
def test_a_config_of_another_form_is_refused(given, told):
    found = symflops.trace(modules.Listed, inputs={"x": {"shape": [3, 6]}})
    assert found.proven and found.estimator({"widths": [5, 2, 8]}).parameters == 26
    with pytest.raises(SymflopsError, match=told):
        found.estimator(given)


def test_numbers_of_a_long_list_are_those_of_the_example():
    widths = list(range(5, 15))
    found = symflops.trace(modules.Listed, config={"widths": widths}, inputs={"x": {"shape": [3, 5]}})
    assert found.estimator({"widths": widths}).parameters == found.numbers["parameters"] and found.fixed["widths.3"] == 8
    with pytest.raises(SymflopsError, match="'widths.9' is of the example"):
        found.estimator({"widths": [*widths[:-1], 99]})


def test_a_number_that_bounds_sizes_stays_a_number():
    found = symflops.trace(modules.Limited, inputs={"x": {"shape": [3, 400]}})
    assert found.proven and found.fields["limit"].kind == "specialised" and conditions(found) == {"width >= 12"}


class Lettered(nn.Module):
    """Fields that are named like the lengths of inputs."""

    def __init__(self, b: int = 6, s: int = 10, h: int = 3) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(b, s), nn.Linear(s, b)
        self.heads = nn.ModuleList(nn.Linear(b, s) for _ in range(h))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(self.up(x))
        return torch.cat([head(y) for head in self.heads], -1)


def test_fields_named_like_lengths_are_no_lengths():
    found = symflops.trace(Lettered, inputs={"x": {"shape": [2, 7, 6]}})
    assert found.proven and found.numbers["forward"] == 2 * 2 * 7 * 6 * 10 * (2 + 3)
    assert len(found.lengths) == 3 and found.lengths.keys().isdisjoint({"b", "s", "h"})
    rows = {name: 5 for name, one in found.lengths.items() if one.origin != "x[2]"}
    assert found.at({"b": 9, "s": 4, "h": 11, **rows})["forward"] == 2 * 5 * 5 * 9 * 4 * (2 + 11)
    with pytest.raises(SymflopsError, match="has the field 'b', like a length of its inputs: give inputs"):
        symflops.trace(Lettered)


def test_an_operator_without_a_rule_is_listed():
    found = symflops.trace(modules.Unruled(), torch.randn(3, 8))
    assert "_trilinear" in found.missed and found.forward == 0


def test_modules_that_the_inputs_do_not_reach_are_told():
    found = symflops.trace(modules.TwoTowers, inputs={"x": {"shape": [5, 3, 8]}})
    assert found.idle == ("vision", "layers.*.other") and "not run     vision, layers.*.other" in in_terminal(found)
    assert parsed(as_json(found)).idle == found.idle
    assert count(modules.TwoTowers(), {"x": torch.zeros(5, 3, 8), "picture": torch.zeros(5, 3, 9)}).idle == ("layers.*.other",)


def test_a_module_that_reads_values_is_told():
    with pytest.raises(SymflopsError, match="Valued does not run"):
        symflops.trace(modules.Valued, inputs={"x": {"shape": [9, 8]}, "n": {"shape": [70], "dtype": "int64"}})


def test_time_is_limited():
    class Slow(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            while True:
                x = x + 1

    with pytest.raises(SymflopsError, match="tracing Slow took more than 3 s of processor time"):
        symflops.trace(Slow(), torch.randn(2), seconds=1)


def test_an_estimator_refuses_configs_for_which_the_forms_do_not_hold():
    found = traced("Perceptron", (2, 7, 12))
    estimator = found.estimator({"width": 10, "hidden": 6, "layers": 5})
    assert (estimator.parameters, estimator.forward(b=1, s=3)) == (5 * 136, 4 * 3 * 5 * 60)
    model = modules.Perceptron(10, 6, 5)
    assert (estimator.forward(b=2, s=7), estimator.backward(b=2, s=7)) == counted(model, torch.randn(2, 7, 10))
    with pytest.raises(SymflopsError, match="'t' is derived"):
        found.at({"t": 3})
    with pytest.raises(SymflopsError, match="outside of the domain of Perceptron: width >= 1"):
        found.estimator({"width": 0})
    with pytest.raises(SymflopsError, match="'b' is unknown|'q' is unknown"):
        found.at({"q": 3})


def test_the_command_prints_text_json_markdown_and_latex(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(textwrap.dedent("""
        from torch import nn
        class Net(nn.Module):
            def __init__(self, width=12, heads=4):
                super().__init__()
                assert width % heads == 0
                self.layer = nn.Linear(width, 3 * width)
            def forward(self, x):
                return self.layer(x)
    """))  # fmt: skip
    words = ["trace", f"{tmp_path}/mine.py:Net", "--inputs", json.dumps({"x": {"shape": [2, 12]}})]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "forward     6*D**2*b" in text and "holds where D % H == 0" in text and "exact at 4 unseen configs" in text
    assert main([*words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["forward"] == "6*b*width**2" and data["fields"]["heads"]["kind"] == "symbolic" and data["proven"]
    assert main([*words, "--format", "markdown"]) == 0
    assert "| forward | `6*b*width**2` |" in capsys.readouterr().out
    assert main([*words, "--format", "latex"]) == 0
    assert r"\text{forward} &= 6 \mathrm{b} \mathrm{width}^{2}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reference", "told"),
    [("transformers:NoSuchModel", "has no class 'NoSuchModel'"), ("llama", "names no class"), ("transformers:LlamaConfig", "is no module class")],
)
def test_what_cannot_be_traced_is_told(reference, told, capsys):
    assert main(["trace", reference]) == 2
    assert told in capsys.readouterr().err


LLAMA = {
    "parameters": "L*(2*D*d*(H + G) + 3*D*F + 2*D) + D*(2*V + 1)",
    "forward": "2*b*s*(L*(2*D*d*(H + G) + 3*D*F + 2*H*d*s) + D*V)",
}
NAMES = {"L": "num_hidden_layers", "D": "hidden_size", "H": "num_attention_heads", "G": "num_key_value_heads", "d": "head_dim", "F": "intermediate_size", "V": "vocab_size"}


def test_a_class_of_transformers_tells_the_closed_form_that_is_known():
    import transformers

    found = symflops.trace(transformers.LlamaForCausalLM)
    assert found.proven and conditions(found) == {"hidden_size % num_attention_heads == 0", "num_attention_heads % num_key_value_heads == 0", "head_dim % 2 == 0"}
    letters = {letter: sympy.Symbol(name, integer=True, positive=True) for letter, name in NAMES.items()}
    for name, text in LLAMA.items():
        form = getattr(found, name)
        assert equal(form, str(sympy.sympify(text).xreplace({sympy.Symbol(letter): one for letter, one in letters.items()})))
    assert found.backward == 2 * found.forward or sympy.expand(found.backward - 2 * found.forward) == 0
    assert found.numbers["parameters"] == 6_738_415_616 and found.masks == ("k <= q",)


CI, NIGHT = ("SmolLM3ForCausalLM", "XLNetLMHeadModel"), ("BertForMaskedLM", "Qwen3MoeForCausalLM", "Gemma2ForCausalLM", "Dinov2WithRegistersForImageClassification")


@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.thorough) for name in CI), *(pytest.param(name, marks=pytest.mark.nightly) for name in NIGHT)])
def test_classes_of_transformers_are_proven(name):
    import transformers

    found = symflops.trace(getattr(transformers, name))
    assert found.proven, found.unproven
    assert not found.missed and not [one for one in found.fields.values() if one.kind == "dropped"]


@pytest.mark.parametrize("window", [1, 3, 7])
@pytest.mark.parametrize("kind", ["causal_mask_function", "sliding_window_causal_mask_function", "sliding_window_bidirectional_mask_function"])
def test_masks_are_read_as_conditions(kind, window):
    """Witness: the mask that the library makes of real positions."""
    from transformers import masking_utils as masking

    found = []
    function = getattr(masking, kind)
    function = function(window) if "window" in kind else function
    with masks_read(found):
        mask = masking.ALL_MASK_ATTENTION_FUNCTIONS["eager"](1, 8, 8, mask_function=function)
    seen = {(q, k) for q in range(8) for k in range(8) if mask is None or mask[0, 0, q, k] == 0}
    assert seen == {(q, k) for q in range(8) for k in range(8) if found[0].subs({Q: q, K: k}) == True}  # noqa: E712


@pytest.mark.parametrize("text", ["floor(a / (b - 1))", "Mod(7, b - 1)", "Max(1, a / (b - 1))", "Min(a, floor(1 / (b - 1)))"])
def test_a_division_by_zero_has_no_value(text):
    names = {name: symbol(name) for name in "ab"}
    assert not replaced(sympy.sympify(text, locals=names), {names["a"]: sympy.Integer(3), names["b"]: sympy.Integer(1)}).is_Integer


SIDES = ["a", "2*b", "a + b", "floor(a/b)", "3*Mod(a, 3)", "c*(a - 1)", "Max(a, b) - 2", "4", "0"]


@given(st.sampled_from(["Eq", "Ne", "Lt", "Le", "Gt", "Ge"]), st.sampled_from(SIDES), st.sampled_from(SIDES), st.sampled_from(["1", "6", "a", "2*b*c", "c**2"]))
def test_a_condition_without_common_factors_holds_where_it_held(relation, left, right, factor):
    """Witness: both conditions at all small numbers."""
    names = {name: symbol(name) for name in "abc"}
    one, other, common = (sympy.sympify(text, locals=names) for text in (left, right, factor))
    before = getattr(sympy, relation)(sympy.expand(common * one), sympy.expand(common * other))
    after = cancelled(before)
    for point in itertools.product(range(1, 5), repeat=3):
        values = dict(zip(names.values(), point, strict=True))
        assert bool(before.subs(values)) == bool(after.subs(values))
    assert cancelled(sympy.Eq(names["a"] * names["b"], names["a"] * names["c"])) == sympy.Eq(names["b"], names["c"])


@given(st.sampled_from(["floor", "ceiling"]), st.sampled_from(["a", "a*b", "floor(a/b)"]), st.sampled_from(["4", "c", "2*c"]), st.booleans())
def test_a_rounded_quotient_times_its_divisor_is_a_remainder(function, number, divisor, turned):
    """Witness: both conditions at all small numbers."""
    names = {name: symbol(name) for name in "abc"}
    one, other = (sympy.sympify(text, locals=names) for text in (number, divisor))
    product = other * getattr(sympy, function)(one / other)
    before = sympy.Eq(product, one, evaluate=False) if turned else sympy.Eq(one, product, evaluate=False)
    after = divisible(before)
    assert after == sympy.Eq(sympy.Mod(one, other), 0)
    for point in itertools.product(range(1, 13), (1, 2, 3), (1, 2)):
        values = dict(zip(names.values(), point, strict=True))
        assert bool(before.subs(values)) == bool(after.subs(values))
