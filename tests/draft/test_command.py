"""The command writes a draft to a file or a folder, and prints what it cannot write."""

from __future__ import annotations

import pytest

from symflops.cli.draft import save
from symflops.support.errors import SymflopsError
from symflops.support.reading import json_object

TEXT = "name: tiny\ntitle: Draft of Tiny\n"


def test_below_a_folder_it_has_the_name_of_its_spec(tmp_path):
    save(tmp_path, TEXT)
    save(tmp_path / "new" / "mine.yaml", TEXT)
    assert (tmp_path / "tiny.yaml").read_text("utf-8") == (tmp_path / "new" / "mine.yaml").read_text("utf-8") == TEXT


def test_what_cannot_be_written_is_not_lost(tmp_path, capsys):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(SymflopsError, match="file"):
        save(tmp_path / "file" / "mine.yaml", TEXT)
    assert capsys.readouterr().out == TEXT


def test_json_is_a_file_or_the_text_itself(tmp_path):
    (tmp_path / "a.json").write_text('{"width": 8}', "utf-8")
    assert json_object('{"width": 8}') == json_object(str(tmp_path / "a.json")) == {"width": 8}
    with pytest.raises(SymflopsError, match="not JSON"):
        json_object('{"width": 8')
