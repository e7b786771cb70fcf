"""Every adapter that reads a batch counts padded tokens under the conventions that count them, and real ones under the others."""

from __future__ import annotations

import pytest
import torch

from symflops.api import CONVENTIONS
from symflops.evaluate.units import in_flops
from symflops.library import lookup
from symflops.read.spec_files import pages
from symflops.training.frameworks import huggingface, lightning
from symflops.training.meter.mfu import MFUMeter

CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}
MASK = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1]])
BATCH = {"input_ids": torch.ones_like(MASK), "attention_mask": MASK}
REAL, PADDED = [7, 3, 5], [7, 7, 7]


def estimator(convention):
    return lookup.estimator(*lookup.by_config(CONFIG), CONFIG, "full", convention)[1]


def of_lightning(one, meter):
    return lightning.flops_of_batch(one, BATCH)


def of_a_lightning_module(one, meter):
    module = lightning.FlopsMixin()
    module.symflops_estimator = one
    return module.count_batch(BATCH)


def of_the_trainer(one, meter):
    return huggingface.flops_of(meter, BATCH)


def of_a_callback(one, meter):
    hooks = lightning.MeterHooks(lambda module: meter)
    hooks.meter = meter
    hooks.on_train_batch_start(None, None, BATCH, 0)
    return counted(meter)


def counted(meter):
    meter.settle()
    return meter.state_dict()["flops"]


READERS = [of_lightning, of_a_lightning_module, of_a_callback, of_the_trainer]


@pytest.mark.parametrize("convention", sorted({*CONVENTIONS, *pages("conventions")}))
def test_padding_counts_where_the_convention_says(convention):
    one = estimator(convention)
    expected = in_flops(one, one.total(one.moments(text={"lengths": REAL, "padded": PADDED})))
    assert (in_flops(one, one.total(one.moments(text=REAL))) != expected) == bool(one.padded or one.padded_sums)
    found = {reader.__name__: reader(one, MFUMeter.of_config(CONFIG, devices=1, convention=convention)) for reader in READERS}
    assert found == dict.fromkeys(found, expected)


def test_some_conventions_count_padding():
    assert any(estimator(convention).padded for convention in CONVENTIONS)
