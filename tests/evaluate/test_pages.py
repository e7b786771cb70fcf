"""Pages and explanations of one config: conditions decided, numbers and values its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from symflops.cli.main import main
from tests import shipped

CONFIG = {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 10, "q_lora_rank": None}


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return str(tmp_path / "config.json")


def out(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


def test_a_page_of_one_config(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("render", "deepseek_v3", "--full", "--format", "markdown", "--regime", "full", "--convention", "symflops")
    page, general = out(capsys, *words, "--config", path), out(capsys, *words)
    assert "It is of one configuration" in page and "default sizes" not in page and "default sizes" in general
    assert f"\n| {shipped.load('deepseek_v3').estimator(CONFIG).parameters:,} |" in page and "at the sizes of this configuration" in page
    assert "| $L$ | `num_hidden_layers` | $10$ |" in page and "q_a_proj" not in page
    for sign in (r"\min", "^{+}", r"\begin{cases}", r"\varnothing"):
        assert sign in general and sign not in page.replace(r"$(a)^{+}$", "")
    numbers = out(capsys, *words, "--config", path, "--numeric")
    forms = numbers.partition("## Result\n")[2].partition("\n## ")[0]
    assert re.search(r"\\mathrm\{forward\} =\{\}& \d+ ", forms)


def test_an_explanation_of_one_config(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    decided = out(capsys, "explain", "deepseek_v3", "--config", path).partition("closed form")[2]
    assert "max" not in decided and "has_" not in decided and "q_lora_rank = null" in decided
    assumed = out(capsys, "explain", "deepseek_v3", "--assume", "rq=null, K=0").partition("closed form")[2]
    assert "max" not in assumed and "has_" not in assumed and "num_hidden_layers: decoder layers" in assumed
    numbers = out(capsys, "explain", "deepseek_v3", "--numeric").partition("closed form")[2]
    assert "73251692544" in numbers and "num_hidden_layers = 61" in numbers


def test_an_assumption_is_read_as_a_config_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "deepseek_v3", "--assume", "tied=maybe"]) == 2
    assert "not a flag" in capsys.readouterr().err
    assert main(["render", "deepseek_v3", "--format", "markdown", "--assume", "layers=3"]) == 2
    assert "no size 'layers'" in capsys.readouterr().err


def test_a_width_is_of_fragments_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("--format", "latex"), ("--format", "markdown", "--fragment")):
        assert main(["render", "llama", *words, "--width", "column"]) == 2
        assert "--fragment" in capsys.readouterr().err
