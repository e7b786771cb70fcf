"""``symflops generate`` killed at any moment leaves every file as it was or as it becomes, never a piece of one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.sampling import amount

TIMES = amount(6, 100)
ROOT = Path(__file__).resolve().parents[2]
SPECS = ("language/llama.yaml", "diffusion/qwen_image.yaml", "diffusion/wan.yaml")


def project(folder: Path) -> Path:
    """A project with a few of the shipped specs, and a copy of the package that nobody edits meanwhile."""
    shutil.copytree(ROOT / "symflops", folder / "package" / "symflops", ignore=shutil.ignore_patterns("__pycache__"))
    for name in SPECS:
        (folder / "specs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "specs" / name, folder / "specs" / name)
    shutil.copytree(ROOT / "specs" / "blocks", folder / "specs" / "blocks")
    return folder


def start(folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(folder / "package")}
    return subprocess.Popen([sys.executable, "-m", "symflops.cli.main", "generate", "--out", "out"], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


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


def test_a_killed_generate_tears_no_file(tmp_path):
    folder = project(tmp_path)
    assert start(folder).wait(timeout=120) == 0
    old = files(folder / "out")
    shutil.copytree(folder / "out", folder / "old")
    change(folder)
    began = time.monotonic()
    assert start(folder).wait(timeout=120) == 0
    whole = time.monotonic() - began
    new = files(folder / "out")
    assert {name for name in new if old[name] != new[name]} >= {f"{Path(name).parent}/{Path(name).stem}.py" for name in SPECS}
    rng, seen = random.Random(5), {"killed": 0, "between": 0}
    for _ in range(TIMES):
        shutil.rmtree(folder / "out")
        shutil.copytree(folder / "old", folder / "out")
        stamp = time.time_ns()
        process = start(folder)
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0.1, 0.9) * whole)
        else:  # while or right after the so-manieth file is written
            wanted = rng.randrange(1, len(new))
            while process.poll() is None and touched(folder / "out", stamp) < wanted:
                time.sleep(0.0005)
            time.sleep(rng.choice((0, 0.0005, 0.002, 0.01)))
        process.send_signal(signal.SIGKILL)
        seen["killed"] += process.wait(timeout=60) == -signal.SIGKILL
        now = files(folder / "out")
        assert now.keys() <= old.keys() | new.keys() and now.keys() >= old.keys() & new.keys()
        torn = [name for name, data in now.items() if data not in (old.get(name), new.get(name)) and not shared(name)]
        assert not torn
        seen["between"] += now != old
        complete(now)
    assert seen["killed"] >= TIMES // 2
    print(f"{TIMES} runs, {seen}")
    assert start(folder).wait(timeout=120) == 0
    assert files(folder / "out") == new, "a run after a killed one finishes the work"


def shared(name: str) -> bool:
    """Files about all specs, which have a version for every state of the others; they are checked to be whole."""
    return name.rpartition("/")[2] in ("catalog.json", "manifest.json") or name.startswith(".")


def complete(now: dict[str, bytes]) -> None:
    """Shared files are whole JSON."""
    import json

    for name, data in now.items():
        if shared(name) and data:
            json.loads(data)


def test_runs_at_once_lose_nothing(tmp_path):
    """Four runs of one spec each leave what one run of all four leaves."""
    folder = project(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(folder / "package")}
    words = [sys.executable, "-m", "symflops.cli.main", "generate"]
    names = [Path(name).stem for name in SPECS]
    running = [subprocess.Popen([*words, name, "--out", "out"], cwd=folder, env=environment, stderr=subprocess.DEVNULL) for name in names * 2]
    assert [process.wait(timeout=300) for process in running] == [0] * len(running)
    assert subprocess.run([*words, "--out", "once"], cwd=folder, env=environment, stderr=subprocess.DEVNULL, check=False).returncode == 0
    hidden = (".lock", ".stamp.json")
    many, once = ({name: data for name, data in files(folder / out).items() if name not in hidden} for out in ("out", "once"))
    assert many == once
