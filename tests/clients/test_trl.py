"""TRL's trainers on tiny models: each training step beside PyTorch's counter."""

from __future__ import annotations

import time

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from symflops.training.frameworks import trl
from symflops.training.frameworks.huggingface import attach
from tests.clients.loops import SIZES, Seen, counting, derived, model_of

WORDS = [f"w{place}" for place in range(58)]
FIXED = {"report_to": [], "use_cpu": True, "bf16": False, "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1, "per_device_train_batch_size": 2, "num_train_epochs": 1, "gradient_checkpointing": False}


def tokenizer():
    words = {word: place for place, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    found = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=found, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def sft(kind, folder, **options):
    texts = [" ".join(WORDS[: 4 + 3 * place]) for place in range(7)]
    arguments = SFTConfig(output_dir=str(folder), **{"max_length": 32, **FIXED, **options})
    trainer = counting(SFTTrainer)(model=model_of(kind), args=arguments, train_dataset=Dataset.from_dict({"text": texts}), processing_class=tokenizer())
    trainer.seen = Seen()
    return trainer


@pytest.mark.parametrize("kind", ["full", "lora", "lora checkpointed"])
@pytest.mark.parametrize("way", [{}, {"packing": True, "packing_strategy": "wrapped"}], ids=["padded", "wrapped"])
def test_sft(kind, way, tmp_path):
    """TRL fuses head and loss, and leaves out the last token of each row. The counter does not see the gradients of the head's
    operands, which are added to in place. All else is equal to the last FLOP.
    """
    derived(kind)
    checkpointing = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}} if "checkpointed" in kind else {}
    trainer = sft(kind, tmp_path, **way, **checkpointing)
    meter = attach(trainer, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    trainer.train()
    head = 2 * SIZES["hidden_size"] * SIZES["vocab_size"]
    predicted = sum(batch * (length - 1) for batch, length in trainer.seen.shapes)
    assert meter.executed == trainer.seen.flops + (1 if "lora" in kind else 2) * head * predicted
    assert all("mfu" in row for row in trainer.state.log_history if "loss" in row)


@pytest.mark.parametrize("way", [{"packing": True}, {"padding_free": True, "max_length": None}], ids=["packed", "padding-free"])
def test_sft_without_padding(way, tmp_path):
    """``cu_seq_lens_q`` separates the texts of a pack: the witness is the bare module on each text by itself."""
    one = derived("full")
    trainer = sft("full", tmp_path, **way)
    meter = attach(trainer, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    trainer.train()
    bare, model = Seen(), model_of("full")
    lengths = [5 + 3 * place for place in range(7)]  # the words of each text, and its end
    for length in lengths:
        with bare.step():
            ids = torch.ones(1, length, dtype=torch.int64)
            model(input_ids=ids, labels=ids).loss.backward()
    assert bare.flops == one.total(one.moments(text=lengths))
    head = 2 * SIZES["hidden_size"] * SIZES["vocab_size"]
    predicted = sum(lengths) - len(trainer.seen.shapes)  # TRL's head leaves out the last token of each row, and runs again
    assert meter.executed == bare.flops + head * (4 * predicted - 3 * sum(lengths))


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_dpo_counts_its_reference(kind, tmp_path):
    """The policy trains on chosen and rejected texts; the reference, or the model without its adapters, runs forward on the same."""
    derived(kind), derived("full", regime="forward")
    texts = {"prompt": ["w1 w2 w3"] * 6, "chosen": [" w4 w5 w6"] * 6, "rejected": [" w7"] * 6}
    models = {"model": model_of(kind), **({} if kind == "lora" else {"ref_model": model_of("full")})}
    arguments = DPOConfig(output_dir=str(tmp_path), max_length=32, **FIXED)
    trainer = counting(DPOTrainer)(args=arguments, train_dataset=Dataset.from_dict(texts), processing_class=tokenizer(), **models)
    trainer.seen = Seen()
    meter = attach(trainer, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    trainer.train()
    begun = time.monotonic()
    while any(phase.waits for phase in meter.phases.values()) and time.monotonic() - begun < 120:  # for the reference's program
        time.sleep(0.1)
        meter.step(seconds=1.0)
    head = 2 * SIZES["hidden_size"] * SIZES["vocab_size"]
    predicted = sum(batch * (length - 1) for batch, length in trainer.seen.shapes)
    assert meter.executed == trainer.seen.flops + (1 if kind == "lora" else 2) * head * predicted  # as above


def test_grpo_counts_what_it_generated(tmp_path):
    """Generation, and the forward passes with it, are executed work that is not timed."""
    derived("full")
    made = []

    class Generating(counting(GRPOTrainer)):
        def _generate_and_score_completions(self, inputs):
            with self.generated.step():
                found = super()._generate_and_score_completions(inputs)
            made.append(found["completion_mask"].shape[1] + found["prompt_mask"].shape[1])
            return found

    fields = {"max_completion_length": 6, "num_generations": 2, "max_steps": 2, "per_device_train_batch_size": 4, "beta": 0.0, "temperature": 1.0}
    arguments = GRPOConfig(output_dir=str(tmp_path), **{**FIXED, **fields})
    texts = Dataset.from_dict({"prompt": ["w1 w2 w3", "w4 w5"] * 4})
    trainer = Generating(model=model_of("full"), reward_funcs=lambda completions, **_: [float(len(text)) for text in completions], args=arguments, train_dataset=texts, processing_class=tokenizer())
    trainer.seen, trainer.generated = Seen(), Seen()
    meter = trl.attach(trainer, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    trainer.train()
    head = 2 * SIZES["hidden_size"] * SIZES["vocab_size"]
    count, length = 4 * len(made), made[0]
    missing = head * count * (length - 1)  # two gradients of the fused head, but its logits are made twice
    assert made == [length] * 2 and meter.flops == trainer.seen.flops - trainer.generated.flops + missing
    assert all("mfu" in row for row in trainer.state.log_history if "loss" in row)
