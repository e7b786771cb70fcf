"""The tables of an estimator in Python."""

from __future__ import annotations

from collections.abc import Sequence

from symflops.emit.code.language import Language
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.rendering import tuple_text
from symflops.model.program import Field

ABSENT = {"number": "{} or 0", "count": "{} or 0", "list": "_Null() if {0} is None else {0}"}


def size(field: Field) -> str:
    """The expression that reads a size for formulas."""
    return (ABSENT.get(field.kind, "{}") if field.nullable else "{}").format(f"sizes.{field.attribute}")


def row(path: str, cells: Sequence[str], what: str) -> list[str]:
    """The cells of a row of work, with its contraction as a comment."""
    return [f'("{path}",', *(f"{cell}," for cell in cells[:-1]), f"{cells[-1]}),", f"# {what}"]


PYTHON = Language(
    printer=PythonPrinter,
    assigned="{} = {}".format,
    remark="# {}".format,
    size=size,
    given="sizes.{0.attribute} is not None".format,
    vector=tuple_text,
    choice='{} if pairs == "useful" else {}'.format,
    lines_at='("{}", {}),'.format,
    count=lambda name, elements: [f'("{name}",', f"{elements}),"],
    counts_at='("{}", {}),'.format,
)
