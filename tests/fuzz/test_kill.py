"""Commands killed at any moment leave every file as it was or as it becomes, never a piece of one; and many at once lose nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.sampling import amount

TIMES = amount(5, 200)
ROOT = Path(__file__).resolve().parents[2]
SPECS = ("nn/linear.yaml", "nn/embedding.yaml", "language/gpt2.yaml")
EIGHT = ("linear", "bilinear", "embedding", "conv1d", "conv2d", "rnn_cell", "rnn", "multihead_attention")
MODULE = """import torch
class Net(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.a, self.b = torch.nn.Linear(width, 3 * width), torch.nn.Linear(3 * width, width)
    def forward(self, x):
        return self.b(self.a(x).relu())
"""
SAVING = "import sys; from pathlib import Path; from symflops.cli.draft import save\nwhile True:\n    for title in 'ab':\n        save(Path('out/x.yaml'), f'name: x\\n{title * 400_000}')\n"
ESTIMATE = (sys.executable, "-m", "symflops.cli.main", "estimate", "gpt2", "--regime", "lora:r=4,targets=*c_attn", "--batch", '{"text": [5]}', "--json")
"""An estimate that no stored program gives: it is derived, and kept in the cache, which lies below ``out``."""
COMMAND = (sys.executable, "-m", "symflops.cli.main")


def project(folder: Path, specs: Sequence[str] = SPECS) -> Path:
    """A project with a few of the shipped specs, and a copy of the package that nobody edits meanwhile."""
    (folder / "package").mkdir(parents=True)
    shutil.copytree(ROOT / "symflops", folder / "package" / "symflops", ignore=shutil.ignore_patterns("__pycache__"))
    for name in specs:
        (folder / "specs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "specs" / name, folder / "specs" / name)
    shutil.copytree(ROOT / "specs" / "blocks", folder / "specs" / "blocks")
    return folder


def start(folder: Path, words: Sequence[str], output: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    package = folder / "package" if (folder / "package").exists() else ROOT
    environment = {**os.environ, "PYTHONPATH": str(package), "XDG_CACHE_HOME": str(folder / "out"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=output, stderr=subprocess.DEVNULL)


def files(folder: Path) -> dict[str, bytes]:
    """Every file that a reader of the folder would find; what is being written has a hidden name."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: data for name, data in found.items() if not name.rpartition("/")[2].endswith(".tmp")}


def touched(folder: Path, stamp: int) -> int:
    """How many entries of a folder are newer than a time, hidden ones too."""
    count = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                count += os.stat(os.path.join(root, name)).st_mtime_ns > stamp
            except OSError:
                continue
    return count


def change(folder: Path) -> None:
    """Another title in every spec, so that every generated file changes."""
    for name in SPECS:
        path = folder / "specs" / name
        text = path.read_text("utf-8")
        path.write_text(text.replace("title: ", "title: Changed "), "utf-8")


def shared(name: str) -> bool:
    """Files about all specs, which have a version for every state of the others; they are checked to be whole."""
    return name.rpartition("/")[2] in ("catalog.json", "manifest.json", "index.html") or name.startswith(".")


def whole(name: str, data: bytes) -> bool:
    """Whether a shared file is complete."""
    return data.rstrip().endswith(b"</html>") if name.endswith(".html") else not data or json.loads(data) is not None


def kills(folder: Path, words: Sequence[str], times: int, between: Callable[[Path], None] = change) -> int:
    """Kill a command ``times`` times; how often it was killed while only some of its files were there."""
    (folder / "out").mkdir()
    assert start(folder, words).wait(timeout=300) == 0
    old = files(folder / "out")
    shutil.copytree(folder / "out", folder / "old")
    between(folder)
    began = time.monotonic()
    assert start(folder, words).wait(timeout=300) == 0
    took = time.monotonic() - began
    new = files(folder / "out")
    changed = sum(old.get(name) != data for name, data in new.items())
    rng, killed, partial = random.Random(5), 0, 0
    for _ in range(times):
        shutil.rmtree(folder / "out")
        shutil.copytree(folder / "old", folder / "out")
        stamp = time.time_ns()
        process = start(folder, words)
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0.1, 0.9) * took)
        else:  # while or right after the so-manieth file is written
            wanted = rng.randrange(1, changed)
            while process.poll() is None and touched(folder / "out", stamp) < wanted:
                time.sleep(0.0005)
            time.sleep(rng.choice((0, 0.0005, 0.002, 0.01)))
        process.send_signal(signal.SIGKILL)
        killed += process.wait(timeout=60) == -signal.SIGKILL
        now = files(folder / "out")
        assert now.keys() <= old.keys() | new.keys() and now.keys() >= old.keys() & new.keys()
        assert not [name for name, data in now.items() if data not in (old.get(name), new.get(name)) and not shared(name)], "torn"
        assert all(whole(name, data) for name, data in now.items() if shared(name))
        partial += now not in (old, new)
    assert killed >= times // 2
    assert start(folder, words).wait(timeout=300) == 0
    assert files(folder / "out") == new, "a run after a killed one finishes the work"
    return partial


