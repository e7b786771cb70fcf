"""The steps of diffusers' training scripts on tiny models, with three lines of a meter."""

from __future__ import annotations

import pytest
import torch
from diffusers import (
    FlowMatchEulerDiscreteScheduler,
    FluxTransformer2DModel,
    QwenImageTransformer2DModel,
    SD3Transformer2DModel,
)
from diffusers.training_utils import compute_density_for_timestep_sampling, compute_loss_weighting_for_sd3
from peft import LoraConfig

import symflops
from symflops.training.meter.batches import streams_of
from tests.clients.loops import Seen

QWEN = {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 2, "in_channels": 16, "out_channels": 4, "joint_attention_dim": 32, "axes_dims_rope": (4, 6, 6)}
FLUX = {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2, "in_channels": 16, "joint_attention_dim": 32, "pooled_projection_dim": 32, "axes_dims_rope": [4, 4, 8]}
SD3 = {"num_layers": 2, "attention_head_dim": 8, "num_attention_heads": 4, "in_channels": 4, "out_channels": 4, "sample_size": 16, "joint_attention_dim": 32, "caption_projection_dim": 32, "pooled_projection_dim": 64, "pos_embed_max_size": 16}


def qwen(batch):
    shapes = [[(1, 4, 4)]] * batch
    mask = torch.ones(batch, 7, dtype=torch.int64)
    return {"hidden_states": torch.randn(batch, 16, 16), "encoder_hidden_states": torch.randn(batch, 7, 32), "img_shapes": shapes, "encoder_hidden_states_mask": mask}


def flux(batch):
    ids = {"img_ids": torch.zeros(16, 3), "txt_ids": torch.zeros(7, 3)}
    return {"hidden_states": torch.randn(batch, 16, 16), "encoder_hidden_states": torch.randn(batch, 7, 32), "pooled_projections": torch.randn(batch, 32), **ids}


def sd3(batch):
    return {"hidden_states": torch.randn(batch, 4, 16, 16), "encoder_hidden_states": torch.randn(batch, 7, 32), "pooled_projections": torch.randn(batch, 64)}


MODELS = {"qwen_image": (QwenImageTransformer2DModel, QWEN, qwen), "flux": (FluxTransformer2DModel, FLUX, flux), "sd3": (SD3Transformer2DModel, SD3, sd3)}


@pytest.mark.parametrize("kind", ["full", "lora", "lora checkpointed"])
@pytest.mark.parametrize("name", MODELS)
def test_a_script_s_loop(name, kind):
    """As in ``train_dreambooth_lora_*``: add the adapter, sample timesteps, weight the loss; the last batch is short."""
    torch.manual_seed(0)
    made, sizes, inputs = MODELS[name]
    transformer = made(**sizes)
    if "lora" in kind:
        transformer.requires_grad_(False)
        transformer.add_adapter(LoraConfig(r=4, lora_alpha=4, init_lora_weights="gaussian", target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    if "checkpointed" in kind:
        transformer.enable_gradient_checkpointing()
    transformer.train()
    scheduler = FlowMatchEulerDiscreteScheduler()
    one = symflops.of_model(transformer, convention="torch")
    seen, optimizer = Seen(), torch.optim.AdamW([tensor for tensor in transformer.parameters() if tensor.requires_grad])
    meter = symflops.MFUMeter.of_model(transformer, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    for size in (2, 2, 1):
        batch = inputs(size)
        u = compute_density_for_timestep_sampling("logit_normal", size, 0.0, 1.0, 1.29)
        timesteps = scheduler.timesteps[(u * scheduler.config.num_train_timesteps).long()]
        with seen.step():
            meter.add(**streams_of(one, batch))
            found = transformer(**batch, timestep=timesteps / 1000).sample
            weights = compute_loss_weighting_for_sd3("none", timesteps / 1000).view(-1, *[1] * (found.ndim - 1))
            (weights * (found - torch.randn_like(found)) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        assert "mfu" in meter.step()
    assert meter.executed == seen.flops > 0
