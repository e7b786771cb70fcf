"""Completion: what may follow a line, for every command."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from symflops.cli.completion import SCRIPTS, candidates
from symflops.cli.main import COMMANDS, main
from symflops.training.devices.peaks import called, table
from tests.shipped import NAMES


def may(*words: str) -> set[str]:
    *before, last = words
    return {word for word in candidates(before, last) if word.startswith(last)}


def test_commands_options_and_names_are_completed():
    assert may("ex") == {"explain"} and set(COMMANDS) < may("")
    assert may("explain", "llama", "--conv") == {"--convention"}
    assert may("explain", "qwen3_n") == {"qwen3_next"} and set(NAMES) < may("explain", "")
    assert may("explain", "sdx") == {"sdxl-1024px", "sdxl-inpainting", "sdxl-refiner"} and "sd15" in may("explain", "sd1")  # two specs have a variant sdxl
    assert may("explain", "Qwen/Qwen3-3") == {"Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-32B"}
    assert may("estimate", "llama", "--regime", "lo") == {"lora"}
    assert may("compare", "llama", "--conventions", "symflops,megatron-") == {"symflops,megatron-bridge"}
    assert may("compare", "llama", "--regimes", "full,che") == {"full,checkpointed"}
    assert may("list", "") == {"specs", "models", "regimes", "conventions", "blocks", "operators", "devices"}
    assert may("graph", "llama", "--format", "d") == {"dot"}
    assert may("nothing", "") == set() and may("explain", "--json", "llam") >= {"llama"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_completed(command):
    assert {"--help", "-h"} <= may(command, "-")


def test_devices_are_completed_by_words_that_mean_them():
    found = may("mfu", "--peak", "")
    assert "h100-sxm" in found
    for word in found:
        assert called(word)[0] in {row.name for row in table()}, word


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_ask_for_words(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "symflops completion words" in script
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True, capture_output=True).returncode == 0
    else:
        assert shell != "bash" or sys.platform == "win32"


def test_words_are_printed(capsys):
    assert main(["completion", "words", "--", "explain", "qwen3_n"]) == 0
    assert capsys.readouterr().out == "qwen3_next\n"
    assert main(["completion", "words"]) == 0
    assert "explain" in capsys.readouterr().out.split()


def test_fish_offers_files_only_where_no_word_may_follow(tmp_path):
    (tmp_path / "model.yaml").write_text("")
    lines = {"symflops expl": ["explain"], "symflops render llama --format ": ["html", "latex", "markdown", "pdf"], "symflops render ./mod": ["./model.yaml"]}
    ask = "\n".join(f"echo :; complete -C'{line}'" for line in lines)
    if shutil.which("fish"):
        done = subprocess.run(["fish", "--no-config"], input=f"{SCRIPTS['fish']}\n{ask}", text=True, capture_output=True, cwd=tmp_path)
        found = [part.split() for part in done.stdout.split(":\n")[1:]]
        assert found == list(lines.values())
