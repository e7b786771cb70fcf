"""Whole training loops on the CPU that print an MFU line: plain DDP with gloo, and an HF Trainer on a tiny model."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from symflops.library import lookup

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}
LINE = re.compile(r"MFU (\d\S*)", re.I)
LOOP = Path(__file__).with_name("ddp_loop.py")


def flops(lengths):
    one = lookup.estimator(*lookup.by_config(CONFIG), CONFIG)[1]
    return one.total(one.moments(text=lengths))


@pytest.mark.nightly  # tests/training/test_wrappers.py has two processes, too
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

    from symflops.training.frameworks.huggingface import attach

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
    from symflops.training.frameworks.huggingface import attach

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


class Lines(torch.utils.data.Dataset):
    """Texts of 4 to 15 tokens, padded to 16."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        ids = torch.zeros(16, dtype=torch.int64)
        return {"input_ids": ids, "labels": ids, "attention_mask": (torch.arange(16) < 4 + index).long()}


def llama_trainer(folder, **options):
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**{name: value for name, value in CONFIG.items() if name not in ("model_type", "architectures")}))
    arguments = TrainingArguments(output_dir=str(folder), per_device_train_batch_size=2, num_train_epochs=1, report_to=[], use_cpu=True, disable_tqdm=True, **options)
    return Trainer(model=model, args=arguments, train_dataset=Lines(), eval_dataset=Lines())


def counts(folder):
    return json.loads((folder / "trainer_state.json").read_text())["stateful_callbacks"]["symflops"]


def test_a_trainer_that_resumes(tmp_path):
    """Checkpoints lie between two logs; what a resumed run counts is what one run counts, and its own total_flos."""
    from symflops.training.frameworks.huggingface import attach

    options = {"save_strategy": "steps", "save_steps": 2, "logging_steps": 3}
    whole = llama_trainer(tmp_path, **options)
    first = attach(whole, devices=1, peak_tflops=0.5, log=lambda line: None)
    whole.train()
    assert first.flops == flops(range(4, 16)) == whole.state.total_flos and first.steps == 6
    before = counts(tmp_path / "checkpoint-4")
    assert 0 < before["flops"] < first.flops and before["steps"] == 3  # steps of whole windows; the FLOPs are of all four
    resumed = llama_trainer(tmp_path, **options)
    lines = []
    second = attach(resumed, devices=1, peak_tflops=0.5, log=lines.append)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert second.flops == second.state_dict()["flops"] == first.flops == resumed.state.total_flos and second.steps == 6
    assert [entry["flops_total"] for entry in resumed.state.log_history if "flops_total" in entry][-1] == first.flops
    assert counts(tmp_path / "checkpoint-6") == first.state_dict()
    assert LINE.search(lines[-1]) and lines[-1].startswith("step 6: ")


def test_a_checkpoint_without_counts_or_with_damaged_ones(tmp_path):
    from symflops.training.frameworks.huggingface import attach

    llama_trainer(tmp_path, save_strategy="steps", save_steps=3, logging_steps=3).train()
    file = tmp_path / "checkpoint-3" / "trainer_state.json"
    for damage in (None, {"flops": "many"}, [1]):
        state = json.loads(file.read_text())
        if damage is not None:
            state["stateful_callbacks"]["symflops"] = damage
        file.write_text(json.dumps(state))
        trainer = llama_trainer(tmp_path / "next", save_strategy="steps", save_steps=6, logging_steps=3)
        meter = attach(trainer, devices=1, peak_tflops=0.5, log=lambda line: None)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
        assert any("counts of FLOPs are damaged" in str(warning.message) for warning in seen) == (damage is not None)
        assert meter.steps == 6 and 0 < meter.flops < flops(range(4, 16)) and counts(tmp_path / "next" / "checkpoint-6")["flops"] == meter.flops


@pytest.mark.thorough
def test_a_trainer_on_two_processes(tmp_path):
    """Every text has other lengths: what two ranks count is all of it, also after a resume; a rank without an estimator takes MFU from all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    words = [sys.executable, str(Path(__file__).with_name("trainer_loop.py")), str(tmp_path)]
    started = [subprocess.Popen(words, env={**variables, "RANK": rank, "LOCAL_RANK": rank}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in "01"]
    found = []
    try:
        for process in started:
            out, error = process.communicate(timeout=300)
            assert process.returncode == 0, error[-2000:]
            found.append(json.loads(out.rpartition("RESULT")[2]))
    finally:
        for process in started:
            process.kill()
    total = flops(range(4, 28))
    for one in found:
        for case in ("whole", "resumed"):
            assert one[case]["flops"] == one[case]["own"] == one[case]["logged"][-1] == total and one[case]["step"] == 6 and not one[case]["told"]
        assert one["half"]["flops"] == 0 and not one["half"]["logged"] and one["half"]["step"] == 6 and len(one["half"]["told"]) >= 1
    assert [line.partition(":")[0] for line in found[0]["whole"]["lines"] if LINE.search(line)][-2:] == ["step 3", "step 6"]
    assert not found[1]["whole"]["lines"] and "processes that have no estimator" in found[0]["half"]["told"][0]


def test_evaluation_is_no_training_time(tmp_path):
    """A clock that only evaluation moves beside the steps: rates are those of the steps alone."""
    from transformers import TrainerCallback

    from symflops.training.frameworks.huggingface import attach

    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    class Ticks(TrainerCallback):
        def on_step_end(self, *_, **__):
            clock.now += 1

        def on_prediction_step(self, *_, **__):
            clock.now += 1000

    clock = Clock()
    trainer = llama_trainer(tmp_path, save_strategy="no", eval_strategy="steps", eval_steps=1, logging_steps=3)
    trainer.add_callback(Ticks())
    lines = []
    meter = attach(trainer, devices=1, peak_tflops=0.5, clock=clock, log=lines.append)
    trainer.train()
    trainer.predict(Lines())
    logged = [entry for entry in trainer.state.log_history if "mfu" in entry]
    assert clock.now > 6000 and [entry["tflops_per_device"] for entry in logged] == pytest.approx([(entry["flops_total"] - before) / 3e12 for entry, before in zip(logged, (0, logged[0]["flops_total"]))])
    assert meter.flops == flops(range(4, 16)) and all(line.endswith(" 1,000.0 ms") for line in lines if LINE.search(line))


def test_a_trainer_of_an_unknown_model_trains(tmp_path):
    from transformers import Trainer, TrainingArguments

    from symflops.training.frameworks.huggingface import attach

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
