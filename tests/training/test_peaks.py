"""Peak rates: whole names, sources, the order of overrides, and what unknown devices get."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from symflops.cli.main import main
from symflops.training.devices.peaks import CONFIDENCE, DTYPES, VARIABLE, peak, table

PEERS = json.loads((Path(__file__).resolve().parents[1] / "data" / "peers" / "device_peaks.json").read_text())[0]

# dense bf16 TFLOP/s; None: no confirmed figure, whatever other tables say
EXPECTED = {
    "NVIDIA L20X": 989, "NVIDIA L20": 119.5, "NVIDIA L40": 181.05, "NVIDIA L40S": 362, "NVIDIA L4": 121,
    "NVIDIA RTX A6000": 154.85, "NVIDIA RTX A4000": None, "NVIDIA A40": 149.7, "NVIDIA A10": 125, "NVIDIA A10G": 70,
    "NVIDIA GeForce RTX 3090": 71.2, "NVIDIA GeForce RTX 4090": 165.2, "NVIDIA GeForce RTX 4090 D": 147.1,
    "NVIDIA GeForce RTX 4090 Laptop GPU": None, "NVIDIA GeForce RTX 5090": 209.5, "NVIDIA H20": 148, "NVIDIA H20-3e": 148,
    "NVIDIA H100 80GB HBM3": 989.4, "NVIDIA H100 PCIe": 756, "NVIDIA H100 NVL": 835.5, "NVIDIA H800": 989, "NVIDIA H800 PCIe": None,
    "NVIDIA H200": 989.4, "NVIDIA H200 NVL": 835.5, "NVIDIA GH200 480GB": 989, "NVIDIA B200": 2250, "NVIDIA B300 SXM6 AC": 2250,
    "NVIDIA GB200": 2500, "NVIDIA GB300": 2500, "AMD Instinct MI300X": 1307.4, "AMD Instinct MI325X": 1307.4,
    "AMD Instinct MI355X": 2516.6, "AMD Instinct MI250X": 191.5, "Ascend910B1": 363.7, "Ascend910B2": 353.9, "Ascend910B3": 294.9, "Ascend910B4": 245.8, "Ascend910_9391": 354, "GAUDI3": 1677,
    "NVIDIA RTX 6000 Ada Generation": 364, "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": 503.8, "AMD Instinct MI210": 181,
    "AMD Instinct MI300A": 980.6, "AMD Instinct MI308X": None, "NVIDIA RTX PRO 6000 Blackwell Server Edition": None, "NVIDIA GB10": None,
    "TPU7x": 1153.5, "TPU v7": 2307, "NVIDIA A100-SXM4-80GB MIG 1g.10gb": None, "Tesla V100-SXM2-32GB": None, "CPU": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_a_name_is_matched_whole(name):
    found = peak(name, environment={})
    assert found.tflops == EXPECTED[name] and found.reported == name
    assert (found.why == "") == (found.tflops is not None) == bool(found.source and found.confidence)


def test_what_other_tables_answer_for_unknown_devices_is_never_answered_here():
    """Zero, infinity and another device's rate are what peers give; here they are None, with the name and the way out."""
    wrong = {
        (peer, name)
        for peer, rates in PEERS.items()
        for name, rate in rates.items()
        if name in EXPECTED and EXPECTED[name] is not None and abs(float(rate or 0) / EXPECTED[name] - 1) > 0.01
    }
    assert len(wrong) > 60  # so often do the tables of eight projects differ from ours: the names are worth matching whole
    found = peak("NVIDIA RTX A4000", environment={})
    assert "NVIDIA RTX A4000" in found.why and VARIABLE in found.why and "peak_tflops" in found.why


def test_no_name_belongs_to_two_devices():
    seen = {}
    for row in table():
        for alias in (row.name, *row.aliases):
            if row.confidence != "U":
                assert seen.setdefault((alias.casefold(), row.dtype), row) is row, alias
    assert all(row.dtype in DTYPES and row.confidence in CONFIDENCE and row.source for row in table())
    assert all(row.tflops > 0 or not row.known for row in table())


