"""Every command and the meter in a stranger's folder: they run nothing of it, start nothing, and write where they were told."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.hostile import CONFIG, plant
from tests.fuzz.mutators import SENTINEL
from tests.sampling import NIGHTLY

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("watched.py")
BATCH = ("--batch", '{"text": [5, 3]}')
HERE = ("--batch", '{"text": [5], "image": [[2, 2]]}')


def installed() -> list[str]:
    """Folders that code may come from: the standard library, installed packages, and this one."""
    places = {*(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")), *site.getsitepackages(), *(path for path in sys.path if "site-packages" in path or "lib-dynload" in path)}
    here = [ROOT / folder for folder in ("symflops", "generated")]
    return sorted({os.path.realpath(path) + os.sep for path in (*places, *here)})


def lines(found: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Command lines, each with the folders that it writes to, and whether it spreads its work over processes."""
    local, shipped, *bad = found["specs"]
    few = None if NIGHTLY else 1
    told: list[dict[str, Any]] = []

    def say(*words: str, writes: tuple[str, ...] = (), many: bool = False) -> None:
        told.append({"words": words, "writes": writes, "many": many})

    say("list"), say("list", "--json"), say("device"), say("device", "NVIDIA H100 80GB HBM3"), say("cache"), say("schema"), say("check"), say("cache", "--clear")
    say("schema", "regime", "-o", "out/schema.json", writes=("out",))
    for spec in (local, *bad):
        say("check", spec)
        say("estimate", spec, *HERE)
    for spec in (local, *bad[:few]):
        say("explain", spec, *HERE), say("graph", spec), say("graph", spec, "--format", "dot"), say("compare", spec, "--regimes", "full,forward", *HERE)
        say("render", spec, "--format", "html", "-o", "out/html", writes=("out/html",)), say("render", spec, "--format", "latex", "-o", "out/tex", writes=("out/tex",))
        say("render", spec, "--format", "markdown"), say("render", spec, "--format", "latex", "--fragment", "-o", "out/tex", writes=("out/tex",))
    for config in found["configs"] if NIGHTLY else found["configs"][::4]:
        say("estimate", "--config", config, *BATCH), say("estimate", shipped, "--config", config, *BATCH)
        say("graph", shipped, "--config", config)
    for regime in found["regimes"] if NIGHTLY else found["regimes"][::8]:
        say("estimate", shipped, "--config", "model", "--regime", regime, *BATCH), say("check", local, "--regime", regime)
    for convention in found["conventions"] if NIGHTLY else found["conventions"][:2]:
        say("estimate", shipped, "--config", "model", "--convention", convention, *BATCH), say("check", local, "--convention", convention)
    say("estimate", "../evil", *BATCH), say("estimate", "evil", *BATCH), say("estimate", "os", *BATCH), say("explain", "mine:Net")
    say("explain", shipped, "--config", "model", "--plot", "out/plot.png", writes=("out",))
    say("new", "fresh", "-o", "out/new/specs", writes=("out/new",)), say("new", "fresh", "--like", bad[-1], "-o", "out/like/specs", writes=("out/like",))
    say("generate", "--out", "out/generated", writes=("out/generated",)), say("generate", "small", writes=("generated",)), say("generate", "--check", many=True), say("generate", "small", "--diff")
    say("site", local, "specs/nn/linear.yaml", "-o", "out/site", writes=("out/site",)), say("generate", "--specs", "library/specs", "--out", "out/library", writes=("out/library",))
    for peers in ("peers", "records"):
        say("conform", "--peers", peers)
    for records in ("records", "badrecords", "peers"):
        say("verify", "linear", "lstm_cell", "--records", records)
    for table in found["csv"]:
        say("mfu", "--kernel-details", table, "--seconds", "1", "--peak", "Ascend910B3")
    if shutil.which("latexmk") and shutil.which("pdflatex"):
        say("render", local, "--format", "pdf", "-o", "out/pdf", writes=("out/pdf",)), say("render", bad[-1], "--format", "pdf", "-o", "out/pdf", writes=("out/pdf",))
    return told


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder, and what the hook saw of each line."""
    base = tmp_path_factory.mktemp("stranger")
    folder, cache, scratch = base / "clone", base / "cache", base / "tmp"
    for path in (folder, cache, scratch):
        path.mkdir()
    found = plant(folder)
    always = [str(cache), str(scratch)]
    plan = {"code": installed(), "path": [str(ROOT)], "sentinel": SENTINEL, "lines": [{**line, "writes": [*always, *(str(folder / place) for place in line["writes"])]} for line in lines(found)]}
    plan["lines"] += [{"meter": config, "batch": {"text": [5, 3]}, "writes": always} for config in ("model", CONFIG, "pipeline", {"model_type": "../evil"})]
    (base / "plan.json").write_text(json.dumps(plan))
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    environment = {**keep, "XDG_CACHE_HOME": str(cache), "MPLCONFIGDIR": str(cache / "matplotlib"), "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = subprocess.run([sys.executable, str(SCRIPT), str(base / "plan.json")], cwd=folder, env=environment, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder, before, json.loads(done.stdout)


@pytest.mark.thorough
def test_no_line_did_what_it_may_not(run):
    wrong = [(line["line"], seen) for line in run[2]["lines"] for seen in line["seen"]]
    assert not wrong, "\n".join(map(str, wrong[:40]))


@pytest.mark.thorough
def test_every_line_ended_with_an_answer_or_a_diagnostic(run):
    assert not [(line["line"], line["code"], line["err"]) for line in run[2]["lines"] if line["code"] not in (0, 1, 2) or "internal fault" in line["err"]]
    codes = [line["code"] for line in run[2]["lines"]]
    assert len(codes) > 100 and codes.count(0) > len(codes) / 3 and codes.count(1) > 5 and codes.count(2) > 5
    told = {line["line"][0] for line in run[2]["lines"] if line["code"] == 0}
    assert told >= {"list", "check", "schema", "new", "generate", "estimate", "explain", "render", "graph", "site", "compare", "conform", "mfu", "device", "verify", "cache", "meter"}


@pytest.mark.thorough
def test_nothing_ran_and_nothing_else_changed(run):
    folder, before, _ = run
    assert not [path for path in folder.parent.rglob("*") if path.name.startswith("ran-") or path.name == SENTINEL]
    written = ("out", "generated")
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] not in written}
    assert after == {path: data for path, data in before.items() if path.relative_to(folder).parts[0] not in written}


BAD = {
    "code of the folder": "import sys; sys.path.insert(0, '.'); import evil",
    "code of a text": "eval('1 + 1')",
    "a process": "import subprocess; subprocess.run(['true'])",
    "another module of ours as a process": "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', '1'])",
    "a shell": "import os; os.system('true')",
    "a file": "open('written', 'w')",
    "a folder": "import os; os.mkdir('made')",
    "a file that goes": "import os; os.remove('csv/fine.csv')",
    "a connection": "import socket; socket.socket()",
    "a file that moves": "import os; os.rename('csv/bad.csv', 'bad.csv')",
}


@pytest.mark.parametrize("name", BAD)
def test_the_hook_sees(tmp_path, name):
    """Each thing, done by a module of an installed package."""
    plant(tmp_path / "clone")
    (tmp_path / "site-packages" / "symflops" / "cli").mkdir(parents=True)
    for package in ("symflops", "symflops/cli"):
        (tmp_path / "site-packages" / package / "__init__.py").write_text("")
    (tmp_path / "site-packages" / "symflops" / "cli" / "main.py").write_text(f"def main(words):\n    {BAD[name]}\n    return 0\n")
    plan = {"code": [*(place for place in installed() if not place.startswith(str(ROOT))), str(tmp_path / "site-packages")], "path": [str(tmp_path / "site-packages")], "sentinel": SENTINEL, "lines": [{"words": ["x"], "writes": []}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = subprocess.run([sys.executable, "-B", str(SCRIPT), str(tmp_path / "plan.json")], cwd=tmp_path / "clone", capture_output=True, text=True, timeout=60, check=False)
    (line,) = json.loads(done.stdout)["lines"]
    assert line["seen"], line
