"""Lightning's own Trainer with symflops' callback: rates in its loggers, validation left out, counts in its checkpoints."""

from __future__ import annotations

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import LlamaConfig, LlamaForCausalLM

import symflops
from symflops.training.frameworks.lightning import callback
from symflops.verify.running import counter

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64}


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.model = LlamaForCausalLM(LlamaConfig(**SIZES))

    def training_step(self, batch, index):
        return self.model(**batch).loss

    def validation_step(self, batch, index):
        self.model(**batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Ticks(Callback):
    """A second for each training batch, and a thousand for each batch of validation; the lengths that were trained."""

    def __init__(self, clock):
        self.clock, self.lengths = clock, []

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.clock.now += 1
        self.lengths.append(batch["input_ids"].shape[1])

    def on_validation_batch_end(self, *_):
        self.clock.now += 1000


def batches():
    return [{"input_ids": torch.full((1, length), 5), "labels": torch.full((1, length), 5)} for length in range(4, 20)]


def loader(count=16):
    return torch.utils.data.DataLoader(batches()[:count], batch_size=None)


def trained(folder, batches_to_train, checkpoint=None):
    """A run of two micro-batches a step that saves in the middle of a window: its meter, its trainer and the lengths trained."""
    torch.manual_seed(0)
    clock = Clock()
    ticks = Ticks(clock)
    mine = callback(lambda module: symflops.MFUMeter.of_model(module.model, devices=1, peak_tflops=1.0, convention="torch", keys="lightning", clock=clock, log=lambda line: None))
    saved = ModelCheckpoint(folder / "saved", every_n_train_steps=3, save_top_k=-1, filename="{step}")
    trainer = Trainer(
        max_epochs=1, accumulate_grad_batches=2, log_every_n_steps=2, val_check_interval=4, num_sanity_val_steps=1, limit_train_batches=batches_to_train, accelerator="cpu", devices=1,
        logger=CSVLogger(folder, name="logs"), callbacks=[ticks, mine, saved], enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Module(), loader(), loader(2), ckpt_path=checkpoint)
    return mine.meter, trainer, ticks.lengths


def costs():
    """FLOPs of a training batch of each length, by PyTorch's counter."""
    found, module = {}, LlamaForCausalLM(LlamaConfig(**SIZES))
    with sdpa_kernel(SDPBackend.MATH):
        for batch in batches():
            with counter(False) as counted:
                module(**batch).loss.backward()
            found[batch["input_ids"].shape[1]] = counted.get_total_flops()
    return found


def test_rates_and_a_resumed_run(tmp_path):
    cost = costs()
    meter, trainer, _ = trained(tmp_path / "whole", 16)
    total = sum(cost.values())
    assert meter.flops == total and trainer.global_step == meter.steps == 8
    text = (next((tmp_path / "whole" / "logs").rglob("metrics.csv"))).read_text().splitlines()
    rows = [dict(zip(text[0].split(","), line.split(","), strict=True)) for line in text[1:]]
    assert [int(row["step"]) for row in rows] == [2, 4, 6, 8] and float(rows[-1]["train/flops_total"]) == total
    before = 0.0
    for row in rows:  # four batches, a second each
        assert float(row["train/device/flops_per_sec"]) == pytest.approx((float(row["train/flops_total"]) - before) / 4, rel=1e-6)
        before = float(row["train/flops_total"])
    file = next((tmp_path / "whole" / "saved").glob("*step=3*"))
    kept = torch.load(file, weights_only=False)["callbacks"]["symflops"]
    assert kept["flops"] == sum(cost[length] for length in range(4, 10))
    again, trainer, lengths = trained(tmp_path / "again", 16, file)
    assert lengths and again.flops == kept["flops"] + sum(cost[length] for length in lengths)
    assert trainer.global_step - again.steps in (0, 1)  # the last window may not be full
