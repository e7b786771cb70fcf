"""Megatron-LM's own training module with symflops in place of its function."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from symflops.library import lookup
from symflops.training.frameworks import megatron
from tests.clients import megatron_source  # noqa: F401 (before Megatron-LM)

from megatron.training import training  # isort: skip

LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}
OWN = training.num_floating_point_operations
ARGS = SimpleNamespace(
    num_layers=2, hidden_size=64, num_attention_heads=4, seq_length=32, padded_vocab_size=128, swiglu=True, ffn_hidden_size=128, kv_channels=16,
    group_query_attention=False, num_query_groups=4, attention_output_gate=False, multi_latent_attention=False, num_experts=None, moe_layer_freq=1, moe_router_topk=0,
    moe_ffn_hidden_size=None, moe_latent_size=None, moe_shared_expert_intermediate_size=None, mtp_num_layers=None, experimental_attention_variant=None,
    linear_attention_freq=None, linear_key_head_dim=None, linear_value_head_dim=None, linear_num_key_heads=None, linear_num_value_heads=None, linear_conv_kernel_dim=None,
    q_lora_rank=None, qk_head_dim=None, qk_pos_emb_head_dim=None, kv_lora_rank=None, v_head_dim=None, hybrid_layer_pattern=None, is_hybrid_model=False,
)  # fmt: skip


@pytest.fixture(autouse=True)
def module(monkeypatch):
    monkeypatch.setattr(training, "num_floating_point_operations", OWN)


def estimator(config=LLAMA, convention="symflops", regime="full"):
    return lookup.estimator(*lookup.by_config(config), config, regime, convention)[1]


def total(one, lengths):
    return one.total(one.moments(text=lengths))


def test_packed_steps_through_megatron_s_own_sums():
    """The boundaries of two micro-batches, summed by Megatron-LM; then a step without any, of full sequences."""
    one = estimator()
    megatron.patch(training, one)
    for lengths in ([10, 20], [32, 7, 1]):
        boundaries = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0).int()
        training.update_seqlen_stats_from_cu_seqlens(boundaries)
    tokens, squares = training.consume_seqlen_stats_in_iteration()
    assert training.num_floating_point_operations(ARGS, 2, squares, tokens) == total(one, [10, 20, 32, 7, 1])
    tokens, squares = training.consume_seqlen_stats_in_iteration()
    assert tokens is None and training.num_floating_point_operations(ARGS, 2, squares, tokens) == total(one, [32, 32])


def test_its_own_figure_under_its_convention():
    """Padded and real lengths: the convention 'megatron' is Megatron-LM's own count."""
    one = estimator(convention="megatron")
    for sums in ((None, None), (500.0, 30.0)):
        expected = OWN(ARGS, 2, seqlen_squared_sum_in_batch=sums[0], total_real_tokens_in_batch=sums[1])
        megatron.patch(training, one)
        assert training.num_floating_point_operations(ARGS, 2, *sums) == expected


def test_scalar_tensors():
    one = estimator()
    megatron.patch(training, one)
    found = training.num_floating_point_operations(ARGS, 1, torch.tensor(500.0, dtype=torch.float64), torch.tensor(30.0))
    assert found == total(one, [10, 20]) and type(found) is int


def test_a_model_that_needs_more_is_refused_when_it_is_registered():
    with pytest.raises(ValueError, match="needs the sum 'min_x_W'"):
        megatron.patch(training, estimator({"architectures": ["MistralForCausalLM"]}))
    assert training.num_floating_point_operations is OWN
