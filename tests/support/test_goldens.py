"""Every kind of finding has an entry in the table and a golden: the smallest spec that has it, and how it is told."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.support.findings import kinds
from tests.support.cases import CASES, FOLDER, shown

PACKAGE = Path(__file__).resolve().parents[2] / "symflops"
REPORTING = {"fail", "warn", "_fail", "refuse", "error", "_error", "Diagnostic"}
CODE = re.compile(r"[a-z]+(-[a-z]+)*")
HEAD = re.compile(r"^(?:[\w./]+:\d+:\d+: )?(error|warning|note)\[([a-z-]+)\]: (.*)$", re.MULTILINE)


def reported() -> dict[str, str]:
    """Every code that the package reports, and a file that does."""
    found: dict[str, str] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            given = node.args[:1] if name in REPORTING else []
            given += [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            for word in given:
                if isinstance(word, ast.Constant) and isinstance(word.value, str) and CODE.fullmatch(word.value):
                    found[word.value] = path.name
    return found


def test_every_kind_is_in_the_table_has_a_golden_and_is_reported():
    assert set(kinds()) == set(reported()) == set(CASES)
    assert len(kinds()) >= 20
    assert list(kinds()) == sorted(kinds())


@pytest.mark.parametrize("case", CASES)
def test_a_finding_is_told_as_its_golden_says(case):
    code, text = shown(case)
    assert text == (FOLDER / case / "expected.txt").read_text("utf-8"), "python -m tests.support.cases writes the goldens anew"
    told = HEAD.findall(text)
    assert case in {found for _, found, _ in told} <= kinds().keys()
    assert code == any(severity == "error" for severity, _, _ in told)
    assert not any(message.endswith(".") or message[0].isupper() and not re.match(r"[A-Z]\b", message) for _, _, message in told)
    assert "= hint: " in text and "Traceback" not in text


@pytest.mark.parametrize("case", CASES)
def test_marks_stand_under_what_they_are_about(case):
    lines = (FOLDER / case / "expected.txt").read_text("utf-8").split("\n")
    for line, below in zip(lines, lines[1:], strict=False):
        if re.match(r" *\| [ \t]*\^", below) and re.match(r" *\d+ \| ", line):
            marks = re.search(r"\^+", below)
            assert marks and (line[marks.start() : marks.end()].strip() or case == "tab-indent")


@pytest.mark.parametrize("kind", kinds())
def test_a_kind_is_explained(kind, capsys):
    assert main(["check", "--explain", kind]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{kind}\n\n") and len(out.split()) > 8


def test_a_kind_that_there_is_not_is_a_mistake_of_usage(capsys):
    assert main(["check", "--explain", "width-mismach"]) == 2
    assert "did you mean 'width-mismatch'" in capsys.readouterr().err
