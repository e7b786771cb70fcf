"""What stands beside the specs about the reading of configs is what their classes say."""

from __future__ import annotations

import json

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.read.spec_files import SpecFile, chosen_specs, shipped, specs_in
from symflops.verify.class_reading import reading_of
from tests.sampling import sampled

FILES = sampled(list(specs_in(shipped("specs"))), 64, 8)


@pytest.mark.parametrize("file", FILES, ids=lambda file: getattr(file, "name", None))
def test_the_reading_of_a_spec_is_what_its_classes_say(file: SpecFile) -> None:
    model = load(file)
    assert reading_of(model) == model.spec.reading, f"run 'symflops reading {file.name}' and 'symflops generate {file.name}'"


def test_a_file_that_differs_is_told_and_written_again(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "specs/language").mkdir(parents=True)
    for name in ("gpt2.yaml", "gpt2.cases.yaml"):
        (tmp_path / "specs/language" / name).write_text((shipped("specs") / "language" / name).read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "specs/language/gpt2.reading.json"
    assert main(["reading", "gpt2", "--check"]) == 1
    assert "gpt2.yaml: the reading differs" in capsys.readouterr().out
    assert not path.exists()
    assert main(["reading", "gpt2"]) == 0
    assert path.read_text("utf-8") == (shipped("specs") / "language/gpt2.reading.json").read_text("utf-8")
    assert main(["reading", "gpt2", "--check"]) == 0
    assert chosen_specs(["gpt2"])[0].reading()["tables"]["GPT2Config"]["names"]["n_embd"] == {"hidden_size": [], "n_embd": []}


def test_a_list_that_the_class_makes_and_the_spec_does_not_must_be_written(tmp_path, monkeypatch, capsys) -> None:
    """Qwen2-MoE makes ``layer_types`` of ``use_sliding_window``: a spec that reads the list alone refuses one without the other."""
    (tmp_path / "specs/language").mkdir(parents=True)
    text = (shipped("specs") / "language/qwen2_moe.yaml").read_text("utf-8")
    whole = "(i % 2 == 0 and i < last if kinds == null else kinds[i] == 'sliding_attention')"
    assert whole in text
    kept = (line for line in text.splitlines() if "max_window_layers" not in line and "no layer with a window" not in line)
    listed = "\n".join(kept).replace(whole, "kinds != null and kinds[i] == 'sliding_attention'")
    (tmp_path / "specs/language/qwen2_moe.yaml").write_text(listed, "utf-8")
    (tmp_path / "specs/language/qwen2_moe.cases.yaml").write_text((shipped("specs") / "language/qwen2_moe.cases.yaml").read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["reading", "qwen2_moe"]) == 0
    batch = '{"text": [64]}'
    config = {"architectures": ["Qwen2MoeForCausalLM"], "use_sliding_window": True, "num_hidden_layers": 2, "max_window_layers": 2}
    assert main(["estimate", "qwen2_moe", "--config", json.dumps(config), "--batch", batch]) != 0
    assert "'layer_types'" in capsys.readouterr().err
    listed_config = config | {"layer_types": ["sliding_attention", "full_attention"]}
    assert main(["estimate", "qwen2_moe", "--config", json.dumps(listed_config), "--batch", batch]) == 0
