"""MFU of a model and a batch, in one line."""

from __future__ import annotations

import json

import pytest

import symflops
from symflops.cli.main import main

BATCH = '{"text": [4096, 4096]}'


def answer(capsys, *words: str) -> dict:
    assert main(["mfu", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("regime", ["full", "forward", "lora", "checkpointed"])
@pytest.mark.parametrize("convention", ["symflops", "torch", "latte"])
def test_the_work_is_that_of_an_estimate(regime, convention, capsys, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 3}))
    choice = ("--regime", regime, "--convention", convention)
    found = answer(capsys, "--config", str(tmp_path), "--batch", BATCH, "--seconds", "12", "--devices", "64", "--peak", "h100", *choice)
    estimate = symflops.estimate(str(tmp_path), json.loads(BATCH), regime=regime, convention=convention)
    scale = 2 if estimate["unit"] == "macs" else 1
    assert found["flops"] == scale * estimate["total"] and found["model"]["regime"] == regime
    assert found["mfu"] == pytest.approx(scale * estimate["total"] / 12 / 64 / 989.4e12)
    assert found["hfu"] == pytest.approx(scale * (estimate["total"] + estimate["recomputed"]) / 12 / 64 / 989.4e12)
    assert (found["hfu"] > found["mfu"]) == (regime == "checkpointed" and estimate["recomputed"] > 0)


def test_a_given_figure_says_nothing_of_a_model(capsys):
    found = answer(capsys, "--flops", "1e15", "--seconds", "2", "--peak", "1000")
    assert found["mfu"] == 0.5 and "model" not in found and "hfu" not in found


@pytest.mark.parametrize(("words", "told"), [(("--seconds", "1", "--tokens-per-second", "9k"), "not allowed with"), ((), "one of the arguments --seconds")])
def test_a_step_is_timed_in_one_way(words, told, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["mfu", "llama", "--peak", "1", *words])
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("option", "count"), [("steps", 1), ("samples", 2), ("tokens", 8192)])
def test_a_rate_is_as_good_as_seconds(option, count, capsys):
    words = ("llama", "--batch", "4096*2", "--devices", "8", "--peak", "989")
    same = answer(capsys, *words, "--seconds", "0.5")
    found = answer(capsys, *words, f"--{option}-per-second", str(2 * count))
    assert found["seconds"] == 0.5 and found["mfu"] == same["mfu"]


def test_a_rate_of_tokens_needs_no_batch(capsys):
    assert main(["mfu", "llama", "--tokens-per-second", "9k", "--peak", "h100"]) == 0
    out, err = capsys.readouterr()
    assert 'the figures are of the batch {"text": [1024]}' in err and "peak 989.4 TFLOP/s, H100 SXM, bf16 dense" in out


@pytest.mark.parametrize("peak", ["989", "989TFLOPs", "989 tflop/s", "0.989 PFLOP/s", "9.89e14", "9.89e14 FLOPS"])
def test_a_peak_may_have_its_unit(peak, capsys):
    assert answer(capsys, "--flops", "989e12", "--seconds", "1", "--peak", peak)["mfu"] == pytest.approx(1)


def test_people_read_which_device_was_meant(capsys):
    assert main(["mfu", "llama", "--batch", BATCH, "--seconds", "3", "--devices", "8", "--peak", "h100", "--regime", "checkpointed"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("MFU 0.") and "llama (class defaults), regime checkpointed" in out and "HFU 0." in out
    assert "'h100' is read as H100 SXM; there is also H100 PCIe" in " ".join(out.split()) and err.startswith("symflops: all sizes are the defaults")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--seconds", "1", "--peak", "1"), "say the work"),
        (("llama", "--tokens-per-second", "0", "--peak", "1"), "--tokens-per-second is above 0"),
        (("--flops", "1e15", "--tokens-per-second", "9k", "--peak", "1"), "a step has no tokens"),
        (("llama", "--batch", BATCH, "--flops", "1", "--seconds", "1", "--peak", "1"), "leave out the model"),
        (("--flops", "1", "--batch", BATCH, "--seconds", "1", "--peak", "1"), "leave out --batch"),
        (("llama", "--batch", '{"txt": [1]}', "--seconds", "1", "--peak", "1"), "did you mean 'text'"),
        (("llama", "--batch", BATCH, "--seconds", "0", "--peak", "1"), "the seconds are 0"),
        (("lama", "--batch", BATCH, "--seconds", "1", "--peak", "1"), "llama"),
        (("llama", "--batch", BATCH, "--seconds", "1", "--peak", "h10"), "did you mean 'H100 SXM'"),
        (("llama", "--batch", BATCH, "--seconds", "1", "--peak", "5090"), "may be RTX 5090 or a rate"),
    ],
)
def test_what_is_missing_or_wrong_is_told(words, told, capsys):
    assert main(["mfu", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and told in err and "Traceback" not in err


@pytest.mark.parametrize("words", [("mfu", "llama", "--seconds", "1"), ("budget", "llama", "--tokens", "1e9", "--mfu", "40%")])
def test_a_device_is_its_peak(words, capsys):
    told = []
    for option in ("--peak", "--device"):
        assert main([*words, option, "h100", "--batch", "64"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] and "H100 SXM" in told[0]
