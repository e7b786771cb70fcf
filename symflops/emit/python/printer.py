"""Formulas as Python expressions over ints, in statements that are not too long."""

from __future__ import annotations

import builtins
import json
import keyword
import re
import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction

from symflops.emit.code.printer import ATOM, PRODUCT, SUM, UNARY, CodePrinter, Language
from symflops.emit.python.rows import CALLS, DIVISIONS
from symflops.model.formula import ZERO, Apply, Bracket, Formula, Power, Sym, TallyOf
from symflops.model.program import Field

WIDTH = 116
"""Letters of a line of a generated module, without its indent."""
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


def statement_of(condition: str) -> list[str]:
    """The head of an ``if``, in parentheses if it takes several lines."""
    if len(condition) < WIDTH - 12:
        return [f"if {condition}:"]
    return ["if (", *(f"    {line}" for line in wrapped(condition, WIDTH - 16)), "):"]


def raised(text: str, values: Sequence[str] = ()) -> list[str]:
    """The statement that refuses something; ``values`` stand in the text in the places of ``{0}``, ``{1}``, ..."""
    given = f".format({', '.join(values)})" if values else ""
    whole = json.dumps(text if values else text.replace("{{", "{").replace("}}", "}"), ensure_ascii=False)
    if len(whole) + len(given) < WIDTH - 26:
        return [f"    raise ValueError({whole}{given})"]
    parts = textwrap.wrap(whole[1:-1], WIDTH - 20, break_long_words=False, break_on_hyphens=False, drop_whitespace=False)
    first = [f'"{part}"' for part in parts]
    end = wrapped(given, WIDTH - 16)
    return ["    raise ValueError(", *(f"        {part}" for part in (*first, *end)), "    )"]


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


BUILTIN = frozenset((*dir(builtins), *keyword.kwlist, "count", "index", "self", "sizes"))
"""Names that no letter of a spec may have: one that does gets an underscore."""


class PythonPrinter(CodePrinter):
    """Python expressions; truth values are bools."""

    reserved = BUILTIN | {"convention", "found", "m", "own", "regime", "rows"}

    def symbol(self, name: str) -> str:
        text = super().symbol(name)
        return f"{text}_" if text in self.reserved else text

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
        """The form of a quotient, as it is printed."""
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


class SpacedPrinter(PythonPrinter):
    """Python expressions with the spaces that formatters put around operators."""

    times = " * "

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, ATOM)
        hugs = re.fullmatch(r"-?[\w.]+", base)
        return base if formula.exponent == 1 else f"{base}{'**' if hugs else ' ** '}{formula.exponent}"

    def divided(self, form: str) -> str:
        return form.replace("//", " // ")


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
