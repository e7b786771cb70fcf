"""Expressions as data: a whitelisted, bounded subset of Python's expression syntax, parsed and never executed.

A spec may come from a stranger, so nothing here reaches ``eval`` or sympy's string parser, which calls ``eval``. Instead the
text becomes ``ast`` nodes, every node is checked against the list ``ALLOWED``, and :mod:`symflops.formula.evaluate` walks them.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn

from symflops.support.findings import Diagnostic, Span, SpecError

MAX_TEXT = 400
MAX_NODES = 240
MAX_DEPTH = 40
MAX_DIGITS = 18

UNITS = {"k": 1000, "K": 1000, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12}
UNIT = re.compile(r"(\d+(?:\.\d+)?) *((?:(?<= )[a-zA-Z%]+)|[kKMBGT])")
SLIPS = (
    (re.compile(r"(?<![\w.])(\d+)(?=[A-Za-z_(])"), r"\1*"),
    (re.compile(r"(?<![=!<>])=(?!=)"), "=="),
    (re.compile(r" *&& *"), " and "),
    (re.compile(r" *\|\| *"), " or "),
)
"""Slips of those who know other notations, and what they mean here."""

ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.List, ast.Name, ast.Constant,
    ast.Call, ast.Load, ast.Store, ast.GeneratorExp, ast.ListComp, ast.comprehension,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd, ast.Not, ast.And, ast.Or,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression: text, source place and tree. Expressions with equal texts are equal."""

    text: str
    span: Span = field(compare=False, repr=False)
    tree: ast.expr = field(compare=False, repr=False)

    def place(self, node: ast.AST) -> Span:
        """Return the span of ``node`` in the source file."""
        start = getattr(node, "col_offset", 0)
        return self.span.part(start, getattr(node, "end_col_offset", start + 1))

    def segment(self, node: ast.expr) -> str:
        """The source text of ``node``."""
        return self.text[node.col_offset : node.end_col_offset]


def parse_expression(text: str, span: Span) -> Expression:
    """Parse and check an expression of the language.

    Args:
        text: One line of ASCII.
        span: Its place in the file, for findings.

    Raises:
        SpecError: ``text`` is not an expression, uses something that the language lacks, or exceeds its bounds.
    """
    text = text.strip()
    if len(text) > MAX_TEXT:
        _fail("expression-too-large", f"an expression has at most {MAX_TEXT} characters", span)
    if not text.isascii() or "\n" in text:
        _fail("bad-expression", "an expression is one line of plain ASCII text", span)
    try:
        with warnings.catch_warnings():  # Python's syntax warnings do not concern the author of a spec
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        column = (error.offset or 1) - 1
        _fail("bad-expression", f"{text!r} is not an expression", span.part(column, column + 1), meant(text))
    except (ValueError, MemoryError, RecursionError):
        _fail("bad-expression", "this is not an expression", span)
    expression = Expression(text, span, tree)
    _check(expression)
    return expression


def meant(text: str) -> str:
    """Propose what was meant by a text that is no expression.

    >>> meant("2G*d"), meant("i % 2 = 1"), meant("8k")
    ('write 2*G*d', 'write i % 2 == 1', 'write 8000 for 8k, or 8*k for a product')
    """
    unit, written = UNIT.fullmatch(text), text
    for slip, correct in SLIPS:
        written = slip.sub(correct, written)
    try:
        ast.parse(written, mode="eval")
    except (SyntaxError, ValueError):
        written = text
    if unit and unit[2] in UNITS:
        whole = Fraction(unit[1]) * UNITS[unit[2]]
        product = f", or {written} for a product" if written != text else ""
        return f"write {int(whole)} for {text}{product}"
    if unit:
        return f"write {unit[1]}: a number has no unit"
    return f"write {written}" if written != text else "arithmetic over sizes, comparisons, lists, 'a if c else b'"


def _fail(code: str, message: str, span: Span, hint: str = "") -> NoReturn:
    raise SpecError([Diagnostic(code, message, span, hint)])


def _check(expression: Expression) -> None:
    _check_sums(expression)
    count = 0
    stack: list[tuple[ast.AST, int]] = [(expression.tree, 0)]
    while stack:
        node, depth = stack.pop()
        count += 1
        place = expression.place(node) if hasattr(node, "col_offset") else expression.span
        if count > MAX_NODES or depth > MAX_DEPTH:
            _fail("expression-too-large", "the expression is too large", expression.span, "name a part of it under 'derived'")
        if not isinstance(node, ALLOWED):
            hint = "write ** for a power" if isinstance(node, ast.BitXor) else ""
            _fail("bad-expression", f"{type(node).__name__.lower()} is not part of the expression language", place, hint)
        if isinstance(node, ast.Constant):
            _check_constant(expression.segment(node), node.value, place)
        if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.keywords):
            hint = "" if isinstance(node.func, ast.Name) else "write * between the factors of a product"
            _fail("bad-expression", "only the functions of the language can be called, without keywords", place, hint)
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))


def _check_sums(expression: Expression) -> None:
    """Reject a generator outside ``sum``, and a comprehension over more than one list."""
    nodes = list(ast.walk(expression.tree))
    calls = (node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "sum")
    summed = {id(node.args[0]) for node in calls if len(node.args) == 1}
    for node in nodes:
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            (first, *others) = node.generators
            alone = isinstance(node, ast.ListComp) or id(node) in summed
            if not alone or others or not isinstance(first.target, ast.Name) or first.is_async:
                message = "'for' stands in a sum over one list, or in a list made of one"
                hint = "such as sum(s**2 for s in sides), or [s**2 for s in sides]"
                _fail("bad-expression", message, expression.place(node), hint)


def bound(tree: ast.expr) -> set[int]:
    """Return Python's ``id`` of each name node that refers to the bound variable of a comprehension."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            letters = {getattr(loop.target, "id", "") for loop in node.generators}
            inside = [node.elt, *(part for loop in node.generators for part in (loop.target, *loop.ifs))]
            names = (name for part in inside for name in ast.walk(part) if isinstance(name, ast.Name))
            found.update(id(name) for name in names if name.id in letters)
    return found


def _check_constant(text: str, value: object, place: Span) -> None:
    match value:
        case bool() | None:
            pass
        case int() | float() if len(text) > MAX_DIGITS:
            _fail("expression-too-large", f"a number has at most {MAX_DIGITS} digits", place)
        case float() if not text.replace(".", "", 1).isdigit():
            hint = f"write {value:.0f}" if value == value // 1 < 10**MAX_DIGITS else ""
            _fail("bad-expression", "a decimal is written with digits and a point", place, hint)
        case int() if not text.isdigit():
            _fail("bad-expression", "an integer is written with decimal digits", place, f"write {value}")
        case str() if not value.isprintable() or set(value) & set("'\"\\"):
            _fail("bad-expression", "a text has no quotes, backslashes or control characters in it", place)
        case int() | float() | str():
            pass
        case _:
            _fail("bad-expression", f"{text} is not part of the expression language", place)


@lru_cache(maxsize=1 << 12)
def is_constant(expression: Expression) -> bool:
    """Whether the expression reads no names and calls no functions."""
    return not names(expression) and not any(isinstance(node, ast.Call) for node in ast.walk(expression.tree))


def names(expression: Expression) -> tuple[tuple[str, Span], ...]:
    """Return (name, place) of every name that is read, without called functions and bound variables."""
    called = {id(node.func) for node in ast.walk(expression.tree) if isinstance(node, ast.Call)} | bound(expression.tree)
    return tuple(
        (node.id, expression.place(node))
        for node in ast.walk(expression.tree)
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in ("null", "true", "false")
    )
