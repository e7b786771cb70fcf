"""The pages about conventions are those that are derived."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.verify.convention_pages import compared, models, section, tools_page

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "generated" / "conventions"


@pytest.mark.nightly  # the task check runs it, too
def test_what_comes_out_is_what_the_page_says(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("symflops.verify.convention_pages.differences_page", lambda: "")
    assert main(["conform", "--peers", str(ROOT / "tests" / "data" / "peers"), "--pages", str(tmp_path)]) == 0
    assert (tmp_path / "figures.md").read_text() == (PAGES / "figures.md").read_text()
    capsys.readouterr()


def test_what_tools_say():
    assert tools_page() == (PAGES / "tools.md").read_text()


def test_the_differences_of_one_model():
    page = (PAGES / "differences.md").read_text()
    image = next(model for model in models() if model["spec"] == "qwen_image")
    assert section(image, dict(compared(image))) in page
    for model in models():
        assert f"## {model['title']}" in page
