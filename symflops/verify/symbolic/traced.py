"""Costs of a class or a module by its own code: closed forms, their domain and their proof.

Expressions are evaluated exactly, simplified, and written as Python code.
"""

from __future__ import annotations

import math
import operator
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any

import sympy
from sympy.printing.pycode import PythonCodePrinter
from sympy.printing.str import StrPrinter

from symflops.evaluate.unread import is_id
from symflops.support.findings import SymflopsError

WIDTH = 80
SIMPLE = 2000
"""Most operations of an expression that is factored for printing."""


def symbol(name: str) -> sympy.Symbol:
    """The symbol of a field or a length: a positive integer."""
    return sympy.Symbol(name, integer=True, positive=True)


def bitwise(name: str, operation: Callable[[int, int], int]) -> Any:
    """A function of two integers that works on their bits, as in a check for powers of two."""

    def evaluated(kind: Any, one: sympy.Expr, other: sympy.Expr) -> sympy.Integer | None:
        both = one.is_Integer and other.is_Integer
        return sympy.Integer(operation(int(one), int(other))) if both else None

    return type(name, (sympy.Function,), {"eval": classmethod(evaluated), "__module__": __name__})


OPERATIONS = {"BitAnd": operator.and_, "BitOr": operator.or_, "BitXor": operator.xor}
BitAnd, BitOr, BitXor = (bitwise(name, operation) for name, operation in OPERATIONS.items())
BITWISE = {kind.__name__: kind for kind in (BitAnd, BitOr, BitXor)}
"""Functions of bits, by the name that an expression of a trace has for them."""


class _Exact(PythonCodePrinter):  # type: ignore[misc]
    """Prints expressions over integers whose values are exact: floors as ``//``, other quotients as fractions."""

    def _print_Rational(self, found: Any) -> str:
        return f"Fraction({found.p}, {found.q})"

    def _print_floor(self, found: Any) -> str:
        above, below = found.args[0].as_numer_denom()
        return f"(({self._print(above)})//({self._print(below)}))"

    def _print_Mul(self, found: Any) -> str:
        above, below = found.as_numer_denom()
        if below == 1:
            return super()._print_Mul(found)  # type: ignore[no-any-return]
        return f"Fraction({self._print(above)}, {self._print(below)})"


def replaced(found: sympy.Basic, values: Mapping[sympy.Symbol, Any]) -> Any:
    """An expression with other symbols or numbers; ``nan`` where it divides by zero."""
    try:
        return found.xreplace(values)
    except (ZeroDivisionError, ValueError):  # the latter by the larger one of a quotient and a number
        return sympy.nan


