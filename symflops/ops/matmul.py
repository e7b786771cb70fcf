"""``matmul``: the product of two values, for everything that is neither a linear nor softmax attention."""

from __future__ import annotations

from sympy import Integer, Mul

from symflops.formula.truth import NO, YES
from symflops.formula.words import words_of
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Value
from symflops.ops.kind import FROM, Call, Field, Form, operator_kind, whole


@operator_kind(
    "matmul",
    "the product of two values: linear attention, states of a scan, batch-wide logits",
    FROM,
    Field("dims", Form.LENGTHS, "every index size of the product, contracted ones once", required=True),
    Field("axes_of", Form.VALUES, "the values whose axes 'dims' may name; 'tokens' is the product of the first one's"),
    Field("stream", Form.AXES, "the stream of the result: its name, or its axes"),
    Field("like", Form.VALUES, "take the stream of this value"),
    Field("width", Form.EXPRESSION, "the width of the result; default: 1"),
    Field("broadcast", Form.EXPRESSION, "written as products of elements and a sum, not as a matmul", default="false"),
    saves="factors",
)
def matmul(call: Call) -> None:
    """Declare a product of two values with ``prod(dims)`` multiply-adds per item, and its result."""
    operands = call.values["from"]
    if len(operands) != 2:
        call.fail("operand-count", f"a product has two operands, not {len(operands)}", "from", "from: [a, b]")
    sets = {value.stream.items for value in operands} - {ONCE}
    if len(sets) > 1:
        hint = "'flatten_batch' takes the items of a batch together, to multiply all of one set with all of another"
        call.fail("index-set-mismatch", f"these are items of {' and '.join(sorted(sets))}", "from", hint)
    base, *named = call.values.get("axes_of") or (base_of(operands),)
    streams = tuple(value.stream for value in operands)
    dims = call.streams.lengths(call.fields["dims"], [base.stream, *(value.stream for value in named)], streams)
    left, right = (whole(value) for value in operands)
    broadcast = call.truth("broadcast")
    if broadcast not in (YES, NO):
        call.fail("bad-field", "how a product is written depends on no size", "broadcast", "write true or false")
    call.contract("y = ab", left, right, Integer(1), base.stream.items, Mul(*dims), "product", seen=broadcast is NO)
    call.caption = " x ".join(map(words_of, dims))
    target = call.values["like"][0].stream if call.values.get("like") else call.stream(base.stream, streams)
    call.result(target, call.number("width") if call.has("width") else Integer(1))


def base_of(operands: tuple[Value, ...]) -> Value:
    """The value whose axes ``dims`` may name by default.

    It is the first operand with several rows per item, else the first operand.
    """
    return next((value for value in operands if value.stream.items != ONCE and value.stream.rows != 1), operands[0])
