"""Configs of other libraries, contradictory ones and parts of configs: each is exact, or refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import symflops
from symflops.cli.main import main
from symflops.evaluate.classes import class_name
from symflops.evaluate.unread import is_id, is_limit
from symflops.library.catalog import catalogs
from symflops.library.lookup import by_config, interpreted
from symflops.library.naming import estimate
from symflops.support.errors import SymflopsError
from tests.sampling import sampled

SPECS = next(catalog for catalog in catalogs() if catalog.shipped).specs
SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 50}
LLAMA = {"model_type": "llama", **SMALL}
BERT = {"model_type": "bert", **SMALL}


def llama(config: dict[str, Any]) -> int:
    """The parameters of a Llama, by hand; what a config lacks is that of the 7B."""
    width, layers = config.get("hidden_size", 4096), config.get("num_hidden_layers", 32)
    heads, hidden = config.get("num_attention_heads", 32), config.get("intermediate_size", 11008)
    groups, rows = config.get("num_key_value_heads") or heads, config.get("vocab_size", 32000)
    attention = 2 * width * width + 2 * width * (width // heads) * groups
    tables = rows * width * (1 if config.get("tie_word_embeddings") else 2)
    return tables + width + layers * (attention + 3 * width * hidden + 2 * width)


def gpt2(config: dict[str, Any]) -> int:
    """The parameters of a GPT-2, by hand."""
    width, layers = config.get("n_embd", config.get("hidden_size", 768)), config.get("n_layer", config.get("num_hidden_layers", 12))
    hidden = config.get("n_inner") or 4 * width
    block = 4 * width + 4 * width * width + 4 * width + 2 * width * hidden + hidden + width
    return (config.get("vocab_size", 50257) + config.get("n_positions", 1024)) * width + layers * block + 2 * width


EXACT = {
    "a model type alone": {"model_type": "llama"},
    "fields of a model type": LLAMA,
    "a part of the fields": {"model_type": "llama", "hidden_size": 2048},
    "another part": {"model_type": "llama", "num_hidden_layers": 3, "vocab_size": 77},
    "no architectures": {**LLAMA, "architectures": []},
    "null architectures": {**LLAMA, "architectures": None},
    "the same class twice": {**SMALL, "architectures": ["LlamaForCausalLM"] * 2},
    "a class in both fields": {**SMALL, "architectures": ["LlamaForCausalLM"], "_class_name": "LlamaForCausalLM"},
    "a class and its model type": {**LLAMA, "architectures": ["LlamaForCausalLM"]},
    "a class, and code of its own": {**SMALL, "architectures": ["LlamaForCausalLM"], "model_type": "nova", "auto_map": {"AutoModel": "nova.Nova"}},
    "an empty model type": {**SMALL, "architectures": ["LlamaForCausalLM"], "model_type": ""},
    "a null that means the default": {**LLAMA, "num_key_value_heads": None},
    "token ids and limits": {**LLAMA, "image_token_index": 7, "eot_token_id": [8, 9], "max_seq_len": 4096, "context_length": 4096},
    "rates": {**LLAMA, "dropout": 0.1, "moe_aux_loss_weight": 0.01, "logit_scale_init": 1.0, "use_flash": True, "precision": "bf16"},
    "a named class beside foreign keys": {**SMALL, "architectures": ["LlamaForCausalLM"], "n_layers": 80, "dim": 8192},
    "names that the class maps": {"model_type": "gpt2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    "names of its own": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 50},
}  # fmt: skip
"""Forms that name a model, with nothing in them that counts and is not read."""

REFUSED = {
    "BERT under other names": {"model_type": "bert", "num_layers": 6, "n_head": 12, "hidden_dim": 384, "vocab_size": 30522},
    "Llama under torchtitan's": {"model_type": "llama", "n_layers": 80, "dim": 8192, "n_heads": 64, "n_kv_heads": 8},
    "Llama under GPT-2's": {"model_type": "llama", "n_embd": 768, "n_layer": 12, "n_head": 12},
    "Llama under Megatron's": {"model_type": "llama", "num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 96},
    "Llama under Meta's": {**LLAMA, "multiple_of": 256, "ffn_dim_multiplier": 1.3},
    "GPT-2 under nanoGPT's": {"model_type": "gpt2", "block_size": 256, "n_layer": 6, "n_head": 6, "n_embd": 384},
    "GPT-2 with another limit": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "max_seq_len": 256},
    "T5 under BERT's": {"model_type": "t5", "num_hidden_layers": 6, "hidden_size": 512, "intermediate_size": 1024, "encoder_ffn": 1024},
    "Mixtral under DBRX's": {"model_type": "mixtral", **SMALL, "moe_num_experts": 4, "moe_top_k": 2},
    "ViT under timm's": {"model_type": "vit", "depth": 6, "embed_dim": 384, "num_heads": 6},
    "a ratio": {**LLAMA, "mlp_ratio": 4.0},
    "another ratio": {**LLAMA, "mlp_ratio": 2.67},
    "a list": {**LLAMA, "channels": [64, 128]},
    "a config inside": {"model_type": "llama", "text_config": SMALL},
    "a config inside a list": {"model_type": "llama", "layers": [{"width": 64}, {"width": 64}]},
    "keys with points": {"model_type": "llama", "model.n_layers": 80},
    "a text for a number": {"model_type": "llama", "n_layers": "80"},
    "a text with a unit": {**LLAMA, "size": "70B"},
    "a point in a number": {"model_type": "llama", "n_layers": 80.0},
    "a slip": {"model_type": "llama", "num_hidden_layer": 2},
    "a slip of a class's field": {**SMALL, "architectures": ["LlamaForCausalLM"], "num_hidden_layer": 2, "num_hidden_layers": None},
    "a field as a text": {**LLAMA, "hidden_size": "64"},
    "a field with a point": {**LLAMA, "hidden_size": 64.0},
    "a null that the class refuses": {**LLAMA, "hidden_size": None},
    "two libraries": {**SMALL, "architectures": ["LlamaForCausalLM"], "_class_name": "FluxTransformer2DModel"},
    "two models": {**SMALL, "architectures": ["LlamaForCausalLM", "MistralForCausalLM"]},
    "two models, the other first": {**SMALL, "architectures": ["MistralForCausalLM", "LlamaForCausalLM"]},
    "two classes of one spec": {**SMALL, "architectures": ["LlamaForCausalLM", "LlamaModel"]},
    "a known class and an unknown one": {**SMALL, "architectures": ["LlamaForCausalLM", "NovaForCausalLM"]},
    "the type of another model": {**SMALL, "architectures": ["LlamaForCausalLM"], "model_type": "mistral"},
    "a type of no spec": {**SMALL, "architectures": ["LlamaForCausalLM"], "model_type": "nova"},
    "the type of another model, and code of its own": {**SMALL, "architectures": ["LlamaForCausalLM"], "model_type": "bert", "auto_map": {}},
    "a second spec of a type, and another type": {**SMALL, "architectures": ["BertForMaskedLM"], "model_type": "llama"},
    "a class of diffusers and a type": {"_class_name": "FluxTransformer2DModel", "model_type": "llama"},
    "a class as a text": {**SMALL, "architectures": "LlamaForCausalLM"},
    "numbers for classes": {**LLAMA, "architectures": [3]},
    "a number for a type": {**SMALL, "model_type": 3},
    "a list for a class": {**SMALL, "_class_name": ["FluxTransformer2DModel"]},
    "nothing": SMALL,
}  # fmt: skip


def parameters(config: dict[str, Any], **more: Any) -> tuple[str, int]:
    """The spec and the parameters of a config alone."""
    catalog, spec = by_config(config, **more)
    return spec, interpreted(catalog, spec, config, "forward", "torch", tell=lambda text: None).parameters


@pytest.mark.parametrize("config", EXACT.values(), ids=EXACT)
def test_a_form_that_is_answered_is_counted_by_hand(config: dict[str, Any]) -> None:
    spec, found = parameters(config)
    assert found == {"llama": llama, "gpt2": gpt2}[spec](config)


@pytest.mark.parametrize("config", REFUSED.values(), ids=REFUSED)
def test_a_form_that_contradicts_itself_or_that_nobody_reads_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(SymflopsError) as error:
        parameters(config)
    assert str(error.value) and "\n" not in str(error.value)


@pytest.mark.thorough
@pytest.mark.parametrize("config", EXACT.values(), ids=EXACT)
def test_the_real_class_has_these_parameters(config: dict[str, Any]) -> None:
    import torch
    import transformers

    names = {"llama": "LlamaForCausalLM", "gpt2": "GPT2LMHeadModel"}
    spec, found = parameters(config)
    kind = getattr(transformers, names[spec])
    with torch.device("meta"):
        real = kind(kind.config_class.from_dict({name: value for name, value in config.items() if name != "auto_map"}))
    assert found == sum(one.numel() for one in real.parameters())


NEAREST = {
    ("llama", "n_layers"): "num_hidden_layers",
    ("llama", "num_kv_heads"): "num_key_value_heads",
    ("bert", "hidden_dim"): "hidden_size",
    ("bert", "n_head"): "num_attention_heads",
    ("bert", "num_layers"): "num_hidden_layers",
    ("gpt2", "max_seq_len"): "max_position_embeddings",
}


@pytest.mark.parametrize(("kind", "key"), NEAREST)
def test_the_nearest_key_is_named(kind: str, key: str) -> None:
    with pytest.raises(SymflopsError, match=f"nothing reads its '{key}' .*the nearest key of '{kind}' is '{NEAREST[kind, key]}'"):
        by_config({"model_type": kind, key: 6})


def test_a_class_a_spec_or_lenient_lets_a_number_stand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, path = {**LLAMA, "n_layers": 80}, tmp_path / "config.json"
    path.write_text(json.dumps(config))
    batch, whole = ["--batch", '{"text": [4]}', "--json"], llama(SMALL)
    assert main(["estimate", "--config", str(path), *batch]) == 2 == main(["estimate", str(path), *batch])
    assert "'n_layers'" in capsys.readouterr().err
    commands = (["--config", str(path), "--lenient"], [str(path), "--lenient"], ["llama", "--config", str(path)])
    for words in commands:
        for command in ("estimate", "explain"):
            assert main([command, *words, *batch]) == 0
            assert json.loads(capsys.readouterr().out)["parameters"] == whole
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in (symflops.estimate, estimate):
            for more in ({"lenient": True}, {"spec": "llama"}):
                assert one(config, {"text": [4]}, **more)["parameters"] == whole
            with pytest.raises(SymflopsError, match="n_layers"):
                one(config, {"text": [4]})
        with pytest.raises(SymflopsError, match="n_layers"):
            symflops.explain(config)


def test_the_config_of_an_own_spec_is_read_likewise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "specs/mine").mkdir(parents=True)
    (tmp_path / "specs/mine/own.yaml").write_text(
        "language: 2\nname: own\nmodel_type: own\nsizes:\n  D: {key: width, default: 4}\nstreams: {text: [x]}\ninputs:\n  x: {stream: text, width: D}\n"
        "graph:\n  - up: {op: linear, from: x, width: 2*D, to: y}\noutputs: [y]\n"
    )
    monkeypatch.chdir(tmp_path)
    assert parameters({"model_type": "own", "width": 3}) == ("own", 3 * 6 + 6)
    with pytest.raises(SymflopsError, match="nothing reads its 'dim'"):
        parameters({"model_type": "own", "dim": 3})
    assert parameters({"model_type": "own", "dim": 3}, lenient=True) == ("own", 4 * 8 + 8)


CLASSES = [(name, class_name(reference)) for name, entry in SPECS.items() for reference in entry["references"]]
TYPES = sorted({kind for entry in SPECS.values() for kind in entry["model_types"]})


@pytest.mark.parametrize(("spec", "name"), sampled(CLASSES, 12, 3))
def test_a_class_beside_each_model_type(spec: str, name: str) -> None:
    own = SPECS[spec]["model_types"]
    for kind in own:
        assert by_config({"architectures": [name], "model_type": kind})[1] == spec
    for kind in [kind for kind in TYPES if kind not in own][:: len(TYPES) // 3]:
        with pytest.raises(SymflopsError, match="which of"):
            by_config({"architectures": [name], "model_type": kind})


def test_a_size_of_a_shipped_spec_looks_like_an_id_of_a_token_only_where_positions_begin_behind_it() -> None:
    keys = {key for entry in SPECS.values() for key in entry.get("keys", ())}
    assert len(keys) > 300 and {key for key in keys if is_id(key)} <= {"pad_token_id"}
    assert any(map(is_limit, keys)), "a limit that a spec reads is one that a config must not leave to another name"
