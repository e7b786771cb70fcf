"""Prints traces: for a terminal of 80 columns, as Markdown and LaTeX, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import sympy

from symflops.verify.symbolic.expressions import neat, symbol, text_of, tree, wrapped
from symflops.verify.symbolic.letters import letters_of
from symflops.verify.symbolic.traced import FIGURES, Traced

LABEL = 12
MEANINGS = {
    "b": "samples", "s": "tokens", "t": "tokens of the other text", "h": "height", "w": "width", "f": "frames",
}  # fmt: skip
"""Lengths of the inputs that classes are known to take."""


def figures(traced: Traced, short: Mapping[sympy.Symbol, sympy.Symbol] = MappingProxyType({})) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the three figures; a backward pass of twice the forward pass says so."""
    for name in FIGURES:
        found = getattr(traced, name)
        twice = name == "backward" and traced.forward != 0 and sympy.expand(found - 2 * traced.forward) == 0
        yield name, "2 * forward" if twice else text_of(neat(found.xreplace(short)))


def in_terminal(traced: Traced) -> str:
    """The whole trace as text of 80 columns, with a letter for each field."""
    every = traced.lengths.keys() or MEANINGS.keys()
    lengths = [name for name in traced.symbols() if name in every]
    names = letters_of((name for name in traced.symbols() if name not in every), lengths)
    short = {symbol(name): symbol(letter) for name, letter in names.items()}
    lines = [f"{traced.name}: {grade(traced)}", ""]
    for name, text in figures(traced, short):
        lines += labelled(name, text)
    label = "holds where"
    for condition, line in zip(traced.domain, traced.lines, strict=True):
        lines += labelled(label, text_of(condition.xreplace(short)) + (f"  ({line})" if line else ""))
        label = ""
    lines.append("")
    for name, letter in names.items():
        lines += labelled(f"  {letter}", f"{name} ({traced.fields[name].value:,})")
    for name in lengths:
        one = traced.fields[name]
        lines += labelled(f"  {name}", f"{one.origin or MEANINGS.get(name, 'length')} ({one.value:,})")
    lines.append("")
    for kind in ("derived", "specialised", "dropped"):
        for one in (one for one in traced.fields.values() if one.kind == kind):
            lines += labelled(kind, one.note if kind == "derived" else f"{one.name} = {one.value}: {one.note}")
    if unused := [name for name, one in traced.fields.items() if one.kind == "unused" and name not in every]:
        lines += labelled("unused", ", ".join(unused))
    if traced.missed:
        lines += labelled("not counted", ", ".join(f"{name} ({times} times)" for name, times in traced.missed.items()))
    if traced.idle:
        lines += labelled("not run", f"{', '.join(traced.idle)}: these inputs do not reach it")
    lines += labelled("example", ", ".join(f"{name} {value:,}" for name, value in traced.numbers.items()))
    return "\n".join([*lines, "", *tree(traced.rows(short), traced.name)])


def grade(traced: Traced) -> str:
    """How the forms were proven."""
    return f"exact at {traced.exact} unseen configs" if traced.proven else f"unproven: {traced.unproven}"


def labelled(label: str, text: str) -> list[str]:
    """Lines of 80 columns with a label before the first."""
    return wrapped(text, LABEL, f"{label:<{LABEL}}")


def as_json(traced: Traced) -> dict[str, Any]:
    """The trace as JSON data; expressions are Python code."""
    return {
        "name": traced.name,
        "proven": traced.proven,
        "unseen": traced.exact,
        "unproven": traced.unproven,
        **{name: text_of(getattr(traced, name)) for name in FIGURES},
        "domain": [{"condition": text_of(one), "line": line} for one, line in zip(traced.domain, traced.lines, strict=True)],
        "fields": {
            name: {"kind": one.kind, "value": one.value, "note": one.note, "origin": one.origin}
            for name, one in traced.fields.items()
        },
        "fixed": dict(traced.fixed),
        "equations": {name: text_of(one) for name, one in traced.equations.items()},
        "depths": dict(traced.depths),
        "points": [dict(point) for point in traced.unseen],
        "numbers": dict(traced.numbers),
        "missed": dict(traced.missed),
        "idle": list(traced.idle),
        "modules": traced.rows(),
    }


def in_markdown(traced: Traced) -> str:
    """The trace as a section of a Markdown page."""
    lines = [f"## {traced.name}", "", f"{grade(traced).capitalize()}.", "", "| figure | closed form |", "|---|---|"]
    lines += [f"| {name} | `{text}` |" for name, text in figures(traced)]
    if traced.domain:
        lines += ["", "Holds where:", ""]
        lines += [
            f"- `{text_of(one)}`" + (f" ({line})" if line else "")
            for one, line in zip(traced.domain, traced.lines, strict=True)
        ]
    lines += ["", "| module | output | forward FLOPs |", "|---|---|---|"]
    lines += [f"| `{row['path'] or traced.name}` | `{row['shape']}` | `{row['forward']}` |" for row in traced.rows()]
    return "\n".join(lines)


def in_latex(traced: Traced) -> str:
    """The figures and the domain as display math of LaTeX."""
    names = {
        one: rf"\mathrm{{{one.name}}}".replace("_", r"\_")
        for one in traced.forward.free_symbols | traced.parameters.free_symbols
    }
    names |= {
        one: rf"\mathrm{{{one.name}}}".replace("_", r"\_") for condition in traced.domain for one in condition.free_symbols
    }
    lines = [rf"\text{{{name}}} &= {sympy.latex(neat(getattr(traced, name)), symbol_names=names)}" for name in FIGURES]
    lines += [rf"& {sympy.latex(one, symbol_names=names)}" for one in traced.domain]
    return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"
