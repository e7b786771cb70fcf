"""Amounts as people type them: numbers with units, batches in several forms, and images by the rules of pipelines."""

from __future__ import annotations

import importlib
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import symflops
from symflops.cli.amounts import share
from symflops.cli.main import COMMANDS, GROUPS, main
from symflops.evaluate.batch_text import PREFIXES, amount, batch_of, whole
from symflops.library.catalog import PACKAGE
from symflops.library.lookup import by_name, interpreter
from symflops.library.pipelines import rules
from symflops.support.errors import SymflopsError
from tests.sampling import draws, sampled


def module_of(name: str):
    return importlib.import_module(f"symflops.cli.{name}")


def answer(capsys, *words: str):
    assert main([*words]) == 0, capsys.readouterr().err
    return capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "value"),
    [("15T", 15 * 10**12), ("1.5b", 15 * 10**8), ("90k", 90_000), ("8192*8", 65_536), ("2*3*4", 24), ("1e21", 10**21), ("2_000", 2000), ("15,000,000", 15 * 10**6), (" 7 M ", 7 * 10**6), ("0", 0)],
)
def test_numbers_of_people(text, value):
    assert whole(text, "--tokens") == value


@pytest.mark.parametrize("text", ["", "T", "15X", "-1", "nan", "inf", "1e99", "1.5", "1,2", "8*", "*8", "1e", "0x10", "1e40*1e40", "²"])
def test_no_numbers(text):
    with pytest.raises(SymflopsError, match="--tokens"):
        whole(text, "--tokens")


@given(st.decimals(0, 10**9, places=4), st.sampled_from(["", *PREFIXES]), st.integers(1, 999), st.booleans())
@draws(40, 200, 2000)
def test_an_amount_is_exact(number, unit, times, upper):
    text = f"{number}{unit.upper() if upper else unit}*{times}"
    assert Fraction(amount(text, "it")) == Fraction(number) * 10 ** PREFIXES.get(unit, 0) * times


def test_shares():
    assert share("40%", "--mfu") == share("0.4", "--mfu") == 0.4 and share("100 %", "--mfu") == 1
    for text, told in (("40", "write 40%"), ("0", "above 0"), ("140%", "at most 1"), ("half", "takes a number")):
        with pytest.raises(SymflopsError, match=told):
            share(text, "--mfu")


USUAL = sorted({rule["spec"] for rule in rules().values()})
TEXT, IMAGES = (interpreter(name, {}).stored.streams for name in ("llama", "unet_2d_condition"))


@pytest.mark.parametrize(
    ("text", "batch"),
    [
        ("8192", {"text": [8192]}), ("8192*3", {"text": [8192] * 3}), ("8k,4k*2", {"text": [8000, 4000, 4000]}),
        ("{text: [8192]}", {"text": [8192]}), ('{"text": [8192]}', {"text": [8192]}), ("text=5,7", {"text": [5, 7]}), ("[5, [1, 2]]", {"text": [5, [1, 2]]}),
        ("{text: {lengths: [5], padded: [8]}}", {"text": {"lengths": [5], "padded": [8]}}),
        ("latent=64x32*2; prompt=77*2", {"latent": [[64, 32]] * 2, "prompt": [77, 77]}),
    ],
)  # fmt: skip
def test_forms_of_a_batch(text, batch, tmp_path):
    assert batch_of(text, TEXT) == batch
    (tmp_path / "batch.json").write_text(json.dumps(batch))
    assert batch_of(f"@{tmp_path / 'batch.json'}") == batch


@pytest.mark.parametrize(
    ("text", "told"),
    [("77", "streams latent, prompt"), ("latent=1x", "takes a number"), ("latent=1;latent=2", "twice"), ("[5]", "streams latent, prompt"), ("text=5*1e9", "at most"), ("{text: [5}", "not JSON"), ("prompt=8,000", "8000 or 8k"), ("prompt=-5", "takes a number")],
)
def test_no_batches(text, told):
    with pytest.raises(SymflopsError, match=told):
        batch_of(text, IMAGES)


def test_functions_take_the_texts_of_a_command_line(recwarn):
    eight = {"text": [64] * 8}
    assert symflops.estimate("llama3-8b", "64*8") == symflops.estimate("llama3-8b", eight) and symflops.explain("llama3-8b", "64*8").batch == eight
    assert symflops.compare("llama3-8b", "text=64*8", regimes=["full"]) == symflops.compare("llama3-8b", eight, regimes=["full"])
    assert not recwarn.list
    with pytest.warns(UserWarning, match="items of 1 and 536"):
        symflops.estimate("llama3-8b", "1,536")
    for text, told in (("64x", "takes a number"), ("@batch.json", "command line"), ("latent=3", "latent")):
        with pytest.raises(SymflopsError, match=told):
            symflops.estimate("llama3-8b", text)