def test_number_types_are_apart():
    assert peak("NVIDIA H100 80GB HBM3", "fp8", environment={}).tflops == 1979
    volta = peak("Tesla V100-SXM2-16GB", environment={})
    assert volta.tflops is None and "no bf16" in volta.why and peak("Tesla V100-SXM2-16GB", "fp16", environment={}).tflops == 125
    assert peak("NVIDIA A100-SXM4-80GB", "fp8", environment={}).tflops is None
    with pytest.raises(ValueError, match="number type"):
        peak("NVIDIA H100 PCIe", "bfloat")


@pytest.mark.parametrize("name", ["NVIDIA B100", "AMD Instinct MI308X", "NVIDIA GB10"])
def test_a_rate_without_a_source_is_unknown(name, capsys):
    found = peak(name, environment={})
    assert found.tflops is None and str(found).startswith("unknown: no source for the bf16 rate") and VARIABLE in found.why
    short = name.split()[-1]
    assert main(["device", short]) == 1 and "unknown: no source" in capsys.readouterr().out
    assert main(["device"]) == 0 and f"{short:<30}  unknown: no source\n" in capsys.readouterr().out
    assert main(["device", "--json"]) == 0
    assert short not in {row["device"] for row in json.loads(capsys.readouterr().out)}


# What vendors print of the devices that other frameworks name: a rate with sparsity is twice the dense one, and a rate with FP16
# accumulate twice that with FP32 accumulate on GeForce; else matrix units x FLOP a cycle x GHz / 1000.
PRINTED = [
    ("NVIDIA A10G", "bf16", 140 / 2), ("NVIDIA GeForce RTX 3090", "bf16", 142.4 / 2), ("NVIDIA GeForce RTX 3090", "fp16_fp16", 284 / 2),
    ("NVIDIA GeForce RTX 4090", "fp16", 330.4 / 2), ("NVIDIA GeForce RTX 4090", "fp16_fp16", 660.6 / 2),
    ("NVIDIA GeForce RTX 4090", "fp8", 660.6 / 2), ("NVIDIA GeForce RTX 4090", "fp8_fp16", 1321.2 / 2), ("NVIDIA RTX 6000 Ada Generation", "bf16", 728 / 2),
    ("NVIDIA GB10", "fp4", 1000 / 2), ("AMD Instinct MI210", "bf16", 4 * 104 * 1024 * 1.7 / 4e3), ("AMD Instinct MI300A", "bf16", 4 * 228 * 512 * 2.1 / 1e3),
    ("TPU7x", "bf16", 2307 / 2), ("Ascend910B1", "bf16", 24 * 2 * 16**3 * 1.85 / 1e3), ("Ascend910B2", "bf16", 24 * 2 * 16**3 * 1.8 / 1e3),
    ("Ascend910B3", "bf16", 20 * 2 * 16**3 * 1.8 / 1e3), ("Ascend910B4", "bf16", 20 * 2 * 16**3 * 1.5 / 1e3), ("Ascend910B3", "fp16", 313),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "printed"), PRINTED, ids=lambda value: str(value))
def test_rates_are_what_vendors_print(name, dtype, printed):
    found = peak(name, dtype, environment={})
    assert found.tflops == pytest.approx(printed, rel=3e-3) and found.source


def test_the_two_accumulations_of_a_geforce_are_told_apart(capsys):
    for card in ("3090", "4090"):
        plain, half = (peak(f"NVIDIA GeForce RTX {card}", dtype, environment={}) for dtype in ("fp16", "fp16_fp16"))
        assert half.tflops == pytest.approx(2 * plain.tflops, rel=5e-3) and "FP16" in half.note and "FP16 accumulate" in plain.note
    assert peak("NVIDIA A100-SXM4-80GB", "fp16_fp16", environment={}).tflops is None


