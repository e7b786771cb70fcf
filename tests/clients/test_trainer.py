"""Whole loops of the HF Trainer: each step beside PyTorch's counter."""

from __future__ import annotations

import pytest
import torch
from transformers import Trainer, TrainingArguments

from symflops.training.frameworks.huggingface import attach
from tests.clients.loops import KINDS, Seen, collated, counting, derived, model_of, rows

LOGGED = {"mfu", "hfu", "tflops_per_device", "tokens_per_second", "flops_total"}


def trainer_of(kind, folder, seen=None, **options):
    """Seven samples in batches of two, two micro-batches a step: the last step is short."""
    fields = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 1, "logging_steps": 1, "eval_strategy": "steps", "eval_steps": 1}
    fixed = {"output_dir": str(folder), "report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "remove_unused_columns": False}
    checkpointing = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}} if "checkpointed" in kind else {}
    arguments = TrainingArguments(**{**fixed, **fields, **checkpointing, **options})
    found = counting(Trainer)(model=model_of(kind), args=arguments, train_dataset=rows(kind), eval_dataset=rows(kind, 2), data_collator=collated)
    found.seen = Seen() if seen is None else seen
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_equals_the_counter(kind, tmp_path):
    """Accumulated, with a short last batch and evaluation after each step; with images in some of the micro-batches."""
    derived(kind)
    trainer = trainer_of(kind, tmp_path)
    meter = attach(trainer, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    trainer.train()
    assert meter.executed == trainer.seen.flops > meter.flops > 0
    logged = [row for row in trainer.state.log_history if "loss" in row]
    assert len(logged) == 2 and all(set(row) >= LOGGED for row in logged)


def test_a_compiled_run_counts_what_the_bare_module_runs(tmp_path):
    """The counter does not see into compiled code: the same loop without compilation is the witness."""
    derived("full")
    bare = trainer_of("full", tmp_path, eval_strategy="no")
    bare.train()
    trainer = trainer_of("full", tmp_path, torch_compile=True, torch_compile_backend="eager")
    meter = attach(trainer, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    trainer.train()
    assert meter.flops == bare.seen.flops


def test_a_resumed_run_continues(tmp_path):
    derived("full")
    seen = Seen()
    first = trainer_of("full", tmp_path, seen, max_steps=1, save_strategy="steps", save_steps=1)
    attach(first, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    first.train()
    second = trainer_of("full", tmp_path, seen, save_strategy="no")
    meter = attach(second, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    second.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert meter.executed == seen.flops
    assert torch.tensor([row["flops_total"] for row in second.state.log_history if "flops_total" in row]).diff().min() > 0
