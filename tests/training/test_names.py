"""What people call devices."""

from __future__ import annotations

import json

import pytest

from symflops.cli.main import main
from symflops.training.devices.peaks import called, peak, peak_called, table, words

KNOWN = sorted({row.name for row in table() if row.confidence != "U"})


@pytest.mark.parametrize("name", KNOWN)
def test_every_device_is_found_by_its_names_in_any_spelling(name):
    aliases = {alias for row in table() if row.name == name and row.confidence != "U" for alias in row.aliases if "*" not in alias}
    for known in (name, *aliases):
        for text in (known, known.lower(), "-".join(words(known)), f"NVIDIA {known}", " ".join(words(known))):
            assert called(text)[0] == name, text


@pytest.mark.parametrize("name", KNOWN)
def test_an_alias_has_the_rate_of_the_reported_name(name):
    for row in table():
        if row.name == name and row.confidence != "U":
            assert peak_called("-".join(words(name)), row.dtype)[0].tflops == peak(name, row.dtype).tflops


def test_a_name_that_means_several_lists_them():
    for word, names in (("v100", ("V100 SXM2", "V100 PCIe")), ("4090", ("RTX 4090", "RTX 4090 D"))):
        found, _ = peak_called(word, "fp16")
        assert found.tflops is None and all(name in found.why for name in names)
    found, note = peak_called("h100", "bf16")
    assert found.device == "H100 SXM" and "H100 PCIe, H100 NVL" in note


@pytest.mark.parametrize(("word", "meant"), [("h10", "H100 SXM"), ("b3000", "B300"), ("mi30x", "MI300X")])
def test_a_slip_is_told_with_what_is_near(word, meant):
    found, _ = peak_called(word, "bf16")
    assert found.tflops is None and "did you mean" in found.why and meant in found.why


@pytest.mark.parametrize("word", ["", "nvidia", "zzzz", "*", "(", "a" * 5000])
def test_a_word_that_means_nothing_is_unknown(word):
    assert peak_called(word, "bf16")[0].tflops is None


def test_a_variable_comes_before_the_table(monkeypatch):
    monkeypatch.setenv("SYMFLOPS_PEAK_TFLOPS", "123")
    assert peak_called("no such device", "bf16")[0].tflops == 123


def test_commands_take_such_names(capsys):
    assert main(["device", "H100-pcie", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["device"], found["peak"]) == ("H100 PCIe", 756)
    assert main(["mfu", "--flops", "1e15", "--seconds", "2", "--peak", "h100 nvl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak_tflops"] == 835.5
    assert main(["mfu", "--flops", "1e15", "--seconds", "2", "--peak", "v100"]) == 2
    assert "V100 SXM2, V100 PCIe" in capsys.readouterr().err
    assert main(["device", "v100", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"peak": None, "reported": "v100"}
