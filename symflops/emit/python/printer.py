"""Formulas as Python expressions over ints, in statements wrapped to the line width.

Also contains the helper functions whose source is copied into generated modules that call them.
"""

from __future__ import annotations

import builtins
import inspect
import json
import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from operator import index
from typing import Any

from symflops.emit.code.infix import ATOM, PRODUCT, SUM, UNARY, CodePrinter, Language
from symflops.emit.python.rows import CALLS, DIVISIONS
from symflops.formula.formula import ZERO, Apply, Bracket, Formula, Power, Sym, TallyOf
from symflops.ir.program import Field

WIDTH = 116
"""Line width of a generated module in characters, without indentation."""
READS = re.compile(r"(\w+) = ((?:sizes|self)\.\w+)")


def wrapped_lines(terms: Sequence[str], heads: Sequence[str], width: int, indent: str) -> list[str]:
    """Print terms as lines, each after its head; lines longer than ``width`` continue after ``indent``."""
    lines = []
    for head, term in zip(heads, terms, strict=True):
        first, *more = wrapped(term, width)
        lines += [head + first, *(indent + part for part in more)]
    return lines


def remarked(line: str, remark: str) -> list[str]:
    """Print a line with a trailing comment, or with the comment above it if both are too wide."""
    if len(line) + len(remark) + 2 <= WIDTH:
        return [f"{line}  {remark}"]
    return [*remarks(remark), line]


def remarks(text: str) -> list[str]:
    """Wrap a comment into lines of its own."""
    return [part if part[0] == "#" else f"# {part}" for part in wrapped(text, WIDTH - 2)]


def wrapped(text: str, width: int) -> list[str]:
    """Wrap a text into lines, only at spaces."""
    return textwrap.wrap(text, width=width, break_long_words=False, break_on_hyphens=False)


def statement(name: str, value: str, width: int) -> list[str]:
    """Print an assignment, in parentheses if it takes several lines."""
    if len(name) + len(value) + 3 <= width:
        return [f"{name} = {value}"]
    heads = {"initial_indent": f"{name} = ", "subsequent_indent": "    "}
    return textwrap.wrap(f"({value})", width, break_long_words=False, break_on_hyphens=False, **heads)  # type: ignore[arg-type]


def statement_of(condition: str) -> list[str]:
    """Print the head of an ``if``, in parentheses if it takes several lines."""
    if len(condition) < WIDTH - 12:
        return [f"if {condition}:"]
    return ["if (", *(f"    {line}" for line in wrapped(condition, WIDTH - 16)), "):"]


def raised(text: str, values: Sequence[str] = ()) -> list[str]:
    """Print a ``raise ValueError``; ``values`` replace ``{0}``, ``{1}``, ... in the message."""
    given = f".format({', '.join(values)})" if values else ""
    whole = json.dumps(text if values else text.replace("{{", "{").replace("}}", "}"), ensure_ascii=False)
    if len(whole) + len(given) < WIDTH - 26:
        return [f"    raise ValueError({whole}{given})"]
    parts = textwrap.wrap(whole[1:-1], WIDTH - 20, break_long_words=False, break_on_hyphens=False, drop_whitespace=False)
    first = [f'"{part}"' for part in parts]
    end = wrapped(given, WIDTH - 16)
    return ["    raise ValueError(", *(f"        {part}" for part in (*first, *end)), "    )"]


def joined(statements: Iterable[str], width: int) -> list[str]:
    """Print statements; plain reads of sizes are merged into assignments of several names."""
    lines: list[str] = []
    for reads, some in groupby(statements, lambda one: READS.fullmatch(one) is not None):
        pairs = [(name, value) for name, _, value in (one.partition(" = ") for one in some)]
        lines += grouped_assignments(pairs, width) if reads else [line for pair in pairs for line in statement(*pair, width)]
    return lines


