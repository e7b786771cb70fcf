"""Units: whatever a convention counts in, a meter and the frameworks get FLOPs, and each printed figure says its unit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from symflops.adapters.lightning import flops_of_batch
from symflops.adapters.sums import flops_of_sums
from symflops.adapters.torchtitan import nparams_and_flops
from symflops.adapters.verl import estimate_function
from symflops.adapters.verl_omni import DiffusionFlops
from symflops.cli.main import main
from symflops.emit.emit import emit
from symflops.meter.mfu import MFUMeter
from tests.shipped import load

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
            flops_of_batch(estimator, {"input_ids": [[1, 2, 3]]}), flops_of_sums(estimator, {"n": 2, "x": 14, "xx": 106}),
            nparams_and_flops(estimator, 7), estimate_function(convention=convention)(LLAMA, 14, [5, 9], 2.0),
            DiffusionFlops(WAN, convention=convention).estimate_flops([3, 8, 8], [7], 2.0, num_timesteps=1),
        ]  # fmt: skip

    assert figures(macs) == figures("symflops")


def test_a_generated_module_knows_its_unit(macs):
    program = load("llama").typical(["full"], [macs])
    module: dict[str, Any] = {"__name__": "llama"}
    exec(emit(program, "1", endings=("py",))["py"], module)
    estimator = module["Estimator"](module["Sizes"].from_config(LLAMA), convention="mine")
    plain = load("llama").estimator(LLAMA)
    assert (estimator.unit, plain.unit) == ("macs", "flops")
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
