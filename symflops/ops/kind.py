"""Operator kinds with their fields, and the call on which a kind declares its work.

A field is an expression, the name of a value, or a path template; the form is fixed per field, never guessed. The fields of the
rest of the language (documents, sizes, repeats, regimes, ...) are in :mod:`symflops.read.field_tables`.

A kind reads its fields and operands from a :class:`Call`, and declares parameters, contractions and results on it. It knows
nothing of counting rules, gradients or output languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from sympy import Expr

from symflops.formula.definitions import Definitions
from symflops.formula.domain import Choice, Setting
from symflops.formula.functions import Modulo
from symflops.formula.state import WITHOUT, State
from symflops.formula.truth import NO, YES, Truth
from symflops.formula.words import said
from symflops.ir.contraction import Contraction, Extent, Operand
from symflops.ir.convention import ROLES
from symflops.ir.nodes import Kept, Need, Parameter, Stream, Value
from symflops.ir.patterns import Path
from symflops.support.findings import Diagnostic, Label, Span, SpecError


class Form(Enum):
    """The forms in which a field of a YAML entry can be written; each value describes the form."""

    EXPRESSION = "an expression"
    EXPRESSIONS = "a list of expressions"
    LENGTHS = "a list of sizes and lengths"
    VALUES = "the name of a value, or a list of names"
    TEMPLATE = "a path"
    TIE = "a path from the root, or a mapping with known fields"
    WORD = "a word"
    AXES = "a mapping from axis to length"
    WINDOW = "a mapping from axis to size"
    NAME = "a name"
    TEXT = "a text"
    TEXTS = "a text, or a list of texts"
    FLAG = "true or false"
    COUNT = "a whole number"
    NUMBER = "a number, or a quotient such as 3/2"
    FIELDS = "a mapping with known fields"
    LIST = "a list of mappings with known fields"
    NAMED = "a mapping from names"
    CHOICE = "one word for all, or a mapping with known fields, each one of the words"
    GRAPH = "a list of entries"
    OTHER = "a form of its own"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a YAML entry.

    Attributes:
        name: The key.
        form: The form in which its value is written.
        doc: One line of documentation.
        required: Whether an entry must have it.
        default: The text that an entry without the field stands for; None if there is none.
        words: The words that it allows, if it is a word.
        fields: The fields that it has itself, if it is a mapping.
    """

    name: str
    form: Form
    doc: str
    required: bool = False
    default: str | None = None
    words: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()


def words_of(fields: Iterable[Field]) -> tuple[str, ...]:
    """The names of ``fields``, in order."""
    return tuple(field.name for field in fields)


ROLE = Field("role", Form.WORD, "the role that conventions count it under", words=tuple(ROLES))
COMMON = (
    Field("op", Form.WORD, "the kind of operator"),
    Field("from", Form.VALUES, "operands, in the operator's order"),
    Field("with", Form.VALUES, "combine the first operand elementwise with these before the operator"),
    Field("to", Form.VALUES, "names of the results; '_' drops one; default: the path as written"),
    Field("gate", Form.VALUES, "multiply the result by these"),
    Field("add_to", Form.VALUES, "add the result to this value"),
    Field("when", Form.EXPRESSION, "leave the entry out when false"),
    ROLE,
    Field("shared", Form.EXPRESSION, "the same path is used a second time on purpose"),
)

FROM = COMMON[1]
WEIGHT = Field("weight", Form.TEMPLATE, "path of the weight, relative to the entry's parent")
BIAS_NAME = Field("bias_name", Form.TEMPLATE, "path of the bias, relative to the entry's parent")
TIE = Field(
    "tie", Form.TIE, "the parameter that the weight is the same as",
    fields=(
        Field("to", Form.TEMPLATE, "its path from the root", required=True),
        Field("when", Form.EXPRESSION, "when it is the same; default: always"),
    ),
)  # fmt: skip
"""Field that reuses the parameter of another operator as the weight."""


