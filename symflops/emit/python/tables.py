"""How Python reads the sizes of a model."""

from __future__ import annotations

from symflops.emit.code.language import Language
from symflops.emit.python.printer import PythonPrinter
from symflops.model.program import Field

ABSENT = {"number": "{} or 0", "count": "{} or 0", "rational": "{} or 0", "list": "_Null() if {0} is None else {0}"}


def size(field: Field, config: str = "sizes") -> str:
    """The expression that reads a size for formulas."""
    return (ABSENT.get(field.kind, "{}") if field.nullable else "{}").format(f"{config}.{field.attribute}")


PYTHON = Language(
    printer=PythonPrinter,
    assigned="{} = {}".format,
    size=size,
    given="sizes.{0.attribute} is not None".format,
)
