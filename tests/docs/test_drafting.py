"""The page about drafts runs, and its commands are ones that there are."""

import argparse
import re
import shlex

import pytest

from symflops.cli import draft
from tests.docs.pages import DOCS, blocks, commands, run, same

PAGE = DOCS / "drafting.md"


@pytest.mark.thorough
def test_the_example_runs_word_for_word(tmp_path):
    ran = 0
    for block in blocks(PAGE):
        if block.caption:
            (tmp_path / block.caption).write_text(block.text, "utf-8")
        for command, shown in commands(block):
            status, printed = run(command, tmp_path)
            assert status == 0, printed
            assert same(shown, printed), f"{PAGE.name}:{block.line}\n{printed}"
            ran += 1
    assert ran == 2


def test_all_commands_are_understood():
    text = PAGE.read_text("utf-8").replace("\\\n", " ")
    found = re.findall(r"^(?:\$ )?symflops draft (.*)$", text, re.MULTILINE)
    assert len(found) == 5
    parser = argparse.ArgumentParser()
    draft.configure(parser)
    for line in found:
        assert parser.parse_args(shlex.split(line)).reference
