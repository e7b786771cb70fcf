"""LoRA on parameters (PEFT's ``target_parameters``), such as the stacked weights of experts, beside PyTorch's counter."""

from __future__ import annotations

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import GptOssConfig, GptOssForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

import symflops
from symflops.api import load
from symflops.training.introspect.tree import LiveModelError
from tests.sampling import sampled
from tests.training.step import counted, derived, trained
from tests.training.test_watch import Loop, loss

SIZES = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "num_experts_per_tok": 2, "attn_implementation": "eager", "experts_implementation": "eager", "use_cache": False,
}  # fmt: skip
IDS = torch.ones(2, 8, dtype=torch.long)
INPUTS, BATCH = {"input_ids": IDS, "labels": IDS}, {"text": [8, 8]}
KINDS = {
    "qwen3_moe": lambda **fields: Qwen3MoeForCausalLM(Qwen3MoeConfig(**SIZES, num_experts=4, moe_intermediate_size=24, **fields)),
    "mixtral": lambda **fields: MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=4, **fields)),
    "gpt_oss": lambda **fields: GptOssForCausalLM(GptOssConfig(**SIZES, num_local_experts=4, **fields)),
}
UP, DOWN = "mlp.experts.gate_up_proj", "mlp.experts.down_proj"
ADAPTED = {
    "both": {"target_parameters": [UP, DOWN]},
    "one": {"target_parameters": [DOWN]},
    "beside linears": {"target_parameters": [UP, DOWN], "target_modules": ["q_proj", "v_proj"]},
    "a linear's weight": {"target_parameters": ["q_proj.weight"]},
    "a layer": {"target_parameters": [UP, "q_proj.weight"], "layers_to_transform": [1], "modules_to_save": ["lm_head"]},
}
CASES = [(kind, fields, reentrant) for kind in KINDS for fields in ADAPTED for reentrant in (None, False, True)]


def adapted(kind="mixtral", fields="both", reentrant=None):
    torch.manual_seed(0)
    model = get_peft_model(KINDS[kind](), LoraConfig(r=3, **{"target_modules": [], **ADAPTED[fields]}))
    if reentrant is not None:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    return model


@pytest.mark.parametrize(("kind", "fields", "reentrant"), sampled(CASES, 9, 1))
def test_a_step(kind, fields, reentrant):
    module = adapted(kind, fields, reentrant)
    found = derived(module, BATCH)
    assert found == counted(module, INPUTS)
    assert derived(module, BATCH) == found  # PEFT registers the parameters anew in each pass
    assert symflops.of_model(module).trainable_parameters == trained(module)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_proves_itself(kind):
    loop = Loop(adapted(kind))
    for _ in range(2):
        loop.step(loss)
        loop.settled()
    assert loop.meter.executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told, (loop.lines, loop.told)
    assert not any("anew" in line for line in loop.lines)


def test_a_merged_adapter_costs_nothing():
    module = adapted()
    module.merge_adapter()
    assert derived(module, BATCH) == counted(module, INPUTS)


def test_two_adapters_on_one_parameter_are_refused():
    module = adapted()
    module.add_adapter("b", LoraConfig(r=2, target_modules=[], **ADAPTED["both"]))
    assert derived(module, BATCH) == counted(module, INPUTS)
    module.base_model.set_adapter(["default", "b"])
    with pytest.raises(LiveModelError, match="adds up 2 adapters on a parameter"):
        symflops.of_model(module)


@pytest.mark.parametrize(("target", "words"), [
    ("*.input_layernorm.weight", "is no matrix and no stack of matrices"), ("*.nothing", "matches nothing"), ("model.embed_tokens.weight", "uses without calling its module"),
])  # fmt: skip
def test_a_target_that_no_adapter_can_have(target, words):
    """A tied head reads the embedding's table without calling the embedding."""
    with pytest.raises(symflops.SymflopsError, match=words):
        load("llama").estimator({"tie_word_embeddings": True}, f"lora:kind=merged,train=,targets={target}", "torch")