def test_a_comma_inside_of_a_number_is_told():
    told: list[str] = []
    assert batch_of("16,384*8", TEXT, told.append) == {"text": [16, *[384] * 8]} and batch_of("latent=1,536; prompt=77", IMAGES, told.append)["latent"] == [1, 536]
    assert "items of 16 and 384*8; the number is 16384*8" in told[0] and "items of 1 and 536; the number is 1536" in told[1]
    assert batch_of("4096,1024", TEXT, told.append) and batch_of("512,64", TEXT, told.append) and len(told) == 2
    with pytest.raises(SymflopsError, match="comma is between items of a stream, text=4096,1024"):
        batch_of("4096;1024", TEXT)


def test_a_generation_is_so_many_forward_passes(capsys):
    words = ("estimate", "sdxl", "--height", "1024", "--width", "768")
    one = json.loads(answer(capsys, *words, "--regime", "forward", "--json").out)
    found = json.loads(answer(capsys, *words, "--batch", "3", "--steps", "50", "--guidance", "--json").out)
    assert found["total"] == found["forward"] == one["forward"] * 50 * 2 * 3 and found["steps"] == 50 and found["backward"] == 0
    assert answer(capsys, *words, "--steps", "50").out.startswith("sdxl (unet_2d_condition), regime forward, 50 steps")
    plain = json.loads(answer(capsys, "estimate", "sdxl", "--batch", '{"latent": [[128, 96]], "prompt": [77]}', "--json").out)
    assert plain["forward"] == one["forward"] and plain["backward"] > 0


def test_every_command_takes_the_size_of_images(capsys):
    size, batch = ("--height", "512", "--width", "512", "--batch", "2"), "latent=64x64*2; prompt=77*2"
    for words in (("estimate", "sdxl", "--json"), ("explain", "sdxl", "--json"), ("compare", "sdxl", "--regimes", "full", "--json"), ("budget", "sdxl", "--tokens", "1e9", "--mfu", "0.4", "--peak", "989", "--json"), ("mfu", "sdxl", "--seconds", "1", "--peak", "989", "--json")):
        assert answer(capsys, *words, *size).out == answer(capsys, *words, "--batch", batch).out, words


@pytest.mark.parametrize("name", sampled([name for name in USUAL if not any(row.get("required") for row in by_name(name).program(name)["fields"])], 4, 1))
def test_without_a_batch_a_pipeline_has_its_usual_size(name, capsys):
    out, err = answer(capsys, "lengths", name)
    batch = json.loads(out)
    assert "no --batch" not in err and interpreter(name, {}).forward(interpreter(name, {}).moments(**batch)) > 10**11
    assert json.loads(answer(capsys, "explain", name, "--top", "0", "--json").out)["batch"] == batch


