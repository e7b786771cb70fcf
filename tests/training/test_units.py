"""Units: whatever a convention counts in, a meter and the frameworks get FLOPs, and each printed figure says its unit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from symflops.cli.main import main
from symflops.training.frameworks.lightning import flops_of_batch
from symflops.training.frameworks.megatron import by_sums
from symflops.training.frameworks.torchtitan import nparams_and_flops
from symflops.training.frameworks.verl import estimate_function
from symflops.training.frameworks.verl_omni import DiffusionFlops
from symflops.training.meter.mfu import MFUMeter
from tests.shipped import load
from tests.standalone import published

LLAMA = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 50, "model_type": "llama"}
WAN = {"_class_name": "WanTransformer3DModel", "num_layers": 2, "num_attention_heads": 2, "attention_head_dim": 12, "in_channels": 4,
       "out_channels": 4, "text_dim": 16, "freq_dim": 8, "ffn_dim": 40}  # fmt: skip
BATCH = {"text": [5, 9]}


@pytest.fixture
def macs(tmp_path) -> str:
    """The page of a convention that counts what ``symflops`` does, in MACs."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nunit: macs\n")
    return str(path)


def test_a_meter_logs_flops_of_a_convention_in_macs(macs):
    logged, told = {}, {}
    for name in ("symflops", macs):
        meter = MFUMeter.of_config(LLAMA, convention=name, devices=2, peak_tflops=1.0)
        meter.add(**BATCH)
        logged[name], told[name] = meter.step(2.0), meter.describe(**BATCH)
    assert logged[macs] == logged["symflops"]
    assert "MACs a step =" in told[macs] and "logged in FLOPs, two a MAC" in told[macs]
    assert "MACs" not in told["symflops"]


def test_frameworks_get_flops_of_a_convention_in_macs(macs):
    def figures(convention: str) -> list[Any]:
        estimator = load("llama").estimator(LLAMA, convention=convention)
        return [
            flops_of_batch(estimator, {"input_ids": [[1, 2, 3]]}), by_sums(estimator).flops({"n": 2, "x": 14, "xx": 106}),
            nparams_and_flops(estimator, 7), estimate_function(convention=convention)(LLAMA, 14, [5, 9], 2.0),
            DiffusionFlops(WAN, convention=convention).estimate_flops([3, 8, 8], [7], 2.0, num_timesteps=1),
        ]  # fmt: skip

    assert figures(macs) == figures("symflops")


def latte(frames: int, side: int, width: int, layers: int) -> int:
    """FLOPs of one forward pass, as the fork's train.py has them: a multiply-add is one."""
    tokens = frames * side**2
    return layers * (4 * tokens * width**2 + 2 * tokens**2 * width + 8 * tokens * width**2)


@pytest.mark.parametrize(("width", "layers", "batch", "devices", "seconds", "peak"), [(384, 12, 8, 4, 2.5, 91.1), (1152, 28, 2, 1, 3.0, 494.0)])
def test_a_meter_under_latte_logs_its_source_s_own_figures(width, layers, batch, devices, seconds, peak):
    """The fork: FLOPs of a step are 3 x forward x batch, achieved is FLOPs / seconds / 1e12, MFU is achieved / (devices x peak)."""
    lines: list[str] = []
    config = {"hidden_size": width, "num_layers": layers}
    meter = MFUMeter.of_config(
        config, spec="latte_fork", convention="latte", devices=devices, peak_tflops=peak, log_every=1, log=lines.append
    )
    meter.add(latent=[16 * 32**2] * batch)
    found = meter.step(seconds)
    step = 3 * latte(16, 32, width, layers) * batch
    achieved = step / seconds / 1e12
    assert found["flops_total"] == step and found["tflops_per_device"] == pytest.approx(achieved / devices)
    assert found["mfu"] == pytest.approx(achieved / (devices * peak))
    assert f"MFU {100 * found['mfu']:.3g}%" in lines[0] and f"a multiply-add as one FLOP (as two, MFU {200 * found['mfu']:.3g}%)" in lines[0]
    told = meter.describe(latent=[16 * 32**2])
    assert "Its source counts a multiply-add as one FLOP" in told and "each is twice as high" in told and "MACs" not in told
    assert "reproduces XDiMo, a fork of Latte at commit 51d8d5a6c639 of 2026-02-10" in told


def test_the_mfu_of_a_step_under_latte_is_its_source_s(capsys, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 384, "num_layers": 12}))
    words = ("mfu", "latte_fork", "--config", str(tmp_path / "config.json"), "--batch", json.dumps({"latent": [16 * 32**2] * 8}))
    assert main([*words, "--convention", "latte", "--seconds", "2.5", "--devices", "4", "--peak", "91.1"]) == 0
    mfu = 3 * latte(16, 32, 384, 12) * 8 / 2.5 / 1e12 / (4 * 91.1)
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(f"MFU {mfu:.4f}: ") and f"each is twice as high: MFU {2 * mfu:.4f}" in out


def test_a_generated_module_knows_its_unit(macs):
    program = load("llama").typical(["full"], ["symflops", macs, "latte"])
    module = vars(published(program))
    estimator = module["Estimator"](module["Sizes"].from_config(LLAMA), convention="mine")
    plain = load("llama").estimator(LLAMA)
    others = [module["Estimator"](module["Sizes"].from_config(LLAMA), convention=name).unit for name in ("symflops", "latte")]
    assert (estimator.unit, plain.unit, *others) == ("macs", "flops", "flops", "macs_as_flops")
    assert 2 * estimator.total(estimator.moments(**BATCH)) == plain.total(plain.moments(**BATCH))


@pytest.mark.parametrize("words", [(command, "llama", "--convention") for command in ("estimate", "explain", "compare")])
def test_what_is_printed_of_a_convention_in_macs_says_so(words, macs, capsys):
    assert main([*words, macs, "--batch", json.dumps(BATCH)]) == 0
    text = capsys.readouterr().out
    assert "MACs" in text and "FLOP" not in text


def test_two_units_stand_in_their_rows(macs, capsys):
    assert main(["compare", "llama", "--conventions", f"symflops,{macs}", "--batch", json.dumps(BATCH)]) == 0
    head, first, second, *rest = capsys.readouterr().out.splitlines()[1:]
    assert "FLOPs" not in head and first.count("FLOPs") == 3 and second.count("MACs") == 3
    assert any("(MACs less FLOPs)" in line for line in rest)
    assert main(["compare", "llama", "--conventions", f"symflops,{macs}", "--batch", json.dumps(BATCH), "--json"]) == 0
    assert [row["unit"] for row in json.loads(capsys.readouterr().out)["conventions"]] == ["flops", "macs"]
