"""Ray Train: a worker's loop has the three lines of any other loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import ray
from ray import train
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

import symflops
from symflops.training.meter.batches import streams_of


def loop(config):
    """One process of two: its share of the data, a meter over the group, and what PyTorch's counter saw here."""
    import torch

    from tests.clients.loops import Seen, collated, derived, model_of, rows

    one, seen = derived("full"), Seen()
    rank, size = train.get_context().get_world_rank(), train.get_context().get_world_size()
    model = prepare_model(model_of("full"))
    meter = symflops.MFUMeter.of_model(model, devices=size, convention="torch", peak_tflops=0.5)
    found = rows("full", 8)[rank::size]
    for start in range(0, len(found), 2):
        batch = collated(found[start : start + 2])
        with seen.step():
            meter.add(**streams_of(one, batch))
            model(**batch).loss.backward()
        logged = meter.step()
    total = torch.tensor(seen.flops)
    torch.distributed.all_reduce(total)
    (Path(config["folder"]) / str(rank)).write_text(json.dumps([meter.executed, int(total), logged["mfu"]]))
    train.report({"mfu": logged["mfu"]})


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=3, include_dashboard=False, logging_level="error", object_store_memory=100 * 2**20)
    yield
    ray.shutdown()


def test_two_workers(cluster, tmp_path):
    scaling = ScalingConfig(num_workers=2, use_gpu=False, resources_per_worker={"CPU": 1})
    trainer = TorchTrainer(loop, train_loop_config={"folder": str(tmp_path)}, scaling_config=scaling, torch_config=TorchConfig(backend="gloo"), run_config=RunConfig(storage_path=str(tmp_path / "ray")))
    trainer.fit()
    for rank in "01":
        executed, seen, mfu = json.loads((tmp_path / rank).read_text())
        assert executed == seen > 0 and mfu > 0
