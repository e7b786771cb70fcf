"""Operator kinds, and the call on which a kind declares its work.

A kind reads its fields and operands from a :class:`Call`, and declares parameters, contractions and results on it. It knows
nothing of counting rules, gradients or output languages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from sympy import Expr

from symflops.formula.domain import Choice, Setting
from symflops.formula.functions import Modulo
from symflops.formula.polynomial import Definitions
from symflops.formula.truth import NO, YES, Truth
from symflops.formula.words import said
from symflops.ir.contraction import Contraction, Extent, Operand
from symflops.ir.nodes import Need, Parameter, Stream, Value
from symflops.ir.patterns import Path
from symflops.ops.fields import Field
from symflops.support.findings import Diagnostic, Label, Span, SpecError


@dataclass
class Call:
    """One use of an operator: its evaluated fields and operands, and the declarations of its kind so far.

    Attributes:
        path: The module path of the operator.
        span: The entry.
        fields: Evaluated fields by name.
        places: Spans of fields and operands.
        values: Operands by field.
        definitions: The formulas of derived sizes.
        paths: Function of a tie, a template and a default path: the (condition, path) pairs of a parameter.
        streams: The streams in scope.
        guard: The condition under which the operator exists.
        stacks: The stacks of the graph.
    """

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
        self.needs: list[Need] = []
        self.fits: list[tuple[Expr, str]] = []  # must be 0, each with the message if it is not
        self.saves: str | None = None
        self.flows = True
        self.forces = NO  # whether its results need a gradient, whatever they come from
        self.caption = ""
        self.moved: tuple[tuple[Value, Truth], ...] | None = None  # values passed on unchanged
        self.sequence: Any = None  # the sequence that a push or pop uses
        self.warnings: list[Diagnostic] = []
        self._lists: dict[str, tuple[Expr, ...]] = {}

    # read by the kind

    def fail(
        self, code: str, message: str, field: str = "", hint: str = "", about: Value | None = None, **more: Any
    ) -> NoReturn:
        """Raise ``SpecError`` at ``field``, or at the value in it that the finding is ``about``.

        ``more`` are further fields of the diagnostic.
        """
        place = self.places.get(field, self.span)
        if about is not None:
            place = self.places.get(operand_place(field, about), place)
        raise SpecError([Diagnostic(code, message, place, hint, **more)])

    def warn(self, code: str, message: str, field: str, hint: str, also: tuple[Label, ...] = ()) -> None:
        """Add a warning at ``field``, about something that is allowed but most often a mistake."""
        self.warnings.append(Diagnostic(code, message, self.places.get(field, self.span), hint, "warning", also=also))

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
        """Refuse ``value`` because its width is not ``wanted``; the finding labels the sources of both."""
        message = message or f"'{value.name}' has width {said(value.width)}, not {said(wanted)}"
        self.fail(
            "width-mismatch", message, field, hint, value,
            label=label, also=(*value.wide, *also), note=self.definitions.formulas_of(value.width, wanted),
        )  # fmt: skip

    def equally_wide(self, values: Sequence[Value], field: str, hint: str) -> Expr:
        """Common width of ``values``; refuses the first that differs from ``values[0]``."""
        first, *others = values
        width = self.width(first, field)
        for other in others:
            if not self.definitions.equal(self.width(other, field), width):
                message = f"'{other.name}' has width {said(other.width)}, '{first.name}' has {said(width)}"
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
        """Stream in the field ``stream``, which may name axes of ``old`` and ``others``; default: ``old``."""
        if not self.has("stream"):
            return old
        return self.streams.resolve(self.fields["stream"], old, self, others)  # type: ignore[no-any-return]

    def number(self, field: str) -> Expr:
        """Number in ``field``; a size that may be null is assumed to be given."""
        value = symbol_or_value(self.fields.get(field))
        if isinstance(value, Truth):
            return value.expr
        if not isinstance(value, Expr):
            self.fail("bad-field", f"'{field}' must be a number", field, "a size, or arithmetic over sizes")
        return self.whole(value, field)

    def truth(self, field: str) -> Truth:
        """The condition in ``field``."""
        value = self.fields.get(field)
        if isinstance(value, Expr) and value in (0, 1):
            return YES if value == 1 else NO
        if not isinstance(value, Truth):
            self.fail("bad-field", f"'{field}' must be true or false", field, "true, false, a flag, or a comparison")
        return value

    def numbers(self, field: str) -> tuple[Expr, ...]:
        """The list of numbers in ``field``; a single number is a list of one."""
        if field in self._lists:
            return self._lists[field]
        value = self.fields.get(field)
        if isinstance(value, Setting) and value.kind == "list":
            self._refuse_list(value)
        items = tuple(symbol_or_value(item) for item in (value if isinstance(value, tuple) else (value,)))
        if not all(isinstance(item, Expr) for item in items):
            self.fail("bad-field", f"'{field}' must be a list of numbers", field, "such as [3, 3]")
        self._lists[field] = tuple(self.whole(item, field) for item in items)
        return self._lists[field]

    def divides(self, width: Expr, parts: Expr, text: str) -> None:
        """Require that ``parts`` divides ``width``; ``text`` is the message if it does not."""
        self.fits.append((Modulo(width, parts), text))

    def _refuse_list(self, size: Setting) -> NoReturn:
        """Refuse a config list of unknown length in all fields that need a list of numbers."""
        hint = f"how many it has is not known here: write its items, [{size.name}[0], {size.name}[1], ...]"
        fields = [name for name, value in self.fields.items() if value == size]
        told = f"must be a list of numbers, and '{size.name}' is a list of the config"
        places = ((name, self.places.get(name, self.span)) for name in fields)
        raise SpecError([Diagnostic("bad-field", f"'{name}' {told}", place, hint) for name, place in places])

    def whole(self, value: Expr, field: str) -> Expr:
        """``value``; refuses a number that is not whole for all sizes."""
        if not value.is_integer and not self.definitions.expand(value).expr.is_integer:
            hint = "round it as the model does: // or int(...); write the default of a whole size without a point"
            self.fail("not-whole", f"'{field}' is {said(value)}, which need not be a whole number", field, hint)
        return value

    # declared by the kind

    def parameter(
        self,
        name: str,
        shape: tuple[Expr, ...],
        when: Truth = YES,
        field: str = "",
        trainable: bool = True,
        stacked: bool = True,
    ) -> tuple[int, ...]:
        """Declare a parameter ``<path>.<name>``, or at the paths of the template in ``field``.

        The field ``tie`` may replace the path of a weight.

        Returns:
            The positions of its paths among the parameters of the call.
        """
        first = len(self.parameters)
        tie = self.fields.get("tie") if field == "weight" else None
        for case, path in self.paths(tie, self.fields.get(field), self.path.join(name)):
            if when & case is not NO:
                span = self.places.get(field, self.span)
                self.parameters.append(Parameter(path, shape, when & case, trainable, span, stacked=stacked))
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
        """Declare a contraction of ``left`` and ``right``.

        Args:
            name: The formula of the contraction.
            left: The first operand.
            right: The second operand.
            size: Multiply-adds of one execution.
            items: The index set that it runs over.
            extent: Executions per item.
            kind: The kind of work, as conventions distinguish it.
            seen: Whether PyTorch's counter sees it.
        """
        extent = extent if isinstance(extent, Extent) else Extent(extent, extent)
        self.contractions.append(Contraction(name, (left, right), size, items, extent, kind, seen))

    def result(self, stream: Stream, width: Expr | None) -> None:
        """Declare one more result."""
        self.results.append((stream, width))


@dataclass(frozen=True, slots=True)
class Kind:
    """An operator kind.

    Attributes:
        name: The word under ``op``.
        doc: One line of documentation.
        fields: Its own fields, without the common ones.
        apply: Declares parameters, contractions and results on a call.
        saves: The tensors that autograd saves: ``operands``, ``factors``, ``result`` or ``nothing``.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    apply: Callable[[Call], None]
    saves: str = "operands"


def operator_kind(name: str, doc: str, *fields: Field, saves: str = "operands") -> Callable[[Callable[[Call], None]], Kind]:
    """Decorator that turns a function declaring the work of a call into a :class:`Kind` with these fields."""
    return lambda apply: Kind(name, doc, fields, apply, saves)


def operand_place(field: str, value: Value) -> str:
    """Key in ``Call.places`` of the span at which ``field`` names ``value``."""
    return f"{field} {value.id}"


def symbol_or_value(value: Any) -> Any:
    """The symbol of a size that may be null or of an item of a list; any other value unchanged."""
    return value.symbol if isinstance(value, Setting) and value.kind in ("number", "item") else value


def whole(value: Value, label: str = "") -> Operand:
    """``value`` as an operand of a contraction."""
    return Operand(label or value.name, (value.id,))


def cases(value: Any) -> tuple[tuple[Truth, Any], ...]:
    """(condition, value) for each case of ``value``; a plain value is one case that always holds."""
    return value.cases if isinstance(value, Choice) else ((YES, value),)
