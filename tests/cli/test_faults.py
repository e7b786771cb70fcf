"""What goes wrong beside the work: faults of symflops itself, outputs that cannot be written, locales without UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symflops.cli import list as command
from symflops.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def symflops(*words: str, **more) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}
    return subprocess.run([sys.executable, "-m", "symflops.cli.main", *words], env=environment, cwd=ROOT, timeout=120, check=False, **more)


def test_a_fault_is_one_line_that_asks_for_a_report(monkeypatch, capsys):
    monkeypatch.setattr(command, "run", lambda args: 1 // 0)
    assert main(["list"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "please report" in err and "ZeroDivisionError" in err and "--traceback" in err
    with pytest.raises(ZeroDivisionError):
        main(["list", "--traceback"])


@pytest.mark.parametrize("words", [("list",), ("schema", "spec"), ("explain", "llama")])
def test_a_full_device_is_a_message(words):
    with Path("/dev/full").open("w") as full:
        done = symflops(*words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "No space left" in done.stderr


@pytest.mark.parametrize("words", [("render", "llama", "--format", "markdown"), ("explain", "qwen_image"), ("--help",)])
def test_a_locale_without_utf_8_says_the_same(words):
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    found, expected = (symflops(*words, env=env, capture_output=True) for env in (plain, {"PYTHONUTF8": "1"}))
    assert (found.returncode, found.stderr) == (0, b"") and found.stdout == expected.stdout
