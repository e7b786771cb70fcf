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


def line(path: str, amount: str, counts: tuple[str, str], gradients: Sequence[str], again: str, what: str) -> list[str]:
    """The cells of a row of work."""
    head, cells = f'("{path}",', (amount, *counts, tuple_text(gradients))
    return [head, *(f"{cell}," for cell in cells), f"{again}),", f"# {what}"]


PYTHON = Language(
    printer=PythonPrinter,
    assigned="{} = {}".format,
    remark="# {}".format,
    size=size,
    given="sizes.{0.attribute} is not None".format,
    vector=tuple_text,
    choice='{} if pairs == "useful" else {}'.format,
    line=line,
    lines_at='*_at("{}", {}),'.format,
    count=lambda name, elements: [f'"{name}":', f"{elements},"],
    counts_at='**_inside("{}", {}),'.format,
)
