"""Statements and sums as lines of Python that are not too long."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

READS = re.compile(r"(\w+) = ((?:sizes|self)\.\w+)")


def folded(terms: Sequence[str], heads: Sequence[str], width: int, indent: str) -> list[str]:
    """Terms as lines, each behind its head; what is longer than ``width`` goes on behind ``indent``."""
    lines = []
    for head, term in zip(heads, terms, strict=True):
        first, *more = wrapped(term, width)
        lines += [head + first, *(indent + part for part in more)]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """A text as lines that are broken at spaces."""
    return textwrap.wrap(text, width=width, break_long_words=False, break_on_hyphens=False)


def statement(name: str, value: str, width: int) -> list[str]:
    """An assignment, in parentheses if it takes several lines."""
    if len(name) + len(value) + 3 <= width:
        return [f"{name} = {value}"]
    heads = {"initial_indent": f"{name} = ", "subsequent_indent": "    "}
    return textwrap.wrap(f"({value})", width, break_long_words=False, break_on_hyphens=False, **heads)  # type: ignore[arg-type]


def joined(statements: Iterable[str], width: int) -> list[str]:
    """Statements; those that read a size as it is become assignments of several names."""
    lines: list[str] = []
    names: list[str] = []
    values: list[str] = []

    def end() -> None:
        if names:
            lines.append(f"{', '.join(names)} = {', '.join(values)}")
            names.clear()
            values.clear()

    for one in statements:
        read = READS.fullmatch(one)
        if not read:
            end()
            name, _, value = one.partition(" = ")
            lines += statement(name, value, width)
            continue
        if len(", ".join((*names, *values, *read.groups()))) + 3 > width:
            end()
        names.append(read[1])
        values.append(read[2])
    end()
    return lines


def packed(cells: Sequence[str], width: int) -> list[str]:
    """Cells of a list or a dictionary as indented lines that are as full as can be."""
    lines: list[str] = []
    for cell in cells:
        if lines and len(lines[-1]) + len(cell) + 1 <= width:
            lines[-1] += f" {cell}"
        else:
            first, *more = wrapped(cell, width - 12)
            lines += [f"    {first}", *(f"        {part}" for part in more)]
    return lines


def filled(head: str, cells: Sequence[str], width: int) -> list[str]:
    """Cells behind a head as lines that are as full as can be, broken between cells where possible."""
    lines = [head]
    for cell in cells:
        apart = " " if lines[-1] != head else ""
        if len(lines[-1]) + len(apart) + len(cell) <= width:
            lines[-1] += apart + cell
        elif lines[-1] == head:
            lines = wrapped(head + cell, width - 4)
        else:
            lines += wrapped(cell, width - 4)
    return lines
