"""The page of everyday questions: each has one line that answers it, with what the line prints."""

from __future__ import annotations

import doctest
import re
import shlex

import pytest

from symflops.cli.main import main
from tests.docs.pages import DOCS, blocks, commands, same

PAGE = DOCS / "questions.md"
SECTIONS = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
BLOCKS = list(blocks(PAGE))


def test_each_question_has_one_answer():
    assert len(SECTIONS) == len(BLOCKS) >= 25
    for section in SECTIONS:
        title, _, body = section.partition("\n")
        assert title.endswith("?") and len(re.findall(r"^```\w+$", body, re.MULTILINE)) == 1, title
        assert len(re.findall(r"^\$ ", body, re.MULTILINE)) == ("console" in body), title


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "console"], ids=lambda block: f"line-{block.line}")
def test_the_command_answers(block, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    ((command, shown),) = commands(block)
    assert main(shlex.split(command)[1:]) == 0
    out, err = capsys.readouterr()
    assert same(shown, out), f"questions.md:{block.line}: run 'python docs/write.py'\n{out}"
    assert "no --batch is given" not in err and "Traceback" not in err


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=lambda block: f"line-{block.line}")
def test_the_python_answers(block, capsys):
    tests = doctest.DocTestParser().get_doctest(block.text, {}, "questions.md", "questions.md", block.line)
    assert tests.examples and not doctest.DocTestRunner().run(tests).failed, capsys.readouterr().out
