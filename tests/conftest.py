"""What all tests share: how they run in parallel, which of them are fast, folders that are filled once a run."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

from tests import sampling
from tests.costs import Costs
from tests.fast import FAST

settings.register_profile("any machine", deadline=None)  # how long an example takes says nothing about it
settings.load_profile("any machine")

TESTS = Path(__file__).parent
MOST_WORKERS = 8  # each holds torch and the shipped models in memory: about 1 GB


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Use one process per core where folders are run; single files, ``-n``, ``-s`` and ``--pdb`` are left as they are."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput") or option.numprocesses is not None:
        return
    single = config.args and all(".py" in argument for argument in config.args)
    if single or option.usepdb or option.capture == "no" or cores() == 1:
        return
    option.numprocesses = min(cores(), option.maxprocesses or MOST_WORKERS)
    if option.dist == "no":
        option.dist = "worksteal"


def cores() -> int:
    """Cores that this process may use: its affinity, and the quota of its container."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(found, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or no quota
        return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="write the CPU time of each test file to FILE, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Estimates are cached in a folder of this process, not in the user's; of several processes each computes in one thread."""
    sampling.chosen[0] = config.option.markexpr
    gc.disable()  # until all is imported, of which nearly nothing is garbage
    folder, patch = tempfile.TemporaryDirectory(prefix="symflops-"), pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", folder.name)
    if hasattr(config, "workerinput"):
        patch.setenv("OMP_NUM_THREADS", "1")
    if config.option.costs:
        config.pluginmanager.register(Costs(config.option.costs))
    config.add_cleanup(folder.cleanup)
    config.add_cleanup(patch.undo)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m fast``, import no other file."""
    known = collection_path.suffix != ".py" or collection_path.relative_to(TESTS).as_posix() in FAST
    return True if config.option.markexpr == "fast" and not known else None


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Leave out a test whose marks ``-m`` does not select before it is parametrised."""
    marks = [getattr(owner, "pytestmark", ()) for owner in (obj, getattr(collector, "obj", None))]
    names = {mark.name for some in marks for mark in (some if isinstance(some, (list, tuple)) else [some])} & sampling.MARKS
    return [] if names and not sampling.runs(*names) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        words = FAST.get(item.path.relative_to(TESTS).as_posix())
        chosen = words is not None and (not words or any(word in item.name for word in words))
        if chosen and not any(item.get_closest_marker(name) for name in ("system", "elsewhere", "nightly")):
            item.add_marker("fast")


def pytest_collection_finish() -> None:
    """What was imported stays: no later collection of garbage looks through it."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Folders that one process of a run fills for all: ``once("site", write)`` calls ``write(folder)`` unless another did."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name: str, write: Callable[[Path], object]) -> Path:
        path, done = base / name, base / f"{name}.done"
        with FileLock(base / f"{name}.lock"):
            if not done.exists():
                path.mkdir()
                write(path)
                done.touch()
        return path

    return folder
