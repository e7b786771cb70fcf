"""Draws the picture of a derivation page: ``python docs/images/draw.py``. Needs latexmk and poppler's tools.

The page is the one of the generated LaTeX on which the closed forms begin, without its margins.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = "qwen_image"
PICTURE = HERE / "qwen_image.png"
HEADING = "Closed forms"
DPI = 110
MARGINS = (0.085, 0.06, 0.915, 0.945)  # left, top, right, bottom of what is kept, as shares of the page


def draw(page: Path | None = None, picture: Path = PICTURE) -> Path:
    """Compile ``page``, by default that of Qwen-Image, and draw the part of it that says most.

    Raises:
        subprocess.CalledProcessError: a tool fails.
        ValueError: no page has the heading.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if page is None:
            run(sys.executable, "-m", "symflops.cli.main", "render", MODEL, "--format", "latex", "-o", str(folder))
            page = folder / f"{MODEL}.tex"
        run("latexmk", "-pdf", "-interaction=batchmode", f"-output-directory={folder}", str(page))
        pdf = folder / f"{page.stem}.pdf"
        texts = run("pdftotext", "-layout", str(pdf), "-").split("\f")
        number = next((place for place, text in enumerate(texts, start=1) if HEADING in text), 0)
        if not number:
            raise ValueError(f"no page of {page.name} has the heading '{HEADING}'")
        width, height = size(run("pdfinfo", "-f", str(number), "-l", str(number), str(pdf)))
        left, top, right, bottom = (
            round(share * side * DPI / 72) for share, side in zip(MARGINS, (width, height) * 2, strict=True)
        )
        box = ["-x", str(left), "-y", str(top), "-W", str(right - left), "-H", str(bottom - top)]
        run("pdftoppm", "-png", "-gray", "-r", str(DPI), "-singlefile", "-f", str(number), *box, str(pdf), str(folder / "page"))
        picture.write_bytes((folder / "page.png").read_bytes())
    return picture


def size(information: str) -> tuple[float, float]:
    """Width and height of a page in points, as pdfinfo tells them."""
    line = next(line for line in information.splitlines() if line.startswith("Page") and "size:" in line)
    words = line.partition("size:")[2].split()
    return float(words[0]), float(words[2])


def run(*command: str) -> str:
    """What a program prints.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.stdout.write(f"{draw()}\n")
