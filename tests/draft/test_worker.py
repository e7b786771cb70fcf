"""A draft whose module hangs, or takes too much memory, is given up with what was found."""

import json
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.draft.draft import draft_in_process
from symflops.draft.trace.steps import Subject
from symflops.support.errors import SymflopsError
from symflops.verify import limits
from symflops.verify.limits import TooLongError, within

MODULES = str(Path(__file__).parent / "slow_models.py")
INPUTS = {"x": {"shape": [2, 6], "dtype": "float32"}}


def test_what_takes_too_long_is_interrupted():
    with pytest.raises(TooLongError), within(0.05):
        while True:
            pass


def test_what_waits_too_long_is_interrupted(monkeypatch):
    monkeypatch.setattr(limits, "IDLE", 2)
    with pytest.raises(TooLongError), within(0.05):
        time.sleep(60)


@pytest.mark.thorough
def test_a_size_at_which_a_module_hangs_is_one_that_it_does_not_accept():
    found = draft_in_process(Subject(f"{MODULES}:HangsWhenWide", {"width": 6, "wide": 12}, INPUTS), 12.0, lambda _: None)
    assert found.text
    assert "wide" in found.stuck


@pytest.mark.thorough
def test_a_process_that_ends_keeps_what_was_found():
    with pytest.raises(SymflopsError, match="ended with code 7"):
        draft_in_process(Subject(f"{MODULES}:Dies", {"width": 6, "at": 6}, INPUTS), 120.0, lambda _: None)
    found = draft_in_process(Subject(f"{MODULES}:Dies", {"width": 6, "at": 7}, INPUTS), 120.0, lambda _: None)
    assert "ended with code 7" in found.given_up
    assert all(one.equal for one in found.gate)
    assert not found.exact


def test_too_much_memory_is_given_up():
    with pytest.raises(SymflopsError, match="[Mm]emory"):
        draft_in_process(Subject(f"{MODULES}:Keeps", {"width": 6, "kept": 4 << 30}, INPUTS), 60.0, lambda _: None, most=1 << 30)


FREED = """
import random
from symflops.verify import limits
from symflops.verify.limits import limit_memory

random.seed(0)
limit_memory(400 << 20)
kept, size = [], 0
for _ in range(400):
    kept.append(bytearray(random.choice([50_000, 300_000, 2 << 20, 6 << 20, 12 << 20, 24 << 20]) + random.randrange(1 << 20)))
    size += len(kept[-1])
    while size > 300 << 20:
        size -= len(kept.pop(random.randrange(len(kept))))
print("done")
try:
    bytearray(200 << 20)
except MemoryError:
    print("refused")
"""


@pytest.mark.thorough
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the threshold")
def test_memory_that_was_freed_does_not_count():
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["done", "refused"], done.stderr


@pytest.mark.thorough
def test_the_command_says_what_a_module_raises(tmp_path, capsys):
    (tmp_path / "c.json").write_text(json.dumps({"width": 5, "wide": 12}))
    (tmp_path / "i.json").write_text(json.dumps(INPUTS))
    config, inputs = str(tmp_path / "c.json"), str(tmp_path / "i.json")
    assert main(["draft", f"{MODULES}:HangsWhenWide", "--config", config, "--inputs", inputs]) == 2
    assert "does not run" in capsys.readouterr().err
