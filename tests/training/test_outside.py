"""Gradients that enter a model from outside, parts that run alone, and adapters: each step beside PyTorch's counter."""

from __future__ import annotations

import pytest
import torch
from diffusers import AutoencoderKL, ControlNetModel, UNet2DConditionModel
from peft import AdaLoraConfig, LoraConfig, get_peft_model
from transformers import T5Config, T5ForConditionalGeneration, ViTConfig, ViTForImageClassification

from symflops.training.introspect.model import of_model
from symflops.training.introspect.tree import LiveModelError
from symflops.training.meter.mfu import MFUMeter
from tests.training.test_watch import IDS, Loop, llama, loss

UNET = {"block_out_channels": (32, 32), "layers_per_block": 1, "sample_size": 8, "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"), "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "cross_attention_dim": 32, "norm_num_groups": 8, "attention_head_dim": 8}


@pytest.mark.parametrize("recomputed", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["plain", "checkpointed"])
def test_a_controlnet_trains_through_a_frozen_unet(recomputed):
    """The residuals enter at every skip and in the middle: no input of the UNet has a gradient."""
    torch.manual_seed(0)
    unet = UNet2DConditionModel(**UNET).requires_grad_(False).eval()
    control = ControlNetModel.from_unet(unet).train()
    if recomputed:
        control.enable_gradient_checkpointing()
    given = {"sample": torch.randn(1, 4, 8, 8), "timestep": torch.tensor([1]), "encoder_hidden_states": torch.randn(1, 3, 32)}

    def step(model):
        downs, middle = model(**given, controlnet_cond=torch.randn(1, 3, 64, 64), return_dict=False)
        unet(**given, down_block_additional_residuals=list(downs), mid_block_additional_residual=middle).sample.sum().backward()

    loop = Loop(control, unet)
    loop.step(step)
    assert loop.settled().executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told


def autoencoder():
    return AutoencoderKL(block_out_channels=(32, 32), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8)


def encoded(model):
    """A loop that freezes nothing and has no gradient: the work of both convolutions and of the encoder."""
    with torch.no_grad():
        model.encode(torch.randn(1, 3, 16, 16))


def both(model):
    model.decode(model.encode(torch.randn(2, 3, 16, 8)).latent_dist.mode()).sample.sum().backward()


@pytest.mark.parametrize("step", [encoded, pytest.param(both, marks=pytest.mark.thorough)])
def test_an_autoencoder_that_only_encodes(step):
    torch.manual_seed(0)
    loop = Loop(autoencoder().train())
    assert loop.step(step) is not None
    assert loop.settled().executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told


def test_a_part_whose_lengths_nothing_tells_is_no_mfu():
    loop = Loop(autoencoder().train())
    assert "mfu" not in loop.step(lambda model: model.quant_conv(torch.randn(1, 8, 4, 4)).sum().backward())
    assert len(loop.told) == 1 and "'quant_conv' ran outside of a call of AutoencoderKL, and nothing tells its lengths" in loop.told[0]


def kept(model):
    model(input_ids=IDS, logits_to_keep=3).logits.sum().backward()


def generated(model):
    model.eval()
    with torch.no_grad():
        ids = model.generate(IDS, max_new_tokens=3, do_sample=False, use_cache=True)
    model.train()
    model(input_ids=ids).logits.sum().backward()


@pytest.mark.parametrize("step", [kept, generated])
def test_a_head_on_some_tokens(step):
    loop = Loop(llama(pad_token_id=0, eos_token_id=63))
    loop.step(step)
    assert loop.settled().executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told


class Fused(torch.autograd.Function):
    """A head and its loss in one, whose backward pass makes the logits again and adds the gradients in place, as TRL's does."""

    @staticmethod
    def forward(ctx, hidden, weight, labels):
        ctx.save_for_backward(hidden, weight, labels)
        return (hidden @ weight.t()).gather(1, labels[:, None]).sum()

    @staticmethod
    def backward(ctx, gradient):
        hidden, weight, _ = ctx.saved_tensors
        of_logits = (hidden @ weight.t()).softmax(-1) * gradient
        return torch.zeros_like(hidden).addmm_(of_logits, weight), torch.zeros_like(weight).addmm_(of_logits.t(), hidden), None


@pytest.mark.parametrize("compact", [True, False], ids=["labelled", "all but the last"])
def test_a_head_that_is_fused_with_the_loss_and_skips_tokens(compact):
    """PyTorch's counter sees no product that adds in place: one for each of the two gradients."""
    model = llama()

    def forward(input_ids, labels):
        hidden, labels = model.model(input_ids=input_ids).last_hidden_state[:, :-1], labels[:, 1:]
        mask = labels != (-100 if compact else -1)
        return Fused.apply(hidden[mask], model.lm_head.weight, labels[mask].clamp(min=0))

    model.forward = forward
    loop = Loop(model)
    tokens = 0
    for skipped in (5, 2):
        labels = IDS.clone()
        labels[0, :skipped] = -100
        tokens += int((labels[:, 1:] != -100).sum()) if compact else 14
        assert "mfu" in loop.step(lambda model: model(input_ids=IDS, labels=labels).backward())
    assert loop.meter.executed == loop.seen + 2 * tokens * 2 * 32 * 64 and len(loop.proofs()) == 1 and not loop.told


def t5():
    return T5ForConditionalGeneration(T5Config(d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4, vocab_size=64, decoder_start_token_id=0)), "q|v", lambda model: model(input_ids=IDS, labels=IDS[:, :5].clone()).loss.backward()


def vit():
    config = ViTConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4, attn_implementation="eager")
    return ViTForImageClassification(config), "q_proj|v_proj|query|value", lambda model: model(pixel_values=torch.randn(2, 3, 16, 16), labels=torch.tensor([0, 1])).loss.backward()


@pytest.mark.parametrize("made", [t5, vit])
def test_adapters_with_checkpointing(made):
    """A hook makes the embedding's result require a gradient, and dropout makes recomputation run to the end of a layer."""
    model, targets, step = made()
    model = get_peft_model(model, LoraConfig(r=4, target_modules=rf".*\.({targets})"))
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.enable_input_require_grads()
    loop = Loop(model.train())
    loop.step(step)
    assert loop.settled().executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told


@pytest.mark.parametrize(("fields", "options"), [
    ({}, {"lora_bias": True}), ({}, {"layer_replication": [(0, 2), (1, 3)]}), ({"tie_word_embeddings": True}, {"modules_to_save": ["lm_head"]}),
], ids=["bias", "replicated", "tied"])  # fmt: skip
def test_options_of_adapters(fields, options):
    loop = Loop(get_peft_model(llama(**fields), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], **options)).train())
    loop.step(loss)
    assert loop.settled().executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told


def test_an_adapter_that_no_regime_describes_is_named():
    model = get_peft_model(llama(), AdaLoraConfig(target_modules=["q_proj"], total_step=10))
    with pytest.raises(LiveModelError, match=r"q_proj' is a peft\.tuners\.adalora\.layer\.SVDLinear: only LoRA"):
        of_model(model)
    with pytest.warns(UserWarning, match="no MFU: LiveModelError"):
        assert MFUMeter.of_model(model).watch().step(seconds=1.0) == {}