def compiled(names: Sequence[sympy.Symbol], found: Any) -> Callable[..., Any]:
    """Function of the values of symbols, in order, that evaluates an expression or a list of them exactly."""
    printer = _Exact({"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True})
    functions = {"Fraction": Fraction, "math": math, "floor": math.floor, "ceil": math.ceil, **OPERATIONS}
    return sympy.lambdify(names, found, modules=[functions], printer=printer)  # type: ignore[no-any-return]


class _Printer(StrPrinter):  # type: ignore[misc]
    """Prints floors of quotients as ``//``, remainders as ``%``, and equations as Python does."""

    def _print_floor(self, found: Any) -> str:
        above, below = found.args[0].as_numer_denom()
        return f"({self.parenthesize(above, 50)} // {self.parenthesize(below, 60)})"

    def _print_Mod(self, found: Any) -> str:
        return f"({self.remainder(found)})"

    def remainder(self, found: Any) -> str:
        return f"{self.parenthesize(found.args[0], 50)} % {self.parenthesize(found.args[1], 60)}"

    def _print_Relational(self, found: Any) -> str:
        sides = (self.remainder(one) if isinstance(one, sympy.Mod) else self._print(one) for one in (found.lhs, found.rhs))
        return f" {found.rel_op} ".join(sides)

    def _print_And(self, found: Any) -> str:
        return " & ".join(f"({self._print(one)})" for one in sorted(found.args, key=str))

    def _print_Or(self, found: Any) -> str:
        return " | ".join(f"({self._print(one)})" for one in sorted(found.args, key=str))

    def _print_Not(self, found: Any) -> str:
        return f"~({self._print(found.args[0])})"


def text_of(found: sympy.Basic) -> str:
    """An expression or a condition as Python code over the names of fields and lengths."""
    return str(_Printer().doprint(found))


def neat(found: sympy.Expr) -> sympy.Expr:
    """An expression with common factors in front, if it is small enough to look for them."""
    return sympy.factor(found) if sympy.count_ops(found) < SIMPLE else found


def divided(found: sympy.Expr, conditions: Sequence[sympy.Basic]) -> sympy.Expr:
    """An expression without floors of quotients that a condition makes whole."""
    for one in conditions:
        remainder = next(iter(one.args), None) if isinstance(one, sympy.Eq) else None
        if isinstance(remainder, sympy.Mod) and one.rhs == 0:
            above, below = remainder.args
            for part in (below, *(below / factor for factor in sympy.Mul.make_args(below) if factor != below)):
                found = found.xreplace({sympy.floor(sympy.expand(above / part)): above / part})
    return sympy.expand(found) if found.has(sympy.Pow) else found


def tree(rows: Sequence[Mapping[str, str]], name: str) -> Iterator[str]:
    """Lines of 80 columns: each module below the one that contains it, the shape of its output, its forward FLOPs.

    Args:
        rows: ``path``, ``shape`` and ``forward`` of each module, outermost first.
        name: What the outermost module is called.
    """
    known: list[str] = []
    for row in rows:
        path = row["path"]
        while known and known[-1] and not path.startswith(f"{known[-1]}."):
            known.pop()
        inside = known[-1] if known else ""
        head = f"{'  ' * len(known)}{(path[len(inside) + 1 :] if inside else path) or name} {row['shape']}"
        yield from wrapped(f"{head:<38} {row['forward']}", 39) if len(head) < 39 else wrapped(f"{head}  {row['forward']}", 39)
        known.append(path)


def wrapped(text: str, indent: int, first: str = "") -> list[str]:
    """Lines of 80 columns, longer only where one word is; all but the first begin with ``indent`` spaces."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


FIGURES = ("parameters", "forward", "backward")


@dataclass(frozen=True)
class Field:
    """An integer field of a config, or a length of the inputs.

    Attributes:
        name: Its name in the config, with dots between nested ones.
        kind: ``symbolic``, ``derived``, ``specialised``, ``dropped`` or ``unused``.
        value: Its value in the example.
        note: The equation of a derived field, the source line of a specialised one, the reason of a dropped one.
        origin: Of a length of given inputs: argument and dimension, such as ``input_ids[1]``.
    """

    name: str
    kind: str
    value: int
    note: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Traced:
    """Closed forms of a class or a module, in the fields of its config and the lengths of its inputs.

    Attributes:
        name: The name of the class.
        parameters: Number of parameter elements.
        forward: FLOPs of the forward pass, as PyTorch's counter multiplies them: 2 per multiply-add.
        backward: FLOPs of the backward pass from the sum of the main output.
        modules: Forward FLOPs by module path, with ``*`` for indices; a module includes those inside it.
        domain: Conditions on fields and lengths under which the forms hold.
        lines: The source line of each condition, in the same order.
        fields: The integer fields and lengths by name.
        numbers: ``parameters``, ``forward`` and ``backward`` at the example.
        missed: (operator, times) that may do counted work and have no rule.
        exact: Number of unseen configs of the real class at which all figures were equal.
        unproven: Why the forms are not proven; empty if they are.
        shapes: Output shape by module path.
        fixed: Further fields of the config, and integers below 2, which are as in the example wherever the forms hold.
        equations: Expression of each field or length that the class ties to others.
        depths: Numbers of layers in the trace, by the names of their fields.
        unseen: Values of all fields and lengths at the unseen configs.
        far: Further values inside of the domain, mostly large ones, at which nothing was run.
        beyond: Points just outside of the domain at which the class runs, and costs something else.
        outside: For the first conditions of the domain, a point outside at which the class fails or costs something else.
        idle: Modules with parameters that the example does not use, such as a vision tower without pictures.
        masks: Conditions on positions of a query ``q`` and a key ``k`` under which they attend, of the masks of transformers
            that use positions alone. All pairs are counted, those that a mask hides, too.
    """

    name: str
    parameters: sympy.Expr
    forward: sympy.Expr
    backward: sympy.Expr
    modules: Mapping[str, sympy.Expr]
    domain: tuple[sympy.Basic, ...]
    lines: tuple[str, ...]
    fields: Mapping[str, Field]
    numbers: Mapping[str, int]
    missed: Mapping[str, int] = field(default_factory=dict)
    exact: int = 0
    unproven: str = ""
    shapes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    equations: Mapping[str, sympy.Expr] = field(default_factory=dict)
    unseen: tuple[Mapping[str, int], ...] = ()
    depths: Mapping[str, int] = field(default_factory=dict)
    far: tuple[Mapping[str, int], ...] = ()
    beyond: tuple[Mapping[str, int], ...] = ()
    outside: tuple[Mapping[str, int], ...] = ()
    idle: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether the forms were exact at three or more unseen configs."""
        return not self.unproven

    @property
    def holds(self) -> bool:
        """Whether the forms hold for the config and the inputs as they were given."""
        try:
            return self.at({}) == self.numbers
        except SymflopsError:
            return False

    def symbols(self) -> list[str]:
        """Names of the fields and lengths that are symbols."""
        return [name for name, one in self.fields.items() if one.kind == "symbolic"]

    @property
    def lengths(self) -> dict[str, Field]:
        """The lengths of given inputs, by letter."""
        return {name: one for name, one in self.fields.items() if one.origin}

    def points(self) -> list[dict[str, int]]:
        """Values of all fields and lengths at the unseen configs, and at further points of the domain."""
        return [{name: point.get(name, one.value) for name, one in self.fields.items()} for point in (*self.unseen, *self.far)]

    def value(self, name: str) -> sympy.Expr:
        """The expression of a field or a length: its symbol, its equation, or its number."""
        if name in self.equations:
            return self.equations[name]
        one = self.fields[name]
        return symbol(name) if one.kind in ("symbolic", "unused") else sympy.Integer(one.value)

    def at(self, values: Mapping[str, int]) -> dict[str, int]:
        """``parameters``, ``forward`` and ``backward`` with other fields and lengths, the rest as in the example.

        Raises:
            SymflopsError: a name is unknown or no symbol, or a value is outside of the domain.
        """
        for name in values:
            kind = self.fields[name].kind if name in self.fields else "unknown"
            if kind not in ("symbolic", "unused"):
                raise SymflopsError(f"'{name}' is {kind}: {', '.join(self.symbols())} are symbols")
            if values[name] < 1:
                raise SymflopsError(f"outside of the domain of {self.name}: {name} >= 1")
        point = {name: one.value for name, one in self.fields.items()} | dict(values)
        holding, figures = self.functions
        try:
            for condition, holds in zip(self.domain, holding(*point.values()), strict=True):
                if not holds:
                    raise SymflopsError(f"outside of the domain of {self.name}: {text_of(condition)}")
            return {name: int(value) for name, value in zip(FIGURES, figures(*point.values()), strict=True)}
        except ZeroDivisionError:
            raise SymflopsError(f"outside of the domain of {self.name}: a condition or a figure divides by 0") from None

    @cached_property
    def functions(self) -> tuple[Any, Any]:
        """(Truth of each condition, value of each figure) as functions of the values of all fields and lengths, in order."""
        symbols = [symbol(name) for name in self.fields]
        return compiled(symbols, list(self.domain)), compiled(symbols, [getattr(self, name) for name in FIGURES])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "functions"}

    def rows(self, short: Mapping[sympy.Symbol, sympy.Symbol] = MappingProxyType({})) -> list[dict[str, str]]:
        """Path, output shape and forward FLOPs of each module that does counted work, outermost first.

        The list is the data of a pandas DataFrame. ``short`` replaces symbols.
        """
        found = []
        for path in sorted(self.modules, key=lambda path: path.split(".")):
            if self.modules[path] != 0 and path != "Global":
                below = path.partition(".")[2]
                sides = ", ".join(text_of(side.xreplace(short)) for side in self.shapes.get(below, ()))
                text = text_of(neat(self.modules[path].xreplace(short)))
                found.append({"path": below, "shape": f"[{sides}]" if sides else "", "forward": text})
        return found

    def table(self) -> str:
        """The module tree with output shapes and forward FLOPs, in 80 columns."""
        return "\n".join(tree(self.rows(), self.name))

    def estimator(self, config: Mapping[str, Any] | None = None) -> TracedEstimator:
        """Parameters and FLOPs of one config of the class, for any lengths.

        Raises:
            SymflopsError: the forms do not hold for the config: trace the class with it.
        """
        return TracedEstimator(self, dict(config or {}))

    def __str__(self) -> str:
        figures = [f"{name}: {text_of(neat(getattr(self, name)))}" for name in FIGURES]
        return "\n".join([self.name, *figures, *(f"where {text_of(one)}" for one in self.domain), "", self.table()])


class TracedEstimator:
    """Figures of one config by the closed forms of a trace.

    Args:
        traced: The forms.
        config: Fields of the config that differ from the example's.

    Raises:
        SymflopsError: the forms do not hold for the config.
    """

    def __init__(self, traced: Traced, config: Mapping[str, Any]) -> None:
        self.traced, self.values = traced, dict[str, int]()
        for name, value in flat(config):
            known = traced.fields.get(name)
            if known is not None and known.kind in ("symbolic", "unused") and value is not None:
                self.values[name] = value
            elif known is None and name not in traced.fixed and type(value) is int and not is_id(name):
                raise SymflopsError(f"'{name}' is no field of {traced.name} in this trace; trace it with this config")
            elif (known.value if known else traced.fixed.get(name, value)) != value:
                what = f"{known.kind} ({known.note})" if known else "of the example"
                raise SymflopsError(
                    f"'{name}' is {what}: the forms of {traced.name} hold for another value; trace it with this config"
                )
        self.parameters = traced.at(self.values)["parameters"]

    def forward(self, **lengths: int) -> int:
        """FLOPs of the forward pass at these lengths."""
        return self.traced.at({**self.values, **lengths})["forward"]

    def backward(self, **lengths: int) -> int:
        """FLOPs of the backward pass at these lengths."""
        return self.traced.at({**self.values, **lengths})["backward"]


def flat(config: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name with dots, value) of the fields of a config; None for the item after the last one of a list."""
    for key, value in config.items() if isinstance(config, Mapping) else enumerate(config):
        name = f"{before}{key}"
        if isinstance(value, (Mapping, list, tuple)):
            yield from flat(value, f"{name}.")
        else:
            yield name, value
    if not isinstance(config, Mapping):
        yield f"{before}{len(config)}", None
