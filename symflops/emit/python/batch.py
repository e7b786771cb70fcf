"""Batches in Python: the arguments of ``moments``, the columns of lengths, and the sums over them."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from symflops.emit.code.batches import Summed, columns, stream_rows, summed
from symflops.emit.code.infix import ATOM, UNARY
from symflops.emit.python.printer import PythonPrinter
from symflops.model.formula import Apply, Formula, Num, Power, Prod, Sum, Sym, symbols
from symflops.model.program import Moment, Program, Statistic


class MomentPrinter(PythonPrinter):
    """Functions of lengths; exact divisions are checked at run time."""

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"_exact({top}, {bottom})", ATOM


class ElementPrinter(PythonPrinter):
    """Functions of lengths that work on ints and, element by element, on integer arrays.

    ``rests`` collects the remainders of exact divisions, which must be zero.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[str] = []

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        rest = f"{top} % ({bottom})" if product else f"{top} % {bottom}"
        if rest not in self.rests:
            self.rests.append(rest)
        return super().quotient(top, bottom, product)

    def apply(self, formula: Apply) -> tuple[str, int]:
        if formula.function == "excess":
            return f"_most(0, {self.text(formula.arguments[0])})", ATOM
        if formula.function in ("min", "max"):
            texts = [self.text(argument) for argument in formula.arguments]
            name = "_least" if formula.function == "min" else "_most"
            nested = texts[0]
            for text in texts[1:]:
                nested = f"{name}({nested}, {text})"
            return nested, ATOM
        return super().apply(formula)


PRINT = MomentPrinter()


def signature(program: Program) -> str:
    """The arguments of ``moments``."""
    parts = [
        f"{name}: {'Streams' if variables else 'Streams | int'}{' | None = None' if optional else ''}"
        for name, _, variables, optional in stream_rows(program)
    ]
    return ", ".join(["*", *parts]) if parts else ""


def slots(program: Program) -> list[str]:
    """The fields of the moments; raw lengths are among them if some moments depend on sizes."""
    raw = ["lengths"] if any(moment.sizes for moment in program.moments) else []
    return ["padded", *raw, *(moment.name for moment in program.moments)]


def total(what: Moment | Statistic, program: Program) -> str:
    """A moment or a statistic as a sum over columns."""
    found = summed(what, program)
    match found.kind:
        case "once":
            return PRINT.text(found.formula)
        case "count":
            count = f"len({found.columns[0]}_)" if found.columns else "0"
            return count if isinstance(found.formula, Num) else f"{count}*{PRINT.inside(found.formula, UNARY)}"
    first = found.columns[0]
    if found.formula == Power(Sym(first), 2):
        return f"sum([{first}*{first} for {first} in {first}_])"
    return f"sum({over_items(found)})"


def figure(statistic: Statistic, program: Program) -> str:
    """A statistic as a sum over columns, or as their largest value."""
    if statistic.kind == "sum":
        return total(statistic, program)
    items = over_items(summed(statistic, program))
    return f"max({items if items.isidentifier() else f'({items})'}, default=0)"


def over_items(found: Summed) -> str:
    """A formula for each item of a batch: a column, or a generator over columns."""
    first, *others = found.columns
    if found.kind == "column":
        return f"{first}_"
    text = PRINT.text(found.formula)
    if not others:
        return f"{text} for {first} in {first}_"
    return f"{text} for {', '.join(found.columns)} in zip({', '.join(f'{name}_' for name in found.columns)})"


def column_context(program: Program) -> dict[str, Any]:
    """The names of the template for columns of lengths: the moments of one item, or of whole columns element by element.

    If moments belong to a batch as a whole, there are no ``terms``: no item decides what it adds to them. ``rests`` are the
    remainders of exact divisions.
    """
    printer, names = ElementPrinter(), columns(program)
    terms = [] if program.whole else [printer.text(moment.formula) for moment in program.moments]
    inner = [ElementPrinter().text(length.formula) for length in program.inner]
    text = " ".join((*terms, *printer.rests, *inner))
    plain_lists, plain_columns = quick(program)
    return {
        "columns": [f"{name}_: list[int]" for name in names] or ["*_: list[int]"],
        "elements": [f"{name}: Any" for name in names] or ["*_: Any"],
        "terms": terms,
        "rests": printer.rests,
        "least": "_least(" in text,
        "most": "_most(" in text,
        "inner": inner,
        "inner_sets": [length.items for length in program.inner],
        "growing": all(grows(length.formula, set(columns(program))) for length in program.inner),
        "quick": plain_lists,
        "quick_columns": plain_columns,
    }


def grows(formula: Formula, lengths: Set[str]) -> bool:
    """Whether a function of lengths never falls where one of them grows, which its form shows."""
    if lengths.isdisjoint(symbols(formula)):
        return True
    match formula:
        case Sym():
            return True
        case Sum(terms):
            return all(grows(term, lengths) for term in terms)
        case Prod(factors):
            negative = any(isinstance(factor, Num) and factor.value < 0 for factor in factors)
            return not negative and all(grows(factor, lengths) for factor in factors)
        case Apply("floordiv" | "ceildiv", (above, below)):
            return grows(above, lengths) and lengths.isdisjoint(symbols(below))
        case _:
            return False


def quick(program: Program) -> tuple[list[str], list[str]]:
    """The conditions under which a batch is lists of ints, and their columns; empty for models with other streams."""
    rows = stream_rows(program)
    if not rows or any(optional or len(axes) != 1 or items != rows[0][1] for _, items, axes, optional in rows):
        return [], []
    first, *others = [name for name, _, _, _ in rows]
    tests = ("type({}) is list", "type({}[0]) is int", "_numbers({})")
    lists, ints, numbers = ([test.format(name) for name in (first, *others)] for test in tests)
    return [*lists, first, *(f"len({name}) == len({first})" for name in others), *ints], numbers
