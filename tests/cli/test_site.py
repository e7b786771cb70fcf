"""The site of a library prints what is stored, and derives what has changed since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from symflops import compiler
from symflops.cli.actions import stored_rules as compared
from symflops.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with one spec, and what is generated from it."""
    (tmp_path / "specs/language").mkdir(parents=True)
    shutil.copy(ROOT / "specs/language/llama.yaml", tmp_path / "specs/language")
    monkeypatch.chdir(tmp_path)
    assert main(["generate"]) == 0
    return tmp_path


def test_a_page_derives_nothing_that_is_stored(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def site(name: str) -> tuple[int, str]:
        calls = []
        monkeypatch.setattr(compiler, "lower", lambda *args, lower=compiler.lower: calls.append(1) or lower(*args))
        assert main(["site", "-o", name]) == 0
        return len(calls), (project / name / "language/llama.html").read_text("utf-8")

    calls, page = site("stored")
    assert calls == 0
    (project / "generated/language/llama.compared.json").write_text("{}")
    assert site("derived") == (1, page)
    spec = project / "specs/language/llama.yaml"
    spec.write_text(spec.read_text("utf-8") + "# changed since\n", "utf-8")
    calls, changed = site("changed")
    assert calls > 1 and changed.count("<tr") == page.count("<tr")


def test_stored_figures_are_those_of_their_sizes_and_conventions(project: Path) -> None:
    from symflops.api import CONVENTIONS, load
    from symflops.cli.actions.stored_rules import stored_program

    model = load("llama")
    program = stored_program(model.file, "", "full", CONVENTIONS)
    against = compared.compared()
    assert program is not None and program.conventions == CONVENTIONS
    assert compared.stored_figures(model.file, program, against) == compared.figures(model, program, against)
    assert compared.stored_figures(model.file, program, against[:1]) is None
    small = model.program(["full"], CONVENTIONS, {"num_hidden_layers": 2})
    assert stored_program(model.file, "", "lora", CONVENTIONS) is None and small.sources == program.sources
