"""How the documentation is built: ``sphinx-build -W --keep-going -n docs OUT``; nothing is fetched."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import symflops  # noqa: E402

project = "symflops"
author = "The symflops developers"
copyright = author
version = release = symflops.__version__
extensions = ["myst_parser", "mathml"]
exclude_patterns = ["_ext", "_build"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"symflops {version}"
html_static_path = ["_static"]
html_css_files = ["symflops.css"]
html_copy_source = False
html_show_sphinx = False
smartquotes = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
nitpicky = True


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Give the index its tables of contents: each heading with the pages that the list below it links to."""
    if name != "index":
        return
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", source[0], re.MULTILINE | re.DOTALL):
        pages = re.findall(r"\]\(([\w/]+)\.md\)", body)
        source[0] += "\n".join(["\n\n```{toctree}", ":hidden:", f":caption: {title}", "", *dict.fromkeys(pages), "```\n"])


def name_sources(app: Sphinx, name: str, source: list[str]) -> None:
    """Turn links to Markdown outside of this folder, which is not built, into the names of the files."""
    outside = "../" * (name.count("/") + 1)
    source[0] = re.sub(rf"\[([^]]*)\]\({re.escape(outside)}([\w/]+\.md)\)", r"\1 (`\2`)", source[0])


def setup(app: Sphinx) -> None:
    """Register what reads the sources of pages."""
    app.connect("source-read", add_contents)
    app.connect("source-read", name_sources)
