"""The texts of the parts of a module: its docstring, constants, functions and methods. Templates place them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from symflops.emit.code.batches import stream_groups, stream_rows
from symflops.emit.code.tables import Function
from symflops.emit.grouping import grouped
from symflops.emit.python.batch import quick
from symflops.emit.python.closed_forms import closed_forms
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.rendering import dict_of, tuple_of
from symflops.model.index_sets import ONCE, PADDED
from symflops.model.program import Program
from symflops.model.sums import Moment, Statistic
from symflops.runtime.units import AS_SOURCE

PRINT = PythonPrinter()
INDENT = "    "


def indented(lines: Sequence[str]) -> list[str]:
    """Lines of a block."""
    return [INDENT + line for line in lines]


def docstring(program: Program) -> str:
    """What a module's docstring says below its title: closed forms, moments, and derived sizes."""
    forms, counts = closed_forms(program)
    parts = [f"Structure '{program.variant}': of models with the sizes in ``Estimator._fixed``."] if program.variant else []
    listed = [line for title, lines in forms for line in (title, *indented(lines))]
    parts += listing(f"{unit_words(program)} per batch, by regime and convention:", listed)
    sums = [f"{one.name:<8} {meaning(one)}" for one in program.moments]
    padded = any(lengths == PADDED for _, lengths in program.lengths)
    note = f"; _{PADDED}, of padded lengths" if padded else ""
    parts += listing(f"Moments are sums over the items of a batch{note}:", sums)
    figures = [f"{one.name:<8} {figure_meaning(one)}" for one in program.statistics]
    if figures:
        parts += listing("Figures of a batch as a whole; moments that hold one are of one batch, and do not add:", figures)
    derived = [*(f"{item.letter} = {PRINT.text(item.formula)}" for item in program.definitions), *counts]
    if derived:
        parts += listing("Derived from sizes:", derived)
    return "\n\n".join(part for part in parts if part)


def listing(title: str, lines: Sequence[str]) -> list[str]:
    """A title, and the lines below it."""
    return ["\n".join([title, *indented(lines)])]


def meaning(moment: Moment) -> str:
    """What a moment is a sum of."""
    text = PRINT.text(moment.formula) + (", of padded lengths," if moment.side else "")
    return (
        f"{text} of the whole batch" if moment.items == ONCE and not moment.constant else f"sum of {text} over {moment.items}"
    )


def figure_meaning(statistic: Statistic) -> str:
    """What a figure of a batch is."""
    text = PRINT.text(statistic.formula)
    largest = statistic.kind == "max"
    return f"largest {text} of the {statistic.items}" if largest else f"sum of {text} over {statistic.items}"


def exported(program: Program) -> str:
    """The public names of a module."""
    names = ("Estimator", "Flops", "Moments", *(("OtherStructure",) if program.fixed else ()), "Sizes", "moments")
    return ", ".join(map(json.dumps, names))


def constants(program: Program) -> str:
    """The constants of a module."""
    streams = ", ".join(f'"{name}": {optional}' for name, _, _, optional in stream_rows(program))
    absent = {stream.name: stream.absent for stream in program.streams}
    lines = [
        f'NAME = "{program.name}"',
        f"VARIANT: str | None = {json.dumps(program.variant) if program.variant else None}",
        f"REGIMES = {tuple_of(regime.name for regime in program.regimes)}",
        f"CONVENTIONS = {tuple_of(program.conventions)}",
        *([f"WHOLE = {tuple_of(program.whole)}"] if program.statistics else []),
        f"STREAMS = {{{streams}}}",
        "SETS: dict[str, tuple[Axes, ...]] = {  # per index set its streams: name, axes, the length of one that is left out",
    ]
    for group in stream_groups(program):
        rows = " ".join(f'("{name}", {tuple_of(axes)}, {absent[name]}),' for name, _, axes, _ in group)
        lines.append(f'{INDENT}"{group[0][1]}": ({rows}),')
    return "\n".join([*lines, "}", f"MOMENTS: dict[str, str] = {dict_of((one.name, one.items) for one in program.moments)}"])


def stream_docs(program: Program) -> list[str]:
    """What an entry of each stream is."""
    return [
        f"``{name}``: {', '.join(axes) + ' per item of' if axes else 'the number of'} {items}"
        f"{'; may be left out' if optional else ''}."
        for name, items, axes, optional in stream_rows(program)
    ]


def unit_words(program: Program) -> str:
    """The unit of figures; if conventions count in several, which of them count in which."""
    names = grouped((unit, name) for name, unit in program.units)
    if names.keys() == {"macs"}:
        return "MACs"
    words = {"macs": "MACs", AS_SOURCE: "a multiply-add as one"}
    others = [f"{word} under {', '.join(names[unit])}" for unit, word in words.items() if unit in names]
    return f"FLOPs ({'; '.join(others)})" if others else "FLOPs"


def function_text(function: Function, titles: str = "", unit: str = "FLOPs") -> str:
    """The text of a function that returns parameters, or work in ``unit`` if ``titles`` says what its columns are."""
    arguments, kind = ("sizes: Sizes, pairs: str", "Rows") if titles else ("sizes: Sizes", "Counts")
    lines = [f'"""{function.doc}"""', *function.statements]
    if titles and function.blocks:
        lines.append("# what equal modules have in common, each below its own path")
    for name, rows in function.blocks:
        short = len(rows) == 1 and not titles
        lines += [f"{name}: {kind} = [{rows[0]}]"] if short else [f"{name}: {kind} = [", *indented(rows), "]"]
    if titles:
        lines.append(f"# module, runs over, {unit} each; {titles}")
    body = indented([*lines, "return [", *indented(function.rows), "]"])
    return "\n".join([f"def {function.name}({arguments}) -> {kind}:", *body])


def quick_lines(program: Program) -> Iterator[str]:
    """The statements that take plain lists of ints without checks of each entry."""
    conditions, columns = quick(program)
    if not conditions:
        return
    yield f"if {' and '.join(conditions)}:"
    yield "    try:"
    if not (program.inner or program.conditions):
        yield f"        if len({stream_rows(program)[0][0]}) < 100:"
        yield f"            return self._sums(self.sizes, {'.tolist(), '.join(columns)}.tolist())"
    yield f"        return self._summed(self.sizes, [{', '.join(columns)}])"
    yield "    except (TypeError, OverflowError):"
    yield "        pass"
