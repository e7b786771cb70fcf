"""A model with the names that its class had before version 5 of transformers is read as one of today."""

from __future__ import annotations

import pytest
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

import symflops
from symflops.support.errors import SymflopsError
from symflops.training.introspect.older import OlderNames, table
from tests.library.older_names import older_of, rules_of
from tests.training.test_watch import llama, mixtral


class Older(torch.nn.Module):
    """A feed-forward of experts as before: a list of modules with three linears each."""

    def __init__(self, width=32, hidden=64, experts=4):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts, bias=False)
        sides = {"w1": (width, hidden), "w2": (hidden, width), "w3": (width, hidden)}
        self.experts = torch.nn.ModuleList(torch.nn.ModuleDict({name: torch.nn.Linear(*side, bias=False) for name, side in sides.items()}) for _ in range(experts))


def older():
    model = mixtral()
    for layer in model.model.layers:
        layer.block_sparse_moe = Older()
        del layer.mlp
    return model


def test_experts_in_a_list_are_one_weight():
    model = older()
    found, today = symflops.of_model(model), symflops.of_model(mixtral())
    assert found.parameters == today.parameters == sum(one.numel() for one in model.parameters())
    assert found.total(found.moments(text=[8])) == today.total(today.moments(text=[8]))
    model.model.layers.requires_grad_(False)
    assert symflops.of_model(model).trainable_parameters == today.parameters - sum(one.numel() for one in model.model.layers.parameters())


def test_experts_that_train_in_part_are_refused():
    model = older()
    model.model.layers[1].block_sparse_moe.experts[2].w1.requires_grad_(False)
    with pytest.raises(SymflopsError, match=r"only some of the weights that make up 'model\.layers\.1\.mlp\.experts\.gate_up_proj' train"):
        symflops.of_model(model)


def test_a_head_of_another_name():
    model = GPTNeoXForCausalLM(GPTNeoXConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=64))
    model.embed_out = model.lm_head
    del model.lm_head
    assert symflops.of_model(model).parameters == sum(one.numel() for one in model.parameters())


def test_rules_are_what_transformers_says():
    assert rules_of(older_of(mixtral())) == table()["MixtralForCausalLM"]
    assert older_of(llama()).items() == {name: name for name in older_of(llama())}.items() and "LlamaForCausalLM" not in table()


def test_names_of_today_stay():
    """No rule of a class renames what a rule of it gives."""
    for rules in table().values():
        names = OlderNames(rules)
        assert all(names.parameter(new.replace("*", "3")) == (new.replace("*", "3"), "") for new in rules.values())
