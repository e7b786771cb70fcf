"""Heads of which a batch says on how many tokens they run, beside heads that run on all: both passes, regimes, and bad batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import symflops
from symflops.cli.main import main
from symflops.compiler import Goal
from symflops.evaluate.batch import BatchError
from symflops.library.naming import given_head
from symflops.support.findings import SpecError, SymflopsError
from tests.shipped import load

SMALL = {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 3, "intermediate_size": 20, "vocab_size": 30}
HEAD = 2 * 12 * 30
LENGTHS = st.lists(st.integers(1, 40).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, length))), min_size=1, max_size=4)


def passes(regime, config=SMALL, spec="llama", **batch):
    """Forward and backward FLOPs with and without the tokens of the head in a batch."""
    key = regime, str(config), spec
    estimator = load(spec).memo.once(key, lambda: load(spec).estimator(config, regime, "torch"))
    moments = estimator.moments(**batch)
    return estimator.forward(moments), estimator.backward(moments)


@given(LENGTHS)
@settings(max_examples=40, deadline=None)
def test_a_token_without_the_head_saves_it_in_both_passes(items):
    text, head = (list(some) for some in zip(*items))
    whole, some = passes("full", text=text), passes("full:head=given", text=text, head=head)
    skipped = sum(text) - sum(head)
    assert (whole[0] - some[0], whole[1] - some[1]) == (HEAD * skipped, 2 * HEAD * skipped)


@pytest.mark.parametrize("spec, regime", [("gemma", "full"), ("bert_masked_lm", "full:freeze=bert.*"), ("t5", "full"), ("gpt2", "full:groups=transformer.h.*"), ("qwen2", "lora"), ("deepseek_v3", "mtp"), ("llama", "grpo"), ("llama", "prefill")])
def test_a_head_on_all_tokens_is_that_of_the_regime(spec, regime):
    """Also below adapters, under recomputation, in further phases and of layers that predict tokens further ahead."""
    batch = {"source": [9, 4], "target": [7, 3]} if spec == "t5" else {"text": [9, 4]}
    tokens = batch.get("target") or batch["text"]
    assert passes(regime, {}, spec, **batch) == passes(given_head(regime), {}, spec, **batch, head=tokens)


@pytest.mark.parametrize("regime", ["lora", "full:freeze=model.*"])
def test_the_gradient_enters_where_the_head_ran(regime):
    """Without a head that trains, its backward pass has one product for each of its rows; a frozen body below has none."""
    (_, some), (_, none) = (passes(given_head(regime), text=[9], head=[rows]) for rows in (3, 0))
    assert some - none == HEAD * 3


def test_calls_with_a_cache_have_a_head_on_some_tokens():
    assert passes("prefill:head=given", text=[9], head=[1]) == passes("generate", text=[[9, 1]])
    assert passes("decode:head=given", text=[[5, 4]], head=[5]) == passes("decode", text=[[5, 4]])
    assert passes("decode:head=given", text=[[5, 4]], head=[1])[0] == passes("decode", text=[[5, 4]])[0] - 4 * HEAD


def test_an_estimate_reads_the_tokens_of_the_head(capsys):
    batch = {"text": [9, 4], "head": [2, 0]}
    found = symflops.estimate(SMALL, batch, spec="llama", convention="torch")
    assert (found.forward, found.backward) == passes("full:head=given", **batch) and found.regime == "full:head=given"
    assert symflops.explain("llama", batch, config=SMALL).estimate == symflops.estimate("llama", batch, settings=SMALL)
    for text in ("{text: [9, 4], head: [2, 0]}", "text=9,4; head=2,0"):
        assert main(["estimate", "llama", "--batch", text, "--regime", "lora", "--json"]) == 0
        assert '"regime": "lora:head=given"' in capsys.readouterr().out


def test_modules_have_the_tokens_of_the_head():
    texts = load("llama").compiled(Goal.TEXTS, ["full:head=given"], ["torch"], targets=("py", "md")).texts
    module = {}
    exec(texts["py"], module)  # noqa: S102 - the module that was just written
    sizes = module["Sizes"](**SMALL)
    moments = module["moments"](text=[9, 4], head=[2, 0])
    assert (module["forward"](sizes, moments, convention="torch"), module["backward"](sizes, moments, convention="torch")) == passes("full:head=given", text=[9, 4], head=[2, 0])
    assert r"\mathit{predicted}" in texts["md"]


@pytest.mark.parametrize(
    "head, message",
    [
        ([10], "(x = 9, predicted = 10): the class takes a head on at most as many tokens as there are"),
        ([-1], "item 0 of 'head' must be a whole number of at least 0, not -1"),
        ([2, 2], "streams have different numbers of items"),
        (2, "'head' must be a list"),
        (None, "the batch lacks the stream 'head'"),
    ],
)
def test_tokens_that_no_head_can_run_on_are_refused(head, message):
    with pytest.raises(BatchError) as raised:
        passes("full:head=given", text=[9], **({} if head is None else {"head": head}))
    assert message in str(raised.value)


def test_models_and_regimes_without_such_a_head_are_refused():
    with pytest.raises(SpecError, match="no head of this class of 'llama' skips any"):
        symflops.estimate({"architectures": ["LlamaModel"]}, {"text": [9], "head": [2]}, spec="llama")
    with pytest.raises(SpecError, match="generates, where the head runs on the last token"):
        symflops.estimate(SMALL, {"text": [[9, 4]], "head": [2]}, spec="llama", regime="generate")
    with pytest.raises(SpecError, match="'head' cannot be 'all'"):
        load("llama").derive("full:head=all")
    with pytest.raises(BatchError, match="the regime 'full:head=given' takes it"):
        passes("full", text=[9], head=[2])


def test_a_program_has_batches_of_one_form():
    """Regimes of one program read one batch, of which they may not differ in the streams or lengths."""
    for regimes in (["full", "full:head=given"], ["decode", "forward"]):
        with pytest.raises(SymflopsError, match="have different forms: derive each by itself"):
            load("llama").program(regimes)


@pytest.mark.parametrize("regime", ["full:head=given", "lora:r=8"])
def test_a_page_is_of_a_regime_given_in_a_line(regime, capsys):
    """Its name differs from the text that selects it."""
    assert main(["render", "llama", "--format", "markdown", "--regime", regime]) == 0
    assert f"regime `{regime.replace(':r=8', '')}`" in capsys.readouterr().out
