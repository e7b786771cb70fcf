"""Hints that lead on: commas, slips, decimals, paths and conditions in what ``symflops check`` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.cli.main import main

HEAD = """language: 2
name: small
sizes: {D: {key: width, default: 4}, n: {key: n, default: 2}, word: {key: word, type: text, default: "'a'"}, q: {key: q, type: int, optional: true}}
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
"""


def told(folder: Path, graph: str, capsys: pytest.CaptureFixture[str], head: str = HEAD) -> list[dict[str, str]]:
    """The errors of a spec."""
    (folder / "small.yaml").write_text(f"{head}{graph}outputs: [a]\n", "utf-8")
    main(["check", str(folder / "small.yaml"), "--output-format", "json"])
    return [one for one in json.loads(capsys.readouterr().out)["findings"] if one["severity"] == "error"]


@pytest.mark.parametrize("text", ["max(D, n)", "min(D, max(n, 3), 4)"])
def test_a_text_with_a_comma_is_quoted(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One finding, with the text that was meant."""
    (found,) = told(tmp_path, f"  - a: {{op: linear, from: t, width: {text}, to: a}}\n", capsys)
    assert found["hint"] == f'quote it: width: "{text}"'


def test_a_misspelt_parameter_is_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is misspelt is not missing, too."""
    (found,) = told(tmp_path, "  - a: {block: gated_mlp, from: t, hiden: 4*D, width: D, to: a}\n", capsys)
    assert found["code"] == "unknown-field" and "'hidden'" in found["hint"]
    both = told(tmp_path, "  - a: {block: gated_mlp, from: t, wdth: 3, bogus: 1, to: a}\n", capsys)
    assert sorted(one["code"] for one in both) == ["missing-field", "unknown-field", "unknown-field"]


def test_a_decimal_default_is_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What reads the input afterwards is not told again."""
    head = HEAD.replace("default: 4}", "default: 4.0}")
    (found,) = told(tmp_path, "  - a: {op: linear, from: t, width: n, to: a}\n", capsys, head)
    assert "write 4, not 4.0" in found["hint"]


def test_a_decimal_in_a_config(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The message says what to write."""
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 4.0}', "utf-8")
    main(["estimate", "llama", "--config", str(tmp_path / "config.json"), "--batch", '{"text": [3]}'])
    assert "4.0, not a count: write 4" in capsys.readouterr().err
    main(["estimate", "llama", "--batch", '{"text": [3.0]}'])
    assert "not 3.0: write 3" in capsys.readouterr().err


@pytest.mark.parametrize("condition", ["word == 'a'", "q != null", "q == null", "n >= 3", "word != 'b'"])
def test_conditions_are_those_of_the_spec(tmp_path: Path, condition: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A hint says a condition as an author writes it."""
    entries = f'  - u: {{op: linear, from: t, width: D, when: "{condition}", to: u}}\n  - a: {{op: linear, from: u, width: D, to: a}}\n'
    (found,) = told(tmp_path, entries, capsys)
    assert found["hint"] == f"it is there only if {condition}"


def test_paths_open_from_the_working_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a block of the library, too."""
    monkeypatch.chdir(tmp_path)
    found = told(tmp_path, '  - a: {block: self_attention, from: t, heads: n, width: "D/3", to: a}\n', capsys)
    assert {Path(one["path"]).name for one in found} == {"self_attention.yaml"}
    assert all(Path(one["path"]).is_file() for one in found)
