"""Lightning's Trainer with its ThroughputMonitor: what its logger writes, and each step beside PyTorch's counter."""

from __future__ import annotations

import lightning
import pytest
import torch
from lightning.fabric.utilities import throughput
from lightning.pytorch.callbacks import ThroughputMonitor
from lightning.pytorch.loggers import CSVLogger

from symflops.training.frameworks.lightning import FlopsMixin
from symflops.training.meter.keys import PRESETS
from tests.clients.loops import Seen, collated, derived, model_of, rows

PEAK = 0.5e12


class Module(FlopsMixin, lightning.LightningModule):
    def __init__(self, kind):
        super().__init__()
        self.model, self.seen, self.counts = model_of(kind), Seen(), []
        self.symflops_estimator = derived(kind)

    def training_step(self, batch, index):
        self.counts.append(self.count_batch(batch))
        return self.model(**batch).loss

    def configure_optimizers(self):
        return torch.optim.AdamW([tensor for tensor in self.parameters() if tensor.requires_grad])


class Rows(CSVLogger):
    def __init__(self, folder):
        super().__init__(folder)
        self.logged = []

    def log_metrics(self, metrics, step=None):
        self.logged.append(dict(metrics))


def whole(samples):
    """A batch without padding: the monitor's MFU is of the tokens that the model needs, and the counter sees all."""
    return {name: value for name, value in collated(samples).items() if name != "attention_mask"}


def run(kind, folder, monkeypatch):
    # a CPU has no peak, without which the monitor logs no MFU
    monkeypatch.setattr(throughput, "get_available_flops", lambda device, dtype: PEAK)
    monkeypatch.setattr("lightning.pytorch.callbacks.throughput_monitor.get_available_flops", lambda device, dtype: PEAK)
    logger, module = Rows(folder), Module(kind)
    monitor = ThroughputMonitor(batch_size_fn=lambda batch: len(batch["input_ids"]), window_size=2)
    options = {"accelerator": "cpu", "enable_progress_bar": False, "enable_checkpointing": False, "enable_model_summary": False, "max_epochs": 1, "log_every_n_steps": 1}
    trainer = lightning.Trainer(callbacks=[monitor], logger=logger, **options)
    loader = torch.utils.data.DataLoader(rows(kind), batch_size=2, collate_fn=whole)
    with module.seen.step():
        trainer.fit(module, loader)
    return module, logger


@pytest.mark.parametrize("kind", ["full", "lora", "head", "images"])
def test_a_run(kind, tmp_path, monkeypatch):
    module, logger = run(kind, tmp_path, monkeypatch)
    assert sum(module.counts) == module.seen.flops > 0
    logged = [row for row in logger.logged if "train/device/mfu" in row]  # Fabric's own key has no prefix
    assert logged and all(0 < row["train/device/mfu"] < 1 for row in logged)
    assert set(logged[0]) > {PRESETS["lightning-trainer"][quantity][0] for quantity in ("mfu", "flops_per_second")}
