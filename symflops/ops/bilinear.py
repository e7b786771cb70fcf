"""``bilinear``: a form in two values."""

from __future__ import annotations

from symflops.formula.words import words_of
from symflops.ir.contraction import Operand
from symflops.ops.elementwise import rows_match
from symflops.ops.fields import Field, Form
from symflops.ops.kind import Call, operator_kind, whole


@operator_kind(
    "bilinear",
    "a form in two values, row by row; PyTorch's counter does not see it",
    Field("from", Form.VALUES, "both values", required=True),
    Field("width", Form.EXPRESSION, "width of the result", required=True),
    Field("bias", Form.EXPRESSION, "whether there is a bias", default="true"),
)
def bilinear(call: Call) -> None:
    """Declare the two products of ``y_o = x1 W_o x2 + b_o`` and the result.

    Per row, ``W x2`` has ``out * in1 * in2`` multiply-adds, and its product with ``x1`` has ``out * in1``.
    """
    operands = call.values["from"]
    if len(operands) != 2:
        call.fail("operand-count", f"a bilinear form takes two values, not {len(operands)}", "from", "from: [a, b]")
    left, right = operands
    rows_match(call.fail, left, right, "from")
    out, first, second = call.number("width"), call.width(left), call.width(right)
    weight = call.parameter("weight", (out, first, second))
    call.parameter("bias", (out,), when=call.truth("bias"))
    stream = left.stream
    table = Operand("W", parameters=weight)
    inner = Operand("u", inner=("u = W x2",))
    items, rows = stream.items, stream.rows
    call.contract("u = W x2", whole(right), table, out * first * second, items, rows, "product", seen=False)
    call.contract("y = x1 u", whole(left), inner, out * first, items, rows, "product", seen=False)
    call.caption = f"{words_of(first)}, {words_of(second)} -> {words_of(out)}"
    call.result(stream, out)
