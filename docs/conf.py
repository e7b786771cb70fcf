"""How the documentation is built: ``sphinx-build -W --keep-going -n docs OUT``; nothing is fetched."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import symflops  # noqa: E402

project = "symflops"
author = "The symflops developers"
copyright = author
version = release = symflops.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "generated"]
exclude_patterns = ["_ext", "_build"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "attrs_inline"]
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
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
nitpicky = True
nitpick_ignore_regex = [  # types of the standard library, and those between stages, which have no page
    ("py:.*", r"(?!symflops\.(load|estimate|Model|Derived|MFUMeter|SymflopsError|SpecError)$).*"),
]
