"""Random regimes on the real models: what PyTorch counts in both passes is what is derived."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from symflops.ir.regime import Recompute
from symflops.read.spec_files import find_spec
from symflops.verify.applied import adapted
from symflops.verify.bench import Choice
from tests.sampling import NIGHTLY, amount, sampled
from tests.shipped import cases_of, load
from tests.verify.random_regimes import RandomBench, pattern_of

# model, case, draws
CASES = (
    ("llama", 0, 10), ("llama", 1, 20), ("llama", 2, 20), ("qwen_image", 1, 8), ("qwen_image", 2, 16), ("wan", 0, 8),
    ("wan", 1, 12), ("sd3", 2, 12), ("sd3", 3, 20), ("flux", 0, 4), ("flux", 1, 10), ("qwen3_moe", 2, 20),
    ("deepseek_v3", 0, 8), ("deepseek_v3", 2, 16), ("deepseek_v3", 3, 16),
)  # fmt: skip


@cache
def bench(name: str, row: int) -> RandomBench:
    return RandomBench(load(name), cases_of(find_spec(name))[row])


def test_enough_draws() -> None:
    assert sum(draws for _, _, draws in CASES) == 200
    assert {name for name, _, _ in CASES} == {"llama", "qwen_image", "wan", "sd3", "flux", "qwen3_moe", "deepseek_v3"}


@pytest.mark.drawn
@pytest.mark.parametrize(("name", "row", "draws"), sampled(CASES, 3, 1))
def test_random_regimes(name: str, row: int, draws: int) -> None:
    """The number of layers is known, so that each draw is derived in a moment."""
    one = bench(name, row)
    seen = set()
    draws = amount(max(1, draws // 12), draws, max(1, draws // 6))
    for number in range(draws):
        choice = one.draw(Random(f"{name}/{row}/{number}"))
        outcome = one.check(choice, known=True)
        if not outcome.exact:
            small = one.smallest(choice, lambda smaller: not one.check(smaller, known=True).exact)
            pytest.fail(f"draw {number}: {one.check(small, known=True)}")
        seen.add(outcome.backward.expected)
    assert len(seen) > draws // 4


@pytest.mark.parametrize(("name", "row"), sampled([("llama", 0), ("llama", 1), ("qwen_image", 2), ("wan", 0), ("flux", 1), ("sd3", 3)], 3, 1))
def test_closed_forms_of_any_number_of_layers(name: str, row: int) -> None:
    """The same with the number of layers as a symbol: exact names cut the repeats at expressions."""
    one = bench(name, row)
    for number in range(2):
        outcome = one.check(one.draw(Random(f"symbolic/{number}")))
        assert outcome.exact, outcome


@pytest.mark.parametrize("train", ["*", "model.encoder.embed_positions.*"])
def test_what_a_class_freezes_never_trains(train: str) -> None:
    """Whisper's sinusoids are a parameter without a gradient, whatever a pattern says."""
    outcome = bench("whisper", 0).check(Choice((train,)), known=True)
    assert outcome.exact, outcome
    everything = sum(tensor.numel() for tensor in bench("whisper", 0).real.parameters())
    assert outcome.trainable.expected == (everything - 20 * 96 if train == "*" else 0)


@pytest.mark.parametrize("index", sampled([1, 3, 4, 5], 4, 1))
def test_one_of_a_list_of_which_two_repeats_take_their_part(index: int) -> None:
    """The index of the second repeat's part is made up of its own and of a size, which a pattern makes known."""
    one, choice = bench("hidream", 0), Choice((f"caption_projection.{index}.*",), (), (), 4, None)
    measured = one.measured(choice)
    for known in (False, True):
        assert one.derived(choice, known) == measured, known


@pytest.mark.parametrize("norm", sampled(["norm1", "norm1_context"], 2, 1))
@pytest.mark.parametrize(("name", "row"), [("sd3", 2), ("flux", 1)])
def test_a_norm_that_modulates_is_recomputed_with_its_modulation(name: str, row: int, norm: str) -> None:
    """Nothing that enters the module needs a gradient, so its reentrant checkpoint gives none to the weights inside."""
    group = f"transformer_blocks.*.{norm}"
    reentrant = Recompute((group,), reentrant=True)
    inside = bench(name, row).check(Choice((f"{group}.linear.weight",), recompute=reentrant), known=True)
    assert inside.exact and inside.backward.expected == 0, inside
    everything = bench(name, row).check(Choice(("*",), recompute=reentrant), known=True)
    assert everything.exact and everything.backward.expected > 0, everything


@pytest.mark.parametrize("name", sampled(["llama", "qwen_image", "wan", "sd3", "flux", "qwen3_moe", "deepseek_v3"], 3, 2))
def test_nothing_trains(name: str) -> None:
    one = bench(name, {"sd3": 3, "qwen3_moe": 2}.get(name, 1))
    outcome = one.check(Choice(), known=True)
    assert outcome.exact and outcome.backward.expected == outcome.trainable.expected == 0
    assert one.check(Choice(train=("*",)), known=True).exact


