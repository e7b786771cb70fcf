"""What an operator kind is, and the call through which it says what it does.

A kind reads its fields and operands from a :class:`Call`, declares parameters, contractions and results on it, and knows
nothing
of counting rules, gradients or output languages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from sympy import Expr, Symbol

from symflops.algebra.domain import Choice, Setting
from symflops.algebra.polynomial import Polynomial
from symflops.algebra.truth import NO, YES, Truth
from symflops.diagnostics.findings import Diagnostic, Label, Span, SpecError
from symflops.model.contraction import Contraction, Extent, Operand
from symflops.model.nodes import Parameter, Stream, Value
from symflops.model.path import Path
from symflops.ops.fields import Field


class Kind(Protocol):
    """An operator kind: ``name``, the fields that it reads beside the common ones, and what it does with a call."""

    @property
    def name(self) -> str:
        """The word that stands under ``op``."""

    @property
    def doc(self) -> str:
        """One line of documentation."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that it reads beside the common ones."""

    @property
    def saves(self) -> str:
        """What autograd keeps of it: ``operands``, ``factors``, ``result`` or ``nothing``."""

    def apply(self, call: Call) -> None:
        """Declare parameters, contractions and results on ``call``."""


class Definitions:
    """The derived sizes, to decide whether two widths are equal after all."""

    def __init__(self) -> None:
        self.pairs: dict[Symbol, Expr] = {}
        self._known: dict[Expr, Polynomial] = {}
        self._quotients: dict[tuple[Expr, Expr], Expr | None] = {}

    def define(self, symbol: Symbol, value: Expr) -> None:
        """Let ``symbol`` stand for ``value``."""
        self.pairs[symbol] = value
        self._known.clear()
        self._quotients.clear()

    def expand(self, expr: Expr) -> Polynomial:
        """``expr`` with every derived size replaced by what it stands for, multiplied out."""
        if expr not in self._known:
            value = expr
            while value.free_symbols & self.pairs.keys():
                value = value.xreplace(self.pairs)
            self._known[expr] = Polynomial.of(value)
        return self._known[expr]

    def equal(self, a: Expr, b: Expr) -> bool:
        """Whether two expressions are the same number for all sizes."""
        return a == b or self.expand(a) == self.expand(b)

    def told(self, *values: Expr | None) -> str:
        """What the derived sizes in some expressions stand for, in words."""
        symbols = {symbol for value in values if value is not None for symbol in value.free_symbols}
        return ", ".join(f"{symbol} is {value}" for symbol, value in self.pairs.items() if symbol in symbols)

    def divide(self, a: Expr, b: Expr) -> Expr | None:
        """``a / b`` where it is a polynomial again, else None."""
        if (a, b) not in self._quotients:
            self._quotients[a, b] = self._divided(a, b)
        return self._quotients[a, b]

    def _divided(self, a: Expr, b: Expr) -> Expr | None:
        plain = Polynomial.of(a).quotient(Polynomial.of(b))
        if plain is None:
            plain = self.expand(a).quotient(self.expand(b))
        return None if plain is None else plain.expr


