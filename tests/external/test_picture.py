"""The picture of a derivation page that README shows is drawn anew from what is generated."""

from __future__ import annotations

import importlib.util
import shutil
import struct

import pytest

from tests.docs.pages import DOCS

pytestmark = pytest.mark.system


@pytest.fixture
def draw():
    missing = [tool for tool in ("latexmk", "pdftotext", "pdfinfo", "pdftoppm") if not shutil.which(tool)]
    assert not missing, f"install TeX Live and poppler-utils: {', '.join(missing)} not found"
    spec = importlib.util.spec_from_file_location("draw", DOCS / "images" / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_drawn(draw, tmp_path):
    picture = draw.draw(picture=tmp_path / "page.png").read_bytes()
    width, height = struct.unpack(">II", picture[16:24])
    assert picture.startswith(b"\x89PNG") and 20_000 < len(picture) < 200_000
    shown = struct.unpack(">II", draw.PICTURE.read_bytes()[16:24])
    assert (width, height) == shown and 600 < width < height


def test_a_page_without_closed_forms_is_refused(draw, tmp_path):
    page = tmp_path / "empty.tex"
    page.write_text("\\documentclass{article}\\begin{document}Nothing.\\end{document}\n", "utf-8")
    with pytest.raises(ValueError, match="no page of empty.tex has the heading"):
        draw.draw(page, tmp_path / "page.png")
