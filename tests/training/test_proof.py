"""A config's own class is built on the meta device by another process, and its parameters are compared."""

from __future__ import annotations

import json

import pytest

import symflops
from symflops.cli.main import main
from symflops.training.introspect import proof

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64}
WAN = {"_class_name": "WanTransformer3DModel", "num_layers": 2, "num_attention_heads": 2, "attention_head_dim": 16, "ffn_dim": 64}
BATCH = {"text": [8]}


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A cache of its own, and the number of classes that were built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls = []
    real = proof.built_elsewhere
    monkeypatch.setattr(proof, "built_elsewhere", lambda request: calls.append(request) or real(request))
    return calls


@pytest.mark.thorough
def test_a_proof_is_remembered(counted, tmp_path, capsys):
    assert symflops.estimate(LLAMA, BATCH, prove=True)["evidence"]["grade"] == "proven for all sizes"
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    for _ in range(2):
        assert main(["estimate", "--config", str(path), "--batch", json.dumps(BATCH), "--prove", "--json"]) == 0
    out, error = capsys.readouterr()
    assert "proven here: transformers.LlamaForCausalLM" in error and "all accounted for" in error
    assert json.loads(out.splitlines()[-1])["evidence"]["grade"] == "proven for all sizes"
    assert len(counted) == 1
    assert symflops.estimate(LLAMA, BATCH)["evidence"]["grade"] != "proven here"


@pytest.mark.thorough
def test_a_class_of_diffusers(counted):
    assert symflops.estimate(WAN, {"latent": [[2, 4, 4]], "prompt": [7]}, prove=True)["evidence"]["grade"] == "proven for all sizes"


@pytest.mark.thorough
def test_code_that_a_config_names_does_not_run(counted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("modeling_evil", "transformers", "torch"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    config = {**LLAMA, "auto_map": {"AutoModelForCausalLM": "modeling_evil.LlamaForCausalLM"}}
    symflops.estimate(config, BATCH, prove=True)
    assert len(counted) == 1 and not (tmp_path / "ran").exists()


def test_what_differs_or_cannot_be_built_is_told(counted, monkeypatch):
    monkeypatch.setattr(proof, "built_elsewhere", lambda request: json.dumps({"parameters": 1, "differences": ["a.weight [2] is not in the spec"]}))
    with pytest.raises(symflops.SymflopsError, match=r"is not what 'llama' describes: a\.weight \[2\] is not in the spec"):
        symflops.estimate(LLAMA, BATCH, prove=True)
    monkeypatch.undo()
    with pytest.raises(symflops.SymflopsError, match="names no class of transformers or diffusers"):
        proof.reference_of(proof.lookup.by_name("linear"), "linear", {})
    monkeypatch.setattr(proof.metadata, "version", lambda name: (_ for _ in ()).throw(proof.metadata.PackageNotFoundError))
    with pytest.raises(symflops.SymflopsError, match=r"a proof needs transformers: pip install symflops\[verify\]"):
        symflops.estimate(LLAMA, BATCH, prove=True)
