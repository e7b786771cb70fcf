"""What an answer rests on: the ledger of an estimate."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from symflops import estimate
from symflops.api import load
from symflops.cli.main import main
from symflops.evaluate.evidence import AS_SPECIFIED, summary
from symflops.evaluate.unread import EVERYWHERE
from symflops.library.lookup import by_config, estimator
from symflops.support.errors import SymflopsError
from symflops.verify.records import read_records

KEYS = ["grade", "class", "named_by", "read", "defaulted", "unread", "census", "records", "why", "exception"]
SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}


def ledger(config: dict[str, object], **more: object) -> dict[str, object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: dict[str, object] = estimate(config, {"text": [3]}, **more)["evidence"]
    return found


def test_every_field_is_read_or_defaulted() -> None:
    found = ledger({"architectures": ["LlamaForCausalLM"], **SMALL})
    assert list(found) == KEYS
    assert found["class"] == "LlamaForCausalLM" and found["named_by"] == "architectures"
    assert found["read"] == ["num_hidden_layers", "hidden_size", "num_attention_heads"]
    assert "vocab_size" in found["defaulted"] and "hidden_size" not in found["defaulted"]
    assert found["unread"] == []
    assert found["records"] > 0


@pytest.mark.parametrize(
    ("config", "named_by", "name"),
    [
        ({"model_type": "llama"}, "model_type", "LlamaForCausalLM"),
        ({"model_type": "llama", "architectures": ["LlamaModel"]}, "architectures", "LlamaModel"),
        ({"architectures": ["LlamaForTokenClassification"]}, "architectures", "LlamaForTokenClassification"),
    ],
)
def test_what_named_the_class_is_told(config: dict[str, object], named_by: str, name: str) -> None:
    found = ledger({**SMALL, **config})
    assert (found["named_by"], found["class"]) == (named_by, name)


def test_the_first_class_of_a_spec_stands_for_a_config_that_names_none() -> None:
    found = ledger(SMALL, spec="llama")
    assert (found["named_by"], found["class"]) == (None, "LlamaForCausalLM")


def test_a_spec_of_no_library_class_is_as_specified(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "language: 2\nname: mine\nsizes:\n  D: {key: width, default: 4}\nstreams: {text: [x]}\ninputs:\n  x: {stream: text, width: D}\n"
        "graph:\n  - up: {op: linear, from: x, width: 2*D, to: y}\noutputs: [y]\n"
    )
    found = load(path).estimator({"width": 8, "colour": 3}).evidence
    assert found["grade"] == AS_SPECIFIED and found["class"] is None and found["unread"] == ["colour"]
    assert found["why"] == "the spec names no class of a library"
    assert all(len(line) < 200 for line in summary(found))


@pytest.mark.parametrize("key", ["hidden_sise", "hiden_size", "hidden_sizes", "num_hidden_layer", "num_attention_head", "vocab_sizee"])
def test_a_misspelt_field_is_refused_wherever_a_config_is_read(key: str) -> None:
    config = {"architectures": ["LlamaForCausalLM"], key: 8192}
    with pytest.raises(SymflopsError, match=f"the config has '{key}', which nothing reads, and no '.*': is it misspelt"):
        estimate(config, {"text": [3]})
    with pytest.raises(SymflopsError, match="is it misspelt"):
        load("llama").estimator(config)
    with pytest.raises(SymflopsError, match="is it misspelt"):
        estimator(*by_config(config), config)


def test_a_key_beside_the_one_it_resembles_is_told_and_not_refused() -> None:
    found = load("llama").estimator({"hidden_size": 64, "hidden_sise": 3})
    assert found.evidence["unread"] == ["hidden_sise"]
    assert (found.evidence["grade"], found.evidence["why"]) == (AS_SPECIFIED, "nothing reads the config's hidden_sise")
    assert found.unread == ["nothing reads the config's 'hidden_sise'; there is 'hidden_size'"]


def test_strict_refuses_every_key_that_nothing_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], **SMALL, "flux_capacitors": 3, "use_cache": True}))
    words = ["estimate", "--config", str(path), "--batch", '{"text": [4]}', "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["evidence"]["unread"] == ["flux_capacitors"]
    assert main([*words, "--strict"]) == 2
    assert "nothing reads the config's 'flux_capacitors' (--strict)" in capsys.readouterr().err


def test_explain_shows_it_in_two_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["explain", "llama"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = next(row for row, line in enumerate(lines) if line.startswith("evidence: "))
    assert "LlamaForCausalLM" in lines[place] and "by default" in lines[place + 1]


@pytest.mark.thorough
def test_no_config_of_a_measured_record_is_refused_for_its_keys() -> None:
    owners = {name: spec for spec, name in _classes()}
    for record in read_records(Path(__file__).parents[1] / "data" / "truth"):
        config = {"architectures": [record["class"]], **record["config_json"]}
        spec = by_config({"architectures": [record["class"]]})
        if record["class"] in owners and "tiny-a" in record["id"]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator(*spec, {**record["config_json"], "architectures": config["architectures"]})


def _classes() -> list[tuple[str, str]]:
    from symflops.library.catalog import catalogs

    specs = catalogs()[-1].specs
    return [(name, reference.rpartition(".")[2]) for name, entry in specs.items() for reference in entry["references"]]


@pytest.mark.thorough
def test_keys_of_every_config_are_those_of_the_libraries() -> None:
    words = "import json; from transformers import PretrainedConfig; print(json.dumps(sorted(PretrainedConfig().to_dict())))"
    found = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout
    assert set(json.loads(found.splitlines()[-1])) <= EVERYWHERE
