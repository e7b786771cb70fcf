"""Fragments of LaTeX paste into papers of one and of two columns: no row, sentence or table is wider than its place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.emit.latex.fragments import render_fragments
from symflops.ir.program import Program
from tests.external.test_tex import ALL, crowded, tools  # noqa: F401
from tests.sampling import sampled
from tests.shipped import NAMES, load

pytestmark = pytest.mark.system
OTHERS = [name for name in NAMES if name not in ALL]
CLASSES = {"page": r"\documentclass{article}", "column": r"\documentclass[twocolumn]{article}"}


def paper(pieces: dict[str, str], wide: str, folder: Path) -> str:
    """The log of a paper that has all pieces of a model."""
    needed = {line for text in pieces.values() for line in re.findall(r"\\usepackage(?:\[\w+\])?\{[\w,]+\}", text)}
    body = []
    for piece, text in pieces.items():
        (folder / f"{piece}.tex").write_text(text)
        place = piece in ("symbols", "modules") and wide == "page" and "longtable" not in text
        body.append(rf"\begin{{table}}[p]\input{{{piece}}}\end{{table}}" if place else rf"\input{{{piece}}}")
    lines = [CLASSES[wide], *sorted(needed), r"\begin{document}", "Some words.", *body, r"\end{document}"]
    (folder / "paper.tex").write_text("\n".join(lines) + "\n")
    for _ in range(2):  # references
        command = ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    return (folder / "paper.log").read_text(errors="replace")


def program(name: str) -> Program:
    """The program that a user's fragments are of."""
    return crowded() if name == "crowded" else load(name).typical(["full", "forward"])


@pytest.mark.parametrize("wide", ["page", "column"])
@pytest.mark.parametrize("name", sampled([*ALL, *OTHERS], 9, 9))
def test_nothing_is_wider_than_its_place(name: str, wide: str, tmp_path: Path) -> None:
    log = paper(render_fragments(program(name), "0.1.0", wide), wide, tmp_path)
    assert not re.search(r"Overfull \\hbox|Float too large|multiply defined|undefined", log)


def test_what_is_long_everywhere_fits_a_column(tmp_path: Path) -> None:
    log = paper(render_fragments(crowded(), "0.1.0", "column"), "column", tmp_path)
    assert all(float(points) <= 5 for points in re.findall(r"Overfull \\hbox \(([0-9.]+)pt", log))


def test_fragments_of_one_checkpoint(tmp_path: Path) -> None:
    words = ["render", "deepseek_v3", "--format", "latex", "--fragment", "--width", "column", "--numeric", "-o", str(tmp_path)]
    assert main([*words, "--regime", "full", "--convention", "symflops"]) == 0
    pieces = {path.stem.rpartition("-")[2]: path.read_text() for path in tmp_path.glob("*.tex")}
    assert "73251692544 \\, S_{x}" in pieces["forms"] and "% @software{symflops," in pieces["forms"]
    assert not re.search("Overfull|undefined", paper(pieces, "column", tmp_path))
