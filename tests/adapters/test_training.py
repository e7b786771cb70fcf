"""Whole training loops on the CPU that print an MFU line: plain DDP with gloo, and an HF Trainer on a tiny model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from symflops.catalog import lookup

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}
LINE = re.compile(r"MFU (\d\S*)", re.I)
LOOP = Path(__file__).with_name("ddp_loop.py")


def flops(lengths):
    one = lookup.estimator(*lookup.by_config(CONFIG), CONFIG)[1]
    return one.total(one.moments(text=lengths))


@pytest.mark.nightly  # tests/live/test_wrappers.py has two processes, too
def test_a_ddp_loop(tmp_path):
    words = [sys.executable, str(LOOP)]
    started = [
        subprocess.Popen([*words, str(rank), "2", str(tmp_path / "store")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)
    ]
    outputs = []
    try:
        for process in started:
            out, error = process.communicate(timeout=180)
            assert process.returncode == 0, error
            outputs.append(out)
    finally:
        for process in started:
            process.kill()
    print(outputs[0])
    assert "2 devices" in outputs[0] and LINE.search(outputs[0])
    lengths = [length for step in range(3) for rank in range(2) for length in (8 + 4 * rank, 16, 5 + step)]
    assert f"total {flops(lengths)}" in outputs[0] and f"total {flops(lengths)}" in outputs[1]


def test_a_trainer(tmp_path, capsys):
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    from symflops.adapters.huggingface import attach

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            length = 4 + index
            ids = torch.zeros(16, dtype=torch.int64)
            return {"input_ids": ids, "labels": ids, "attention_mask": (torch.arange(16) < length).long()}

    model = LlamaForCausalLM(LlamaConfig(**{name: value for name, value in CONFIG.items() if name not in ("model_type", "architectures")}))
    arguments = TrainingArguments(output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=2, gradient_accumulation_steps=2, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=Data())
    meter = attach(trainer, devices=1, peak_tflops=0.5)
    trainer.train()
    expected = flops(range(4, 12))
    assert meter.flops == expected and trainer.state.total_flos == expected
    logged = [entry for entry in trainer.state.log_history if "mfu" in entry]
    assert len(logged) == 2 and all(0 < entry["mfu"] < 1 for entry in logged)
    assert logged[-1]["flops_total"] == expected
    printed = capsys.readouterr().out
    assert LINE.search(printed) and "FLOPs forward" in printed


def test_a_trainer_reads_adapters_and_the_checkpointing_that_it_switches_on(tmp_path, monkeypatch):
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    import symflops
    from symflops.adapters.huggingface import attach

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def adapted():
        fields = {name: value for name, value in CONFIG.items() if name not in ("model_type", "architectures")}
        return get_peft_model(LlamaForCausalLM(LlamaConfig(**fields)), LoraConfig(r=4, target_modules=["q_proj"]))

    same = adapted()
    same.base_model.model.gradient_checkpointing_enable({"use_reentrant": False})
    model = symflops.of_model(same)  # in the cache from now on
    data = [{"input_ids": torch.zeros(8, dtype=torch.int64), "labels": torch.zeros(8, dtype=torch.int64)} for _ in range(4)]
    arguments = TrainingArguments(output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=2, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False})
    trainer = Trainer(model=adapted(), args=arguments, train_dataset=data)
    lines = []
    meter = attach(trainer, devices=1, peak_tflops=0.5, log=lines.append)
    trainer.train()
    moments = model.moments(text=[8] * 4)
    assert meter.flops == model.total(moments)
    assert meter.executed == meter.flops + model.recomputed(moments) > meter.flops
    assert any("LoRA r=4 on 2 modules" in line and "2 modules are recomputed" in line for line in lines)


def test_a_trainer_of_an_unknown_model_trains(tmp_path):
    from transformers import Trainer, TrainingArguments

    from symflops.adapters.huggingface import attach

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 1)

        def forward(self, x, labels=None):
            return {"loss": self.linear(x).mean()}

    data = [{"x": torch.ones(4), "labels": 0} for _ in range(4)]
    arguments = TrainingArguments(output_dir=str(tmp_path), max_steps=2, report_to=[], use_cpu=True, save_strategy="no", logging_steps=1, disable_tqdm=True)
    trainer = Trainer(model=Model(), args=arguments, train_dataset=data)
    with pytest.warns(UserWarning, match="no MFU"):
        attach(trainer)
    trainer.train()
    assert trainer.state.global_step == 2 and not any("mfu" in entry for entry in trainer.state.log_history)
