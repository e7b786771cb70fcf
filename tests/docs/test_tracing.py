"""The page about traces runs, and its commands are ones that there are."""

import argparse
import re
import shlex
import subprocess
import sys

import pytest

from symflops.cli import trace, verify
from tests.docs.pages import DOCS, blocks, commands, run, same

PAGE = DOCS / "tracing.md"


@pytest.mark.thorough
def test_the_example_runs_word_for_word(tmp_path):
    ran, code = 0, ""
    for block in blocks(PAGE):
        if block.caption:
            (tmp_path / block.caption).write_text(block.text, "utf-8")
        elif block.language == "python":
            code += block.text + "\n"
        for command, shown in commands(block):
            status, printed = run(command, tmp_path)
            assert status == 0, printed
            assert same(shown, printed), f"{PAGE.name}:{block.line}\n{printed}"
            ran += 1
    assert ran == 1
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_all_commands_are_understood():
    found = re.findall(r"^(?:\$ )?symflops trace (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(found) == 4
    parser = argparse.ArgumentParser()
    trace.configure(parser)
    for line in found:
        assert parser.parse_args(shlex.split(line)).reference
    (line,) = re.findall(r"^symflops verify (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    parser = argparse.ArgumentParser()
    verify.configure(parser)
    assert parser.parse_args(shlex.split(line)).symbolic
