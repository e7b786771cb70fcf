"""Elementwise operators, activations, ``concat`` and ``split``: no contractions, so PyTorch's counter counts nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sympy import Add, Expr, Integer
from sympy.core.symbol import Str

from symflops.formula import functions as fn
from symflops.formula.domain import Setting
from symflops.formula.truth import NO, YES, Truth, any_of, unequal_widths
from symflops.formula.words import said
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.nodes import Part, Stream, Value
from symflops.ops.kind import FROM, Call, Field, Form, cases, operator_kind

Refuse = Callable[..., NoReturn]
Equality = Callable[[Expr, Expr], bool]


def rows_match(refuse: Refuse, equal: Equality, first: Value, other: Value, field: str) -> None:
    """Check that ``other`` broadcasts to ``first``; if not, call ``refuse`` with an error about ``field``.

    A value broadcasts to another one with the same rows, to any value if its own rows exist once per batch,
    and to a value all of whose parts have its axes. ``equal`` compares lengths.

    Raises:
        SpecError: ``other`` does not broadcast; an ``expand`` or the like is needed.
    """
    if broadcasts(other.stream, first.stream, equal):
        return
    hint = "make the rows equal: 'slice' or 'select' (with 'like') takes some, 'expand' or 'pad' adds some"
    message = f"'{other.name}' has rows {other.stream}, '{first.name}' has rows {first.stream}"
    if field == "from" and broadcasts(first.stream, other.stream, equal):
        hint = f"the result has the rows of the first operand: write '{other.name}' before '{first.name}'"
    refuse("row-mismatch", message, field, hint, about=other, also=(*other.long, *first.long))


def broadcasts(one: Stream, to: Stream, equal: Equality) -> bool:
    """Whether a value of the stream ``one`` broadcasts to values of the stream ``to``, as :func:`rows_match` says."""
    if to.alike(one, equal) or one.items == ONCE:
        return True
    if to.items != one.items or len(one.parts) != 1:
        return False
    pairs = [(part.get(axis), length) for part in to.parts for axis, length in one.parts[0].axes]
    return all(own is not None and equal(own, length) for own, length in pairs)


def joining(values: Sequence[Value], otherwise: str) -> str:
    """A hint on how to combine values of two index sets.

    If one of them exists once per batch, the hint is to expand it; else it is the text ``otherwise``.
    """
    once = next((value.name for value in values if value.stream.items == ONCE), "")
    item = next((value.name for value in values if value.stream.items != ONCE), "")
    copied = f"{{op: expand, from: {once}, like: {item}, stream: [], to: {once}}}"
    return f"{copied} gives each item its own; in place of [] stand the axes of several rows" if once and item else otherwise


@operator_kind(
    "mul",
    "an elementwise product, or any activation; it saves its operands",
    FROM,
    Field("width", Form.EXPRESSION, "width of the result; default: that of the first operand"),
)
def mul(call: Call) -> None:
    """Declare the result: the first operand's rows, to which the others broadcast."""
    first = call.operand()
    for other in call.values["from"][1:]:
        rows_match(call.fail, call.definitions.equal, first, other, "from")
    call.result(first.stream, call.number("width") if call.has("width") else first.width)


@operator_kind("add", "an elementwise sum; it saves nothing", FROM, saves="nothing")
def add(call: Call) -> None:
    """Declare the result: the first operand's rows and width; the others broadcast and are equally wide."""
    first = call.operand()
    for other in call.values["from"][1:]:
        rows_match(call.fail, call.definitions.equal, first, other, "from")
        if not call.definitions.equal(call.width(first), call.width(other)):
            message = f"'{other.name}' has width {said(other.width)}, '{first.name}' has {said(first.width)}"
            unknown = unequal_widths((call.width(first), call.width(other)), message, call.places.get("from", call.span))
            if unknown is not None:
                raise unknown
            call.too_wide(other, call.width(first), "from", "", "the terms of a sum are equally wide", first.wide, message)
    call.result(first.stream, first.width)


@operator_kind(
    "map",
    "anything elementwise or data-moving with a meaning of its own",
    FROM,
    Field("width", Form.EXPRESSION, "width of the result; default: that of the first operand"),
    Field("saves", Form.EXPRESSION, "null when autograd keeps nothing of it", default="true"),
)
def map_values(call: Call) -> None:
    """Declare the result: the first operand's rows, and the width of the field if given."""
    first = call.operand()
    if call.fields.get("saves") is None:
        call.saves = "nothing"
    call.result(first.stream, call.number("width") if call.has("width") else first.width)


@operator_kind("detach", "the same value, through which no gradient passes", FROM, saves="nothing")
def detach(call: Call) -> None:
    """Declare the result, which equals the operand; no gradient passes."""
    call.flows = False
    call.result(call.operand().stream, call.operand().width)


