"""The style sheets and scripts of a page: as links, or embedded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from symflops.emit.html import document as html
from symflops.emit.html.document import Resources
from symflops.training.devices.peaks import table

ASSETS = Path(html.__file__).with_name("assets")
PEAKS = "peaks.js"
"""Script that is generated from the table of peak rates."""

STYLES = ("katex/katex.min.css", "style.css")
SCRIPTS = ("katex/katex.min.js", "page.js", "reading.js", "calculator.js", PEAKS, "more.js", "plot.js")
SEARCH = ("page.js", "search.js")
"""The scripts of an index."""


def files() -> Iterator[tuple[str, bytes]]:
    """Yield (path below the folder of assets, content) of each style sheet, script and font of a site."""
    paths = (path for path in sorted(ASSETS.rglob("*")) if path.is_file())
    yield from ((path.relative_to(ASSETS).as_posix(), path.read_bytes()) for path in paths)
    yield PEAKS, peaks().encode()


def peaks() -> str:
    """Generate the script that lists devices: name, aliases, and peak TFLOP/s by number type."""
    devices: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {}
    for row in table():
        if row.confidence != "U":
            devices.setdefault(row.name, (row.aliases, {}))[1].setdefault(row.dtype, row.tflops)
    rows = [[name, aliases, rates] for name, (aliases, rates) in devices.items()]
    return f"globalThis.symflopsPeaks = {json.dumps(rows, separators=(',', ':'))};\n"


def linked(folder: str, scripts: tuple[str, ...] = SCRIPTS, more: tuple[str, ...] = ()) -> Resources:
    """Print HTML elements that link to style sheets and ``scripts`` in ``folder``, and scripts ``more``."""
    styles = "\n".join(f'<link rel="stylesheet" href="{folder}/{name}">' for name in STYLES)
    sources = [*more, *(f"{folder}/{name}" for name in scripts)]
    return Resources(styles, "\n".join(f'<script src="{source}"></script>' for source in sources))


def within(more: tuple[str, ...] = ()) -> Resources:
    """Print HTML elements that contain all style sheets, fonts and scripts; ``more`` are script texts."""
    styles = "\n".join(f"<style>\n{style(name)}\n</style>" for name in STYLES)
    texts = [*more, *(peaks() if name == PEAKS else (ASSETS / name).read_text("utf-8") for name in SCRIPTS)]
    return Resources(styles, "\n".join(f"<script>\n{safe(text)}\n</script>" for text in texts))


@cache
def style(name: str) -> str:
    """Read a style sheet and embed its fonts."""

    def font(found: re.Match[str]) -> str:
        data = (ASSETS / name).parent.joinpath(found[1]).read_bytes()
        return f"url(data:font/woff2;base64,{base64.b64encode(data).decode()})"

    return re.sub(r"url\((fonts/[\w-]+\.woff2)\)", font, (ASSETS / name).read_text("utf-8"))


def safe(script: str) -> str:
    """Escape a script so that it cannot end its script element."""
    return re.sub(r"</(?=script)|<!--", lambda found: found[0].replace("<", "\\x3c"), script, flags=re.IGNORECASE)
