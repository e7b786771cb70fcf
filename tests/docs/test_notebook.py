"""The notebook is executed, cell by cell, and shows what it stores."""

from __future__ import annotations

import json

import pytest

from tests.docs.notebook import PATH, cells, executed, source


def test_every_cell_shows_what_it_stores(monkeypatch):
    monkeypatch.chdir(PATH.parents[1])
    stored = cells()
    found = executed(stored)
    for before, after in zip(stored, found, strict=True):
        assert after == before, f"{source(before)}\nrun 'python -m tests.docs.notebook write', and read it"
    assert sum(cell["cell_type"] == "code" for cell in stored) >= 10


def test_it_is_a_notebook_that_others_open():
    whole = json.loads(PATH.read_text("utf-8"))
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in whole["cells"]]
    assert len(set(names)) == len(names)
    for cell in whole["cells"]:
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | ({"outputs", "execution_count"} if cell["cell_type"] == "code" else set())


@pytest.mark.parametrize("kind", ["text/html", "text/latex", "text/markdown"])
def test_it_shows_tables_and_formulas(kind):
    assert any(kind in output.get("data", ()) for cell in cells() for output in cell.get("outputs", ()))