@dataclass
class Call:
    """One use of an operator: evaluated fields, operand values, and what the kind has declared so far."""

    path: Path
    span: Span
    fields: Mapping[str, Any]
    places: Mapping[str, Span]
    values: Mapping[str, tuple[Value, ...]]
    definitions: Definitions
    paths: Any
    streams: Any
    guard: Truth = YES
    stacks: Any = None

    def __post_init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.contractions: list[Contraction] = []
        self.results: list[tuple[Stream, Expr | None]] = []
        self.saves: str | None = None
        self.flows = True
        self.caption = ""
        self.moved: tuple[tuple[Value, Truth], ...] | None = None  # values that it hands on as they are
        self._lists: dict[str, tuple[Expr, ...]] = {}

    # what the kind reads

    def fail(
        self, code: str, message: str, field: str = "", hint: str = "", about: Value | None = None, **more: Any
    ) -> NoReturn:
        """Refuse the entry, pointing at ``field``, or at the value in it that the finding is ``about``.

        ``more`` are further fields of the finding.
        """
        place = self.places.get(field, self.span)
        if about is not None:
            place = self.places.get(operand_place(field, about), place)
        raise SpecError([Diagnostic(code, message, place, hint, **more)])

    def too_wide(
        self,
        value: Value,
        wanted: Expr,
        field: str,
        label: str,
        hint: str = "",
        also: tuple[Label, ...] = (),
        message: str = "",
    ) -> NoReturn:
        """Refuse ``value``, whose width is not the one that is ``wanted``: says where both come from."""
        self.fail(
            "width-mismatch", message or f"'{value.name}' has width {value.width}, not {wanted}", field, hint, value,
            label=label, also=(*value.wide, *also), note=self.definitions.told(value.width, wanted),
        )  # fmt: skip

    def equally_wide(self, values: Sequence[Value], field: str, hint: str) -> Expr:
        """The width of all ``values`` of ``field``; refuses the first with another one than ``values[0]``."""
        first, *others = values
        width = self.width(first, field)
        for other in others:
            if not self.definitions.equal(self.width(other, field), width):
                message = f"'{other.name}' has width {other.width}, '{first.name}' has {width}"
                self.too_wide(other, width, field, "", hint, first.wide, message)
        return width

    def operand(self, field: str = "from", index: int = 0) -> Value:
        """The value at ``index`` of ``field``."""
        values = self.values.get(field, ())
        if len(values) <= index:
            hint = "name values that are made above, or inputs"
            self.fail("missing-operand", f"'{field}' needs {index + 1} value{'s' if index else ''}", field, hint)
        return values[index]

    def width(self, value: Value, field: str = "from") -> Expr:
        """The width of ``value``, which must have one."""
        if value.width is None:
            self.fail(
                "no-width",
                f"'{value.name}' carries indices and has no width",
                field,
                "read it with an embedding",
                also=value.wide,
            )
        return value.width

    def has(self, field: str) -> bool:
        """Whether ``field`` was given and is not null."""
        return self.fields.get(field) is not None

    def stream(self, old: Stream, others: tuple[Stream, ...] = ()) -> Stream:
        """The stream under ``stream``, whose axes may name those of ``old`` and ``others``; else ``old``."""
        if not self.has("stream"):
            return old
        return self.streams.resolve(self.fields["stream"], old, self, others)  # type: ignore[no-any-return]

    def number(self, field: str) -> Expr:
        """The number in ``field``; a size that may be null is the number that it is where it is given."""
        value = plain(self.fields[field])
        if isinstance(value, Truth):
            return value.expr
        if not isinstance(value, Expr):
            self.fail("bad-field", f"'{field}' must be a number", field, "a size, or arithmetic over sizes")
        return self.whole(value, field)

    def truth(self, field: str) -> Truth:
        """The condition in ``field``."""
        value = self.fields[field]
        if isinstance(value, Expr) and value in (0, 1):
            return YES if value == 1 else NO
        if not isinstance(value, Truth):
            self.fail("bad-field", f"'{field}' must be true or false", field, "true, false, a flag, or a comparison")
        return value

    def numbers(self, field: str) -> tuple[Expr, ...]:
        """The list of numbers in ``field``; a single number is a list of one."""
        if field in self._lists:
            return self._lists[field]
        value = self.fields[field]
        items = tuple(plain(item) for item in (value if isinstance(value, tuple) else (value,)))
        if not all(isinstance(item, Expr) for item in items):
            self.fail("bad-field", f"'{field}' must be a list of numbers", field, "such as [3, 3]")
        self._lists[field] = tuple(self.whole(item, field) for item in items)
        return self._lists[field]

    def whole(self, value: Expr, field: str) -> Expr:
        """``value``, which is a whole number whatever the sizes are."""
        if not value.is_integer and not self.definitions.expand(value).expr.is_integer:
            hint = "round it as the model does: // or int(...)"
            self.fail("not-whole", f"'{field}' is {value}, which need not be a whole number", field, hint)
        return value

    # what the kind declares

    def parameter(
        self, name: str, shape: tuple[Expr, ...], when: Truth = YES, field: str = "", trainable: bool = True
    ) -> tuple[int, ...]:
        """A parameter ``<path>.<name>``, or under the path that the template in ``field`` names; its positions."""
        first = len(self.parameters)
        for case, path in self.paths(self.fields.get(field), self.path.join(name)):
            if when & case is not NO:
                self.parameters.append(Parameter(path, shape, when & case, trainable, self.places.get(field, self.span)))
        return tuple(range(first, len(self.parameters)))

    def contract(
        self,
        name: str,
        left: Operand,
        right: Operand,
        size: Expr,
        items: str,
        extent: Extent | Expr,
        kind: str = "linear",
        seen: bool = True,
    ) -> None:
        """A contraction of ``left`` and ``right``: ``size`` multiply-adds, ``extent`` times per item of ``items``."""
        extent = extent if isinstance(extent, Extent) else Extent(extent, extent)
        self.contractions.append(Contraction(name, (left, right), size, items, extent, kind, seen))

    def result(self, stream: Stream, width: Expr | None) -> None:
        """One more result."""
        self.results.append((stream, width))


def operand_place(field: str, value: Value) -> str:
    """The key of the place at which ``field`` names ``value``."""
    return f"{field} {value.id}"


def plain(value: Any) -> Any:
    """A size that may be null, or an item of a list, as the number that it is where it is one; anything else as it is."""
    return value.symbol if isinstance(value, Setting) and value.kind in ("number", "item") else value


def whole(value: Value, label: str = "") -> Operand:
    """``value`` as an operand of a contraction."""
    return Operand(label or value.name, (value.id,))


def cases(value: Any) -> tuple[tuple[Truth, Any], ...]:
    """``value`` as cases under conditions."""
    return value.cases if isinstance(value, Choice) else ((YES, value),)


__all__ = ["Call", "Definitions", "Kind", "Operand", "cases", "whole"]
