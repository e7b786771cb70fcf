"""Files of a vendored estimator: code with the project's signature, a test with figures, and a page.

The code computes the moments of a batch from the project's data: lists of lengths, one common length, or sums.
"""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

from symflops.emit.code.batches import columns
from symflops.emit.code.infix import PRODUCT, UNARY
from symflops.emit.code.sharing import Scope
from symflops.emit.python.batch_sums import of_lists
from symflops.emit.python.printer import ModulePrinter, wrapped_lines
from symflops.emit.rendering import template
from symflops.emit.vendor.sizes import (
    Reading,
    argument_of,
    helpers,
    is_plain,
    latent_context,
    latent_formulas,
    path_text,
    sources_of,
)
from symflops.emit.vendor.targets import Feeds, Target
from symflops.evaluate.classes import class_name
from symflops.evaluate.latent_inputs import factors_of
from symflops.evaluate.latents import whole_lengths
from symflops.formula.formula import Formula, Num, Power, Prod, Sym
from symflops.ir.batch import Moment, Statistic
from symflops.ir.program import Program
from symflops.support.errors import SymflopsError

PRINT = ModulePrinter()
SUMS = {
    "1": "batch_size",
    "x": "seqlen_sum",
    "xx": "seqlen_squared_sum",
    "y": "cross_seqlen_sum",
    "xy": "cross_seqlen_product_sum",
}


def statements(program: Program, feeds: Feeds) -> Iterator[str]:
    """Yield the statements that compute the moments and statistics of a batch."""
    if feeds == "sums":
        yield from (f"sum_{one.name} = {of_sums(one, program)}" for one in used(program))
        return
    sum_of = of_one if feeds in ("one", "video") else partial(of_lists, program=program, printer=PRINT, strict=True)
    yield from (f"{one.name} = {sum_of(one)}" for one in program.statistics)
    yield from (f"sum_{one.name} = {sum_of(one)}" for one in used(program))


def of_one(what: Moment | Statistic) -> str:
    """Print a moment or statistic of a batch of one sequence, whose length has the name of its axis."""
    return PRINT.text(what.formula)


def used(program: Program) -> list[Moment]:
    """Return the moments in the closed forms."""
    (case,) = program.cases
    places = {place for form in (case.forward, case.backward) for place, _ in form}
    return [moment for place, moment in enumerate(program.moments) if place in places]


def of_sums(moment: Moment, program: Program) -> str:
    """Print a moment as a multiple of one of the sums that Megatron-Bridge collects.

    Raises:
        SymflopsError: the moment is no multiple of these sums.
    """
    known = dict(tokens_of(program))
    for formula, name in known.items():
        ratio = multiple(moment.formula, formula)
        if ratio is not None:
            return SUMS[name] if ratio == Num(Fraction(1)) else f"{PRINT.inside(ratio, UNARY)}*{SUMS[name]}"
    told = "the project hands over sums of lengths, of their squares and products"
    raise SymflopsError(f"{told}, and none of {PRINT.text(moment.formula)}")


def tokens_of(program: Program) -> Iterator[tuple[Formula, str]]:
    """Yield (formula in the lengths of a sample, key in ``SUMS``) for each sum that the project collects.

    With several axes, the tokens are the product whose square is also a moment.
    """
    streams = [stream for stream in program.streams if stream.variables and not stream.optional]
    names = columns(program)
    first, second = streams[0], streams[1:2]
    formulas = [moment.formula for moment in program.moments]
    tokens: Formula | None = Sym(names[0])
    if len(first.variables) > 1:
        tokens = next((one for one in formulas if factors_of(one) and product(one, one) in map(product, formulas)), None)
    yield Num(Fraction(1)), "1"
    if tokens is not None:
        yield tokens, "x"
        yield product(tokens, tokens), "xx"
    if second and len(second[0].variables) == 1:
        other = Sym(second[0].variables[0])
        yield other, "y"
        if tokens is not None:
            yield product(tokens, other), "xy"


def multiple(formula: Formula, of: Formula) -> Formula | None:
    """Return the quotient of two formulas if it is an integer, else None."""
    one, other = factors_of(formula), factors_of(of)
    numbers = [base for base in one if isinstance(base, Num)]
    number = prod((base.value ** one.pop(base) for base in numbers), start=Fraction(1))
    return Num(number) if one == other and number.denominator == 1 else None


def product(*formulas: Formula) -> Formula:
    """Multiply formulas, with equal factors merged into powers."""
    found = Counter[Formula]()
    for formula in formulas:
        found.update(factors_of(formula))
    parts = tuple(base if exponent == 1 else Power(base, exponent) for base, exponent in sorted(found.items(), key=repr))
    return parts[0] if len(parts) == 1 else Prod(parts) if parts else Num(Fraction(1))


