"""The regime that a live module is in, read off it: FLOPs and trainable parameters equal PyTorch's counter on the same step."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing, checkpoint_wrapper
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, LlamaModel

import symflops
from symflops.training.introspect.model import LiveModule
from symflops.training.introspect.tree import LiveModelError
from tests.sampling import sampled
from tests.training.step import counted, derived, trained

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64, "attn_implementation": "eager", "use_cache": False}
IDS = torch.ones(2, 8, dtype=torch.long)
INPUTS, BATCH = {"input_ids": IDS, "labels": IDS}, {"text": [8, 8]}


def llama(kind=LlamaForCausalLM, **fields):
    return kind(LlamaConfig(**SIZES, **fields))


def frozen(model, layers=2):
    model.model.embed_tokens.requires_grad_(False)
    model.model.layers[:layers].requires_grad_(False)
    return model


def lora(model=None, **fields):
    return get_peft_model(model or llama(), LoraConfig(**{"r": 4, "target_modules": ["q_proj", "v_proj"], **fields}))


def checkpointed(model, reentrant=False, inputs=False):
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    if inputs:
        model.enable_input_require_grads()
    return model


def several(active):
    model = lora()
    model.add_adapter("b", LoraConfig(r=8, target_modules=["q_proj", "k_proj"]))
    model.base_model.set_adapter(active)
    return model


def merged():
    model = lora()
    model.merge_adapter()
    return model


def wrapped(name):
    model = llama()
    apply_activation_checkpointing(model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda module: type(module).__name__ == name)
    return model


def some_checkpointed():
    model = checkpointed(llama())
    model.model.layers[1].gradient_checkpointing = False
    return model


MODULES = {
    "bare": (llama, "full"),
    "tied": (lambda: llama(tie_word_embeddings=True), "full"),
    "nothing trains": (lambda: llama().requires_grad_(False), "forward"),
    "frozen": (lambda: frozen(llama()), "live"),
    "lora": (lambda: lora(target_modules="all-linear", task_type="CAUSAL_LM"), "live"),
    "lora, stored": (lambda: lora(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]), "lora"),
    "ranks": (lambda: lora(rank_pattern={"layers.1.self_attn.q_proj": 7}), "live"),
    "layers": (lambda: lora(layers_to_transform=[0, 2]), "live"),
    "dora": (lambda: lora(use_dora=True), "live"),
    "dora, dropout": (lambda: lora(use_dora=True, lora_dropout=0.1), "live"),
    "saved head": (lambda: lora(modules_to_save=["lm_head"]), "live"),
    "saved embedding": (lambda: lora(modules_to_save=["lm_head", "embed_tokens"]), "live"),
    "one of two": (lambda: several(["b"]), "live"),
    "two": (lambda: several(["default", "b"]), "live"),
    "merged": (merged, "forward"),
    "checkpointed": (lambda: checkpointed(llama()), "checkpointed"),
    "reentrant": (lambda: checkpointed(llama(), True), "live"),
    "lora, checkpointed": (lambda: lora(checkpointed(llama(), False, True)), "live"),
    "lora, reentrant": (lambda: lora(checkpointed(llama(), True, True)), "live"),
    "frozen, checkpointed": (lambda: checkpointed(frozen(llama())), "live"),
    "frozen, reentrant": (lambda: checkpointed(frozen(llama()), True), "live"),
    "some checkpointed": (some_checkpointed, "live"),
    "wrapped blocks": (lambda: wrapped("LlamaDecoderLayer"), "checkpointed"),
    "wrapped parts": (lambda: wrapped("LlamaMLP"), "live"),
}


@pytest.mark.parametrize("name", sampled(list(MODULES), 2, 1))
def test_a_step(name):
    make, regime = MODULES[name]
    module = make()
    model = symflops.of_model(module, convention="torch")
    assert model.regime == regime and "all accounted for" in model.account
    assert derived(module, BATCH) == counted(module, INPUTS)
    assert model.trainable_parameters == trained(module)


@pytest.mark.parametrize(("kind", "head"), [(LlamaModel, {}), (LlamaForSequenceClassification, {"num_labels": 3, "pad_token_id": 0})])
@pytest.mark.parametrize("adapted", [False, True])
def test_a_head(kind, head, adapted):
    module = llama(kind, **head)
    inputs = {"input_ids": IDS, **({"labels": torch.zeros(2, dtype=torch.long)} if head else {})}
    module = lora(module, task_type="SEQ_CLS") if adapted and head else lora(module) if adapted else module
    assert derived(module, BATCH) == counted(module, inputs)


def test_the_account():
    lines = []
    symflops.of_model(lora(), log=lines.append)
    assert lines[-1] == "LlamaForCausalLM: 31,968 parameters, all accounted for; LoRA r=4 on 6 modules; 1,344 train"


def test_iterations_become_slices():
    page = json.loads(LiveModule(frozen(llama())).regime())
    assert "model.layers.:2.mlp.up_proj.weight" in page["freeze"]


def test_eighty_layers_take_calls_by_the_hundred_thousand():
    """A second is about ten million calls. What is derived is derived once: the second model finds it."""
    with torch.device("meta"):
        module = checkpointed(LlamaForCausalLM(LlamaConfig(num_hidden_layers=80, hidden_size=8192, num_attention_heads=64, num_key_value_heads=8, intermediate_size=28672)))
    symflops.of_model(module)
    calls: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    try:
        model = symflops.of_model(module)
    finally:
        sys.setprofile(None)
    assert 1_000 < calls["call"] < 500_000 and model.regime == "checkpointed"
    assert model.parameters == sum(tensor.numel() for tensor in module.parameters())


class Overridden(LlamaForCausalLM):
    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs)


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = llama()


def wider():
    module = llama()
    module.model.layers[1].mlp.up_proj = torch.nn.Linear(32, 65, bias=False)
    return module


def extended():
    module = llama()
    module.model.extra = torch.nn.Linear(2, 2)
    return module


REFUSED = {
    "another forward": (lambda: Overridden(LlamaConfig(**SIZES)), "has a 'forward' of its own"),
    "a holder": (Holder, "give the model that it holds: module.net"),
    "no library": (lambda: torch.nn.Identity(), "no spec describes torch.nn.modules.linear.Identity"),
    "no module": (lambda: 3, "no torch module"),
    "another shape": (wider, "mlp.up_proj.weight is [65, 32] in the module, [64, 32] in the spec"),
    "another parameter": (extended, "model.extra.weight [2, 2] is not in the spec"),
    "another adapter": (lambda: get_peft_model(llama(), __import__("peft").IA3Config(target_modules=["q_proj"], feedforward_modules=[])), "only LoRA, DoRA and modules_to_save"),
    "virtual tokens": (lambda: get_peft_model(llama(), __import__("peft").PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)), "adds 1 parameters to the model"),
    "an embedding": (lambda: lora(target_modules=["embed_tokens"]), "regimes describe it beside linears"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_described_is_refused(name):
    make, words = REFUSED[name]
    with pytest.raises(symflops.SymflopsError, match="(?s).") as caught:
        symflops.of_model(make())
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_difference_can_be_a_warning():
    with pytest.warns(UserWarning, match=r"model\.extra\.weight"):
        assert "not accounted for" in symflops.of_model(extended(), check="warn").account
    with pytest.raises(LiveModelError):
        symflops.of_model(extended())
    with pytest.raises(ValueError, match="'raise' or 'warn'"):
        symflops.of_model(llama(), check="no")
