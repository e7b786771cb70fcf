"""One pack, one answer: Megatron-Bridge's rules of packed sequences, in every form of a pack, through every adapter that reads boundaries."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from symflops.evaluate import boundaries as reader
from symflops.evaluate.boundaries import LengthError
from symflops.evaluate.lengths import entry_of, listed_lengths
from symflops.library import lookup
from symflops.training.frameworks import accelerate, huggingface, lightning, megatron, parallel
from symflops.training.meter.batches import streams_of
from symflops.training.meter.mfu import MFUMeter
from tests.training.test_accumulate import NoScalar, NoWait

CONFIG = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}
# two layers of four projections and three of the MLP, and the head; half of all pairs, for scores and mix; a backward pass is two forward ones
A_TOKEN, A_SQUARE = 6 * (2 * (4 * 64 * 64 + 3 * 64 * 128) + 64 * 128), 6 * 2 * 64

# boundaries, the tokens of the pack, and the sub-sequences whose squares count
PACKS = {
    "a pack that ends before its tokens": ({"cu_seqlens": [0, 100, 256]}, 300, [100, 156]),
    "a full pack": ({"cu_seqlens": [0, 100, 300]}, 300, [100, 200]),
    "fillers behind the last boundary": ({"cu_seqlens": [0, 100, 256, -1, -1]}, 300, [100, 156]),
    "argmin before fillers": ({"cu_seqlens": [0, 100, 256, -1, -1], "cu_seqlens_argmin": 3}, 300, [100, 156]),
    "argmin before boundaries that rise": ({"cu_seqlens": [0, 100, 256, 280, 300], "cu_seqlens_argmin": 3}, 300, [100, 156]),
    "boundaries repeated for graphs": ({"cu_seqlens": [0, 100, 256, 256, 256]}, 300, [100, 156]),
    "an empty sub-sequence": ({"cu_seqlens": [0, 100, 100, 256]}, 300, [100, 156]),
    "empty sub-sequences alone": ({"cu_seqlens": [0, 0, 0]}, 300, []),
    "unpadded boundaries first": ({"cu_seqlens": [0, 128, 256], "cu_seqlens_unpadded": [0, 100, 201]}, 300, [100, 101]),
    "unpadded boundaries alone": ({"cu_seqlens_unpadded": [0, 100, 201]}, 300, [100, 101]),
    "an argmin for each": ({"cu_seqlens": [0, 128, 256, -1], "cu_seqlens_argmin": 3, "cu_seqlens_unpadded": [0, 100, 201, 250], "cu_seqlens_unpadded_argmin": 3}, 300, [100, 101]),
    "the argmin of the padded ones is not that of the others": ({"cu_seqlens": [0, 128, 256], "cu_seqlens_argmin": 2, "cu_seqlens_unpadded": [0, 100, 201]}, 300, [100, 101]),
    "padded boundaries of other sub-sequences": ({"cu_seqlens": [0, 300, 300, 300], "cu_seqlens_unpadded": [0, 80, 200, 300]}, 300, [80, 120, 100]),
    "fewer padded boundaries": ({"cu_seqlens": [0, 300], "cu_seqlens_unpadded": [0, 80, 200, 300]}, 300, [80, 120, 100]),
    "more padded boundaries": ({"cu_seqlens": [0, 128, 256, 300], "cu_seqlens_unpadded": [0, 100, 201]}, 300, [100, 101]),
    "Transformer Engine's names": ({"cu_seqlens_q": [0, 100, 201], "cu_seqlens_kv": [0, 100, 201], "cu_seqlens_q_padded": [0, 128, 256]}, 300, [100, 101]),
    "Megatron-Core's names": ({"cu_seqlens": [0, 100, 201], "cu_seqlens_padded": [0, 128, 256]}, 300, [100, 101]),
    "the names of transformers": ({"cu_seq_lens_q": [0, 100, 256], "cu_seq_lens_k": [0, 100, 256]}, 300, [100, 156]),
    "a boundary alone": ({"cu_seqlens": [0]}, 300, [300]),
    "no boundary": ({"cu_seqlens": []}, 300, [300]),
    "argmin leaves a boundary alone": ({"cu_seqlens": [0, 100, 256], "cu_seqlens_argmin": 1}, 300, [300]),
    "argmin leaves nothing": ({"cu_seqlens": [0, 100, 256], "cu_seqlens_argmin": 0}, 300, [300]),
    "fillers alone": ({"cu_seqlens": [0, -1, -1]}, 300, [300]),
    "unpadded boundaries that leave one alone": ({"cu_seqlens": [0, 100, 256], "cu_seqlens_unpadded": [0]}, 300, [300]),
    "a mask beside": ({"cu_seqlens": [0, 100, 256], "attention_mask": [[1] * 150 + [0] * 150], "position_ids": [[*range(300)]]}, 300, [100, 156]),
    "a mask beside a boundary alone": ({"cu_seqlens": [0], "attention_mask": [[1] * 150 + [0] * 150]}, 300, [300]),
}  # fmt: skip
FORMS = {
    "tensors": torch.tensor, "int32": lambda value: torch.tensor(value, dtype=torch.int32), "a row": lambda value: torch.tensor(value)[None] if isinstance(value, list) and value and not isinstance(value[0], list) else torch.tensor(value),
    "arrays": lambda value: np.array(value, np.int64), "lists": lambda value: value,
}  # fmt: skip


@cache
def estimator(convention="megatron-bridge"):
    return lookup.estimator(*lookup.by_config(CONFIG), CONFIG, "full", convention)[1]


def meter(convention="megatron-bridge"):
    return MFUMeter(estimator(convention), devices=1, peak_tflops=1.0)


def expected(tokens, lengths):
    return A_TOKEN * tokens + A_SQUARE * sum(length**2 for length in lengths)


def batch_of(boundaries, form, tokens, ids="input_ids"):
    return {ids: torch.zeros(1, tokens, dtype=torch.int64), **{name: FORMS[form](value) for name, value in boundaries.items()}}


def price(entry):
    return estimator().total(estimator().moments(text=entry_of(entry)))


def of_lightning_s_mixin(batch):
    module = lightning.FlopsMixin()
    module.symflops_estimator = estimator()
    return module.count_batch(batch)


def of_lightning_s_callback(batch):
    hooks = lightning.MeterHooks(lambda module: hooks.meter)
    hooks.meter = meter()
    hooks.on_train_batch_start(None, None, batch, 0)
    hooks.meter.settle()
    return hooks.meter.flops


def of_a_meter(batch):
    one = meter()
    one.add_batch(batch)
    one.settle()
    return one.flops


def of_accelerate(batch):
    hooks = []
    one = accelerate.attach(SimpleNamespace(register_save_state_pre_hook=hooks.append, register_for_checkpointing=lambda meter: None), meter())
    one.add_batch(batch)
    hooks[0](None, None, None)
    return one.flops


READERS = {
    "meter.add_batch": of_a_meter, "streams_of": lambda batch: price(streams_of(estimator(), batch)["text"]), "parallel.packed": lambda batch: price(parallel.packed(batch)),
    "parallel.packed with the number of tokens": lambda batch: price(parallel.packed({name: value for name, value in batch.items() if name not in ("input_ids", "tokens")}, 300)),
    "lightning": lambda batch: lightning.flops_of_batch(estimator(), batch), "Lightning's module": of_lightning_s_mixin, "Lightning's callback": of_lightning_s_callback,
    "accelerate": of_accelerate, "HF's Trainer": lambda batch: huggingface.flops_of(meter(), batch),
}  # fmt: skip


@pytest.mark.parametrize("pack", PACKS)
def test_every_reader_counts_a_pack_by_the_same_rules(pack):
    boundaries, tokens, lengths = PACKS[pack]
    for form in FORMS:
        for ids in ("input_ids", "tokens"):
            batch = batch_of(boundaries, form, tokens, ids)
            found = {name: reader(batch) for name, reader in READERS.items()}
            assert found == dict.fromkeys(READERS, expected(tokens, lengths)), (form, ids)
    provider = SimpleNamespace()  # Bridge's own sums of the same pack
    megatron.provide(provider, estimator())
    sums = {"seqlen_sum": tokens, "seqlen_squared_sum": sum(length**2 for length in lengths)}
    assert provider._get_num_floating_point_operations_with_runtime_stats(batch_size=1, **sums) == expected(tokens, lengths)


@pytest.mark.parametrize("pack", PACKS)
def test_packs_on_a_device_count_the_same(pack, monkeypatch):
    """Nothing waits for the device, so that fillers stay."""
    boundaries, tokens, lengths = PACKS[pack]
    batch = batch_of(boundaries, "tensors", tokens)
    host, there = meter(), meter()
    host.add_batch(batch)
    monkeypatch.setattr(reader, "HOST", "none")
    batch |= {name: int(value) for name, value in batch.items() if name.endswith("argmin")}  # on the host, as Bridge has it
    with NoWait() as watched, NoScalar():
        there.add_batch(batch)
    assert watched.seen == []
    for one in (host, there):
        one.settle()
    assert there.flops == host.flops == expected(tokens, lengths) and there.executed == host.executed


def test_hfu_does_not_depend_on_the_form_of_a_pack():
    forms = ("a pack that ends before its tokens", "fillers behind the last boundary", "argmin before fillers", "argmin before boundaries that rise", "boundaries repeated for graphs")
    found = []
    for form in forms:
        one = meter("symflops")
        one.add_batch(batch_of(*(PACKS[form][0], "tensors", 300)))
        one.settle()
        found.append((one.flops, one.executed))
    assert len(set(found)) == 1 and found[0][1] > found[0][0]  # padding is executed


def test_rows_of_several_packs():
    """Each row has boundaries of its own; what a row does not fill is padding of that row."""
    rows = {"cu_seqlens": torch.tensor([[0, 100, 256, -1], [0, 50, 60, 290]]), "cu_seqlens_unpadded": torch.tensor([[0, 90, 200, -1], [0, 50, 60, 280]])}
    ids = torch.zeros(2, 300, dtype=torch.int64)
    found = [parallel.packed(rows, 300), parallel.packed({**rows, "tokens": ids}), parallel.packed({name: value.tolist() for name, value in rows.items()}, ids), streams_of(estimator(), {**rows, "input_ids": ids})["text"]]
    for one in found:
        assert price(one) == expected(600, [90, 110, 50, 10, 220]) and listed_lengths(one) == [90, 110, 50, 10, 220] and list(one.padded[0]) == [100, 200, 50, 10, 240]
    ragged = parallel.packed({"cu_seqlens": [[0, 100], [0, 50, 300]]}, 300)
    assert price(ragged) == expected(600, [100, 50, 250])
    empty = parallel.packed({"cu_seqlens": torch.tensor([[0, -1, -1], [0, 50, 60]])}, 300)
    assert price(empty) == expected(600, [300, 50, 10])
    assert price(parallel.packed({"cu_seqlens": [0]}, ids)) == expected(600, [300, 300])  # Bridge: a sequence per row of token ids


def test_packs_without_the_number_of_tokens():
    assert listed_lengths(parallel.packed({"cu_seqlens": [0, 100, 256]})) == [100, 156]
    assert parallel.packed({"cu_seqlens": [0, 100, 256]}).padded is None
    assert streams_of(estimator(), {"cu_seqlens": torch.tensor([0, 100, 256])})["text"].axes[0].tolist() == [100, 156]
    nested = torch.nested.nested_tensor([torch.zeros(100), torch.zeros(200)], layout=torch.jagged)
    assert price(parallel.packed({"cu_seqlens": [0, 100, 256]}, nested)) == expected(300, [100, 156])


@pytest.mark.parametrize(("batch", "tokens", "words"), [
    ({}, 300, "has 'cu_seqlens'"), ({"cu_seqlens": None}, 300, "has 'cu_seqlens'"), ({"cu_seqlens": [0]}, None, "without a number of tokens"),
    ({"cu_seqlens": "0, 100"}, 300, "whole numbers"), ({"cu_seqlens": [0, 1.5]}, 300, "whole numbers"), ({"cu_seqlens": [0, None]}, 300, "whole numbers"), ({"cu_seqlens": 300}, 300, "whole numbers"),
    ({"cu_seqlens": {"a": 1}}, 300, "whole numbers"), ({"cu_seqlens": torch.tensor([0.0, 1.5])}, 300, "whole numbers"),
    ({"cu_seqlens": [0, 100], "cu_seqlens_argmin": "two"}, 300, "'cu_seqlens_argmin' is one whole number"), ({"cu_seqlens": [0, 100], "cu_seqlens_argmin": torch.tensor([2, 2])}, 300, "'cu_seqlens_argmin' is one whole number"),
    ({"cu_seqlens": [0, 100]}, -1, "token ids or their number"), ({"cu_seqlens": [0, 100]}, 1.5, "token ids or their number"), ({"cu_seqlens": [0, 100]}, "many", "token ids or their number"),
    ({"cu_seqlens": [0, 100, 400]}, 300, "boundaries of 400 tokens in a pack of 300"), ({"cu_seqlens_unpadded": [[0, 100], [0, 301]]}, torch.zeros(2, 300), "boundaries of 301 tokens in a pack of 300"),
    ({"cu_seqlens": [0, 100, 50, 300]}, 300, "boundaries rise from 0 on"), ({"cu_seqlens": [200, 70, 30]}, 300, "boundaries rise from 0 on"), ({"cu_seqlens": [0, 100], "cu_seqlens_padded": [0, 128, 64, 32]}, 300, "boundaries rise from 0 on"),
    ({"cu_seqlens_q": [0, 100, 300], "cu_seqlens_kv": [0, 50, 300]}, 300, "'cu_seqlens_q' and 'cu_seqlens_kv' differ"), ({"cu_seq_lens_q": torch.tensor([0, 300]), "cu_seq_lens_k": np.array([0, 100, 300])}, 300, "'cu_seq_lens_q' and 'cu_seq_lens_k' differ"),
    ({"cu_seqlens": [[0, 100], [0, 50]]}, torch.zeros(1, 301), "2 packs in token ids of shape"), ({"cu_seqlens": [[0, 100], [0, 50]], "cu_seqlens_unpadded": [0, 40]}, 300, "2 packs with padding and 1 without"),
])  # fmt: skip
def test_boundaries_that_are_none(batch, tokens, words):
    with pytest.raises(LengthError, match=words):
        parallel.packed(batch, tokens)
    if "whole number" in words:  # a meter says so, and goes on
        one = meter()
        with pytest.warns(UserWarning, match=f"could not be read: LengthError: .*{words}"):
            one.add_batch({**batch, "tokens": torch.zeros(1, tokens)})
        with pytest.warns(UserWarning, match="no MFU"):
            assert one.step(seconds=1) == {}