WIDTH = 84
AMBIGUOUS = ("I = ", "O = ", "l = ")
Form = Sequence[tuple[int, Formula]]


@dataclass(frozen=True)
class Example:
    """An example batch: ``arguments`` of the project's function by name, and the FLOPs that it returns."""

    arguments: Mapping[str, Any]
    flops: int


@dataclass(frozen=True)
class Vendored:
    """Inputs from which the files of one vendored estimator are printed.

    Attributes:
        program: The program of one regime and convention, without the sizes that are ``assumed``.
        target: The project that the estimator is for.
        name: The estimator's name in file names and code.
        command: The command that writes the files.
        version: The version of symflops.
        examples: Batches with the FLOPs that they cost under ``config``.
        config: A config in the project's format.
        words: Paths of fields in the project's config, in addition to the target's ``words``.
        values: Sizes that the project's config lacks, by letter.
        assumed: Values of assumed sizes that the figures depend on, by config field.
        streams: Streams that the project passes, each with the names of its axes.
        latents: Batches of latents for the test: shapes by key, and their lengths.
    """

    program: Program
    target: Target
    name: str
    command: str
    version: str
    examples: Sequence[Example]
    config: Mapping[str, Any]
    words: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    assumed: Mapping[str, Any] = field(default_factory=dict)
    streams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    latents: Sequence[tuple[Mapping[str, tuple[int, ...]], list[int]]] = ()

    @property
    def registered(self) -> tuple[str, ...]:
        """Model types or pipelines under which the project looks up the estimator."""
        return self.program.pipelines if self.target.feeds == "latents" else self.program.model_types

    @property
    def title(self) -> str:
        """Name of the estimator in CamelCase, for class names."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def files_of(one: Vendored) -> dict[str, str]:
    """Print the files of an estimator: map each path in the project's tree to its text."""
    context = context_of(one)
    folder = f"vendor/{one.target.name}"
    texts = ((path, template(f"{folder}/{part}.jinja").render(context)) for part, path in one.target.files.items())
    return {path.format(name=one.name): tidied(text) for path, text in texts}


def tidied(text: str) -> str:
    """Return ``text`` with as many blank lines as formatters leave."""
    text = re.sub(r"(# Generated.*\n)\n+", r"\1\n", text)
    return re.sub(r"\n{3,}(?= )", "\n\n", re.sub(r"\n{4,}", "\n\n\n", text)).strip() + "\n"


def context_of(one: Vendored) -> dict[str, Any]:
    """Return the template variables of one vendored estimator by name.

    Raises:
        SymflopsError: the model's work depends on inputs that the project does not pass.
    """
    program, reading = one.program, Reading(one.program, one.target, one.words, one.values)
    (case,) = program.cases
    latents = latent_formulas(program) if one.target.feeds == "latents" else []
    scope = Scope(program, reading.language(), reading.defaults([*formulas_of(program), *latents]))
    sizes = [f"{line}  # noqa: E741" if line[:4] in AMBIGUOUS else line for line in scope.statements]
    sums = list(statements(program, one.target.feeds))
    taken = [line.partition(" = ")[0] for line in (*sizes, *sums)]
    if len({*taken}) < len(taken) or any(map(keyword.iskeyword, taken)):
        raise SymflopsError(
            f"a size of '{program.name}' has the name of something else in the estimator: rename it in the spec"
        )
    checks = [(scope.printer.text(one.formula), one.text) for one in program.requirements]
    forward, backward = (lines_of(form, program, scope) for form in (case.forward, case.backward))
    factor = 2 if dict(program.units).get(case.convention) == "macs" else 1
    parts = dict(program.shares).get(case.convention, 1)
    decided = fixed(reading)
    shown = size_rows(reading, sizes)
    text = "\n".join((*sizes, *sums, *forward, *backward, *(test for _, test, _ in decided)))
    return {
        "one": one, "program": program, "name": one.name, "title": one.title, "case": case, "target": one.target,
        "sizes": sizes, "sums": sums, "checks": checks, "forward": forward, "backward": backward,
        "result": result(factor, parts), "helpers": helpers(text), "fractions": "Fraction(" in text,
        "fixed": decided, "command": one.command, "version": one.version, "config": one.config,
        "examples": one.examples, "columns": [name for names in one.streams.values() for name in names],
        "rows": shown, "arguments": arguments_of(reading, one.config, sizes),
        "told": textwrap.wrap(f"{program.title or program.name}.", WIDTH),
        "classes": [class_name(reference) for reference in program.references], "literal": literal,
        "wiring": tuple(text.format(name=one.name, title=one.title) for text in one.target.wiring),
        **batches(one, reading, scope, "\n".join(sums)),
    }  # fmt: skip


