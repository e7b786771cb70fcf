"""Megatron-Bridge's own FLOPs module and Wan's own provider with symflops in them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from symflops.evaluate.lengths import entry_of
from symflops.library import lookup
from symflops.training.frameworks import megatron
from symflops.training.frameworks.parallel import packed
from tests.clients.megatron_source import bridge
from tests.training.test_packs import PACKS

flop_utils = bridge("training.utils.flop_utils")
WanModelProvider = bridge("diffusion.models.wan.wan_provider").WanModelProvider
LoRA = bridge("peft.lora").LoRA

LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}
VISION = {"architectures": ["Qwen2VLForConditionalGeneration"]}
WAN = {
    "_class_name": "WanTransformer3DModel", "num_layers": 2, "num_attention_heads": 2, "attention_head_dim": 12, "ffn_dim": 64, "in_channels": 16, "out_channels": 16,
    "text_dim": 32, "patch_size": [1, 2, 2],
}  # fmt: skip
LENGTHS = [10, 20, 2]
NAMES = ("num_floating_point_operations", "vit_flops_from_patch_stats")
OWN = {name: getattr(flop_utils, name) for name in NAMES}


@pytest.fixture(autouse=True)
def module(monkeypatch):
    for name, function in OWN.items():
        monkeypatch.setattr(flop_utils, name, function)


def estimator(config=LLAMA, convention="symflops", regime="full"):
    return lookup.estimator(*lookup.by_config(config), config, regime, convention)[1]


def total(one, **batch):
    return one.total(one.moments(**batch))


def gathered(lengths, others=None, padded_to=None):
    """What Bridge's own accumulators and reduction make of packed micro-batches, one per sample."""
    state = SimpleNamespace()
    for place, length in enumerate(lengths):
        tokens = torch.zeros(1, padded_to or length)
        cross = None if others is None else torch.tensor([0, others[place]])
        flop_utils.accumulate_flops_metadata(state, tokens, cu_seqlens=torch.tensor([0, length]), cross_cu_seqlens=cross)
        flop_utils.accumulate_flops_metadata(state, tokens, vp_stage=1, cu_seqlens=torch.tensor([0, length]))  # a later virtual stage
    found = flop_utils.resolve_global_flops_runtime_stats(state, data_parallel_size=1, include_cross_attention_stats=others is not None)
    names = ("seqlen_sum", "seqlen_squared_sum", "cross_seqlen_sum", "cross_seqlen_product_sum")
    return {name: getattr(found, name) for name in names}


def wan():
    return WanModelProvider(num_layers=2, hidden_size=24, ffn_hidden_size=64, num_attention_heads=2, crossattn_emb_size=24, text_dim=32)


def test_wan_from_the_five_sums():
    """Bridge calls its only provider with runtime statistics; the sums are those that its own accumulators make."""
    one, provider = estimator(WAN), wan()
    megatron.provide(provider, one)
    latents, prompts = [[1, 8, 8], [3, 4, 8]], [7, 9]
    sums = gathered([16, 24], prompts)
    cfg = SimpleNamespace(model=provider, peft=None)
    assert flop_utils.num_floating_point_operations(cfg, 2, **sums) == total(one, latent=latents, prompt=prompts)


def test_wan_s_own_figure_is_near():
    """Its formula has no modulation, no time embedding, and three times forward; what differs is below a fifth."""
    one = estimator(WAN)
    sums = gathered([1600, 2400], [70, 90])
    theirs = flop_utils.num_floating_point_operations(SimpleNamespace(model=wan(), peft=None), 2, **sums)
    provider = wan()
    megatron.provide(provider, one)
    ours = flop_utils.num_floating_point_operations(SimpleNamespace(model=provider, peft=None), 2, **sums)
    assert 0.8 < ours / theirs < 1.2


def test_a_step_that_accumulated_nothing_has_full_sequences():
    one = estimator()
    provider = SimpleNamespace(seq_length=32)
    megatron.provide(provider, one)
    cfg = SimpleNamespace(model=provider, peft=None)
    empty = dict.fromkeys(gathered([1]))
    assert gathered([]) == empty
    assert flop_utils.num_floating_point_operations(cfg, 3, **empty) == total(one, text=[32] * 3)
    megatron.patch_bridge(flop_utils, one)
    assert flop_utils.num_floating_point_operations(cfg, 3, **empty) == total(one, text=[32] * 3)


