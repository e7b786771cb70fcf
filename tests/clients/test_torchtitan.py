"""torchtitan's own configs, models and metrics processor."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from torchtitan.components import metrics
from torchtitan.models.deepseek_v3 import deepseekv3_configs
from torchtitan.models.llama3 import llama3_configs
from torchtitan.models.llama3.model import Llama3Model
from torchtitan.models.qwen3 import qwen3_configs

from symflops.training.frameworks import torchtitan

BACKEND = "flex"
DENSE = {"llama3 debugmodel": llama3_configs["debugmodel"], "llama3 8B": llama3_configs["8B"], "qwen3 debugmodel": qwen3_configs["debugmodel"], "qwen3 14B": qwen3_configs["14B"]}


def built(config, device="meta"):
    with torch.device(device):
        return config.build()


class Math(torch.nn.Module):
    """Attention that PyTorch's counter sees; flex attention is a kernel of its own, and needs a block mask."""

    def forward(self, q, k, v, **_):
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)


@pytest.mark.parametrize("name", DENSE)
def test_own_config_is_read(name):
    """Parameters are those of the model; under torchtitan's convention so is its own figure, untied."""
    config = DENSE[name](BACKEND)
    model = built(config)
    one = torchtitan.estimator_of(config, model)
    parameters, flops = config.get_nparams_and_flops(model, 4096)
    assert one.parameters == parameters
    theirs = torchtitan.estimator_of(config, model, convention="torchtitan")
    if not config.enable_weight_tying:
        assert torchtitan.nparams_and_flops(theirs, 4096) == (parameters, flops)


@pytest.mark.parametrize("name", ["llama3 debugmodel", "qwen3 debugmodel"])
def test_a_step_equals_pytorch_s_counter(name):
    config = DENSE[name](BACKEND)
    torch.manual_seed(0)
    model = built(config, "cpu")
    for layer in model.layers.values():
        layer.attention.inner_attention = Math()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.uniform_(-0.1, 0.1) if tensor.is_floating_point() else tensor
    tokens = torch.randint(0, config.vocab_size, (2, 16))
    with FlopCounterMode(display=False) as seen:
        model(tokens, positions=torch.arange(16).expand(2, 16)).float().square().mean().backward()
    one = torchtitan.estimator_of(config, model, convention="torch")
    assert one.total(one.moments(text=[16, 16])) == seen.get_total_flops()


def test_what_cannot_be_read_keeps_its_own_count(monkeypatch):
    kind = type(deepseekv3_configs["debugmodel"](BACKEND, moe_comm_backend="standard"))
    monkeypatch.setattr(kind, "get_nparams_and_flops", kind.get_nparams_and_flops)
    config = deepseekv3_configs["debugmodel"](BACKEND, moe_comm_backend="standard")
    model = built(config)
    own = config.get_nparams_and_flops(model, 128)
    torchtitan.patch(kind)
    with pytest.warns(UserWarning, match="torchtitan's own count answers"):
        assert config.get_nparams_and_flops(model, 128) == own


def test_a_patched_class(monkeypatch):
    monkeypatch.setattr(Llama3Model.Config, "get_nparams_and_flops", Llama3Model.Config.get_nparams_and_flops)
    config = DENSE["llama3 debugmodel"](BACKEND)
    model = built(config)
    torchtitan.patch(Llama3Model.Config)
    assert config.get_nparams_and_flops(model, 128) == torchtitan.nparams_and_flops(torchtitan.estimator_of(config), 128)


class Recorder:
    def __init__(self):
        self.rows = []

    def log(self, found, step):
        self.rows.append(found)


@pytest.mark.parametrize("quantised", [False, True])
def test_the_metrics_processor_logs_the_meter(quantised, monkeypatch):
    """``extra_metrics=meter.step()`` overwrites the processor's own rates; it has no MFU of its own under quantisation."""
    monkeypatch.setattr(metrics, "build_device_memory_monitor", lambda: SimpleNamespace(
        device_name="cpu", reset_peak_stats=lambda: None, get_peak_stats=lambda: metrics.DeviceMemStats(0, 0, 0, 0, 0, 0),
    ))  # fmt: skip
    monkeypatch.setattr(metrics.MetricsProcessor, "_build_metric_logger", lambda self, **_: Recorder())
    options = {"dump_folder": "", "has_quantization": quantised}
    processor = metrics.MetricsProcessor(metrics.MetricsProcessor.Config(), parallel_dims=SimpleNamespace(non_data_parallel_size=1), **options)
    config = DENSE["llama3 debugmodel"](BACKEND)
    processor.num_flops_per_token = 1
    processor.ntokens_since_last_log, processor.data_loading_times = 48, [0.0]
    meter = torchtitan.meter(config, devices=1, peak_tflops=0.5)
    meter.add(text=[16, 32])
    logged = meter.step(seconds=2.0)
    processor.log(1, 0.0, 0.0, 0.0, extra_metrics=logged)
    (row,) = processor.logger.rows
    one = torchtitan.estimator_of(config)
    assert row["mfu(%)"] == pytest.approx(100 * one.total(one.moments(text=[16, 32])) / 2 / 0.5e12)
    assert row["throughput(tps)"] == 24 and row["tflops"] == logged["tflops"]