def batches(one: Vendored, reading: Reading, scope: Scope, sums: str) -> dict[str, Any]:
    """Return the template variables for the batch that the project passes, by name."""
    macs = dict(one.program.units).get(one.program.cases[0].convention, "flops") != "flops"
    return {
        "lists": [], "whole_lengths": sources_of(whole_lengths),
        "told_unit": ", which counts a multiply-add as one" if macs else "",
        "read": [word for word in SUMS.values() if word != "batch_size" and re.search(rf"\b{word}\b", sums)],
        **(latent_context(one.program, reading, scope) if one.target.feeds == "latents" else {}),
    }  # fmt: skip


def formulas_of(program: Program) -> list[Formula]:
    """Return all formulas of an estimator: closed forms, moments, statistics, requirements."""
    (case,) = program.cases
    found = [formula for form in (case.forward, case.backward) for _, formula in form]
    found += [one.formula for one in used(program)] + [one.formula for one in program.statistics]
    return found + [one.formula for one in program.requirements]


def lines_of(form: Form, program: Program, scope: Scope) -> list[str]:
    """Print a closed form as a sum with one term per line."""
    terms = [f"{scope.printer.inside(formula, PRODUCT)} * sum_{program.moments[place].name}" for place, formula in form]
    return wrapped_lines(terms, ["", *("+ " for _ in terms[1:])], WIDTH, "    ") if terms else ["0"]


def result(factor: int, parts: int) -> str:
    """Print the expression of the total in FLOPs: ``forward + backward``, scaled by ``factor / parts``."""
    text = "forward + backward" if factor == parts == 1 else "(forward + backward)"
    return f"{f'{factor} * ' if factor > 1 else ''}{text}{f' // {parts}' if parts > 1 else ''}"


def fixed(reading: Reading) -> list[tuple[str, str, str]]:
    """Return the config fields that decide the structure: (field, expression that reads it, value)."""
    fields = {field.letter: field for field in reading.program.fields}
    known = [(fields[letter], value) for letter, value in reading.program.fixed if reading.has(fields[letter])]
    return [(size.keys[0], reading.found(size) if value is None else reading.size(size), repr(value)) for size, value in known]


def arguments_of(reading: Reading, config: Mapping[str, Any], statements: Sequence[str]) -> list[tuple[str, str]]:
    """Return (argument, default) for the sizes that the function has as arguments, in the project's order.

    The list is empty for a project that passes a config.
    """
    read = {line.partition(" = ")[0] for line in statements} | {letter for letter, _ in reading.program.fixed}
    fields = [one for one in reading.program.fields if one.letter in read or f"has_{one.letter}" in read]
    values = {one.keys[0]: config.get(one.keys[0]) if is_plain(one.default) else None for one in fields}
    names = {one.keys[0]: (argument_of(one), literal(values[one.keys[0]])) for one in fields}
    first = [name for name in reading.target.words if name in names]
    return [names[name] for name in dict.fromkeys((*first, *names))] if reading.target.reads == "arguments" else []


def size_rows(reading: Reading, statements: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the sizes that an estimator reads: (letter, path in the config, meaning)."""
    read = {line.partition(" = ")[0] for line in statements}
    config, words = reading.target.config, reading.target.reads == "words"
    return [
        (field.letter, path_text(config, reading.word(field)) if words else field.keys[0], field.doc)
        for field in reading.program.fields
        if field.letter in read or f"has_{field.letter}" in read
    ]


class Repeated(dict[str, Any]):
    """Mapping that stands for a list of ``count`` equal mappings."""

    count: int = 1


def literal(value: Any, indent: int = 0, width: int = 100) -> str:
    """Print a value as Python source; long mappings take one line per entry."""
    if isinstance(value, Repeated):
        return f"[{literal(dict(value), indent, width)}] * {value.count}"
    if isinstance(value, Mapping):
        cells = [f"{json.dumps(key)}: {literal(item, indent + 4, width)}" for key, item in value.items()]
        line = f"{{{', '.join(cells)}}}"
        inner = "\n".join(f"{' ' * (indent + 4)}{cell}," for cell in cells)
        return line if len(line) + indent < width and "\n" not in line else f"{{\n{inner}\n{' ' * indent}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(literal(item, indent, width) for item in value)}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)
