"""Classes of transformers before version 5: other names, experts in lists, and a product for positions, watched and proven."""

from __future__ import annotations

import pytest
import torch
import transformers
from peft import LoraConfig, get_peft_model
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)

from tests.clients.loops import SIZES
from tests.training.test_watch import Loop, loss

EAGER = {"attn_implementation": "eager", "use_cache": False}
VIT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 16, "patch_size": 4, "attn_implementation": "eager"}


class Outer(TorchDispatchMode):
    """FLOPs of batched products that add nothing up."""

    flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.bmm.default and args[0].shape[-1] == 1:
            self.flops += 2 * result.numel()
        return result


def lora(model, *names):
    return get_peft_model(model, LoraConfig(r=4, target_modules=list(names)))


def checkpointed(model):
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def vit():
    return ViTForImageClassification(ViTConfig(**VIT))


def pictures(model):
    model(pixel_values=torch.ones(2, 3, 16, 16), labels=torch.tensor([0, 1])).loss.backward()


def llama():
    return LlamaForCausalLM(LlamaConfig(**SIZES, **EAGER))


KINDS = {
    "full": (llama, loss), "lora": (lambda: lora(llama(), "q_proj", "v_proj"), loss), "lora checkpointed": (lambda: checkpointed(lora(llama(), "q_proj", "v_proj")), loss),
    "mixtral": (lambda: MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, **EAGER)), loss),
    "mixtral lora": (lambda: lora(MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, **EAGER)), "q_proj", "o_proj"), loss),
    "qwen3 experts": (lambda: Qwen3MoeForCausalLM(Qwen3MoeConfig(**SIZES, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, **EAGER)), loss),
    "neox": (lambda: GPTNeoXForCausalLM(GPTNeoXConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=64, **EAGER)), loss),
    "vit": (vit, pictures), "vit lora": (lambda: lora(vit(), "query", "value"), pictures), "vit checkpointed": (lambda: checkpointed(vit()), pictures),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_step(kind):
    assert int(transformers.__version__.partition(".")[0]) < 5
    torch.manual_seed(0)
    made, step = KINDS[kind]
    loop, outer = Loop(made().train()), Outer()

    def counted(model):
        with outer:
            step(model)

    loop.step(counted)
    assert loop.settled().executed == loop.seen - outer.flops > 0 and not loop.told
    proof = next(line for line in loop.lines if "proven on the first step" in line)
    assert ("outer products" in proof) == bool(outer.flops)


def test_experts_that_train_in_part_are_refused():
    model = KINDS["mixtral"][0]()
    model.model.layers[0].block_sparse_moe.experts[1].requires_grad_(False)
    with pytest.warns(UserWarning, match="only some of the weights that make up 'model.layers.0.mlp.experts.gate_up_proj' train"):
        Loop(model)