@operator_kind(
    "zeros",
    "a constant of a stream and width; it needs no gradient",
    Field("stream", Form.AXES, "the stream of the value: its name, or its axes"),
    Field("like", Form.VALUES, "take the stream of this value, or (with the axes under 'stream') its index set"),
    Field("width", Form.EXPRESSION, "its width", required=True),
    saves="nothing",
)
def zeros(call: Call) -> None:
    """Declare a constant as the result."""
    like = call.values.get("like")
    if not like and not call.has("stream"):
        call.fail("missing-field", "a constant needs 'stream' or 'like'", "", "the rows that it has")
    stream = call.stream(like[0].stream if like else Stream(SAMPLES, (Part(()),)))
    call.result(stream, call.number("width"))


LEARNED = {"prelu": ("weight",), "xielu": ("alpha_p", "alpha_n")}
"""Activations with parameters, one number each: torch.nn.PReLU and transformers.activations.XIELUActivation."""


@operator_kind(
    "act",
    "an elementwise activation of the first operand, multiplied by the others; it saves its operands",
    FROM,
    Field("of", Form.EXPRESSION, "the name of the function; 'prelu' and 'xielu' have parameters of their own"),
    Field("width", Form.EXPRESSION, "width of the result; default: that of the first operand"),
)
def act(call: Call) -> None:
    """Declare the result of an activation: the first operand's rows, and the width of the field if given.

    Parameters of the function are declared without a dimension for experts, which share one module of it.
    """
    first = call.operand()
    for other in call.values["from"][1:]:
        rows_match(call.fail, call.definitions.equal, first, other, "from")
    for word, names in LEARNED.items():
        for name in names:
            call.parameter(name, (Integer(1),), when=is_word(call.fields.get("of"), word), stacked=False)
    call.result(first.stream, call.number("width") if call.has("width") else first.width)


def is_word(value: Any, word: str) -> Truth:
    """The condition under which ``value``, which may be a text that a config decides, equals ``word``."""
    found = (
        case & (Truth.of(fn.Equal(item.symbol, Str(word))) if isinstance(item, Setting) else YES if item == word else NO)
        for case, item in cases(value)
    )
    return any_of(found)


ALONG = Field("along", Form.WORD, "what is joined or cut", default="width", words=("width", "tokens"))


@operator_kind("concat", "values one after another, along the width or along tokens", FROM, ALONG, saves="nothing")
def concat(call: Call) -> None:
    """Declare the concatenation along the width, or along tokens: parts that ``split`` can separate."""
    values = call.values["from"]
    first = call.operand()
    if call.fields["along"] == "width":
        for other in values[1:]:
            rows_match(call.fail, call.definitions.equal, first, other, "from")
        call.result(first.stream, Add(*(call.width(value) for value in values)))
        return
    for other in values[1:]:
        if other.stream.items != first.stream.items:
            message = f"'{other.name}' and '{first.name}' belong to different index sets"
            hint = joining((first, other), "'flatten_batch' takes the items of a batch together")
            call.fail("index-set-mismatch", message, "from", hint, other, also=(*first.long, *other.long))
        hint = "what is joined along tokens is equally wide; 'along: width' puts it side by side"
        call.equally_wide((first, other), "from", hint)
    parts = tuple(part for value in values for part in value.stream.parts)
    groups = tuple(len(value.stream.parts) for value in values)
    call.result(Stream(first.stream.items, parts, groups), first.width)


@operator_kind(
    "split",
    "one value cut into several, by width or back into the parts of a concatenation",
    FROM,
    ALONG,
    Field("sizes", Form.EXPRESSION, "widths of the results"),
    saves="nothing",
)
def split(call: Call) -> None:
    """Declare one result per width in ``sizes``, or along tokens one per operand of the concatenation."""
    x = call.operand()
    if call.fields["along"] == "tokens":
        groups = x.stream.groups or (1,) * len(x.stream.parts)
        start = 0
        for size in groups:
            call.result(Stream(x.stream.items, x.stream.parts[start : start + size]), x.width)
            start += size
        return
    if not call.has("sizes"):
        call.fail("missing-field", "a split along the width needs 'sizes'")
    sizes = call.numbers("sizes")
    if not call.definitions.equal(Add(*sizes), call.width(x)):
        message = f"the parts sum to {said(Add(*sizes))}, '{x.name}' has width {said(x.width)}"
        hint = "the widths under 'sizes' sum to the operand's"
        call.fail(
            "split-mismatch", message, "sizes", hint, also=x.wide, note=call.definitions.formulas_of(Add(*sizes), x.width)
        )
    for size in sizes:
        call.result(x.stream, size)
