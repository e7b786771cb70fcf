"""Hints that lead on: commas, slips, decimals, paths and conditions in what ``symflops check`` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.formula.identifiers import RESERVED

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


@pytest.mark.parametrize(
    ("width", "hint"),
    [
        ("2D*n", "write 2*D*n"),
        ("4(D + n)", "write * between the factors of a product"),
        ("'D if n % 2 = 1 else n'", "write D if n % 2 == 1 else n"),
        ("'D if n = 1 && q = null else n'", "write D if n == 1 and q == null else n"),
        ("D^2", "write ** for a power"),
        ("8k", "write 8000 for 8k, or 8*k for a product"),
        ("1.5M", "write 1500000 for 1.5M"),
        ("64 channels", "write 64: a number has no unit"),
        ("1e3", "write 1000"),
        ("1_024", "write 1024"),
        ("'D +'", "arithmetic over sizes"),
    ],
)
def test_slips_from_other_notations(tmp_path: Path, width: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The hint has the text that was meant, or the way to write it."""
    (found,) = told(tmp_path, f"  - a: {{op: linear, from: t, width: {width}, to: a}}\n", capsys)
    assert found["code"] == "bad-expression" and found["hint"].startswith(hint), found["hint"]


@pytest.mark.parametrize(("flag", "hint"), [("yes", "write true"), ("True", "write true"), ("on", "write true"), ("0", "write false"), ("no", "write false"), ("maybe", "")])
def test_flags_are_true_or_false(tmp_path: Path, flag: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    head = HEAD.replace("optional: true", f"optional: {flag}")
    assert hint in [one["hint"] for one in told(tmp_path, "  - a: {op: linear, from: t, width: D, to: a}\n", capsys, head) if one["code"] == "bad-shape"]


@pytest.mark.parametrize(("words", "whole"), [("heads, of queries", "heads, of queries"), ("a, b, and c", "a, b, and c"), ("width (of a head, or all)", "width (of a head, or all)")])
def test_a_comma_in_a_doc_is_quoted(tmp_path: Path, words: str, whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A field after the text is one still."""
    head = HEAD.replace("n: {key: n,", f"n: {{key: n, doc: {words},")
    (found,) = told(tmp_path, "  - a: {op: linear, from: t, width: n, to: a}\n", capsys, head)
    assert found["hint"] == f'quote it: doc: "{whole}"' and found["code"] == "bad-text"


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


ROWS = HEAD.replace("{text: [x]}", "{text: [x], sample: []}").replace("inputs: {", "inputs: {c: {stream: sample, width: D}, ")


@pytest.mark.parametrize("kind", ["add", "mul"])
def test_operands_in_the_wrong_order(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The shorter one stands first: the hint turns them round, and that works."""
    (found,) = told(tmp_path, f"  - a: {{op: {kind}, from: [c, t]}}\n", capsys, ROWS)
    assert found["hint"] == "the result has the rows of the first operand: write 't' before 'c'"
    assert told(tmp_path, f"  - a: {{op: {kind}, from: [t, c]}}\n", capsys, ROWS) == []


def test_pairs_of_a_stream_do_not_go_with_folds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The hint names what does go with them."""
    head = HEAD.replace("{text: [x]}", "{text: [x, z], links: {over: links, axes: [e]}}")
    attention = "  - a: {{op: attention, heads: n, query: t, key: t, value: t, sees: {}, fold: x}}\n"
    (found,) = told(tmp_path, attention.format("links"), capsys, head)
    assert "a formula of 'row'" in found["hint"] and "'reshape' the folded axes" in found["hint"]
    assert told(tmp_path, attention.format('"row + 1"'), capsys, head) == []


def test_explain_says_which_tokens_it_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two texts of 7 tokens, whose attention runs over patches of 2: 8 tokens, and the line says of what."""
    attention = "  - {op: attention, heads: n, query: p, key: p, value: p, to: p}\n  - a: {op: linear, from: p, width: D}\n"
    patches, same = '  - {op: pool, from: t, stream: {p: "ceil(x, 2)"}, to: p}\n', "  - {op: identity, from: t, to: p}\n"
    for text, said in ((patches, "8 tokens (queries of the first attention)"), (same, "14 tokens,")):
        assert told(tmp_path, text + attention, capsys) == []
        main(["explain", str(tmp_path / "small.yaml"), "--batch", '{"text": [7, 7]}'])
        assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "hint"),
    [("compare llama qwen3", "'symflops diff A B' compares two"), ("explain llama 4096", "lengths follow --batch"), ("mfu llama --seq-len 9 --peak 1 --seconds 1", "lengths follow --batch"),
     ("estimate llama --batch-size 8", "did you mean '--batch'?"), ("check llama --bla", "'symflops check --help' lists the options")],
)  # fmt: skip
def test_a_word_that_no_argument_takes_has_a_hint(words: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert f": {hint}" in capsys.readouterr().err.replace("it takes one model; ", "")


def test_every_reserved_name_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/language.md").read_text("utf-8")
    assert [name for name in sorted(RESERVED) if f"`{name}`" not in page] == []