@dataclass
class Call:
    """One use of an operator: its fields and operands, and what its kind has declared so far.

    Attributes:
        path: The module path of the operator.
        span: The place of the entry.
        fields: Field name -> evaluated value.
        places: Field name -> its place; also has the places of operands, under the key of :func:`operand_place`.
        values: Field name -> the operands that it names.
        definitions: The formulas of derived sizes.
        paths: A function (tie, template, default path) -> (condition, path) pairs of a parameter.
        streams: The streams that fields can name.
        guard: The condition under which the operator exists.
        stacks: The stacks of the graph.
        state: What the call of the model keeps and continues.
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
    state: State = WITHOUT

    def __post_init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.contractions: list[Contraction] = []
        self.keeps: list[Kept] = []
        self.results: list[tuple[Stream, Expr | None]] = []
        self.needs: list[Need] = []
        self.fits: list[tuple[Expr, str]] = []  # must be 0, each with the message if it is not
        self.saves: str | None = None
        self.forces = NO  # whether its results need a gradient, whatever they come from
        self.flows, self.caption = True, ""
        self.moved: tuple[tuple[Value, Truth], ...] | None = None  # values passed on unchanged
        self.sequence: Any = None  # the sequence that a push or pop uses
        self.warnings: list[Diagnostic] = []
        self._lists: dict[str, tuple[Expr, ...]] = {}

    # read by the kind

    def fail(
        self, code: str, message: str, field: str = "", hint: str = "", about: Value | None = None, **more: Any
    ) -> NoReturn:
        """Raise ``SpecError`` at the place of ``field``, or at that of the operand ``about`` in this field.

        Args:
            code: The kind of finding.
            message: The fact.
            field: The field; empty for the whole entry.
            hint: A proposal for a fix.
            about: The operand; None: the field as a whole.
            **more: Further fields of the :class:`Diagnostic`.
        """
        place = self.places.get(field, self.span)
        if about is not None:
            place = self.places.get(operand_place(field, about), place)
        raise SpecError([Diagnostic(code, message, place, hint, **more)])

    def warn(self, code: str, message: str, field: str, hint: str, also: tuple[Label, ...] = ()) -> None:
        """Add a warning at the place of ``field``: what is there is allowed, but most often a mistake."""
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
        """Raise the error for an operand ``value`` whose width is not ``wanted``.

        Args:
            value: The operand.
            wanted: The width that it must have.
            field: The field that names it.
            label: Text at the place of the operand.
            hint: A proposal for a fix.
            also: Labels at other places, in addition to where ``value`` is made.
            message: The fact, if other than the two widths.
        """
        message = message or f"'{value.name}' has width {said(value.width)}, not {said(wanted)}"
        self.fail(
            "width-mismatch", message, field, hint, value,
            label=label, also=(*value.wide, *also), note=self.definitions.formulas_of(value.width, wanted),
        )  # fmt: skip

    def equally_wide(self, values: Sequence[Value], field: str, hint: str) -> Expr:
        """The width of all ``values``; raises an error with ``hint`` about the first that has another width."""
        first, *others = values
        width = self.width(first, field)
        for other in others:
            if not self.definitions.equal(self.width(other, field), width):
                message = f"'{other.name}' has width {said(other.width)}, '{first.name}' has {said(width)}"
                self.too_wide(other, width, field, "", hint, first.wide, message)
        return width

    def operand(self, field: str = "from", index: int = 0) -> Value:
        """The operand at position ``index`` of those that ``field`` names; raises an error if there is none."""
        values = self.values.get(field, ())
        if len(values) <= index:
            hint = "name values that are made above, or inputs"
            self.fail("missing-operand", f"'{field}' needs {index + 1} value{'s' if index else ''}", field, hint)
        return values[index]

    def width(self, value: Value, field: str = "from") -> Expr:
        """The width of ``value``; raises an error at ``field`` if it has none, as it contains indices."""
        if value.width is None:
            message = f"'{value.name}' carries indices and has no width"
            self.fail("no-width", message, field, "read it with an embedding", also=value.wide)
        return value.width

    def has(self, field: str) -> bool:
        """Whether ``field`` has a value other than null."""
        return self.fields.get(field) is not None

    def stream(self, old: Stream, others: tuple[Stream, ...] = ()) -> Stream:
        """The stream in the field ``stream``, which may name axes of ``old`` and ``others``, or ``old``."""
        if not self.has("stream"):
            return old
        return self.streams.resolve(self.fields["stream"], old, self, others)  # type: ignore[no-any-return]

    def number(self, field: str) -> Expr:
        """The number in ``field``, an integer for all sizes; a size that may be null is assumed not to be."""
        value = symbol_or_value(self.fields.get(field))
        if isinstance(value, Truth):
            return value.expr
        if not isinstance(value, Expr):
            self.fail("bad-field", f"'{field}' must be a number", field, "a size, or arithmetic over sizes")
        return self.whole(value, field)

    def truth(self, field: str) -> Truth:
        """The condition in ``field``; raises an error for any other value."""
        value = self.fields.get(field)
        if isinstance(value, Expr) and value in (0, 1):
            return YES if value == 1 else NO
        if not isinstance(value, Truth):
            self.fail("bad-field", f"'{field}' must be true or false", field, "true, false, a flag, or a comparison")
        return value

    def numbers(self, field: str) -> tuple[Expr, ...]:
        """The numbers in ``field``, a list or a single number; raises an error for any other value."""
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
        """Refuse each config for which ``parts`` does not divide ``width``; ``text`` is the message."""
        self.fits.append((Modulo(width, parts), text))

    def _refuse_list(self, size: Setting) -> NoReturn:
        """Raise the error for a list of a config whose length is unknown, at each field that contains it."""
        hint = f"how many it has is not known here: write its items, [{size.name}[0], {size.name}[1], ...]"
        fields = [name for name, value in self.fields.items() if value == size]
        told = f"must be a list of numbers, and '{size.name}' is a list of the config"
        places = ((name, self.places.get(name, self.span)) for name in fields)
        raise SpecError([Diagnostic("bad-field", f"'{name}' {told}", place, hint) for name, place in places])

    def whole(self, value: Expr, field: str) -> Expr:
        """``value`` unchanged; raises an error at ``field`` if it is not an integer for all sizes."""
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
        """Declare a parameter.

        Args:
            name: Its name in the module of the operator.
            shape: The shape of one copy.
            when: The condition under which it exists.
            field: The field that may give it another path; with ``weight``, the field ``tie`` may do so too.
            trainable: Whether the real model ever trains it.
            stacked: Whether each expert of a group has its own copy.

        Returns:
            Its positions among the parameters of the call: one for each path that it may have.
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
        """Declare a contraction of two operands.

        Args:
            name: Its formula, such as ``y = xW``.
            left: The first operand.
            right: The second operand.
            size: Multiply-adds of one run.
            items: The index set.
            extent: Runs per item.
            kind: The class of work, by which conventions tell it apart.
            seen: Whether PyTorch's FLOP counter counts it.
        """
        extent = extent if isinstance(extent, Extent) else Extent(extent, extent)
        self.contractions.append(Contraction(name, (left, right), size, items, extent, kind, seen))

    def result(self, stream: Stream, width: Expr | None) -> None:
        """Declare one more result, with the rows of ``stream``; ``width`` is None for a result of indices."""
        self.results.append((stream, width))


