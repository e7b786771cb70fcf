"""Prints traces: for a terminal of 80 columns, as Markdown and LaTeX, and as data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import sympy
from sympy.printing.str import StrPrinter

from symflops.verify.symbolic.letters import letters_of

if TYPE_CHECKING:
    from symflops.verify.symbolic.traced import Traced

WIDTH, LABEL = 80, 12
SIMPLE = 2000
"""Most operations of an expression that is factored for printing."""
FIGURES = ("parameters", "forward", "backward")
MEANINGS = {
    "b": "samples", "s": "tokens", "t": "tokens of the other text", "h": "height", "w": "width", "f": "frames",
}  # fmt: skip
"""Lengths of the inputs that classes are known to take."""


class _Printer(StrPrinter):  # type: ignore[misc]
    """Prints floors of quotients as ``//``, remainders as ``%``, and equations as Python does."""

    def _print_floor(self, found: Any) -> str:
        above, below = found.args[0].as_numer_denom()
        return f"({self.parenthesize(above, 50)} // {self.parenthesize(below, 60)})"

    def _print_Mod(self, found: Any) -> str:
        return f"{self.parenthesize(found.args[0], 50)} % {self.parenthesize(found.args[1], 50, True)}"

    def _print_Relational(self, found: Any) -> str:
        return f"{self._print(found.lhs)} {found.rel_op} {self._print(found.rhs)}"


def text_of(found: sympy.Basic) -> str:
    """An expression or a condition as Python code over the names of fields and lengths."""
    return str(_Printer().doprint(found))


def neat(found: sympy.Expr) -> sympy.Expr:
    """An expression with common factors in front, if it is small enough to look for them."""
    return sympy.factor(found) if sympy.count_ops(found) < SIMPLE else found


def figures(traced: Traced, short: Mapping[sympy.Symbol, sympy.Symbol] = MappingProxyType({})) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the three figures; a backward pass of twice the forward pass says so."""
    for name in FIGURES:
        found = getattr(traced, name)
        twice = name == "backward" and traced.forward != 0 and sympy.expand(found - 2 * traced.forward) == 0
        yield name, "2 * forward" if twice else text_of(neat(found.xreplace(short)))


def in_terminal(traced: Traced) -> str:
    """The whole trace as text of 80 columns, with a letter for each field."""
    lengths = [name for name, one in traced.fields.items() if one.kind == "symbolic" and is_length(name)]
    names = letters_of((name for name in traced.symbols() if not is_length(name)), lengths)
    short = {
        sympy.Symbol(name, integer=True, positive=True): sympy.Symbol(letter, integer=True, positive=True)
        for name, letter in names.items()
    }
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
        lines += labelled(f"  {name}", f"{one.note or MEANINGS.get(name, 'length')} ({one.value:,})")
    lines.append("")
    for kind in ("derived", "specialised", "dropped"):
        for one in (one for one in traced.fields.values() if one.kind == kind):
            lines += labelled(kind, one.note if kind == "derived" else f"{one.name} = {one.value}: {one.note}")
    if unused := [name for name, one in traced.fields.items() if one.kind == "unused" and not is_length(name)]:
        lines += labelled("unused", ", ".join(unused))
    if traced.missed:
        lines += labelled("not counted", ", ".join(f"{name} ({times} times)" for name, times in traced.missed.items()))
    lines += labelled("example", ", ".join(f"{name} {value:,}" for name, value in traced.numbers.items()))
    return "\n".join([*lines, "", *tree(traced, short)])


def is_length(name: str) -> bool:
    """Whether a name is that of a length of the inputs."""
    return name in MEANINGS or (len(name) == 1 and name.islower()) or (name[0] == "n" and name[1:].isdigit())


def grade(traced: Traced) -> str:
    """How the forms were proven."""
    return f"exact at {traced.exact} unseen configs" if traced.proven else f"unproven: {traced.unproven}"


def labelled(label: str, text: str) -> list[str]:
    """Lines of 80 columns with a label before the first."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{label:<{LABEL}}",
        subsequent_indent=" " * LABEL,
        break_long_words=False,
        break_on_hyphens=False,
    )


def tree(traced: Traced, short: Mapping[sympy.Symbol, sympy.Symbol] = MappingProxyType({})) -> Iterator[str]:
    """Lines of the module tree: the module below the one that contains it, the shape of its output, its forward FLOPs."""
    known: list[str] = []
    for row in traced.rows(short):
        path = row["path"]
        while known and known[-1] and not path.startswith(f"{known[-1]}."):
            known.pop()
        inside = known[-1] if known else ""
        name = (path[len(inside) + 1 :] if inside else path) or traced.name
        head = f"{'  ' * len(known)}{name} {row['shape']}"
        text = f"{head:<38} {row['forward']}" if len(head) < 38 else f"{head}  {row['forward']}"
        yield from textwrap.wrap(
            text, WIDTH, subsequent_indent=" " * 39, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
        )
        known.append(path)


def as_json(traced: Traced) -> dict[str, Any]:
    """The trace as JSON data; expressions are Python code."""
    return {
        "name": traced.name,
        "proven": traced.proven,
        "unseen": traced.exact,
        "unproven": traced.unproven,
        **{name: text_of(getattr(traced, name)) for name in FIGURES},
        "domain": [{"condition": text_of(one), "line": line} for one, line in zip(traced.domain, traced.lines, strict=True)],
        "fields": {name: {"kind": one.kind, "value": one.value, "note": one.note} for name, one in traced.fields.items()},
        "numbers": dict(traced.numbers),
        "missed": dict(traced.missed),
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
