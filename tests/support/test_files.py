"""Files are written whole or not at all."""

from __future__ import annotations

import pytest

from symflops.support import files


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    assert files.write(path, "old") and not files.write(path, "old")

    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        files.write(path, "new")
    assert path.read_text() == "old" and [item.name for item in tmp_path.iterdir()] == ["a.txt"]