@dataclass(frozen=True, slots=True)
class Kind:
    """An operator kind.

    Attributes:
        name: The word in the field ``op`` of an entry.
        doc: One line of documentation.
        fields: The fields of this kind, without those that all entries have.
        apply: Function that declares parameters, contractions and results on a call.
        saves: What autograd saves for the backward pass: ``operands``, ``factors``, ``result`` or ``nothing``.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    apply: Callable[[Call], None]
    saves: str = "operands"


def operator_kind(name: str, doc: str, *fields: Field, saves: str = "operands") -> Callable[[Callable[[Call], None]], Kind]:
    """Decorator that makes a :class:`Kind` of a function that declares the work of a call."""
    return lambda apply: Kind(name, doc, fields, apply, saves)


def operand_place(field: str, value: Value) -> str:
    """The key in ``Call.places`` for the place where ``field`` names ``value``."""
    return f"{field} {value.id}"


def symbol_or_value(value: Any) -> Any:
    """The symbol of a number that a config decides (a size or an item of a list); other values unchanged."""
    return value.symbol if isinstance(value, Setting) and value.kind in ("number", "item") else value


def whole(value: Value, label: str = "") -> Operand:
    """The operand of a contraction that is all of ``value``; its label is the value's name by default."""
    return Operand(label or value.name, (value.id,))


def cases(value: Any) -> tuple[tuple[Truth, Any], ...]:
    """(condition, value) pairs of a choice between values; another value is a pair that always holds."""
    return value.cases if isinstance(value, Choice) else ((YES, value),)
