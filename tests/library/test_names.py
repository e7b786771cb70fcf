"""The table of names: repositories and their sizes, spellings, near misses, paths, and settings of fields."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import symflops
from symflops.cli.main import main
from symflops.evaluate.config import as_read, look_up, put
from symflops.evaluate.unread import _names
from symflops.library.catalog import UnknownModelError, catalogs
from symflops.library.names import every_name, key
from symflops.library.naming import named
from symflops.library.settings import changed, settings_in
from symflops.support.errors import SymflopsError
from tests.sampling import sampled

CATALOG = catalogs()[-1]
REPOSITORIES = CATALOG.repositories()
SOURCE = re.compile(r"github\.com/[\w.-]+/[\w.-]+, commit [0-9a-f]{12}, \S+")
TEXT = {"text": [16]}
SECTIONS = ("clip", "gpt2", "llava", "qwen2_vl", "qwen3_vl")
"""Specs of classes with sections, aliases inside them, a section by another name, and fields of a section beside it."""


def named_parameters(word: str) -> int:
    from symflops.library.naming import estimator_for

    return estimator_for(named(word), "forward", "torch", lambda text: None).parameters


def test_eighty_checkpoints_cite_the_public_file_of_their_sizes():
    assert len(REPOSITORIES) >= 80
    assert all(SOURCE.fullmatch(row["source"]) for row in REPOSITORIES.values())
    names = [key(name) for one, row in REPOSITORIES.items() for name in (one, *row.get("also", ()))]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("repository", sampled(sorted(REPOSITORIES), 25))
def test_a_repository_has_its_parameters(repository):
    row = REPOSITORIES[repository]
    assert named_parameters(repository) == row["parameters"]
    models = {f"{name}/{short}": model for name, short, model in CATALOG.models()}
    for name in (repository, *row.get("also", ())):
        found = named(name)
        assert found.whole and models[row["model"]]["config"].items() <= found.config.items() and found.asked == f"{name} ({found.spec})"


@pytest.mark.parametrize(
    ("word", "asked"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B (llama)"), ("META_LLAMA/llama_3.1.8b", "meta-llama/Llama-3.1-8B (llama)"), ("llama-3-1-8b", "Llama-3.1-8B (llama)"),
        ("Qwen3-30B-A3B", "Qwen3-30B-A3B (qwen3_moe)"), ("flux.1-dev", "FLUX.1-dev (flux)"), ("stabilityai/stable-diffusion-xl-base-1.0", "stabilityai/stable-diffusion-xl-base-1.0 (unet_2d_condition)"),
        ("llama-3.1-405b", "llama-3.1-405b (llama)"), ("DeepSeekV3", "DeepSeek-V3 (deepseek_v3)"), ("deepseek_v3", "deepseek_v3 (class defaults)"), ("OPT 13B", "opt-13b (opt)"), ("opt_1-3b", "opt-1.3b (opt)"), ("SDXL", "sdxl (unet_2d_condition)"),
        ("llamaforcausallm", "LlamaForCausalLM (class defaults)"), ("ResNet-18", "resnet_18 (resnet)"),
    ],
)  # fmt: skip
def test_case_and_separators_make_no_difference(word, asked):
    assert named(word).asked == asked


@pytest.mark.parametrize(
    ("word", "near"),
    [("mistral-7b", "mistral-7b-v0.3"), ("wan2.1", "Wan2.1-T2V-14B"), ("gemma-3-27b", "'gemma3'"), ("llama-4-scout", "'llama4'"), ("llama 405b", "llama-3.1-405b"), ("lama3-8b", "llama3-8b"), ("stable-diffusion-xl", "stable-diffusion-xl-base-1.0"), ("Qwen/Qwen3-80B", "Qwen"), ("Qwen/Qwen2.5-VL-7B-Instruct", "did you mean 'qwen2.5-vl-7b'")],
)
def test_a_near_miss_lists_what_was_meant(word, near, capsys):
    with pytest.raises(UnknownModelError, match=re.escape(near)):
        named(word)
    assert main(["estimate", word]) == 2
    assert near in capsys.readouterr().err


@pytest.mark.parametrize(("word", "name"), [("mixtral-8x7b", "Mixtral-8x7B-v0.1"), ("FLUX_dev", "flux-dev-1024px"), ("qwen3-30b", "Qwen3-30B-A3B"), ("flux.1 dev", "FLUX.1-dev")])
def test_a_word_that_begins_the_name_of_one_model_alone_is_this_model(word, name, capsys):
    found, full = named(word), named(name)
    assert (found.spec, found.config, found.asked, found.whole) == (full.spec, full.config, f"{name} ({full.spec})", True)
    assert bool(found.note) == (key(word) != key(name)) and name in f"{found.note} {found.asked}"


@pytest.mark.parametrize("repository", sampled(sorted(REPOSITORIES), 10))
def test_no_beginning_is_one_of_several_models(repository):
    """What a cut name resolves to has, as the witness, no other model whose name goes on from there at a separator."""
    known = {key(name) for name in every_name(catalogs())}
    for place in (place for place, mark in enumerate(repository) if mark in "-_." and place > repository.index("/")):
        word = repository[:place]
        others = {row["model"] for name, row in REPOSITORIES.items() for one in (name, *row.get("also", ())) if re.match(re.escape(word) + "[-_.]", one)}
        if len(others) > 1 and key(word) not in known:
            with pytest.raises(UnknownModelError):
                named(word)


def test_a_path_wins_over_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("llama3-8b").mkdir()
    assert named("llama3-8b").whole and named("llama3-8b").asked  # a folder without a config
    Path("llama3-8b/config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2}))
    assert named("llama3-8b").config["num_hidden_layers"] == 2 and not named("llama3-8b").asked
    Path("gpt2").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    assert named("gpt2").spec == "llama"


WORDS = [
    ("estimate", "W"), ("explain", "W"), ("compare", "W", "--regimes", "full"), ("growth", "W"), ("graph", "W"), ("render", "W", "--format", "markdown"), ("solve", "W", "--for", "tokens", "--flops", "1e15"),
    ("mfu", "W", "--batch", '{"text": [8]}', "--seconds", "1", "--peak", "9"), ("budget", "W", "--tokens", "1e6", "--mfu", "0.4", "--peak", "9"), ("diff", "W", "--set", "num_hidden_layers=3"), ("check", "W"),
    ("corpus", "W", "--columns", "text=n", "--sql", "duckdb"), ("estimate", "--config", "W"),
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_takes_the_name_of_a_checkpoint(words, capsys):
    outputs = []
    for word in ("llama3-8b", "meta-llama/LLAMA_3.1-8b"):
        assert main([word if one == "W" else one for one in words]) == 0
        outputs.append(capsys.readouterr().out)
    first, second = (" ".join(out.split()) for out in outputs)
    typed = second.replace("meta-llama/Llama-3.1-8B (llama)", "llama3-8b (llama)").replace("meta-llama/LLAMA_3.1-8b", "llama3-8b")
    assert first and first == typed


def test_defaults_are_not_told_as_a_model(capsys):
    assert main(["estimate", "qwen3_moe", "--batch", json.dumps(TEXT)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("qwen3_moe (class defaults), regime full") and err.count("\n") == 1
    assert "defaults of Qwen3MoeForCausalLM; published models: qwen3-30b-a3b" in err
    with pytest.warns(UserWarning, match="defaults of Qwen3MoeForCausalLM; published models: qwen3-30b-a3b"):
        symflops.estimate("qwen3_moe", TEXT)
    with pytest.warns(UserWarning, match="defaults of Qwen3MoeForCausalLM; published models: qwen3-30b-a3b"):
        symflops.MFUMeter.of_config("qwen3_moe", devices=1, peak_tflops=1)
    assert main(["estimate", "qwen3-30b-a3b", "--batch", json.dumps(TEXT)]) == 0
    assert capsys.readouterr().err == ""


def test_settings_change_fields_of_any_model(capsys):
    wide = named_parameters("qwen3-30b-a3b") + 48 * (128 * 3 * 2048 * 768 + 128 * 2048)
    assert symflops.estimate("qwen3-30b-a3b", TEXT, settings={"num_experts": 256}).parameters == wide
    assert symflops.explain("qwen3-30b-a3b", TEXT, settings={"num_experts": 256}).estimate.parameters == wide
    assert main(["estimate", "Qwen/Qwen3-30B-A3B", "--set", "num_experts=256", "--batch", json.dumps(TEXT), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == wide
    config = json.dumps({"architectures": ["GPT2LMHeadModel"], "n_layer": 2})
    found = []
    for name in ("n_layer", "num_hidden_layers"):  # two names of one field
        assert main(["estimate", "--config", config, "--set", f"{name}=3", "--batch", json.dumps(TEXT), "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["parameters"])
    assert found[0] == found[1] == symflops.estimate(json.loads(config) | {"n_layer": 3}, TEXT).parameters
    assert changed("llava", {}, {"text_config.num_hidden_layers": 1})["text_config"] == {"num_hidden_layers": 1}


@pytest.mark.parametrize("spec", [*SECTIONS, *sampled(sorted(CATALOG.specs.keys() - {*SECTIONS}), 30)])
def test_a_setting_changes_the_field_that_the_class_reads_and_no_other(spec):
    """The witness is the reading of a config that has nothing but the name; other fields keep their marks."""
    document = CATALOG.program(spec)
    fields = [tuple(row["keys"]) for row in document["fields"]]
    tables = (document.get("reading") or {"tables": {}})["tables"].values()
    names = dict.fromkeys([*(key for keys in fields for key in keys), *(name for table in tables for name in _names(table, ""))])
    base: dict[str, object] = {}
    for mark, keys in enumerate(fields):
        put(base, keys, 1000 + mark)
    marks = [look_up(as_read(document, base), keys) for keys in fields]
    tried = 0
    for name in names:
        alone: dict[str, object] = {}
        put(alone, [name], 77)
        try:
            hit = [look_up(as_read(document, alone), keys) == 77 for keys in fields]
        except SymflopsError:
            continue
        if sum(hit) == 1:
            before = json.dumps(base)
            read = as_read(document, changed(spec, base, {name: 77}))
            assert [look_up(read, keys) for keys in fields] == [77 if own else mark for own, mark in zip(hit, marks, strict=True)], name
            assert json.dumps(base) == before
            tried += 1
    assert tried or not fields


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["num_exprts=2"], "no field 'num_exprts': did you mean 'num_experts'"), (["num_experts"], "--set takes FIELD=VALUE"), (["=3"], "--set takes FIELD=VALUE"),
        (["zzzzzz=1"], "no field 'zzzzzz': fields are "), (["num_experts=many"], "is 'many'"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_told(words, told, capsys):
    assert main(["estimate", "qwen3_moe", *(part for word in words for part in ("--set", word))]) == 2
    err = capsys.readouterr().err
    assert told in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("spec", "one", "other"), [("gpt2", "n_layer", "num_hidden_layers"), ("qwen2_5_vl", "num_hidden_layers", "text_config.num_hidden_layers")]
)
def test_two_names_of_a_field_have_one_value(spec, one, other):
    """Whichever comes first: the later one would win in silence."""
    for names in ((one, other), (other, one)):
        with pytest.raises(SymflopsError, match=f"'{names[0]}' and '{names[1]}' are one field of '{spec}'"):
            changed(spec, {}, dict(zip(names, (24, 12), strict=True)))
        assert changed(spec, {}, dict.fromkeys(names, 12)) == changed(spec, {}, {one: 12})


def test_values_of_settings():
    assert settings_in(["a=1", "b.c=null", "d=[1, 2]", "e=silu", "f=true", "g=1.5", "h=a=b"]) == {"a": 1, "b.c": None, "d": [1, 2], "e": "silu", "f": True, "g": 1.5, "h": "a=b"}
    with pytest.raises(SymflopsError, match="settings map fields to values"):
        symflops.estimate("llama3-8b", TEXT, settings=["x"])


@pytest.mark.parametrize("kind", ["specs", "models", "devices", "regimes"])
def test_a_list_of_nothing_has_near_misses(kind, capsys):
    near = {"specs": ("qwen3_mow", "qwen3_moe"), "models": ("Qwen/Qwen3-80B", "Qwen/Qwen3"), "devices": ("H10O SXM", "H100 SXM"), "regimes": ("fulll", "full")}[kind]
    for word, told in (near, ("zzzzzz", f"'symflops list {kind}' shows all")):
        assert main(["list", kind, word]) == 2
        out, err = capsys.readouterr()
        assert told in err and not out


def test_published_models_are_listed(capsys):
    assert main(["list", "models", "QWEN3_30b", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["models"]
    assert row["name"] == "Qwen/Qwen3-30B-A3B" and row["parameters"] == 30532122624 and SOURCE.fullmatch(row["source"])
    assert main(["list", "models"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert REPOSITORIES.keys() <= set(names) and "wan/14B-720p81" not in names  # a repository has these sizes
    assert all(named(name).whole for name in names if "/" in name)
    assert main(["list", "models", "nothing_like_it"]) == 2


def test_a_path_that_is_not_there_is_no_spec(tmp_path, capsys):
    for word, told in ((str(tmp_path), "has no model_index.json or config.json"), (f"{tmp_path}/none", "there is no file or folder")):
        assert main(["estimate", word, "--batch", "8"]) == 2
        assert told in capsys.readouterr().err
