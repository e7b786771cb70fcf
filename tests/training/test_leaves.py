"""A model that makes its input need a gradient while it trains: what is read off it equals PyTorch's counter."""

from __future__ import annotations

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.utils.flop_counter import FlopCounterMode
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC, Wav2Vec2Model

import symflops
from symflops.training.introspect.tree import makes_leaf

CONFIG = Wav2Vec2Config(
    num_hidden_layers=2, hidden_size=48, num_attention_heads=4, intermediate_size=96, layerdrop=0.0, conv_dim=(32,) * 7,
    attn_implementation="eager", num_conv_pos_embedding_groups=4, num_conv_pos_embeddings=16,
)  # fmt: skip


def whole(model):
    return model


def frozen(model):
    model.freeze_feature_encoder()
    return model


def one_parameter(model):
    model.requires_grad_(False)
    model.get_parameter(next(name for name, _ in model.named_parameters() if "layers.1" in name)).requires_grad_(True)
    return model


def adapted(model):
    return get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))


@pytest.mark.parametrize(("kind", "change"), [(Wav2Vec2Model, whole), (Wav2Vec2Model, frozen), (Wav2Vec2Model, adapted), (Wav2Vec2ForCTC, one_parameter)])
def test_the_gradient_of_what_it_reads_is_counted(kind, change):
    module = change(kind(CONFIG)).train()
    model = symflops.of_model(module, convention="torch-raw")
    with FlopCounterMode(display=False) as forward:
        found = module(torch.randn(2, 16000))[0].sum()
    with FlopCounterMode(display=False) as backward:
        found.backward()
    moments = model.moments(audio=[16000, 16000])
    assert (model.forward(moments), model.backward(moments)) == (forward.get_total_flops(), backward.get_total_flops())


class Asking(torch.nn.Module):
    wanted = True

    def forward(self, x):
        if self.wanted and self.training:
            x.requires_grad_()
        return x


class Never(Asking):
    wanted = False


class Given(torch.nn.Module):
    def forward(self, x, bias=None):
        if bias is None:
            bias = torch.zeros(3)
            bias.requires_grad = True
        return x + bias


@pytest.mark.parametrize(("module", "made"), [(Asking(), True), (Never(), False), (Given(), None), (torch.nn.Linear(2, 2), None)])
def test_what_a_module_makes_of_its_inputs(module, made):
    assert makes_leaf(module) is made


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_layers_that_are_left_out_at_random_are_told(share):
    module = Wav2Vec2Model(Wav2Vec2Config(**{**CONFIG.to_diff_dict(), "layerdrop": share}))
    assert ("layerdrop" in symflops.of_model(module).account) is bool(share)
