"""Expressions as text: in the language of specs for messages, or by class names as a stable sort key."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sympy import Symbol
from sympy.core.symbol import Str
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

if TYPE_CHECKING:
    from sympy import Expr, Function

FORMS = {
    "FloorDiv": "{}//{}", "CeilDiv": "ceil({}, {})", "Modulo": "{} % {}", "Least": "min({}, {})", "Most": "max({}, {})",
    "Excess": "max(0, {})", "Longest": "longest({})", "Item": "{}[{}]", "Each": "{}[{}]", "Length": "len({})",
    "Occurrences": "count({}, {})", "Total": "sum({})", "Tally": "sum({3} for {0} in range({1}, {2}))",
}  # fmt: skip
CONDITIONS = {
    "AtLeast": ("{} >= {}", "{} < {}"), "Equal": ("{} == {}", "{} != {}"), "Given": ("{} != null", "{} == null"),
    "Contains": ("{} in {}", "{} not in {}"),
}  # fmt: skip
QUOTIENTS = ("FloorDiv", "Modulo")
LEVELS = dict.fromkeys(QUOTIENTS, PRECEDENCE["Add"]) | dict.fromkeys(CONDITIONS, PRECEDENCE["Relational"])


class Plain(StrPrinter):  # type: ignore[misc]
    """Prints functions by class name with operands in parentheses, e.g. ``FloorDiv(L, 3)``."""

    printmethod = "_plain"

    def parenthesize(self, item: Any, level: int, strict: bool = False) -> str:
        """Print ``item`` in parentheses if its precedence requires; a call never does."""
        return str(self._print(item) if getattr(item, "is_Function", False) else super().parenthesize(item, level, strict))


@lru_cache(maxsize=1 << 14)
def text_of(atom: Expr) -> str:
    """Print an atom; the text is a sort key that does not depend on the hash seed."""
    return str(Plain().doprint(atom))


def written(atom: Function, printer: StrPrinter, negated: bool = False) -> str:
    """The text of a function in the language of specs; with ``negated``, that of the opposite condition."""
    name, args = type(atom).__name__, atom.args
    if name == "Tally":  # its bound index prints without the mark @
        index = Symbol(str(args[0]).partition("@")[0], **args[0].assumptions0)
        args = [part.xreplace({args[0]: index}) for part in args]
    level = PRECEDENCE["Mul"] if name in QUOTIENTS else LEVELS.get(name)
    parts = [_part(part, printer, level) for part in args]
    if name in CONDITIONS:
        return CONDITIONS[name][negated].format(*parts)
    return FORMS[name].format(*parts) if name in FORMS else f"{name.lower()}({', '.join(parts)})"


def level_of(atom: Function) -> int:
    """Operator precedence of the text of ``atom``, on sympy's scale."""
    return int(LEVELS.get(type(atom).__name__, PRECEDENCE["Atom"]))


def _part(part: Expr, printer: StrPrinter, level: int | None) -> str:
    if isinstance(part, Str):
        return repr(part.name)
    return str(printer.doprint(part) if level is None else printer.parenthesize(part, level))
