"""What a programming language has of its own: how it writes statements and rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from symflops.emit.code.printer import CodePrinter
from symflops.model.program import Field

Line = Callable[[str, str, tuple[str, str], Sequence[str], str, str], list[str]]


def no_line(*_: object) -> list[str]:
    """No cells: the language prints one table for all regimes."""
    return []


@dataclass(frozen=True, slots=True)
class Language:
    """How one language writes the statements and the rows of tables.

    Attributes:
        printer: Makes a printer of formulas whose names may be set.
        assigned: The statement that assigns an expression to a name.
        remark: A comment on its own line.
        size: The expression that reads a size for formulas.
        given: The condition that a nullable size is not null.
        vector: A vector over the moments.
        choice: The choice between the vector of useful pairs and that of all pairs, by convention.
        lines_at: The row for a shared block of work at a path.
        count: The cells of a row of parameters, from name and elements.
        counts_at: The row for a shared block of parameters at a path.
        line: The cells of a row of work: module, amount, FLOPs of one and times forward, gradients, recomputed, contraction.
    """

    printer: Callable[[], CodePrinter]
    assigned: Callable[[str, str], str]
    size: Callable[[Field], str]
    given: Callable[[Field], str]
    remark: Callable[[str], str] = str
    vector: Callable[[Sequence[str]], str] = ", ".join
    choice: Callable[[str, str], str] = "{}{}".format
    lines_at: Callable[[str, str], str] = "{}{}".format
    count: Callable[[str, str], list[str]] = no_line
    counts_at: Callable[[str, str], str] = "{}{}".format
    line: Line = no_line
