"""The picture of README.md is drawn anew: a layer of the spec, its closed forms, and a measured record."""

from __future__ import annotations

import importlib.util
import re
import shutil
import struct

import pytest

from tests.docs.pages import DOCS, ROOT

pytestmark = pytest.mark.system


@pytest.fixture
def draw(monkeypatch):
    missing = [tool for tool in ("latexmk", "pdftoppm") if not shutil.which(tool)]
    assert not missing, f"install TeX Live and poppler-utils: {', '.join(missing)} not found"
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    spec = importlib.util.spec_from_file_location("draw", DOCS / "images" / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def size(picture: bytes) -> tuple[int, int]:
    return struct.unpack(">II", picture[16:24])


def test_the_picture_is_drawn(draw, tmp_path):
    picture = draw.draw(picture=tmp_path / "page.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and 20_000 < len(picture) < 200_000
    width, height = size(picture)
    assert (width, height) == size(draw.PICTURE.read_bytes()) and 400 < height < 600 < width


def test_the_spec_is_shown_whole(draw):
    """The lines of the column, joined again, are those of the spec."""
    spec = (ROOT / "specs" / "language" / "llama.yaml").read_text("utf-8")
    for entry in re.findall(r"^        (- .*)$", spec, re.MULTILINE):
        parts = list(draw.wrapped("      " + entry))
        assert "".join(part.lstrip() for part in parts).replace(", ", ",").replace(" ", "") == entry.replace(" ", "")
        assert all(len(part) <= draw.WIDTH for part in parts)
        assert draw.typed(parts[0]) in draw.layer()


def test_a_record_and_both_passes_are_shown(draw):
    assert "8{,}030{,}261{,}248" in draw.measured()
    assert r"\bar{S}_{x}" in draw.equation("forward") and r"\mathrm{backward}" in draw.equation("backward")


def test_a_record_that_differs_is_refused(draw, tmp_path, monkeypatch):
    page = tmp_path / "verified.md"
    page.write_text(f"| `A` | a | `{draw.RECORD}` | 1 | 2 | 3 | 4 | x |\n", "utf-8")
    monkeypatch.setattr(draw, "VERIFIED", page)
    with pytest.raises(ValueError, match="is 4 FLOPs apart"):
        draw.measured()
