"""Conventions against the rules of their sources, written out as plain arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from symflops.cli.main import main
from tests.shipped import load


def passes(spec: str, config: dict, batch: dict, convention: str, regime: str = "full") -> tuple[Fraction, Fraction]:
    estimator = load(spec).estimator(config, regime, convention)
    m = estimator.moments(**batch)
    return estimator.forward(m), estimator.backward(m)


# MaxText: calculate_mla_tflops_per_device, calculate_indexer_tflops_per_device and what adds them up


def maxtext(batch: int, length: int, *, layers=61, dense=3, width=7168, hidden=18432, expert=2048, experts=256, chosen=8, shared=1, words=129280,
            heads=128, query=1536, latent=512, plain=128, rotary=64, value=128, indexers=64, index=128, most=2048, indexed=True) -> Fraction:  # fmt: skip
    """FLOPs of a step; 'most' are the tokens that an indexer picks."""
    tokens = batch * length
    projections = width * query + query * heads * (plain + rotary) + width * (latent + rotary) + latent * heads * (plain + value)
    products = 2 * tokens * length * heads * (plain + rotary + value)
    if indexed and length > most:
        projections += query * indexers * index + width * index + width * indexers
        ratio = Fraction(most, length)
        attention = products * (ratio - ratio**2 / 2) + Fraction(2 * tokens * length * indexers * (index + 1), 2)
    else:
        attention = Fraction(products, 2)
    feed_forward = dense * 3 * width * hidden + (layers - dense) * (width * experts + 3 * width * expert * (shared + chosen))
    weights = 2 * tokens * (feed_forward + layers * (projections + heads * value * width) + width * words)
    return 3 * (weights + layers * attention)


def test_the_indexer_of_maxtext_as_its_own_pull_request_prints_it():
    """Pull request 2979 prints 4162.71 TFLOPs for 4 x 4096 tokens, and 4103.37 without an indexer."""
    total = sum(passes("deepseek_v32", {}, {"text": [4096] * 4}, "maxtext"))
    assert f"{float(total) / 1e12:.2f}" == "4162.71" and total == maxtext(4, 4096)
    without = sum(passes("deepseek_v3", {"num_nextn_predict_layers": 0}, {"text": [4096] * 4}, "maxtext"))
    assert float(without) / 1e12 == 4103.370952409088 and without == maxtext(4, 4096, indexed=False)


SMALL = {"layers": 4, "dense": 1, "width": 24, "hidden": 40, "expert": 8, "experts": 6, "chosen": 2, "shared": 1, "words": 50, "heads": 3, "query": 10,
         "latent": 12, "plain": 4, "rotary": 2, "value": 6, "indexers": 5, "index": 7, "most": 6}  # fmt: skip
KEYS = {
    "layers": "num_hidden_layers", "dense": "first_k_dense_replace", "width": "hidden_size", "hidden": "intermediate_size",
    "expert": "moe_intermediate_size", "experts": "n_routed_experts", "chosen": "num_experts_per_tok", "shared": "n_shared_experts",
    "words": "vocab_size", "heads": "num_attention_heads", "query": "q_lora_rank", "latent": "kv_lora_rank", "plain": "qk_nope_head_dim",
    "rotary": "qk_rope_head_dim", "value": "v_head_dim", "indexers": "index_n_heads", "index": "index_head_dim", "most": "index_topk",
}  # fmt: skip


@pytest.mark.parametrize("lengths", [[1], [5], [6], [7], [40], [6, 7], [3, 6, 9, 40, 6]])
def test_the_indexer_of_maxtext_runs_beyond_its_top_k(lengths):
    """Each text counts as MaxText counts a batch of its length: no indexer up to 6 tokens, half of its pairs from 7 on."""
    found = sum(passes("deepseek_v32", {KEYS[name]: value for name, value in SMALL.items()}, {"text": lengths}, "maxtext"))
    assert found == sum(maxtext(1, length, **SMALL) for length in lengths)


# the guide to MFU on Ascend


@pytest.mark.parametrize("lengths", [[7], [64, 3]])
def test_the_backward_pass_of_lora_falls(lengths):
    """A frozen weight has no gradient of its own: once its forward pass, for the gradient of what it reads."""
    layers, width, hidden, words, rank = 3, 16, 24, 50, 4
    config = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": 4, "intermediate_size": hidden, "vocab_size": words}
    tokens = sum(lengths)
    frozen = 2 * tokens * (layers * (4 * width**2 + 3 * width * hidden) + width * words)
    attention = Fraction(4 * layers * width * sum(length**2 for length in lengths), 2)
    adapters = 2 * tokens * layers * 2 * (2 * width * rank)
    found = passes("llama", config, {"text": lengths}, "ascend-guide", f"lora:r={rank},targets=*.q_proj|*.v_proj")
    assert found == (frozen + attention + adapters, frozen + 2 * attention + 2 * adapters)
    assert passes("llama", config, {"text": lengths}, "ascend-guide") == (frozen + attention, 2 * (frozen + attention))


BERT_LARGE = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}


def test_bert_in_macs_is_an_option(tmp_path, capsys):
    """The guide's sample: 80 texts of 128 tokens, 10.74 GMACs a projection, 128.87 a layer, 3092.96 in all; no norms."""
    (tmp_path / "config.json").write_text(json.dumps(BERT_LARGE))
    (tmp_path / "batch.json").write_text(json.dumps({"text": [128] * 80}))
    words = ("bert", "--config", str(tmp_path / "config.json"), "--batch", f"@{tmp_path / 'batch.json'}", "--regime", "forward")
    assert main(["explain", *words, "--convention", "ascend-profiler", "--unit", "macs", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    macs = {row["module"]: row["forward"] for row in told["modules"]}
    tokens, width, hidden, scores = 80 * 128, 1024, 4096, 80 * 16 * 128**2
    layer = tokens * (4 * width**2 + 2 * width * hidden) + scores
    assert told["unit"] == "macs" and macs["encoder.layer.*"] == 24 * layer and f"{layer / 1e9:.2f}" == "128.87"
    assert f"{macs['encoder.layer.*.attention.self.query'] / 24 / 1e9:.2f}" == "10.74"
    assert f"{(24 * layer + 80 * width**2) / 1e9:.2f}" == "3092.96" and told["total"] == 24 * layer + 80 * width**2
    assert not any(macs[name] for name in macs if name.endswith("LayerNorm"))


# VeRL-Omni: the recipe for Wan in its guide to new architectures


def recipe(config: dict, latents: list[int], prompts: list[int]) -> int:
    layers, width = config["num_layers"], config["num_attention_heads"] * config["attention_head_dim"]
    prompt = int(config.get("added_kv_proj_dim") or width)
    each = 4 * width**2 + 2 * width * config["ffn_dim"] + 2 * width**2  # self-attention, feed-forward, and queries and outputs of the other
    samples = max(len(latents), len(prompts))
    dense = 6 * layers * (each * sum(latents) + 2 * width * prompt * sum(prompts) + 6 * width**2 * samples)
    pairs = sum(one**2 for one in latents) + sum(one * two for one, two in zip(latents, prompts, strict=True))
    return dense + 12 * layers * width * pairs


@pytest.mark.parametrize("given", [{}, {"added_kv_proj_dim": None}, {"added_kv_proj_dim": 0}, {"added_kv_proj_dim": 48}, {"added_kv_proj_dim": 2048}])
def test_a_prompt_without_a_width_has_that_of_the_model(given):
    config = {"num_attention_heads": 2, "attention_head_dim": 16, "num_layers": 1, "ffn_dim": 64, **given}
    found = sum(passes("verl_omni_wan", config, {"latent": [12, 3], "prompt": [4, 5]}, "verl-omni"))
    assert found == recipe(config, [12, 3], [4, 5])
    assert found == {None: 1_188_864, 0: 1_188_864, 2048: 8_156_160}.get(given.get("added_kv_proj_dim"), found)