@pytest.mark.parametrize("name", ["condition_embedder.text_embedder.linear_1.weight", "condition_embedder.image_embedder.norm2.bias"])
def test_text_and_images_are_one_tensor(name: str) -> None:
    """Wan with images joins both contexts before the blocks: where one needs a gradient, the projections of both give one."""
    for row in (2, 3):
        outcome = bench("wan", row).check(Choice(train=(name,)))
        assert outcome.exact, outcome


@pytest.mark.parametrize("name", sampled(["llama", "qwen_image", "wan", "sd3", "flux", "qwen3_moe", "deepseek_v3"], 7, 2))
@pytest.mark.parametrize(("early_stop", "reentrant"), [(True, False), (False, False), (True, True)])
def test_checkpoints_of_all_blocks(name: str, early_stop: bool, reentrant: bool) -> None:
    """PyTorch's three ways; where the last block has a dead end, a reentrant one runs its backward pass all the same."""
    rows = range(len(cases_of(find_spec(name))))
    for row in rows if NIGHTLY or not (early_stop or reentrant) else (0, rows[-1]):
        one = bench(name, row)
        groups = tuple(f"{path}.*" for path in one.lists)
        outcome = one.check(Choice(("*",), recompute=Recompute(groups, early_stop=early_stop, reentrant=reentrant)), known=True)
        assert outcome.exact, outcome
        assert outcome.backward.derived > one.derived(Choice(("*",)), known=True)[2]


@pytest.mark.parametrize("known", [True, False])
def test_the_dead_end_of_a_block_that_is_written_out(known: bool) -> None:
    """Nobody reads the text that the last block returns; a reentrant checkpoint runs the backward pass of it all the same."""
    one = bench("sd3_controlnet", 0)
    outcome = one.check(Choice(("*",), recompute=Recompute(("transformer_blocks.*",), reentrant=True)), known=known)
    assert outcome.exact, outcome


def test_a_reentrant_checkpoint_that_no_gradient_enters_trains_nothing() -> None:
    one = bench("llama", 0)
    for patterns, trained in ((("model.layers.*",), 0), (("model.layers.*", "lm_head.*"), 1), (("*",), 1)):
        outcome = one.check(Choice(patterns, recompute=Recompute(("model.layers.*",), reentrant=True)), known=True)
        assert outcome.exact and bool(outcome.backward.derived) == bool(trained)


@pytest.mark.parametrize("name", sampled(["blocks.0.ffn.net.2.bias", "blocks.0.ffn.net.0.proj.bias", "blocks.1.attn1.to_q.bias"], 3, 1))
def test_a_linear_of_which_the_bias_trains_saves_nothing(name: str) -> None:
    for early_stop in (True, False):
        outcome = bench("wan", 1).check(Choice((name,), recompute=Recompute(("blocks.*",), early_stop=early_stop)), known=True)
        assert outcome.exact, outcome


@pytest.mark.parametrize("name", sampled(["llama", "qwen_image", "wan", "sd3", "flux", "qwen3_moe", "deepseek_v3"], 7, 2))
def test_checkpoints_of_a_part_of_each_block(name: str) -> None:
    """Whatever runs as a module can be recomputed alone: what the block does with its result is no part of it."""
    one = bench(name, 0 if name != "qwen3_moe" else 1)
    for modules, parts in one.parts.items():
        for place, part in enumerate(parts):
            for reentrant in (False, True) if NIGHTLY else ((place // 2) % 2 == 0,) if place % 2 == 0 else ():
                outcome = one.check(Choice(("*",), recompute=Recompute((f"{modules}.*.{part}",), reentrant=reentrant)), known=True)
                assert outcome.exact, outcome


@pytest.mark.parametrize("row", [0, 1])
def test_an_adapter_on_the_head(row: int) -> None:
    """Tied or not, the head has one weight, under one of two names: its adapter trains."""
    outcome = bench("llama", row).check(Choice(targets=("lm_head",)))
    assert outcome.exact and outcome.trainable.derived == 4 * (96 + 131)


def test_the_real_model_is_left_as_it_was() -> None:
    one = bench("llama", 1)
    before = one.names()
    one.measured(Choice(freeze=("*",), targets=one.linears[:3]))
    assert one.names() == before and all(tensor.requires_grad for tensor in one.real.parameters())
    with adapted(one.real, one.linears[:1], 2):
        inside = one.names()
    assert f"{one.linears[0]}.base.weight" in inside and f"{one.linears[0]}.A.weight" in inside


def test_a_reproduction_is_small() -> None:
    """Of a choice that differs, what does not matter is taken away."""
    one = bench("llama", 1)
    names = one.names()
    wanted = {names[3], names[7]}
    small = one.smallest(Choice(tuple(names), tuple(names[10:]), one.linears), lambda choice: wanted <= set(choice.train))
    assert set(small.train) == wanted and not small.freeze and not small.targets


def test_patterns_match() -> None:
    names = ["a.0.b.weight", "a.1.b.weight", "c.bias"]
    drawn = [pattern_of(Random(seed), names) for seed in range(60)]
    assert len(set(drawn)) > 8 and () in drawn


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox"])
def test_what_runs_twice_gets_no_cache(name: str) -> None:
    """These hand the cache to their layers by position, and as ``layer_past``: neither layer may see it twice."""
    one = bench(name, 0)
    (layers,) = one.lists
    assert one.check(Choice(train=("*",), recompute=Recompute((f"{layers}.*",))), known=True).exact
