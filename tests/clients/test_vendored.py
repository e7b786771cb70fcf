"""Vendored estimators in the trees of the projects: their written tests pass inside of the projects' own test runners."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symflops.cli.main import main

HERE = Path(__file__).parent
TREES = [Path(folder) for folder in os.environ.get("CLIENTS_SOURCES", "").split(os.pathsep) if folder]
# what a tree has, estimators that the project lacks, and what its tests need on a CPU
OWN = "tests/utils/test_diffusion_flops_counter_on_cpu.py"
PROJECTS = {
    "kempnerforge": ("kempnerforge/metrics/mfu.py", ("kempnerforge",), {}),
    "verl": ("verl/utils/flops_counter.py", ("phi3", "qwen2_vl"), {"VERL_USE_EXTERNAL_PLUGINS": "none"}),
    "verl-omni": ("verl_omni/utils/mfu/diffusion_flops_counter.py", ("sd3", "wan"), {"BARE": "verl_omni", "VERL_USE_EXTERNAL_PLUGINS": "none"}),
    "torchtitan": ("torchtitan/protocols/model.py", ("mistral",), {}),
    "megatron-bridge": (
        "src/megatron/bridge/training/utils/flop_utils.py",
        ("mixtral",),
        {"HOLLOW": "transformer_engine,transformer_engine_torch", "HOLLOW_AFTER": "megatron.core,megatron.training.training"},
    ),
}  # fmt: skip
FOUND = [(project, tree) for project, (mark, _, _) in PROJECTS.items() for tree in TREES if (tree / mark).is_file()]


def copied(tree: Path, folder: Path) -> Path:
    """A tree of links to another one's files, so that new files touch no checkout."""
    for path in sorted(tree.rglob("*")):
        if ".git" in path.parts or path.is_dir():
            continue
        place = folder / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(path)
    return folder


@pytest.mark.parametrize(("project", "tree"), FOUND, ids=[project for project, _ in FOUND])
def test_written_tests_pass_in_the_tree(project, tree, tmp_path):
    _, specs, variables = PROJECTS[project]
    root = copied(tree.resolve(), tmp_path / "tree")
    words = ["vendor", *specs, "--for", project, "--out", str(root)]
    assert main(words) == 0
    assert main([*words, "--check"]) == 0
    tests = [str(path.relative_to(root)) for path in root.rglob("test_*.py") if not path.is_symlink()]
    assert len(tests) == len(specs)
    run(tests, root, tree, variables)


@pytest.mark.parametrize(("project", "tree"), [pair for pair in FOUND if pair[0] == "verl-omni"])
def test_the_tests_of_the_project_pass_with_a_file_in_place_of_its_own(project, tree, tmp_path, capsys):
    """VeRL-Omni's own tests of its counter and of its Qwen-Image, which know nothing of symflops."""
    root = copied(tree.resolve(), tmp_path / "tree")
    words = ["vendor", "qwen_image", "--for", project, "--out", str(root)]
    assert main(words) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    assert "44 passed" in run([OWN], root, tree, PROJECTS[project][2])


def run(tests: list[str], root: Path, tree: Path, variables: dict[str, str]) -> str:
    """Run tests of a copy of a tree with its own pytest configuration."""
    others = [word for word in os.environ.get("PYTHONPATH", "").split(os.pathsep) if word and not Path(word).resolve().is_relative_to(tree.resolve())]
    here = [str(root), str(root / "src"), str(HERE), *(word for word in others if not (Path(word) / "symflops").is_dir())]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "hollow", *tests]
    done = subprocess.run(command, cwd=root, env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(here)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(" ".join(command[1:]), done.stdout[-300:], sep="\n")
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    return done.stdout


def test_a_tree_is_given():
    assert FOUND, "give --source"
