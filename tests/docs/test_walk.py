"""CONTRIBUTING: the files that a letter passes through, followed for real, the table of layers, and the files that it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT
from tests.project.test_layers import LAYERS

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def visited() -> list[str]:
    walk = section("Follow one letter from YAML to LaTeX")
    (command,) = re.findall(r"^```bash\nsymflops (.*)\n```$", walk, re.MULTILINE)
    script = [sys.executable, "tests/docs/letters.py", "H", *shlex.split(command)]
    return subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.thorough
def test_the_letter_visits_the_files_of_the_walk_in_order(visited):
    walk = section("Follow one letter from YAML to LaTeX")
    listed = re.findall(r"^\d+\. `([\w/]+\.py)`: ", walk, re.MULTILINE)
    (stated,) = re.findall(r"passes through (\d+) files", walk)
    assert len(listed) == 10 and abs(int(stated) - len(visited)) <= 4  # kept results spare a few
    assert [path for path in visited if path in listed] == listed


@pytest.mark.thorough
def test_files_without_the_letter_are_not_visited(visited):
    assert "ops/convolution.py" not in visited


def test_the_table_of_layers_is_that_of_the_imports():
    rows = re.findall(r"^\| (`[^|]*`) \|", section("Where things live"), re.MULTILINE)
    assert [tuple(re.findall(r"`([\w.]+)`", row)) for row in rows] == list(reversed(LAYERS))


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/extending.md", "docs/glossary.md"])
def test_every_file_that_a_page_names_exists(page):
    package = ROOT / "symflops"
    folders = "|".join(path.name for path in package.iterdir() if path.is_dir())
    named = set(re.findall(rf"`(?:symflops/)?((?:{folders})/[\w/.]*)`", (ROOT / page).read_text("utf-8")))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (package / name).exists()] == []
