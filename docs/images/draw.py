"""Draws the picture of README.md: ``python docs/images/draw.py``. Needs latexmk and poppler's pdftoppm.

A layer of Llama in three columns: the spec, the closed forms that are derived from it, and what PyTorch's counter measured.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "_ext"), str(ROOT)]

import results  # noqa: E402

PICTURE = HERE / "llama.png"
VERIFIED = ROOT / "generated" / "verified.md"
RECORD = "pub-llama3-8b"
DPI = 150
WIDTH = 66  # characters of a line of the spec
PAGE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[paperwidth=10in,paperheight=6in,margin=0.15in]{geometry}
\usepackage{amsmath,amssymb,array,booktabs,xcolor}
\pagestyle{empty}\setlength{\parindent}{0pt}
\definecolor{head}{RGB}{30,90,150}
\newcommand{\panel}[2]{{\sffamily\bfseries\color{head}#1}\\[2pt]\rule{\linewidth}{0.6pt}\\[6pt]#2}
\begin{document}
\setbox0\vbox{\begin{minipage}[t]{0.41\linewidth}
\panel{What you write: the model}{%%
\fontsize{8.5}{11}\selectfont\ttfamily
%(spec)s}
\end{minipage}\hfill
\begin{minipage}[t]{0.31\linewidth}
\panel{What is derived: closed forms}{%%
\small $\begin{aligned}
%(forward)s
\end{aligned}$\\[12pt]
$\begin{aligned}
%(backward)s
\end{aligned}$\\[12pt]
\raggedright $\bar S_x$ is the sum of the lengths in the batch, $\bar S_{xx}$ the sum of their squares.
Widths, depth and lengths stay letters.}
\end{minipage}\hfill
\begin{minipage}[t]{0.225\linewidth}
\panel{What PyTorch counts}{%%
\small Llama 3 8B, \texttt{FlopCounterMode}:\\[8pt]
%(measured)s\\[16pt]
{\huge\sffamily\bfseries\color{head}0 FLOPs apart}\\[10pt]
\raggedright Every parameter has the same name and shape.}
\end{minipage}}
\pdfpageheight=\dimexpr\ht0+\dp0+0.4in\relax
\vspace*{-2\topskip}\box0
\end{document}
"""
SPECIAL = {" ": "~", "*": "{*}", "-": "{-}", "'": r"\textquotesingle{}"} | {one: f"\\{one}" for one in "{}_#&%"}


def draw(picture: Path = PICTURE) -> Path:
    """Typeset the three columns.

    Raises:
        subprocess.CalledProcessError: a tool fails.
        ValueError: the record is not exact.
    """
    texts = {"spec": layer(), "measured": measured()}
    texts |= {kind: equation(kind) for kind in ("forward", "backward")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = folder / "page.tex"
        page.write_text(PAGE % texts, "utf-8")
        run("latexmk", "-pdf", "-interaction=batchmode", f"-output-directory={folder}", str(page))
        run("pdftoppm", "-png", "-r", str(DPI), "-singlefile", str(page.with_suffix(".pdf")), str(folder / "page"))
        picture.write_bytes((folder / "page.png").read_bytes())
    return picture


def layer() -> str:
    """The lines of the spec of Llama that repeat, as LaTeX."""
    text = (ROOT / "specs" / "language" / "llama.yaml").read_text("utf-8")
    entries = text.partition("  - model.layers:\n")[2].partition("\n  - ")[0].splitlines()
    lines = ["- model.layers:", *(part for entry in entries for part in wrapped(entry.removeprefix("  ")))]
    return "\\\\\n".join(map(typed, lines))


def wrapped(line: str) -> Iterator[str]:
    """A line of YAML in parts that fit the column; further ones begin below the first field."""
    while len(line) > WIDTH:
        cut = line.rindex(", ", 0, WIDTH) + 2
        yield line[:cut]
        line = " " * (line.index("{") + 1 if "{" in line else len(line) - len(line.lstrip())) + line[cut:]
    yield line


def typed(line: str) -> str:
    """A line of YAML as LaTeX that keeps its spaces."""
    return r"\mbox{}" + "".join(SPECIAL.get(one, one) for one in line)


def equation(kind: str) -> str:
    """The closed form of one pass, as PyTorch's counter sees it, with a line for each moment."""
    form = results.equation(results.fragment("llama", "torch"), rf"\mathrm{{{kind}}} =")
    return re.sub(r"(\\bar\{S\}_\{\w+\}) \+", r"\1 \\cr\n&{}+", form)


def measured() -> str:
    """The measured record as a table.

    Raises:
        ValueError: it differs from what is derived.
    """
    rows = VERIFIED.read_text("utf-8").splitlines()
    (row,) = (row for row in rows if f"`{RECORD}`" in row)
    parameters, forward, backward, difference = [cell.strip() for cell in row.split("|")][4:8]
    if difference != "0":
        raise ValueError(f"{RECORD} is {difference} FLOPs apart")
    cells = (("parameters", parameters), ("forward", forward), ("backward", backward))
    body = " \\\\\n".join(f"{name} & {figure.replace(',', '{,}')}" for name, figure in cells)
    return rf"\begin{{tabular}}{{@{{}}l@{{\;\,}}r@{{}}}}{body}\end{{tabular}}"


def run(*command: str) -> str:
    """What a program prints.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.stdout.write(f"{draw()}\n")
