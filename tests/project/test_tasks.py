"""One page lists the tasks, a folder of tests is one of the package, and the fast subset touches every folder."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from tests.fast import FAST

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TASKS = PROJECT["tool"]["poe"]["tasks"]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
LITERAL = "python -m pytest -q"
FOLDERS = {path.parent.name for path in (ROOT / "symflops").glob("*/*.py")} - {"generated"}
OTHERS = {"clients", "docs", "external", "freeze", "fuzz", "mutation", "oracle", "papers", "project"}  # of no one folder of the package


def commands(task: str) -> list[str]:
    """The command lines of a task, one of each step."""
    step = TASKS[task]
    return [step] if isinstance(step, str) else [step["cmd"]] if "cmd" in step else [line for name in step["sequence"] for line in commands(name)]


def test_the_page_lists_every_task():
    rows = re.findall(r"^\| `poe (\w+)` \| (.*) \|$", CONTRIBUTING, re.MULTILINE)
    assert rows == [(name, task["help"]) for name, task in TASKS.items() if not name.startswith("_")]


def test_tasks_name_files_and_tests_that_there_are():
    for name in TASKS:
        for line in commands(name):
            for word in line.split():
                if word.endswith(".py"):
                    assert (ROOT / word).exists(), (name, word)
                if word.startswith("tests.") and not word.endswith(".py"):
                    assert any((ROOT / f"{word.replace('.', '/')}{end}").exists() for end in (".py", "/__main__.py")), (name, word)


def test_the_readme_and_the_check_run_the_same_words():
    assert f"&& {LITERAL}\n" in (ROOT / "README.md").read_text("utf-8")
    assert f"stage test {LITERAL}" in (ROOT / ".ci/run").read_text("utf-8").splitlines()
    assert commands("test") == [LITERAL]
    first = re.search(r"^```\w*\n(.*?)^```$", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    assert first and commands("fast")[0] in first[1]


def test_the_fast_subset_touches_every_folder_of_the_package():
    touched = {name.partition("/")[0] for name in FAST}
    for name in FAST:
        for node in ast.walk(ast.parse((ROOT / "tests" / name).read_text("utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            touched |= {module.split(".")[1] for module in modules if module.startswith("symflops.")}
    assert FOLDERS <= touched, FOLDERS - touched


def test_a_folder_of_tests_is_a_folder_of_the_package():
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders - FOLDERS == OTHERS
    assert FOLDERS - folders == {"ir"}  # types


def test_the_fast_subset_is_a_part():
    """A minute on two cores: not all files of any but the smallest folders."""
    files = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert FAST.keys() <= files and len(FAST) < len(files) / 2