@pytest.mark.thorough
def test_a_killed_generate_tears_no_file(tmp_path):
    assert kills(project(tmp_path), (*COMMAND, "generate", "--out", "out"), TIMES)


@pytest.mark.thorough
def test_a_killed_site_tears_no_file(tmp_path):
    assert kills(project(tmp_path), (*COMMAND, "site", "linear", "embedding", "-o", "out"), TIMES)


@pytest.mark.thorough
def test_a_killed_estimate_tears_no_entry_of_the_cache(tmp_path):
    folder, words = tmp_path, ESTIMATE
    (folder / "out").mkdir()
    assert start(folder, words).wait(timeout=300) == 0
    new, rng, seen = files(folder / "out"), random.Random(8), set()
    assert len(new) == 1
    for _ in range(TIMES):
        shutil.rmtree(folder / "out")
        (folder / "out").mkdir()
        stamp, process = time.time_ns(), start(folder, words)
        while process.poll() is None and not touched(folder / "out", stamp):
            time.sleep(0.0005)
        time.sleep(rng.choice((0, 0.0005, 0.002, 0.01)))
        process.kill()
        process.wait(timeout=60)
        now = files(folder / "out")
        assert now in ({}, new)
        seen.add(len(now))
    assert start(folder, words).wait(timeout=300) == 0 and files(folder / "out") == new


def test_a_killed_save_of_a_draft_tears_no_file(tmp_path):
    """What ``draft -o`` writes with, over and over."""
    folder = project(tmp_path)
    (folder / "out").mkdir()
    rng, seen = random.Random(6), set()
    texts = [f"name: x\n{title * 400_000}" for title in "ab"]
    for _ in range(TIMES):
        process = start(folder, (sys.executable, "-c", SAVING))
        stamp = time.time_ns()
        while process.poll() is None and not touched(folder / "out", stamp):
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        assert process.wait(timeout=60) == -signal.SIGKILL
        path = folder / "out" / "x.yaml"
        if path.exists():
            assert path.read_text("utf-8") in texts
            seen.add(path.read_bytes()[8:9])
    assert seen


@pytest.mark.nightly
def test_a_killed_draft_tears_no_file(tmp_path):
    folder = project(tmp_path)
    for name, data in (("net.py", MODULE), ("config.json", '{"width": 8}'), ("inputs.json", '{"x": {"shape": [2, 8], "dtype": "float32"}}')):
        (folder / name).write_text(data)
    (folder / "out").mkdir()
    words = (*COMMAND, "draft", "net.py:Net", "--config", "config.json", "--inputs", "inputs.json", "-o", "out/net.yaml")
    began = time.monotonic()
    assert start(folder, words).wait(timeout=300) in (0, 1)
    took, new, rng = time.monotonic() - began, files(folder / "out"), random.Random(7)
    for _ in range(TIMES):
        process = start(folder, words)
        time.sleep(took * rng.uniform(0.7, 1.05))
        process.kill()
        process.wait(timeout=60)
        assert files(folder / "out") in ({}, new)
        shutil.rmtree(folder / "out")
        (folder / "out").mkdir()


@pytest.mark.thorough
def test_runs_at_once_lose_nothing(tmp_path):
    """Eight runs of one spec each leave what one run of all eight leaves."""
    folder = project(tmp_path, [f"nn/{name}.yaml" for name in EIGHT])
    running = [start(folder, (*COMMAND, "generate", name, "--out", "out")) for name in EIGHT]
    assert [process.wait(timeout=300) for process in running] == [0] * len(running)
    assert start(folder, (*COMMAND, "generate", "--out", "once")).wait(timeout=300) == 0
    hidden = (".lock", ".stamp.json")
    many, once = ({name: data for name, data in files(folder / out).items() if name not in hidden and not name.startswith("symflops/")} for out in ("out", "once"))
    assert many == once
    stamps = [json.loads((folder / out / ".stamp.json").read_text("utf-8")) for out in ("out", "once")]
    assert stamps[0] == stamps[1] and len(stamps[0]) == len(EIGHT)


@pytest.mark.thorough
def test_processes_on_one_cold_cache_agree(tmp_path):
    (tmp_path / "out").mkdir()
    running = [start(tmp_path, ESTIMATE, subprocess.PIPE) for _ in range(amount(4, 20))]
    told = {process.communicate(timeout=300)[0] for process in running}
    assert len(told) == 1 and json.loads(told.pop())["forward"] > 0
    assert len([name for name in files(tmp_path / "out") if name.endswith(".json")]) == 1