def test_padded_and_real_tokens():
    """Bridge sums padded tokens, and squares of real ones; its convention counts both."""
    one = estimator(convention="megatron-bridge")
    provider = SimpleNamespace(seq_length=32)
    megatron.provide(provider, one)
    sums = gathered(LENGTHS, padded_to=32)
    assert sums["seqlen_sum"] == 96 and sums["seqlen_squared_sum"] == 504
    found = flop_utils.num_floating_point_operations(SimpleNamespace(model=provider, peft=None), 3, **sums)
    assert found == total(one, text={"lengths": LENGTHS, "padded": [32] * 3})


def test_lora_counts_through_the_module_alone():
    """With LoRA Bridge asks no provider; its function, replaced, does."""
    lora = estimator(regime="lora")
    provider = SimpleNamespace(seq_length=32)
    cfg = SimpleNamespace(model=provider, peft=LoRA())
    megatron.patch_bridge(flop_utils, lora)
    assert flop_utils.num_floating_point_operations(cfg, 3, **gathered(LENGTHS)) == total(lora, text=LENGTHS)
    assert total(lora, text=LENGTHS) < total(estimator(), text=LENGTHS)


def test_vision_patches():
    """Bridge's statistics of grids; a model whose encoder has windows keeps Bridge's own count of images."""
    one = estimator(VISION)
    cfg = SimpleNamespace(model=SimpleNamespace(seq_length=32, hidden_size=64, vision_config=SimpleNamespace(depth=2, hidden_size=64, intermediate_size=64)), peft=None)
    lengths = [40, 30, 20]  # that hold the tokens of the images
    grid = torch.tensor([[1, 8, 8], [2, 16, 8]])
    stats = dict(zip(("patch_sum", "patch_squared_sum", "merged_token_sum"), flop_utils.vision_patch_stats_from_grid_thw(grid, spatial_merge_size=2), strict=True))
    megatron.patch_bridge(flop_utils, one)
    text = flop_utils.num_floating_point_operations(cfg, 3, **gathered(lengths))
    assert text + flop_utils.vit_flops_from_patch_stats(cfg, **stats) == total(one, text=lengths, images=grid.tolist())
    scalars = {name: torch.tensor(value) for name, value in stats.items()}
    assert flop_utils.vit_flops_from_patch_stats(cfg, **scalars) == flop_utils.vit_flops_from_patch_stats(cfg, **stats)
    each = flop_utils.num_floating_point_operations(cfg, 2, **gathered([20, 20]), num_vision_patches=128)
    assert each == total(one, text=[20, 20], images=[[1, 8, 8]] * 2)
    flop_utils.vit_flops_from_patch_stats = OWN["vit_flops_from_patch_stats"]
    megatron.patch_bridge(flop_utils, estimator({"architectures": ["Qwen2_5_VLForConditionalGeneration"]}))
    assert flop_utils.vit_flops_from_patch_stats is OWN["vit_flops_from_patch_stats"]
    each = flop_utils.num_floating_point_operations(cfg, 2, **gathered([20, 20]), num_vision_patches=128)
    assert each > flop_utils.num_floating_point_operations(cfg, 2, **gathered([20, 20]))


def test_a_model_that_needs_more_is_refused_when_it_is_registered():
    windowed, provider = estimator({"architectures": ["MistralForCausalLM"]}), wan()
    for register in (lambda: megatron.provide(provider, windowed), lambda: megatron.patch_bridge(flop_utils, windowed)):
        with pytest.raises(ValueError, match="needs the sum 'min_x_W'"):
            register()
    with pytest.raises(ValueError, match="not a function of sums"):
        megatron.provide(provider, estimator({**WAN, "image_dim": 1280, "added_kv_proj_dim": 24}))
    assert flop_utils.num_floating_point_operations is OWN["num_floating_point_operations"]


@pytest.mark.parametrize("pack", PACKS)
def test_packs_as_bridge_reads_them(pack):
    """The linears' tokens and the squares that Bridge's own accumulator makes of each pack that it can read."""
    boundaries, tokens, _ = PACKS[pack]
    named = {name: torch.tensor(value) for name, value in boundaries.items() if name.startswith("cu_seqlens") and "_q" not in name and "_kv" not in name}
    if not named or "cu_seqlens_padded" in named or "fillers" in pack:
        pytest.skip("gpt_step gives the accumulator other names, and cuts fillers by argmin")
    state, ids = SimpleNamespace(), torch.zeros(1, tokens)
    flop_utils.accumulate_flops_metadata(state, ids, **named)
    found = entry_of(packed(named, ids))
    real, padded = (found["lengths"], found["padded"]) if isinstance(found, dict) else (found, found)
    assert (sum(padded), sum(length**2 for length in real)) == (state._flops_seqlen_sum, int(state._flops_seqlen_sq_sum))
