"""The Python target: a standalone module (Python 3.10 or later) with the formulas of a model.

Its class ``Sizes`` has one attribute per config field, with default and meaning.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from symflops.emit.code.infix import SUM
from symflops.emit.code.sharing import Scope, identifier
from symflops.emit.grouping import grouped
from symflops.emit.python.batch_sums import Reader
from symflops.emit.python.printer import (
    PYTHON,
    WIDTH,
    SpacedPrinter,
    helpers_of,
    joined,
    packed,
    raised,
    remarked,
    remarks,
    size,
    statement,
    statement_of,
    wrapped,
)
from symflops.emit.python.work import Work
from symflops.emit.rendering import template, tuple_of, tuple_text
from symflops.evaluate.units import AS_SOURCE
from symflops.formula.factoring import expanded
from symflops.formula.formula import ZERO, Num
from symflops.ir.program import Field, Program
from symflops.ir.verification import Verification

TYPES = {"number": "int", "count": "int", "entries": "int", "position": "int", "flag": "bool", "text": "str"}


def fields(program: Program) -> Iterator[str]:
    """Yield the field declarations of the sizes, each with its meaning as a comment."""
    fixed = dict(program.fixed)
    for field in program.fields:
        value = literal(fixed[field.letter]) if field.letter in fixed else default(field)
        kind = TYPES.get(field.kind, "Any") if is_plain(field) else "Any"
        line = f"{field.attribute}: {kind}{f' = {value}' if value else ''}"
        told = f"# {field.letter}{f': {field.doc}' if field.doc else ''}"
        if len(line) > WIDTH:
            first, *more = wrapped(line, WIDTH - 4)
            yield from ("# fmt: off", *remarks(told), first, *(f"    {part}" for part in more), "# fmt: on")
        else:
            yield from remarked(line, told + (f" ({field.keys[0]})" if field.keys[0] != field.attribute else ""))


def default(field: Field) -> str:
    """Print the default of a size in a signature: a constant, or ``None`` if it is computed from others.

    The text is empty for a required size.
    """
    if field.default is None or not is_constant(field):
        return "" if field.required else "None"
    if isinstance(field.default, Num):
        value = field.default.value
        return str(value) if value.denominator == 1 else literal(value)
    return literal(field.default)


def is_constant(field: Field) -> bool:
    """Whether the default of a size is a constant."""
    return isinstance(field.default, (bool, str, tuple, Num))


def is_plain(field: Field) -> bool:
    """Whether a size is never null and its default depends on no other size."""
    return not field.nullable and (field.required or is_constant(field))


def checks(program: Program) -> Iterator[str]:
    """Yield statements that compute defaults from other sizes, and raise errors for sizes that do not fit."""
    own = {field.letter: f"self.{field.attribute}" for field in program.fields}
    printer = SpacedPrinter(own)
    for field in program.fields:
        if field.kind == "rational":
            given = f" if {own[field.letter]} is not None else None" if not is_plain(field) else ""
            yield f"{own[field.letter]} = Fraction(str({own[field.letter]})){given}"
        if field.default is not None and not is_constant(field):
            text = printer.text(field.default)  # type: ignore[arg-type]
            yield f"if {own[field.letter]} is None:"
            value = f"bool({text})" if field.kind == "flag" else text
            yield from (f"    {line}" for line in statement(own[field.letter], value, WIDTH - 8))
    if program.requirements:
        null = "self.{0.attribute} is not None".format
        language = replace(PYTHON, printer=SpacedPrinter, size=partial(size, config="self"), given=null)
        scope = Scope(program, language, [one.formula for one in program.requirements])
        yield from joined(scope.statements, WIDTH - 8)
        for one in program.requirements:
            condition = statement_of(f"{scope.printer.inside(one.formula, SUM)} != 0")
            yield from (*condition, *raised(one.text.replace("{", "{{").replace("}", "}}")))
    if program.fixed:
        yield "for name, value in FIXED.items():"
        yield "    if getattr(self, name) != value:"
        yield "        raise ValueError(f\"this module is of models whose '{name}' is {value!r}, not {getattr(self, name)!r}\")"


def fixed(program: Program) -> Iterator[str]:
    """Print the dictionary of the sizes that decide the structure."""
    attributes = {field.letter: field.attribute for field in program.fields}
    if program.fixed:
        yield "# fmt: off"
        yield "FIXED = {  # the sizes that decide the structure"
        yield from packed([f"{json.dumps(attributes[letter])}: {literal(value)}," for letter, value in program.fixed], WIDTH)
        yield "}"
        yield "# fmt: on"


def literal(value: object) -> str:
    """Print a value of a config as a Python literal, as formatters do."""
    if isinstance(value, tuple):
        return tuple_text([literal(item) for item in value])
    if isinstance(value, Fraction):
        return f'Fraction("{value}")'
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """Print the module of ``program``; records in ``verified`` appear only on the derivation page."""
    reader, units = Reader(program), unit_words(program)
    body = {
        "sizes": {"fields": list(fields(program)), "checks": marked(list(checks(program)))},
        "sums": {
            "fields": list(reader.fields()) or ["pass"],
            "signature": reader.signature(),
            "doc": list(reader.doc()),
            "body": (sums := list(reader.body())),
            "marked": folds(sums),
        },
        "parameters": list(parameters(program)),
        "work": list(Work(program).lines()),
    }
    text = template("python/module.py.jinja").render(
        title="\n".join(wrapped(f"{program.title or program.name}: parameters and FLOPs in closed form", WIDTH)),
        head=list(head(program, version)),
        regimes=[regime.name for regime in program.regimes],
        convention=program.conventions[0],
        conventions=conventions(program), constants=list(fixed(program)),
        unit=units, number="Any" if program.shares or is_rational(program) else "int",
        whole="_total" if program.shares or is_rational(program) else "sum",
        imports=[], helpers=[], **body,
    )  # fmt: skip
    return re.sub(r"[ ]+$", "", with_imports(text, list(helpers_of(text))), flags=re.MULTILINE)


def marked(lines: Sequence[str]) -> list[str]:
    """Return ``lines`` between ``fmt: off`` and ``fmt: on`` if a statement spans several, else unchanged."""
    return ["# fmt: off", *lines, "# fmt: on"] if folds(lines) else list(lines)


def folds(lines: Sequence[str]) -> bool:
    """Whether a statement spans several lines."""
    return any(line.count("(") != line.count(")") for line in lines)


def with_imports(text: str, helpers: Sequence[str]) -> str:
    """Insert the sources of ``helpers`` and the necessary imports into a module's text."""
    place = text.index("\n\n\n@dataclass")
    text = text[:place] + "".join(f"\n\n\n{helper}" for helper in helpers) + text[place:]
    imports = ["from dataclasses import dataclass"]
    imports += ["from fractions import Fraction"] if "Fraction(" in text else []
    imports += ["from operator import index"] if "index(" in text else []
    names = ["Any"] if re.search(r"\bAny\b", text) else []
    imports += [f"from typing import {', '.join([*names, 'NamedTuple'])}"]
    first = ["from collections.abc import Sequence"] if "Sequence[" in text else []
    return text.replace("import annotations\n\n", "import annotations\n\n" + "\n".join([*first, *imports]) + "\n", 1)