def test_the_rule_is_that_of_the_published_model_or_of_a_named_pipeline(capsys):
    assert json.loads(answer(capsys, "lengths", "wan/ti2v-5B-704p121", "--frames", "5").out)["latent"] == [[2, 44, 80]]
    assert json.loads(answer(capsys, "lengths", "wan", "--frames", "5").out)["latent"] == [[2, 90, 160]]
    for settings in ({"num_layers": 4}, {"num_layers": 40, "num_attention_heads": 40, "ffn_dim": 13824}, {"text_dim": 64}):  # ever more like another one
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        for model in ("14B-720p81", "i2v-14B-480p81", "ti2v-5B-704p121"):
            assert answer(capsys, "lengths", f"wan/{model}", *words).out == answer(capsys, "lengths", f"wan/{model}").out, (model, settings)
    for pipeline in ("kontext", "FluxKontextPipeline"):
        assert json.loads(answer(capsys, "lengths", "flux", "--pipeline", pipeline).out)["latent"] == [4096 + 55 * 74]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("lengths", "llama", "--height", "64"), "no rule turns pixels"),
        (("lengths", "sdxl", "--frames", "8"), "it takes --height, --width"),
        (("lengths", "flux", "--pipeline", "contxt"), "did you mean 'kontext'"),
        (("lengths", "sdxl", "--height", "5", "--width", "5"), "leave no latent"),
        (("lengths", "sdxl", "--height", "512"), "give --height and --width"),
        (("lengths", "sdxl", "--height", "480p", "--width", "832"), "without a unit"),
        (("lengths", "sdxl", "--height", "512", "--batch", "0"), "1 to 1,000,000 samples"),
        (("budget", "sdxl", "--samples", "0", "--peak", "1", "--mfu", "40%"), "at least one"),
    ],
)
def test_what_pixels_cannot_be_is_told(words, told, capsys):
    assert main([*words]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("option", [("--height", "64"), ("--width", "64"), ("--frames", "5"), ("--prompt", "7"), ("--pipeline", "flux"), ("--guidance",)], ids=" ".join)
def test_no_command_leaves_the_size_of_images_out_of_account(option, capsys):
    config = json.dumps({"architectures": ["Llama"]})
    for words in (("estimate", "--config", config, "--trace", "--batch", "16"), ("diff", "linformer"), ("mfu", "--flops", "1e15", "--seconds", "1", "--peak", "9")):
        assert main([*words, *option]) == 2
        assert option[0] in (err := capsys.readouterr().err) or "nothing else of it" in err
    assert main(["estimate", "--config", config, "--trace", "--batch", "16", "--set", "a=1"]) == 2
    assert "without a SPEC, --set" in capsys.readouterr().err


def test_latents_as_large_as_pixels_are_noticed(capsys):
    for name, pixels, latents in (("sdxl", "latent=1024x1024; prompt=77", "latent=128x128; prompt=77"), ("flux", "latent=1048576; prompt=512", "latent=4096; prompt=512")):
        assert "--height and --width take pixels" in answer(capsys, "estimate", name, "--batch", pixels).err
        assert answer(capsys, "estimate", name, "--batch", latents).err.count("pixels") == 0


def test_a_training_on_samples(capsys):
    words = ("budget", "sdxl", "--height", "1024", "--width", "1024", "--batch", "4", "--peak", "h100", "--mfu", "40%", "--json")
    found = json.loads(answer(capsys, *words, "--samples", "1e9").out)
    assert found["steps"] == 250_000_000 and found["flops"] == found["steps"] * found["flops_per_step"] and found["mfu"] == 0.4
    assert found["tokens"] == found["steps"] * found["tokens_per_step"]
    assert json.loads(answer(capsys, *words, "--tokens", str(found["tokens"])).out)["flops"] == found["flops"]


def test_samples_of_a_model_without_tokens(capsys):
    words = ("budget", "resnet", "--peak", "h100", "--mfu", "40%", "--batch", "224x224*8")
    found = json.loads(answer(capsys, *words, "--samples", "80", "--json").out)
    assert found["steps"] == 10 and found["tokens"] is None and "80 samples in 10 steps of 8" in answer(capsys, *words, "--samples", "80").out
    assert main([*words, "--tokens", "80"]) == 2 and "no tokens to count" in capsys.readouterr().err


def test_guidance_runs_each_sample_and_token_twice_and_counts_it_once(capsys):
    for batch in ("latent=64x64*2; prompt=77*2", "{latent: [[64, 64], [64, 64]], prompt: {lengths: [77, 77], padded: [77, 77]}}"):
        for command, found in (("mfu", ["--peak", "9"]), ("budget", ["--peak", "9", "--mfu", "40%"])):
            for count in ("samples", "tokens"):
                amount = (f"--{count}-per-second", "100") if command == "mfu" else (f"--{count}", "1e9")
                one, two = (json.loads(answer(capsys, command, "sdxl", "--batch", batch, *found, *amount, *more, "--json").out) for more in ((), ("--guidance",)))
                figure = {"mfu": "mfu", "budget": "flops"}[command]
                assert two[figure] == pytest.approx(2 * one[figure], rel=1e-9), (command, count)


def test_a_peak_is_one_line_and_its_source_fits_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    first, *lines = answer(capsys, "device", "h100").out.splitlines()
    assert first == "989.4 TFLOP/s, H100 SXM, bf16 dense" and lines[0].startswith("  source")
    assert max(map(len, [*lines, *answer(capsys, "device").out.splitlines()])) <= 80


@pytest.mark.parametrize(("name", "kept", "left_out"), [("sdxl", "in_channels", "conv_in_kernel"), ("wan", "num_layers", "patch_size"), ("mistral", "hidden_size", "sliding_window")])
def test_growth_leaves_out_sizes_that_make_another_batch(name, kept, left_out, capsys):
    found = json.loads(answer(capsys, "growth", name, "--json").out)["one_more"]
    names = {row["name"] for row in found}
    assert kept in names and left_out not in names and all(row["parameters"] or row["forward"] or row["backward"] for row in found)


def test_the_formulas_are_those_of_the_config_that_is_asked_for(capsys):
    def forms(*words: str) -> str:
        return " ".join(json.loads(answer(capsys, "explain", "qwen3-30b-a3b", "--json", *words).out)["closed_form"]["forward"].values())

    assert "windowed" not in forms() and "windowed" in forms("--symbolic")


def test_help_has_every_command_in_its_group(capsys):
    out = answer(capsys, "--help").out
    heads = [line for line in out.splitlines() if line.endswith(":")]
    assert len(heads) == len(GROUPS) == 4 and all(f"  {name} " in out for name in COMMANDS)
    assert list(GROUPS["ask what a model costs"])[:8] == ["estimate", "explain", "mfu", "budget", "compare", "growth", "diff", "list"]
    assert {path.stem for path in (Path(PACKAGE) / "cli").glob("*.py")} >= COMMANDS.keys()


@pytest.mark.parametrize("name", ["mfu", "generate", "solve"])
def test_help_fits_the_terminal_but_for_its_examples(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if not line.startswith(" ")) <= 80
    assert " ".join(module_of(name).__doc__.split()) in " ".join(" ".join(lines).split())
