"""Writes traces: for a terminal of 80 columns, as Markdown and LaTeX, and as data; and reads this data back.

Expressions are parsed as Python code and never executed. Fields of a config have letters as papers use them: ``hidden_size`` is
``D``, ``num_attention_heads`` is ``H``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

import sympy

from symflops.support.errors import SymflopsError
from symflops.verify.symbolic.inputs import ADAPTERS
from symflops.verify.symbolic.traced import BITWISE, FIGURES, Field, Traced, neat, symbol, text_of, tree, wrapped

LETTERS = (
    ("head_dim", "d"), ("d_kv", "d"), ("vocab", "V"), ("key_value_heads", "G"), ("kv_heads", "G"), ("heads", "H"),
    ("n_head", "H"), ("layers", "L"), ("depth", "L"), ("n_layer", "L"), ("blocks", "L"), ("moe_intermediate", "M"),
    ("intermediate", "F"), ("ffn", "F"), ("d_ff", "F"), ("experts_per_tok", "k"), ("top_k", "k"), ("experts", "E"),
    ("hidden_size", "D"), ("d_model", "D"), ("n_embd", "D"), ("embed_dim", "D"), ("dim", "D"), ("in_channels", "c"),
    ("out_channels", "o"), ("channels", "c"), ("patch", "p"), ("image_size", "R"), ("max_position", "X"), ("positions", "X"),
    ("rank", "r"), ("kernel", "K"), ("stride", "s"), ("width", "D"), ("words", "V"), ("state", "N"),
    ("groups", "g"), ("text", "J"),
)  # fmt: skip
"""Letter of the fields whose last word contains a text; the first match counts."""
MORE = (("hidden", "F"), ("mlp", "F"))
"""Further letters of traces; a draft names such fields by their initials."""


def letters_of(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """A short name for each field, all of them different and none of them in ``taken``."""
    found: dict[str, str] = {}
    used = set(taken)
    for name in names:
        found[name] = next(letter for letter in candidates(name) if letter not in used)
        used.add(found[name])
    return found


def candidates(name: str) -> Iterator[str]:
    """Yield short names for a field, the best first."""
    last = name.rpartition(".")[2] if not name.rpartition(".")[2].isdigit() else name.split(".")[-2]
    letter = next((letter for text, letter in (*LETTERS, *MORE) if text in last), last[:1].upper())
    yield letter
    yield from (f"{letter}{number}" for number in count(2))


LABEL = 12
MEANINGS = {
    "b": "samples", "s": "tokens", "t": "tokens of the other text", "h": "height", "w": "width", "f": "frames",
    **ADAPTERS,
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
    if traced.masks:
        lines += labelled("masks", "; ".join(traced.masks) + " (all pairs are counted, those that masks hide, too)")
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
        "masks": list(traced.masks),
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


BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
    ast.FloorDiv: lambda a, b: sympy.floor(a / b),
    ast.Mod: sympy.Mod,
    ast.BitAnd: sympy.And,
    ast.BitOr: sympy.Or,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
}
WORDS = ("Max", "Min", "Mod", "Abs", "sqrt", "ceiling", "floor", "Piecewise", "Eq", "Ne")
FUNCTIONS = {name: getattr(sympy, name) for name in WORDS} | BITWISE
PLACEHOLDER = "name_{}_"
"""Stands for a field in code; names of fields may have dots and numbers."""


class Parser:
    """Parses the expressions of a trace.

    Args:
        names: The names of all fields and lengths.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.places = {name: place for place, name in enumerate(names)}
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        self.pattern = re.compile(rf"(?<![\w.])(?:{longest_first})(?![\w(]|\.\w)") if names else None

    def __call__(self, text: str) -> Any:
        """The expression, condition or list that ``text`` says.

        Raises:
            SymflopsError: it is no expression of a trace.
        """
        code = self.pattern.sub(lambda found: PLACEHOLDER.format(self.places[found[0]]), text) if self.pattern else text
        try:
            return self.value(ast.parse(code, mode="eval").body)
        except (SyntaxError, ValueError, TypeError, LookupError, RecursionError, MemoryError) as error:
            raise SymflopsError(f"'{text:.60}' is no expression of a trace") from error

    def value(self, node: ast.AST) -> Any:
        """The value of a node.

        Raises:
            ValueError: it is none that expressions of traces have.
        """
        match node:
            case ast.Constant(value=bool() as truth):
                return sympy.true if truth else sympy.false
            case ast.Constant(value=int() as number):
                return sympy.Integer(number)
            case ast.Name(id="True" | "False" as word):
                return sympy.true if word == "True" else sympy.false
            case ast.Name(id=word):
                return symbol(self.names[int(word.split("_")[1])])
            case ast.BinOp(left=left, op=operator, right=right) | ast.Compare(left=left, ops=[operator], comparators=[right]):
                return BINARY[type(operator)](self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self.value(inner)
            case ast.UnaryOp(op=ast.Invert(), operand=inner):
                return sympy.Not(self.value(inner))
            case ast.Call(func=ast.Name(id=word), args=arguments, keywords=[]):
                return FUNCTIONS[word](*map(self.value, arguments))
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(map(self.value, items))
        raise ValueError(type(node).__name__)


def parsed(document: Mapping[str, Any]) -> Traced:
    """The trace that :func:`symflops.verify.symbolic.printing.as_json` wrote.

    Modules without counted work are not in it.

    Raises:
        SymflopsError: ``document`` is no trace.
    """
    try:
        read = Parser(list(document["fields"]))
        name, rows = document["name"], document["modules"]
        parameters, forward, backward = (read(document[figure]) for figure in FIGURES)
        return Traced(
            name, parameters, forward, backward,
            {".".join(filter(None, (name, row["path"]))): read(row["forward"]) for row in rows},
            tuple(read(row["condition"]) for row in document["domain"]), tuple(row["line"] for row in document["domain"]),
            {field: Field(field, **one) for field, one in document["fields"].items()},
            document["numbers"], document["missed"], document["unseen"], document["unproven"],
            {row["path"]: read(row["shape"]) for row in rows if row["shape"]}, document["fixed"],
            {field: read(text) for field, text in document["equations"].items()}, tuple(document["points"]), document["depths"],
            idle=tuple(document.get("idle", ())), masks=tuple(document.get("masks", ())),
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise SymflopsError(f"this is no trace: {type(error).__name__}: {error}") from None
