"""``symflops render``: formats, what is on a page, what a user is told where something is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symflops.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["render", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_page_in_the_order_of_a_reader(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "qwen_image", "--full", "--format", "markdown")
    assert code == 0
    assert re.findall(r"^## (.*)$", out, re.MULTILINE) == [
        "Result", "By module", "Streams", "Definitions", "Steps 1 and 2: both passes, product by product", "Step 3: closed forms",
        "Why backward is not twice forward", "How the cost grows", "Regimes and conventions", "What other conventions say", "Parameters", "Step 4: verification",
    ]
    assert "\n| 20,430,401,088 |" in out
    assert re.search(r"^\| `lora` \| 23,592,960 \|", out, re.MULTILINE)
    assert "At the default sizes that is from $x$ = 17,412 on." in out
    for display in re.findall(r"\\begin\{aligned\}.*?\\end\{aligned\}", out, re.DOTALL):  # a result stands above what it is written with
        assert "^{*} ={}&" not in display or display.index("^{*} ={}&") < display.index(r"\alpha =")


def test_other_conventions_are_told_with_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "linear", "--format", "markdown", "--against", "torch")
    assert code == 0 and "What other conventions say" not in out  # without sizes there are no figures
    code, out, _ = run(capsys, "llama", "--format", "markdown", "--against", "torch,palm")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| ([\d.]+) \| (.*?) \|$", out.partition("What other conventions")[2], re.MULTILINE)
    assert code == 0 and [row[0] for row in rows[:3]] == ["symflops", "torch", "palm"]
    assert rows[0][2] == "1.0000" and rows[1][3] == "attention on all pairs, not on the pairs that a mask leaves"


def test_an_unknown_convention_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "llama", "--format", "markdown", "--against", "palmm")
    assert code == 2 and not out and "palm" in err


def test_a_pdf_needs_tex(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = run(capsys, "llama", "--format", "pdf", "-o", str(tmp_path))
    assert code == 2 and not out and "latexmk" in err and "--format latex" in err
    assert not list(tmp_path.glob("*.pdf"))


def test_a_pdf_has_no_fragments(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "llama", "--format", "pdf", "--fragment")
    assert code == 2 and "only in latex, markdown" in err


def test_latex_that_fails_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stand-ins for the tools: one that fails as LaTeX does, with a log that names the line, or without one."""
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))
    log = "#!/bin/sh\nprintf 'This is pdfTeX\\n./llama.tex:12: Undefined control sequence.\\nl.12\\n' > llama.log\nexit 12\n"
    for name, text in (("pdflatex", "#!/bin/sh\n"), ("latexmk", log)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    code, _, err = run(capsys, "llama", "--format", "pdf", "-o", str(tmp_path / "out"))
    assert code == 2 and not (tmp_path / "out").exists()
    document, logged = re.search(r"(\S+\.tex):12: Undefined control sequence.\n  log: (\S+\.log):2\n", err).groups()
    assert Path(document).read_text().startswith("% Generated") and "Undefined" in Path(logged).read_text()
    (tmp_path / "latexmk").write_text("#!/bin/sh\necho '! Undefined control sequence.'\nexit 12\n")
    assert re.search(r"! Undefined control sequence.\n  log: \S+\.log:1\n", run(capsys, "llama", "--format", "pdf", "-o", str(tmp_path / "out"))[2])


def test_a_file_or_a_folder_is_written_to(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for out, path in (("page.md", "page.md"), ("folder", "folder/linear.md"), ("other.tex", "other.tex/linear.md")):
        assert main(["render", "linear", "--format", "markdown", "-o", str(tmp_path / out)]) == 0
        assert (tmp_path / path).read_text().startswith("<!--") and str(tmp_path / path) in capsys.readouterr().err
