"""How the Python target says batches: the arguments of ``moments``, the columns of lengths, and the sums over them."""

from __future__ import annotations

from symflops.model.formula import Apply, Formula, Num, Power, Sym, symbols
from symflops.model.graph import ONCE
from symflops.model.program import Moment, Program, Statistic
from symflops.targets.printing import ATOM, UNARY
from symflops.targets.python_printer import PythonPrinter


class MomentPrinter(PythonPrinter):
    """Functions of lengths, which are checked where the model divides them without a remainder."""

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"_exact({top}, {bottom})", ATOM


class ElementPrinter(PythonPrinter):
    """Functions of lengths that may be whole columns: what works on ints and, element by element, on integer arrays.

    ``rests`` collects what divisions without a remainder would leave over.
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
StreamRow = tuple[str, str, tuple[str, ...], bool]


def stream_rows(program: Program) -> list[StreamRow]:
    """The streams that a batch gives: name, index set, variables, and whether it may be left out."""
    return [(stream.name, stream.items, stream.variables, stream.optional) for stream in program.streams if stream.given]


def stream_groups(program: Program) -> list[list[StreamRow]]:
    """Those streams by index set."""
    groups: dict[str, list[StreamRow]] = {}
    for row in stream_rows(program):
        groups.setdefault(row[1], []).append(row)
    return list(groups.values())


def signature(program: Program) -> str:
    """The arguments of ``moments``."""
    parts = [
        f"{name}: {'Streams' if variables else 'Streams | int'}{' | None = None' if optional else ''}"
        for name, _, variables, optional in stream_rows(program)
    ]
    return ", ".join(["*", *parts]) if parts else ""


def slots(program: Program) -> list[str]:
    """The fields of the moments; raw lengths among them where some moments depend on sizes."""
    raw = ["lengths"] if any(moment.sizes for moment in program.moments) else []
    return ["padded", *raw, *(moment.name for moment in program.moments)]


def columns(program: Program) -> list[str]:
    """The variables in the order in which ``moments`` hands over their columns."""
    return [column for group in stream_groups(program) for row in group for column in columns_of(row)]


def columns_of(row: StreamRow) -> tuple[str, ...]:
    """The columns of one stream: its variables, or its name where it only counts items."""
    return row[2] or (row[0],)


def summed(moment: Moment, program: Program) -> str:
    """A moment as a sum over columns."""
    return PRINT.text(moment.formula) if moment.items == ONCE else total(moment, program)


def total(what: Moment | Statistic, program: Program) -> str:
    """A sum over columns."""
    wanted = lengths_in(what.formula, program)
    if not wanted:
        group = next((group for group in stream_groups(program) if group[0][1] == what.items), None)
        count = f"len({columns_of(group[0])[0]}_)" if group else "0"
        return count if isinstance(what.formula, Num) else f"{count}*{PRINT.inside(what.formula, UNARY)}"
    if what.formula == Power(Sym(wanted[0]), 2):
        return f"sum([{wanted[0]}*{wanted[0]} for {wanted[0]} in {wanted[0]}_])"
    return f"sum({over_items(what.formula, wanted)})"


def figure(statistic: Statistic, program: Program) -> str:
    """A statistic as the sum over columns, or as the largest value in them."""
    if statistic.kind == "sum":
        return total(statistic, program)
    items = over_items(statistic.formula, lengths_in(statistic.formula, program))
    return f"max({items if items.isidentifier() else f'({items})'}, default=0)"


def lengths_in(formula: Formula, program: Program) -> list[str]:
    """The lengths of an item that a formula reads."""
    variables = {name for stream in program.streams for name in stream.variables}
    return [name for name in dict.fromkeys(symbols(formula)) if name in variables]


def over_items(formula: Formula, lengths: list[str]) -> str:
    """The values of a formula for the items of a batch: a column, or a generator over columns."""
    if formula == Sym(lengths[0]):
        return f"{lengths[0]}_"
    text = PRINT.text(formula)
    if len(lengths) == 1:
        return f"{text} for {lengths[0]} in {lengths[0]}_"
    return f"{text} for {', '.join(lengths)} in zip({', '.join(f'{name}_' for name in lengths)})"


def elements(program: Program) -> tuple[list[str], list[str]]:
    """Each moment's function of one item, or of whole columns; and what divisions without a remainder would leave over.

    There are none where moments are of a batch as a whole: no item tells what it adds to them.
    """
    printer = ElementPrinter()
    terms = [] if program.whole else [printer.text(moment.formula) for moment in program.moments]
    return terms, printer.rests


def quick(program: Program) -> tuple[list[str], list[str]]:
    """What says that a batch is plain lists of ints, and their columns; empty for models with other streams."""
    rows = stream_rows(program)
    if not rows or any(optional or len(axes) != 1 or items != rows[0][1] for _, items, axes, optional in rows):
        return [], []
    first, *others = [name for name, _, _, _ in rows]
    asked = [f"type({name}) is list" for name, _, _, _ in rows] + [first]
    asked += [f"len({name}) == len({first})" for name in others] + [f"type({name}[0]) is int" for name, _, _, _ in rows]
    return asked, [f"_numbers({name})" for name, _, _, _ in rows]