def head(program: Program, version: str) -> Iterator[str]:
    """Yield the lines of a module's docstring on its origin: version, spec, digest, structure."""
    path, digest = program.sources[0]
    again = program.name if path.startswith("specs/") else path  # a spec outside of a library has no name
    told = f"Generated by symflops {version} from {path}; do not edit, run 'symflops generate {again}'."
    yield from wrapped(told, WIDTH)
    yield f"sha256 {digest}"
    if program.variant:
        yield ""
        yield f"Structure '{program.variant}': of models with the sizes that ``Sizes`` checks."


def conventions(program: Program) -> list[str]:
    """Print the tuple of conventions, with a comment on what each counts."""
    pairs, lengths = dict(program.pairs), dict(program.lengths)
    rows = [f"{pairs[name]} pairs of {lengths[name]} lengths" for name in program.conventions]
    line, note = f"CONVENTIONS = {tuple_of(program.conventions)}", f"# {'; '.join(rows)}"
    if len(line) + len(note) + 2 <= WIDTH:
        return [f"{line}  {note}"]
    told = grouped(zip(rows, program.conventions, strict=True))
    notes = wrapped("; ".join(f"{', '.join(names)}: {words}" for words, names in told.items()), WIDTH - 2)
    if len(line) > WIDTH:
        line = "\n".join(["CONVENTIONS = (", *packed([f"{json.dumps(name)}," for name in program.conventions], WIDTH), ")"])
    return [*(f"# {one}" for one in notes), line]


