"""``embedding`` and ``parameter``: values read from parameters, without work."""

from __future__ import annotations

from dataclasses import replace

from sympy import Integer, Mul

from symflops.formula.words import words_of
from symflops.ops.kind import FROM, TIE, WEIGHT, Call, Field, Form, operator_kind


@operator_kind(
    "embedding",
    "a table that indices look up",
    FROM,
    Field("rows", Form.EXPRESSION, "rows of the table", required=True),
    Field("width", Form.EXPRESSION, "width of a row", required=True),
    WEIGHT,
    TIE,
)
def embedding(call: Call) -> None:
    """Declare the table and the result; a look-up moves data and has no contraction."""
    rows, width = call.number("rows"), call.number("width")
    call.parameter("weight", (rows, width), field="weight")
    call.caption = f"{words_of(rows)} rows of {words_of(width)}"
    call.result(call.operand().stream, width)


@operator_kind(
    "parameter",
    "a parameter that is itself a value; the path is the parameter's own",
    Field("shape", Form.EXPRESSION, "its shape", required=True),
    Field("stream", Form.WORD, "the stream of the value; default: one for the whole batch"),
    Field("width", Form.EXPRESSION, "width of the value; default: the last dimension"),
    Field("trainable", Form.EXPRESSION, "whether it is ever trained", default="true"),
    saves="nothing",
)
def raw_parameter(call: Call) -> None:
    """Declare a parameter of ``shape``, and its value as the result."""
    shape = call.numbers("shape")
    call.parameter("", shape, trainable=bool(call.truth("trainable").terms))
    stream = call.streams.named(call.fields.get("stream") or "once", call)
    width = call.number("width") if call.has("width") else shape[-1] if shape else Integer(1)
    is_table = not call.fields.get("stream") and not call.definitions.equal(Mul(*shape), width)
    call.result(replace(stream, table=is_table), width)
