"""What lies between two conventions: the rules that differ, whose differences add up, as formulas and in words."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from itertools import combinations, permutations
from pathlib import Path
from random import Random

import pytest

from symflops.api import convention_of
from symflops.cli.main import main
from symflops.ir.convention import Convention
from symflops.ir.regime import Regime
from symflops.read.field_tables import CONVENTION, RULE
from symflops.read.spec_files import pages
from symflops.verify.differences import FIELDS, PAIRS as PAIRS_IN_WORDS, PLAIN, Comparison, Difference
from tests.sampling import NIGHTLY, sampled
from tests.shipped import load

PACKAGE = Path(__file__).parents[2] / "symflops"

CONFIG = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 100}
BATCH = {"text": [5, 9]}
NAMES = ("symflops", "torch", "verl", "veomni", "megatron", "palm", "levanter", "trl", "transformers")


@pytest.fixture(scope="module")
def comparison():
    return Comparison(load("llama"), CONFIG, BATCH, Regime("full"))


def test_every_rule_of_a_convention_may_be_a_cause():
    named = {name for names in FIELDS.values() for name in names}
    assert named == {item.name for item in fields(Convention) if item.compare} - {"name", "doc", "exceptions"}
    assert PLAIN.keys() <= FIELDS.keys()


@pytest.mark.parametrize("second", NAMES[1:])
@pytest.mark.parametrize("first", ["symflops", "verl"])
def test_the_rules_add_up_to_the_difference(comparison, first, second):
    found = comparison.difference(first, second)
    assert sum(step.flops for step in found.steps) == found.flops
    assert all(step.terms and step.words for step in found.steps if step.flops)


def test_the_embedding_in_words(comparison):
    (step,) = (step for step in comparison.difference("megatron", "verl").steps)
    assert step.terms == (("a token of text", "6*D*V"),)
    assert step.flops == 6 * 14 * 32 * 100
    assert step.sentence("megatron", "verl").startswith("verl counts 6*D*V a token of text more than megatron: the input embedding as a matmul")
    assert step.share == 1


def test_the_cause_comes_first_and_what_cancels_is_gone():
    at_length = Comparison(load("llama"), {}, {"text": [4096]}, Regime("full"))
    for second, words in (("palm", "attention on all pairs, not on the pairs that a mask leaves"), ("transformers", "attention, which transformers leaves out")):
        found = at_length.difference("symflops", second)
        assert found.steps[0].words == words and abs(found.steps[0].flops) < 1.4e13
    tied = Comparison(load("llama"), {"tie_word_embeddings": True}, {"text": [4096]}, Regime("full"))
    assert not any("head" in step.words or "embedding" in step.words for step in tied.difference("symflops", "palm").steps)


def test_every_rule_of_a_convention_has_its_words():
    ruled = {item.name for item in fields(Convention) if item.compare} - {"name", "doc", "exceptions"}
    assert {name for names in FIELDS.values() for name in names} == ruled
    words = {item.name: item.words for item in (*CONVENTION, *RULE) if item.words}
    assert set(words["pairs"]) == PAIRS_IN_WORDS.keys()
    for name in PLAIN.keys() & words.keys():
        values = {"true": True, "false": False, "4": 4, "5": 5}
        assert {values.get(word, word) for word in words[name]} == PLAIN[name].keys()


MODELS: dict[str, tuple[dict, dict]] = {
    "llama": ({"tie_word_embeddings": True}, {"text": [512, 300]}),
    "mixtral": ({}, {"text": [4096]}),
    "gemma2": ({}, {"text": [8192, 100]}),
    "deepseek_v3": ({}, {"text": [4096, 4096]}),
    "qwen2_5_vl": ({}, {"text": [1024, 300], "images": [[1, 16, 16]]}),
    "qwen_image": ({}, {"latent": [4096, 1024], "prompt": [77, 20]}),
}


@pytest.mark.parametrize("name", sampled(list(MODELS), 3, 1))
def test_the_sentences_of_all_pairs_of_conventions(name):
    config, batch = MODELS[name]
    comparison = Comparison(load(name), config, batch, Regime("full"))
    pairs = list(combinations(sorted(path.stem for path in (PACKAGE / "conventions").glob("*.yaml")), 2))
    pairs = pairs if NIGHTLY else Random(name).sample(pairs, 3)
    for first, second in pairs:
        found = comparison.difference(first, second)
        estimators = [comparison.model.estimator(config, "full", convention) for convention in (first, second)]
        before, after = (estimator.total(estimator.moments(**batch)) for estimator in estimators)
        assert sum(step.flops for step in found.steps) == found.flops == after - before
        check_steps(found)


def check_steps(found: Difference) -> None:
    """Every step says something of its own, has a share, and is not undone by another one; the largest comes first."""
    steps = found.steps
    sentences = [step.sentence(found.first, found.second) for step in steps]
    assert len({step.words for step in steps}) == len(set(sentences)) == len(steps), sentences
    assert list(steps) == sorted(steps, key=lambda step: -abs(step.flops))
    assert not found.flops or sum(step.share for step in steps) == 1
    for step in steps:
        what, _, rest = step.words.partition(", not ")
        assert step.flops and step.terms and (found.flops == 0) == (step.share is None)
        assert rest or ", which " in step.words, step.words
        assert not rest or not what.endswith(rest), step.words
        assert "not at all" not in step.words
    assert not any(one.flops == -two.flops and one.terms == two.terms for one, two in combinations(steps, 2)), sentences


LEFT_OUT = re.compile(r"(?P<what>.+), which (?P<who>\S+) leaves out")


@pytest.mark.parametrize("name", sampled([name for name in MODELS if name != "qwen_image"], 4, 1))
def test_who_leaves_out_the_work_of_a_sentence(name):
    """For all ordered pairs: the convention that a sentence names counts none of the work, the other one all of it."""
    config, batch = MODELS[name]
    comparison = Comparison(load(name), config, batch, Regime("full"))
    numbers = comparison.pieces.numbers
    rules = {name: convention_of(name).of(comparison.model.spec.called) for name in pages("conventions")}
    for first, second in permutations(rules, 2):
        for cause, changed in comparison.causes(rules[first], rules[second]).items():
            words, flops = cause.words(changed, first, second), sum(changed.values())
            told = [piece for piece, change in changed.items() if (change > 0) == (flops > 0)]  # the larger part of a cause
            counted = {name: {piece in numbers(rules[name]) for piece in told} for name in (first, second)}
            found = LEFT_OUT.fullmatch(words)
            if found is None:
                if "backward pass of" in words:  # of 0 x forward: that pass is left out
                    continue
                assert counted == {first: {True}, second: {True}}, (first, second, words)
                continue
            other = first if found["who"] == second else second
            assert counted[found["who"]] == {False} and counted[other] == {True}, (first, second, words)
            assert (flops > 0) == (other == second), (first, second, words, flops)


UNSEEN = {"mamba": "diagonal recurrences, which {} leaves out", "kimi_linear": "without work that profilers do not see"}


@pytest.mark.parametrize("convention", ["torch", "torch-raw"])
@pytest.mark.parametrize("name", UNSEEN)
def test_work_that_a_counter_does_not_see_is_left_out(name, convention):
    found = Comparison(load(name), {}, {"text": [100]}, Regime("full")).difference("symflops", convention)
    assert sum(step.flops for step in found.steps) == found.flops
    assert any(UNSEEN[name].format(convention) in step.words for step in found.steps)


def test_half_of_the_pairs_is_a_formula(comparison):
    steps = comparison.difference("symflops", "megatron").steps
    (pairs,) = [step for step in steps if "half of all pairs" in step.words]
    assert pairs.terms == (("a token of text", "6*L*H*d"),)
    assert pairs.flops == -6 * 14 * 2 * 4 * 8


def test_the_command(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    words = ["compare", "llama", "--conventions", "symflops,verl,megatron", "--config", str(path), "--batch", json.dumps(BATCH)]
    assert main(words) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "the input embedding as a matmul" in told
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["convention"] for row in found["conventions"]] == ["symflops", "verl", "megatron"]
    assert len(found["differences"]) == 3
    for pair in found["differences"]:
        assert sum(rule["flops"] for rule in pair["rules"]) == pair["flops"]
        assert sum(rule["share"] for rule in pair["rules"]) == pytest.approx(1)


@pytest.mark.thorough
def test_a_picture_is_drawn(tmp_path):
    path = tmp_path / "x.png"
    batch = '{"text": [512, 256]}'
    assert main(["compare", "llama", "--conventions", "symflops,verl", "--batch", batch, "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.thorough
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["llama", "--plot", "missing/x.png"], "cannot be written"),
        (["llama", "--plot", "x.nothing"], "cannot be written"),
        (["vit", "--plot", "x.png", "--over", "text"], "the batch has images"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_told(capsys, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", words[0], "--conventions", "symflops,torch", *words[1:]]) == 2
    assert told in capsys.readouterr().err


def test_a_picture_needs_matplotlib(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["compare", "llama", "--conventions", "symflops,verl", "--plot", str(tmp_path / "x.png")]) == 2
    assert "symflops[plot]" in capsys.readouterr().err


def test_causes_are_derived_once(tmp_path):
    """The second time they come from the cache, the same, without sympy; another batch has causes of its own."""
    program = "import sys\nfrom symflops.cli.main import main\ncode = main(sys.argv[1:])\nprint('sympy' in sys.modules, file=sys.stderr)\nsys.exit(code)\n"

    def run(batch: str) -> tuple[str, bool]:
        words = [sys.executable, "-c", program, "compare", "llama", "--conventions", "symflops,verl", "--batch", batch]
        done = subprocess.run(words, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr.splitlines()[-1] == "True"

    first, again, other = run("64"), run("64"), run("65")
    assert first[1] and not again[1] and other[1] and first[0] == again[0] != other[0]
