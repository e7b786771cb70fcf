"""Steps as scripts of transformers and diffusers take them, watched: each beside PyTorch's counter, and proven."""

from __future__ import annotations

import pytest
import torch
from diffusers import ControlNetModel, UNet2DConditionModel
from peft import LoraConfig, get_peft_model
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import (
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from symflops.verify.running import counter
from tests.clients.loops import collated, model_of, rows
from tests.clients.test_diffusers import MODELS
from tests.training.test_outside import UNET
from tests.training.test_parameters_adapted import KINDS, adapted
from tests.training.test_watch import IDS, Loop, loss


def exact(loop, step, outside=0):
    loop.step(step, outside)
    assert loop.settled().executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told


def unet():
    return UNet2DConditionModel(**UNET), lambda size: {"sample": torch.randn(size, 4, 8, 8), "timestep": torch.arange(size), "encoder_hidden_states": torch.randn(size, 3, 32)}


def of_script(name):
    made, sizes, inputs = MODELS[name]
    return made(**sizes), lambda size: {**inputs(size), "timestep": torch.rand(size)}


@pytest.mark.parametrize("name", ["unet", *MODELS])
def test_adapters_of_a_denoiser(name):
    torch.manual_seed(0)
    model, inputs = unet() if name == "unet" else of_script(name)
    model.requires_grad_(False).add_adapter(LoraConfig(r=4, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    model.enable_gradient_checkpointing()
    exact(Loop(model.train()), lambda model: [model(**inputs(size)).sample.mean().backward() for size in (2, 1)])


def test_a_controlnet():
    model, inputs = unet()
    control = ControlNetModel.from_unet(model.requires_grad_(False)).train()
    control.enable_gradient_checkpointing()

    def step(control):
        given = inputs(2)
        downs, middle = control(**given, controlnet_cond=torch.randn(2, 3, 64, 64), return_dict=False)
        model(**given, down_block_additional_residuals=downs, mid_block_additional_residual=middle).sample.mean().backward()

    exact(Loop(control, model), step)


@pytest.mark.parametrize("frozen", [False, True], ids=["all", "merger"])
def test_images_and_texts(frozen):
    model = model_of("images").train()
    if frozen:
        model.requires_grad_(False).model.visual.merger.requires_grad_(True)

    def step(model):
        for batch in (collated(rows("images", 2)), collated(rows("full", 2))):
            loss = model(**batch).loss
            if loss.requires_grad:
                loss.backward()

    exact(Loop(model), step)


@pytest.mark.parametrize("recomputed", [False, True], ids=["plain", "checkpointed"])
def test_speech(recomputed):
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    words = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    model = WhisperForConditionalGeneration(WhisperConfig(**sizes, **words, num_mel_bins=8, max_source_positions=16, max_target_positions=16, attn_implementation="eager")).train()
    if recomputed:
        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
        model.gradient_checkpointing_enable({"use_reentrant": False})
    exact(Loop(model), lambda model: model(input_features=torch.randn(2, 8, 32), labels=IDS[:, :5].clone()).loss.backward())


@pytest.mark.parametrize("reentrant", [None, False, True])
def test_translation(reentrant):
    model = T5ForConditionalGeneration(T5Config(d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4, vocab_size=64, decoder_start_token_id=0)).train()
    if reentrant is not None:
        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q", "v"]))
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model.enable_input_require_grads()
    exact(Loop(model), lambda model: model(input_ids=IDS, labels=IDS[:, :5].clone()).loss.backward())


@pytest.mark.parametrize("reentrant", [None, False, True])
@pytest.mark.parametrize("name", KINDS)
def test_experts(name, reentrant):
    exact(Loop(adapted(name, "beside linears", reentrant).train()), loss)
    if reentrant is None:
        exact(Loop(KINDS[name]().train()), loss)


def test_a_student_learns_from_a_teacher_twice():
    """Distillation with R-Drop: the teacher runs once without gradients, the student twice."""
    teacher, student = model_of("full").eval(), model_of("lora").train()

    def step(student):
        with torch.no_grad():
            told = teacher(input_ids=IDS).logits
        one, two = (student(input_ids=IDS).logits for _ in range(2))
        ((one - told).square().mean() + (one - two).square().mean()).backward()

    exact(Loop(student, teacher), step)


def test_a_counter_of_the_user_s_own_counts_what_it_would():
    """The first step is its own witness, and takes nothing from a counter around it."""
    counts = []
    for watched in (False, True):
        model = model_of("full").train()
        loop = Loop(model)
        if not watched:
            loop.meter.unwatch()
        with sdpa_kernel(SDPBackend.MATH), counter(False) as seen:
            model(input_ids=IDS, labels=IDS).loss.backward()
        counts.append(seen.get_total_flops())
    assert counts[0] == counts[1] > 0
