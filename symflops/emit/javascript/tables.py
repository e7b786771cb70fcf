"""The tables of an estimator in JavaScript."""

from __future__ import annotations

import json
from collections.abc import Sequence

from symflops.emit.code.language import Language
from symflops.emit.code.whole_numbers import DENOMINATOR
from symflops.emit.javascript.printer import JavaScriptPrinter
from symflops.model.program import Field

READ = {"flag": "$flag({})", "rational": "{}[0]", DENOMINATOR: "{}[1]"}
ABSENT = {"number": "{} ?? 0n", "count": "{} ?? 0n", "list": "{} ?? $nothing"}


def size(field: Field) -> str:
    """The expression that reads a size for formulas."""
    kinds = {**READ, **ABSENT} if field.nullable else READ
    return kinds.get(field.kind, "{}").format(f"sizes.{field.attribute}")


def vector(cells: Sequence[str]) -> str:
    """An array."""
    return f"[{', '.join(cells)}]"


def line(path: str, amount: str, counts: tuple[str, str], gradients: Sequence[str], again: str, _: str) -> list[str]:
    """The cells of a row of work."""
    cells = (amount, *counts, vector(gradients))
    return [f"[{json.dumps(path)},", *(f"{cell}," for cell in cells), f"{again}],"]


def rows_at(path: str, block: str) -> str:
    """The row for a shared block of work or of parameters at a path."""
    return f"...$at({json.dumps(path)}, {block}),"


JAVASCRIPT = Language(
    printer=JavaScriptPrinter,
    assigned="const {} = {};".format,
    remark="// {}".format,
    size=size,
    given="$given(sizes.{0.attribute})".format,
    vector=vector,
    choice='pairs === "useful" ? {} : {}'.format,
    line=line,
    lines_at=rows_at,
    count=lambda name, elements: [f"[{json.dumps(name)},", f"{elements}],"],
    counts_at=rows_at,
)
