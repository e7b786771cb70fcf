"""Figures at the defaults that ``check`` and ``new`` print, and what changed against the spec that is extended or copied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.analysis.headline import headline, rounded
from symflops.cli.main import main
from symflops.read.spec_files import find_spec


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (12, "12"), (999, "999"), (999_999, "1 M"), (6_738_415_616, "6.74 B"), (279_000_000_000, "279 B"), (10**19, "10 E")])
def test_counts_have_three_digits(value: int, text: str) -> None:
    assert rounded(value) == text


def test_experts_are_not_added_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files alone stand on standard output."""
    assert main(["new", "mine", "--like", "llama", "--with", "experts", "-o", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    told = " ".join(err.split())
    assert "mine at its defaults: 279 B parameters, 19.7 B active, 118 GFLOPs per token llama with E = 64 (routed experts), " in told
    assert "6.74 B -> 279 B parameters, 6.74 B -> 19.7 B active, 40.4 G -> 118 GFLOPs per token" in told
    assert [Path(line).parent for line in out.split()] == [tmp_path] * 2 and max(map(len, err.split("\n")[:-2])) <= 80


def test_a_copy_has_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "mine", "--like", "llama", "-o", str(tmp_path)]) == 0
    assert "\nllama: the same figures\n" in capsys.readouterr().err


def test_check_prints_figures_of_named_specs_against_the_one_that_they_extend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "mixtral"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("mixtral at its defaults: 46.7 B parameters, 12.9 B active, 77.3 GFLOPs per token llama with G = 8")
    assert "E = 8 (experts of a layer)" in told and "6.74 B -> 46.7 B parameters" in told
    assert main(["check", "llama", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.parametrize(
    ("size", "streams", "told"),
    [("key: width", "[x]", ""), ("key: width, default: 8", "[x]", "small at its defaults: 72 parameters, 72 active"), ("key: width, default: 8", "[]", "small at its defaults: 72 parameters, 72 active")],
)
def test_figures_that_the_defaults_do_not_decide_are_left_out(tmp_path: Path, size: str, streams: str, told: str) -> None:
    text = f"language: 2\nname: small\nsizes: {{D: {{{size}}}}}\nstreams: {{text: {streams}}}\ninputs: {{t: {{stream: text, width: D}}}}\ngraph: [{{o: {{op: linear, from: t, width: D}}}}]\noutputs: [o]\n"
    (tmp_path / "small.yaml").write_text(text, "utf-8")
    assert headline(find_spec(tmp_path / "small.yaml")).startswith(told) and bool(told) is bool(headline(find_spec(tmp_path / "small.yaml")))