def is_rational(program: Program) -> bool:
    """Whether a size of the program is a fraction."""
    return any(field.kind == "rational" for field in program.fields)


def parameters(program: Program) -> Iterator[str]:
    """Yield statements that return the numbers of all and of trained parameters of a regime."""
    own, rows = program.regimes[0].parameters, {one.name: (one.parameters, one.trainable) for one in program.regimes}
    scope = Scope(program, PYTHON, [formula for pair in rows.values() for formula in pair])
    names, cells = {own: "own", ZERO: "0"}, []
    yield from joined(scope.statements, WIDTH)
    yield from statement("own", scope.printer.text(own), WIDTH)
    for name, (every, trained) in rows.items():
        for wanted, formula in (("trained", trained), ("all", every)):
            if formula not in names and formula == every and expanded(every) == expanded(own) + expanded(trained):
                names[formula] = f"own + {names[trained]}"
            elif formula not in names:
                names[formula] = unused(identifier(name) if len(name) < 24 else "other", wanted, scope)
                yield from statement(names[formula], scope.printer.text(formula), WIDTH)
        cells.append(f"{json.dumps(name)}: ({names[every]}, {names[trained]})")
    line = f"{{{', '.join(cells)}}}[regime]"
    if is_rational(program):
        yield from ("found = {", *packed([f"{cell}," for cell in cells], WIDTH), "}[regime]")
        yield "return _total(found[:1]), _total(found[1:])"
    elif len(line) + 7 <= WIDTH:
        yield f"return {line}"
    else:
        yield from ("found = {", *packed([f"{cell}," for cell in cells], WIDTH), "}")
        yield "return found[regime]"


def unused(word: str, prefix: str, scope: Scope) -> str:
    """Choose a variable for a regime's count: ``word``, prefixed until it is a free identifier."""
    name = word
    while name in {*scope.taken, "own", "sizes", "found", "regime"} or keyword.iskeyword(name) or not name.isidentifier():
        name = f"{prefix}_{name}"
    scope.taken.add(name)
    return name


def unit_words(program: Program) -> str:
    """Return the unit of the figures in words; if conventions differ in it, with their names."""
    names = grouped((unit, name) for name, unit in program.units)
    if names.keys() == {"macs"}:
        return "MACs"
    words = {"macs": "MACs", AS_SOURCE: "a multiply-add as one"}
    others = [f"{word} under {', '.join(names[unit])}" for unit, word in words.items() if unit in names]
    return f"FLOPs ({'; '.join(others)})" if others else "FLOPs"


def fixed_sizes(program: Program) -> dict[str, str]:
    """Map the attribute of each size that decides the structure to the ``repr`` of its value.

    By these texts a lookup compares configs with structures.
    """
    return {size.attribute: repr(value) for letter, value in program.fixed for size in program.fields if size.letter == letter}
