"""What lies between two conventions: the rules that differ, whose differences add up, as formulas and in words."""

from __future__ import annotations

import json
import sys

import pytest

from symflops.cli.main import main
from symflops.model.regime import Regime
from symflops.witness.differences import Comparison
from tests.shipped import load

CONFIG = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 100}
BATCH = {"text": [5, 9]}
NAMES = ("symflops", "torch", "verl", "veomni", "megatron", "palm", "levanter", "trl", "transformers")


@pytest.fixture(scope="module")
def comparison():
    return Comparison(load("llama"), CONFIG, BATCH, Regime("full"))


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
    told = capsys.readouterr().out
    assert "the input embedding as a matmul" in told
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["convention"] for row in found["conventions"]] == ["symflops", "verl", "megatron"]
    assert len(found["differences"]) == 3
    for pair in found["differences"]:
        assert sum(rule["flops"] for rule in pair["rules"]) == pair["flops"]


def test_a_picture_is_drawn(tmp_path):
    path = tmp_path / "x.png"
    batch = '{"text": [512, 256]}'
    assert main(["compare", "llama", "--conventions", "symflops,verl", "--batch", batch, "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


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