def test_overrides_in_order():
    both = {VARIABLE: "700", "VERL_OMNI_DEVICE_FLOPS_TFLOPS": "800"}
    framework = ("VERL_OMNI_DEVICE_FLOPS_TFLOPS",)
    name = "NVIDIA H100 PCIe"
    assert peak(name, peak_tflops=600, variables=framework, environment=both).tflops == 600
    assert peak(name, variables=framework, environment=both).tflops == 700
    only = peak(name, variables=framework, environment={framework[0]: "800"})
    assert only.tflops == 800 and framework[0] in only.source
    assert peak(name, environment={framework[0]: "800"}).tflops == 756
    assert peak("never heard of", environment=both).tflops == 700
    with pytest.raises(ValueError, match="positive"):
        peak(name, peak_tflops=0)


@pytest.mark.parametrize("text", ["abc", "-1", "0", "inf", "nan"])
def test_a_variable_that_is_no_rate_is_said_and_passed_over(text):
    with pytest.warns(UserWarning, match=VARIABLE):
        assert peak("NVIDIA H100 PCIe", environment={VARIABLE: text}).tflops == 756


def test_capability_is_asked_for_warned_about_and_marked():
    properties = SimpleNamespace(major=9, minor=0, multi_processor_count=132, clock_rate=1_830_000)
    assert peak("NVIDIA H123", environment={}, properties=properties).tflops is None
    with pytest.warns(UserWarning, match="estimated"):
        found = peak("NVIDIA H123", environment={}, properties=properties, fallback="capability")
    assert found.estimated and found.as_dict()["estimated"] and found.tflops == pytest.approx(989.4, rel=1e-3)
    assert peak("NVIDIA H200", environment={}, properties=properties, fallback="capability").estimated is False
    unknown = SimpleNamespace(major=99, minor=0, multi_processor_count=132, clock_rate=1_830_000)
    assert peak("NVIDIA H123", environment={}, properties=unknown, fallback="capability").tflops is None
    with pytest.raises(ValueError, match="fallback"):
        peak("x", fallback="guess")


def test_command_device(capsys, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert main(["device", "NVIDIA H100 80GB HBM3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["peak"], found["unit"], found["confidence"]) == (989.4, "TFLOP/s", "B")
    assert main(["device", "NVIDIA H100 80GB HBM3", "--dtype", "fp8"]) == 0 and "1979" in capsys.readouterr().out
    assert main(["device", "No Such", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"peak": None, "reported": "No Such"}
    assert main(["device", "No Such"]) == 1 and "No Such" in capsys.readouterr().out
    assert main(["device", "NVIDIA H200", "--dtype", "x"]) == 2
    capsys.readouterr()
    assert main(["device"]) == 0 and "1750" not in capsys.readouterr().out


def test_command_mfu(capsys, tmp_path):
    for given in ("354", "354e12", "Ascend910B"):
        assert main(["mfu", "--flops", "1.62099e15", "--seconds", "10.64", "--peak", given, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["mfu"] == pytest.approx(0.4304, abs=5e-5)
    details = tmp_path / "kernel_details.csv"
    details.write_text("Name,Duration(us),aic_cube_fops\nMatMul,1,1000000000000000\nAdd,2,\nMatMul,3,620990000000000\nCast,1,N/A\n")
    words = ["mfu", "--kernel-details", str(details), "--seconds", "10.64", "--peak", "354"]
    assert main(words) == 0 and "0.4304" in capsys.readouterr().out
    assert main([*words, "--devices", "2"]) == 0 and "0.2152" in capsys.readouterr().out
    details.write_text("Name,Duration\nMatMul,1\n")
    assert main(words) == 2 and "aic_cube_fops" in capsys.readouterr().err
    assert main(["mfu", "--flops", "1", "--seconds", "0", "--peak", "354"]) == 2
    assert main(["mfu", "--flops", "1", "--seconds", "1", "--peak", "No Such"]) == 2
    assert "unknown" in capsys.readouterr().err
    assert main(["mfu", "--flops", "9e14", "--seconds", "1", "--peak", "354"]) == 0 and "above 1" in capsys.readouterr().out
