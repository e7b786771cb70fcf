"""What a SPEC names: specs, classes, variants, published models, folders."""

from __future__ import annotations

import json
from argparse import Namespace

import pytest

from symflops.cli.main import main
from symflops.evaluate.classes import class_name
from symflops.library.catalog import UnknownModelError, catalogs
from symflops.library.lookup import interpreter
from symflops.library.naming import named, resolve
from symflops.support.errors import SymflopsError

CATALOG = catalogs()[-1]
CLASSES = sorted((class_name(reference), name) for name, entry in CATALOG.specs.items() for reference in entry["references"])
VARIANTS = [(name, variant) for name, entry in CATALOG.specs.items() for variant in entry.get("structures", {}) if variant != "default"]
PUBLISHED = [(name, {**model, "name": short}) for name, short, model in CATALOG.models()]
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}


@pytest.mark.parametrize("name", CATALOG.specs)
def test_a_spec_is_itself(name):
    found = named(name)
    assert (found.spec, found.config, found.whole) == (name, {}, False)


@pytest.mark.parametrize(("word", "name"), CLASSES)
def test_a_class_names_its_spec_and_itself(word, name):
    found = named(word)
    assert found.spec == name or word in map(class_name, CATALOG.specs[found.spec]["references"])
    assert word in (found.config.get("_class_name"), *found.config.get("architectures", ()))


def test_a_class_is_estimated_as_that_class():
    words = ("LlamaForCausalLM", "LlamaModel")
    parameters = [interpreter(named(word).spec, named(word).config).parameters for word in words]
    assert parameters == [6738415616, 6607343616]


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_a_variant_has_its_structure(name, variant):
    structure = CATALOG.specs[name]["structures"][variant]
    for word in (f"{name}/{variant}", f"{name}_{variant}"):
        found = named(word)
        assert found.spec == name and CATALOG.of_structure(name, found.config)[0] == variant and structure
        assert not found.note or ("defaults" in found.note and next(iter(structure)) in found.note)


def test_a_variant_with_one_published_model_is_that_model():
    assert interpreter(named("sdxl").spec, named("sdxl").config).parameters == 2567463684
    assert not named("sdxl").note and named("resnet/18").note


@pytest.mark.parametrize(("name", "model"), PUBLISHED, ids=lambda value: value if isinstance(value, str) else value["name"])
def test_a_published_model_is_found_by_its_name(name, model):
    found = named(f"{name}/{model['name']}")
    assert found.spec == name and found.whole and model["config"].items() <= found.config.items()


def test_llama3_is_itself():
    assert interpreter(named("llama3-8b").spec, named("llama3-8b").config).parameters == 8030261248


@pytest.mark.parametrize("word", ["small", "base"])
def test_a_word_for_several_lists_them(word):
    with pytest.raises(UnknownModelError, match="of several specs: .*/.*, "):
        named(word)


@pytest.mark.parametrize(("word", "near"), [("lama", "llama"), ("LlamaForCausalLLM", "LlamaForCausalLM"), ("nothing_like_it", "symflops list")])
def test_an_unknown_word_is_told_with_what_is_near(word, near):
    with pytest.raises(UnknownModelError, match=near):
        named(word)


def test_folders_and_files_with_a_config(tmp_path, capsys):
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text(json.dumps(LLAMA))
    index = {"_class_name": "QwenImagePipeline", "transformer": ["diffusers", "QwenImageTransformer2DModel"]}
    (tmp_path / "p/transformer").mkdir(parents=True)
    (tmp_path / "p/model_index.json").write_text(json.dumps(index))
    (tmp_path / "p/transformer/config.json").write_text(json.dumps({"_class_name": "QwenImageTransformer2DModel", "num_layers": 2}))
    for word in (tmp_path / "m", tmp_path / "m/config.json"):
        assert (named(str(word)).spec, named(str(word)).config) == ("llama", LLAMA)
    assert named(str(tmp_path / "p")).spec == "qwen_image" and named(str(tmp_path / "p")).config["num_layers"] == 2
    batch = '{"text": [8]}'
    for command in (("estimate", "--batch", batch), ("explain", "--batch", batch), ("compare", "--regimes", "full", "--batch", batch), ("mfu", "--batch", batch, "--seconds", "1", "--peak", "9")):
        found = []
        for words in ((str(tmp_path / "m"),), ("llama", "--config", str(tmp_path / "m")), ("llama", "--config", json.dumps(LLAMA))):
            assert main([command[0], *words, *command[1:], "--json"]) == 0
            found.append(json.loads(capsys.readouterr().out))
        assert found[0] == found[1] == found[2]
    assert main(["graph", str(tmp_path / "m")]) == 0 and "flowchart" in capsys.readouterr().out
    assert main(["check", "LlamaModel"]) == 0


def test_a_local_spec_comes_before_a_class(tmp_path, monkeypatch):
    (tmp_path / "specs/nn").mkdir(parents=True)
    text = "language: 2\nname: LlamaModel\nsizes: {D: {key: d, default: 2}}\nstreams: {text: [x]}\ninputs: {v: {stream: text, width: D}}\ngraph:\n  - a: {op: linear, from: v, width: D, to: v}\noutputs: [v]\n"
    (tmp_path / "specs/nn/LlamaModel.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert named("LlamaModel").config == {}


def test_a_config_is_given_once(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    with pytest.raises(SymflopsError, match="leave out --config"):
        resolve(Namespace(spec="sdxl", config=str(path)))
    args = Namespace(spec="LlamaModel", config=str(path))
    assert resolve(args) == "" and args.spec == "llama" and args.config == {**LLAMA, "architectures": ["LlamaModel"]}


def test_what_a_variant_leaves_open_is_told(capsys):
    assert main(["explain", "resnet/18", "--top", "1"]) == 0
    assert "all other sizes are the defaults of ResNetForImageClassification" in capsys.readouterr().err


def test_an_assumption_is_added_to_what_a_word_says(capsys):
    whole = interpreter("llama", named("llama3-8b").config | {"num_hidden_layers": 2}).parameters
    assert main(["explain", "llama3-8b", "--assume", "num_hidden_layers=2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == whole
    assert main(["explain", "llama3-8b", "--numeric", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == 8030261248 and "L" not in {row["letter"] for row in found["symbols"]}
