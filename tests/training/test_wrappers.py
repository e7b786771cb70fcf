"""Live modules in the wrappers of training frameworks, and meters whose program is derived while training goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import symflops
from symflops.training.introspect import background
from symflops.training.introspect.background import Derivation
from symflops.training.introspect.tree import unwrapped
from tests.sampling import sampled
from tests.training.step import counted, derived
from tests.training.test_regimes import BATCH, INPUTS, SIZES, llama, lora

ROOT = Path(__file__).resolve().parents[2]


class DeepSpeedEngine(torch.nn.Module):
    """As DeepSpeed's: the model is its ``module``; under ZeRO-3 parameters are empty and keep their shape as ``ds_shape``."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        for tensor in module.parameters():
            tensor.ds_shape = tensor.shape
            tensor.data = torch.empty(0)


def compiled_blocks():
    module = llama()
    for index, layer in enumerate(module.model.layers):
        module.model.layers[index] = torch.compile(layer, backend="eager")
    return module


def accelerated():
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # which other tests of this process may have made, of another precision
    return Accelerator(cpu=True, mixed_precision="bf16").prepare(llama())


def low_precision():
    return llama().to(torch.bfloat16)


def on_meta():
    with torch.device("meta"):
        return LlamaForCausalLM(LlamaConfig(**SIZES))


WRAPPED = {
    "compiled": lambda: torch.compile(llama(), backend="eager"), "compiled blocks": compiled_blocks, "accelerated": accelerated,
    "an engine": lambda: DeepSpeedEngine(llama()), "bf16": low_precision, "meta": on_meta, "in parallel": lambda: torch.nn.DataParallel(llama()),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapper_disappears(name):
    module = WRAPPED[name]()
    assert type(unwrapped(module)) is LlamaForCausalLM
    assert derived(module, BATCH) == counted(llama(), INPUTS)


def test_a_compiled_adapter():
    assert derived(torch.compile(lora(), backend="eager"), BATCH) == counted(lora(), INPUTS)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", sampled(["fsdp lora checkpointed", "ddp lora", "ddp", "fsdp"], 4))
def test_two_processes(kind, tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "tests.training.group"]
    started = [
        subprocess.Popen([*words, str(rank), str(tmp_path / "store"), kind], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)
    ]
    found = []
    try:
        for process in started:
            out, error = process.communicate(timeout=300)
            assert process.returncode == 0, error[-2000:]
            found.append(json.loads(out.splitlines()[-1]))
    finally:
        for process in started:
            process.kill()
    for one in found:
        assert one["executed"] == 2 * one["windows"] * one["step"] and one["mfu"]
    told = sorted(found[0]["lines"][-2:])  # the program may be there between both looks at it
    assert "all accounted for" in told[0] and "proven on the first step" in told[1] and not found[1]["lines"]
    assert found[0]["windows"] == found[1]["windows"]
    assert len(found[0]["lines"]) == (3 if "lora" in kind else 2)


class Slow(Derivation):
    """A derivation whose result appears at the third look."""

    looks = 0

    def poll(self):
        self.looks += 1
        return super().poll() if self.looks > 2 else None


def test_batches_are_counted_before_the_program_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("symflops.training.introspect.model.Derivation", Slow)
    module, lines = lora(r=3), []
    meter = symflops.MFUMeter.of_model(module, devices=1, convention="torch", peak_tflops=1.0, log=lines.append)
    derivation = meter.phases[""].awaited.derivation
    assert "no MFU until its program is derived" in meter.describe()
    derivation.process.wait(120)
    logged = []
    for _ in range(4):
        meter.add(**BATCH)
        meter.add(text=[5])
        logged.append(meter.step(1.0))
    assert logged[:2] == [{}, {}] and all("mfu" in one for one in logged[2:])
    model = symflops.of_model(module, convention="torch")
    total = sum(model.total(model.moments(**batch)) for batch in (BATCH, {"text": [5]}))
    assert meter.flops == 4 * total and logged[2]["flops_total"] == 3 * total
    assert "deriving" in lines[0] and "all accounted for" in lines[1]


def test_a_derivation_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(background, "START", "import sys; sys.exit('out of luck')")
    meter = symflops.MFUMeter.of_model(lora(r=3), devices=1, peak_tflops=1.0, log=lambda line: None)
    meter.phases[""].awaited.derivation.process.wait(60)
    meter.add(**BATCH)
    with pytest.warns(UserWarning, match="no MFU: SymflopsError: out of luck"):
        assert meter.step(1.0) == {}
    assert meter.step(1.0) == {}


def test_another_process_of_the_node_waits_for_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCAL_RANK", "1")
    meter = symflops.MFUMeter.of_model(lora(r=3), devices=1, peak_tflops=1.0, log=lambda line: None)
    derivation = meter.phases[""].awaited.derivation
    assert derivation.process is None and derivation.poll() is None and derivation.process is None
    derivation.clock = lambda: derivation.begun + background.PATIENCE + 1
    assert derivation.poll() is None and derivation.process is not None
    derivation.process.wait(120)
    assert derivation.poll()["name"] == "llama"


def test_a_module_that_differs_has_no_mfu():
    module = llama()
    module.model.extra = torch.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match=r"no MFU: LiveModelError: .*model\.extra\.weight \[2, 2\] is not in the spec"):
        meter = symflops.MFUMeter.of_model(module, devices=1, peak_tflops=1.0)
    meter.add(**BATCH)
    assert meter.step(1.0) == {}
    with pytest.warns(UserWarning, match=r"model\.extra\.weight"):
        model = symflops.of_model(module, check="warn")
    assert model.parameters == llama().num_parameters()


def test_packed_parameters_have_the_shape_of_their_module():
    class Params4bit(torch.nn.Parameter):
        """As bitsandbytes': packed, two values a byte."""

    module = llama()
    for layer in module.model.layers:
        packed = Params4bit(torch.zeros(32 * 32 // 2, 1, dtype=torch.uint8), requires_grad=False)
        layer.self_attn.q_proj.weight = packed
    model = symflops.of_model(module)
    assert model.parameters == llama().num_parameters() and "3 weights are quantised" in model.account
