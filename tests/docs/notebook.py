"""Executes the cells of ``docs/notebook.ipynb``, as Jupyter does, without it.

python -m tests.docs.notebook write    # writes the outputs of all cells
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"
SHOWN = {"text/latex": "_repr_latex_", "text/markdown": "_repr_markdown_", "text/html": "_repr_html_"}


def cells() -> list[dict[str, Any]]:
    """The cells of the notebook."""
    return json.loads(PATH.read_text("utf-8"))["cells"]


def source(cell: dict[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def executed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells with what they print and show, one after another in one namespace."""
    space: dict[str, Any] = {"__name__": "__main__"}
    done, count = [], 0
    for cell in found:
        if cell["cell_type"] == "code":
            count += 1
            cell = {**cell, "execution_count": count, "outputs": outputs(source(cell), space, count)}
        done.append(cell)
    return done


def outputs(text: str, space: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last expression."""
    tree, printed = ast.parse(text), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), space)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), space) if last else None
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        data |= {kind: lines(getattr(value, method)()) for kind, method in SHOWN.items() if hasattr(value, method)}
        found.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    return found


def lines(text: str) -> list[str]:
    """A text as notebooks store it."""
    return text.splitlines(keepends=True)


if __name__ == "__main__" and sys.argv[1:] == ["write"]:
    notebook = json.loads(PATH.read_text("utf-8"))
    notebook["cells"] = executed(notebook["cells"])
    PATH.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
