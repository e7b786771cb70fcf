"""What a token goes through: active parameters, tokens of a batch, FLOPs per token."""

from __future__ import annotations

import json

import pytest

from symflops.cli.main import main
from symflops.library.lookup import result
from tests.shipped import load

QWEN3_30B_A3B = {
    "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
    "num_experts_per_tok": 8, "moe_intermediate_size": 768, "vocab_size": 151936, "decoder_sparse_step": 1, "mlp_only_layers": [],
}  # fmt: skip
TOP = {
    "mixtral": ("num_local_experts", "num_experts_per_tok"), "deepseek_v3": ("n_routed_experts", "num_experts_per_tok"),
    "gpt_oss": ("num_local_experts", "num_experts_per_tok"), "granitemoe": ("num_local_experts", "num_experts_per_tok"),
    "llama4": ("num_local_experts", "num_experts_per_tok"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "config", "billions"),
    [("mixtral", {}, 12.9), ("deepseek_v3", {}, 37.6), ("qwen3_moe", QWEN3_30B_A3B, 3.4), ("qwen3_next", {}, 3.9)],
)
def test_models_have_as_many_active_parameters_as_is_published(name, config, billions):
    active = load(name).estimator(config).parameters_active
    assert round(active / 1e9, 1) == billions


@pytest.mark.parametrize("name", TOP)
def test_with_all_experts_chosen_all_parameters_are_active(name):
    experts, top = TOP[name]

    chosen = [load(name).estimator({experts: 6, top: number}) for number in (1, 2, 3, 6)]
    one, two, three, every = (each.parameters_active for each in chosen)
    assert every == chosen[0].parameters == one + 5 * (two - one)
    assert two - one == three - two > 0


def test_all_parameters_of_a_dense_model_are_active():
    estimator = load("llama").estimator({})
    assert estimator.parameters_active == estimator.parameters
    for regime in load("llama").program(["full", "lora"]).regimes:
        assert regime.active == regime.parameters  # as formulas, so that pages have one


@pytest.mark.parametrize(
    ("name", "regime", "convention", "batch", "tokens"),
    [
        ("llama", "full", "symflops", {"text": [5, 9]}, 14),
        ("llama", "full", "torch", {"text": [5, 9]}, 14),  # padding is no token
        ("llama", "generate", "symflops", {"text": [[5, 3]]}, 7),  # the last new token is not read
        ("mixtral", "lora", "palm", {"text": [5, 9]}, 14),
        ("qwen_image", "full", "symflops", {"latent": [16, 16], "prompt": [7, 5]}, 44),
        ("whisper", "full", "symflops", {"audio": [3000], "target": [20]}, None),
    ],
)
def test_flops_per_token_are_those_of_a_batch(name, regime, convention, batch, tokens):
    found = result(load(name).estimator({}, regime, convention), batch)
    assert tokens is None or found["tokens"] == tokens
    assert found["flops_per_token"] == round(found["total"] / found["tokens"])


def test_commands_and_pages_say_what_a_token_goes_through(capsys):
    words = ["estimate", "mixtral", "--batch", '{"text": [4096]}', "--regime", "lora:r=3"]
    assert main([*words, "--json", "--unit", "macs"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["flops_per_token"] == round(found["total"] / 4096)
    assert main(words) == 0
    assert "tokens 4,096 per token" in " ".join(capsys.readouterr().out.split())
    assert main(["explain", *words[1:], "--depth", "0"]) == 0
    assert "4,096 tokens" in capsys.readouterr().out
    assert main(["render", "mixtral", "--format", "markdown"]) == 0
    page = capsys.readouterr().out
    assert "12,879,925,248" in page and "FLOPs per token" in page and "Active parameters" in page
    assert main(["render", "llama", "--format", "markdown"]) == 0
    assert "Active parameters" not in capsys.readouterr().out