def grouped_assignments(pairs: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Merge assignments into tuple assignments, as many per line as fit."""
    rows: list[list[tuple[str, str]]] = []
    for pair in pairs:
        if rows and len(", ".join(text for each in (*rows[-1], pair) for text in each)) + 3 <= width:
            rows[-1].append(pair)
        else:
            rows.append([pair])
    return [" = ".join(map(", ".join, zip(*row, strict=True))) for row in rows]


def packed(cells: Sequence[str], width: int) -> list[str]:
    """Pack cells of a list or dictionary into indented lines of at most ``width`` characters."""
    lines: list[str] = []
    for cell in cells:
        if lines and len(lines[-1]) + len(cell) + 1 <= width:
            lines[-1] += f" {cell}"
        else:
            first, *more = wrapped(cell, width - 12)
            lines += [f"    {first}", *(f"        {part}" for part in more)]
    return lines


def filled(head: str, cells: Sequence[str], width: int) -> list[str]:
    """Pack cells after a head into lines of at most ``width`` characters, broken between cells."""
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


BUILTIN = frozenset((*dir(builtins), *keyword.kwlist, "count", "index", "self", "sizes"))
"""Reserved names; a letter of a spec with such a name gets an underscore."""


class PythonPrinter(CodePrinter):
    """Printer of Python expressions, in which truth values are bools."""

    def number(self, value: Fraction) -> tuple[str, int]:
        return super().number(value) if value.denominator == 1 else (f"{value.numerator}/{value.denominator}", PRODUCT)

    def alone(self, formula: Formula) -> str:
        text = self.text(formula)
        return text[1:-1] if isinstance(formula, Bracket) and text.startswith("(") else text

    def literal(self, value: int) -> str:
        return str(value)

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return self.divided("{}//({})" if product else "{}//{}").format(top, bottom), PRODUCT

    def divided(self, form: str) -> str:
        """Format string of a quotient; subclasses add spaces."""
        return form

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, ATOM)
        return base if formula.exponent == 1 else f"{base}**{formula.exponent}"

    def apply(self, formula: Apply) -> tuple[str, int]:
        arguments = formula.arguments
        if formula.function in DIVISIONS:
            above = self.inside(arguments[0], ATOM if formula.function == "ceildiv" else UNARY)
            return self.divided(DIVISIONS[formula.function]).format(above, self.inside(arguments[1], ATOM)), PRODUCT
        texts = [self.text(argument) for argument in arguments]
        if formula.function in CALLS:
            return CALLS[formula.function].format(*texts), ATOM
        return f"{formula.function}({', '.join(texts)})", ATOM

    def bracket(self, formula: Bracket) -> tuple[str, int]:
        arguments = formula.arguments
        match formula.kind:
            case "flag":
                return self.text(arguments[0]), ATOM
            case "given":
                assert isinstance(arguments[0], Sym)
                name = arguments[0].name
                return (f"({self.symbol(name)} is not None)" if name in self.names else f"has_{self.symbol(name)}"), ATOM
            case "at_least":
                return f"({self.inside(arguments[0], SUM)} >= {self.inside(arguments[1], SUM)})", ATOM
            case "contains":
                return f"({self.inside(arguments[0], SUM)} in {self.inside(arguments[1], SUM)})", ATOM
        return f"({self.inside(arguments[0], SUM)} == {self.inside(arguments[1], SUM)})", ATOM

    def tally(self, formula: TallyOf) -> tuple[str, int]:
        index = formula.index.partition("@")[0]
        bounds = self.text(formula.high) if formula.low == ZERO else f"{self.text(formula.low)}, {self.text(formula.high)}"
        return f"sum({self.text(formula.condition)} for {index} in range({bounds}))", ATOM


class ModulePrinter(PythonPrinter):
    """Printer of the expressions in a generated module; reserved names are not used for letters."""

    reserved = BUILTIN | {"convention", "found", "m", "own", "regime", "rows"}

    def symbol(self, name: str) -> str:
        text = super().symbol(name)
        return f"{text}_" if text in self.reserved else text


class SpacedPrinter(ModulePrinter):
    """Printer of Python expressions with spaces around operators, as formatters write them."""

    times = " * "

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, ATOM)
        hugs = re.fullmatch(r"-?[\w.]+", base)
        return base if formula.exponent == 1 else f"{base}{'**' if hugs else ' ** '}{formula.exponent}"

    def divided(self, form: str) -> str:
        return form.replace("//", " // ")


ABSENT = {"number": "{} or 0", "count": "{} or 0", "rational": "{} or 0", "list": "_Null() if {0} is None else {0}"}


def size(field: Field, config: str = "sizes") -> str:
    """Print the expression that reads a size from ``config``."""
    return (ABSENT.get(field.kind, "{}") if field.nullable else "{}").format(f"{config}.{field.attribute}")


PYTHON = Language(
    printer=ModulePrinter,
    assigned="{} = {}".format,
    size=size,
    given="sizes.{0.attribute} is not None".format,
)


class NullList(tuple[object, ...]):
    """A list that is null: it counts as 0, and so do its items."""

    def __getitem__(self, index: Any) -> Any:
        return 0


def each(size: Any, place: int) -> int:
    """The number at ``place`` of a list, or the one that stands at every place; a word counts 0."""
    found: int = 0 if isinstance(size, str) else size[place] if isinstance(size, (list, tuple)) else size
    return found


def exact(product: int, divisor: int) -> int:
    """A quotient of lengths that the model divides without a remainder."""
    quotient, rest = divmod(product, divisor)
    if rest:
        raise ValueError(f"a length of the batch does not divide as the model divides it: {product} by {divisor}")
    return quotient


def columns(name: str, given: Any, axes: int = 1, count: int | None = None, absent: int = 0) -> list[list[int]]:
    """The lengths of a stream as a column per axis; ``count`` is the number of items of the streams beside it."""
    if given is None or (absent and isinstance(given, int)):
        return [[absent if given is None else given] * (count or 0)] * axes
    rows = [[index(length) for length in (item if axes > 1 else (item,))] for item in given]
    if count not in (None, len(rows)) or any(len(row) != axes or min(row) < 0 for row in rows):
        raise ValueError(f"'{name}' has {axes} whole numbers per item, and as many items as the streams beside it")
    return [[row[axis] for row in rows] for axis in range(axes)]


def total(parts: Any) -> int:
    """A sum that is a whole number, and not negative."""
    found = sum(parts)
    if found < 0 or found != int(found):
        raise ValueError(f"config and batch do not fit the model: a total of {found}")
    return int(found)


HELPERS = {"_Null": NullList, "_each": each, "_exact": exact, "_columns": columns, "_total": total}
"""Helpers by their names in generated modules; the underscore avoids clashes with letters of a spec."""


def source(own: Any, name: str) -> str:
    """Return the source code of the function or class ``own`` with the name ``name``."""
    return re.sub(rf"^(def|class) {own.__name__}\b", rf"\1 {name}", inspect.getsource(own).strip())


def helpers_of(text: str) -> Iterator[str]:
    """Yield the source code of each helper function that ``text`` calls."""
    return (source(own, name) for name, own in HELPERS.items() if re.search(rf"\b{name}\(", text))
