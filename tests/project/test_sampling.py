"""What the default run leaves out, ``.ci/run`` or the nightly run has; samples of specs differ in the language that they use."""

from __future__ import annotations

import os
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests import mechanisms, sampling
from tests.calling import words_of
from tests.shipped import NAMES, some

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = "not thorough and not system and not elsewhere and not nightly"
MORE = "(thorough or system or drawn) and not nightly"


def values(cases):
    return [case.values if hasattr(case, "marks") else case for case in cases]


@pytest.mark.parametrize("cases", [range(40), NAMES, [(name, row) for name in NAMES[:20] for row in range(3)], [["a"], ["b"]]], ids=["numbers", "specs", "rows", "lists"])
@pytest.mark.parametrize(("every", "in_ci"), [(1, 0), (4, 1), (7, 2), (30, 0), (500, 9)])
def test_each_case_runs_somewhere(cases, every, in_ci, monkeypatch):
    found = {}
    for expression in (DEFAULT, MORE, "nightly", ""):
        monkeypatch.setattr(sampling, "chosen", [expression])
        found[expression] = sampling.sampled(cases, every, in_ci)
    marks = {name: [case for case in found[""] if any(mark.name == name for mark in getattr(case, "marks", ()))] for name in ("thorough", "nightly")}
    assert len(found[""]) == len(list(cases)) and len(found[DEFAULT]) == -(-len(list(cases)) // every)
    assert not any(hasattr(case, "marks") for case in found[DEFAULT])
    assert len(found[DEFAULT]) + len(marks["thorough"]) + len(marks["nightly"]) == len(found[""])
    assert values(case for case in found[MORE] if hasattr(case, "marks")) == values(marks["thorough"])
    assert values(case for case in found["nightly"] if hasattr(case, "marks")) == values(marks["nightly"])


@given(st.lists(st.sampled_from(NAMES), min_size=1, unique=True), st.data())
def test_a_sample_of_specs_is_of_as_many_specs_and_each_brings_a_word(names, data):
    count = data.draw(st.integers(1, len(names)))
    found = [names[place] for place in mechanisms.spread(names, count)]
    assert len(found) == len({*found}) == count
    order, needed = mechanisms.ranked(frozenset(names))
    assert sorted(order) == sorted(names) and [*order[:count]] == found
    said = set()
    for name in order[:needed]:
        assert mechanisms.words_of(name) - said
        said |= mechanisms.words_of(name)
    assert said == set().union(*map(mechanisms.words_of, names))


def test_all_specs_that_a_default_run_takes_use_each_operator_of_the_library():
    operators = {word for text in mechanisms.TEXTS.values() for word in re.findall(r"\bop: (\w+)", re.sub(r"#.*", "", text))}
    chosen = {name for name in some() if isinstance(name, str)}
    used = {word.removeprefix("op: ") for name in chosen for word in mechanisms.words_of(name) if word.startswith("op: ")}
    of_papers = {word for name in mechanisms.TEXTS if name not in NAMES for word in mechanisms.words_of(name)} - {word for name in NAMES for word in mechanisms.words_of(name)}
    assert {name for name in operators if f"op: {name}" not in of_papers} <= used


def test_lines_that_run_in_this_process_have_the_words_that_a_shell_gives_them():
    lines = [line for path in sorted(ROOT.glob("docs/**/*.md")) for line in re.findall(r"^(?:\$ )?(symflops .*)$", path.read_text("utf-8"), re.MULTILINE)]
    lines = [line for line in lines if "\\" not in line and words_of(line) is not None]
    assert len(lines) > 50
    script = "set -f; symflops() { printf '%s\\0' \"$@\"; printf '\\n'; }\n" + "\n".join(lines)
    shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
    assert [row.split("\0")[:-1] for row in shell.stdout.split("\n")[:-1]] == [words_of(line) for line in lines]


@pytest.mark.parametrize("line", ["symflops list | head", "symflops list > file", "symflops explain $NAME", "cd x && symflops list", "symflops render *.yaml", "ls"])
def test_lines_that_need_a_shell_do_not(line):
    assert words_of(line) is None


def test_every_file_of_tests_is_collected(pytestconfig):
    """Folders that pytest leaves out by their names, such as ``build``, hold tests that never run."""
    left = pytestconfig.getini("norecursedirs")
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")}
    assert not [folder for folder in folders for part in folder.parts if any(fnmatch(part, pattern) for pattern in left)]
