"""``linear``: y = x W^T + b over every row; ``bilinear``: a form in two values."""

from __future__ import annotations

from sympy import Add, Integer

from symflops.formula.words import said, words_of
from symflops.ir.contraction import Operand
from symflops.ops.elementwise import rows_match
from symflops.ops.kind import BIAS_NAME, FROM, TIE, WEIGHT, Call, Field, Form, operator_kind, whole


@operator_kind(
    "linear",
    "a matrix product with a weight, row by row",
    FROM,
    Field("width", Form.EXPRESSION, "width of the result", required=True),
    Field("in", Form.EXPRESSION, "assert the width of the operand"),
    Field("bias", Form.EXPRESSION, "whether there is a bias", default="true"),
    Field("split", Form.EXPRESSION, "cut the result into these widths, one result each"),
    WEIGHT,
    TIE,
    BIAS_NAME,
    Field("shape", Form.EXPRESSION, "the stored shape of the weight, with as many elements"),
    Field("rows_of", Form.EXPRESSION, "the weight is a slice of a packed one with this many rows"),
    Field("in_out", Form.EXPRESSION, "the weight is stored (in, out)", default="false"),
    saves="factors",
)
def linear(call: Call) -> None:
    """Declare a product of ``in * out`` multiply-adds per row, and its result, or several if split."""
    x = call.operand()
    inner, outer = call.width(x), call.number("width")
    if call.has("in") and not call.definitions.equal(call.number("in"), inner):
        wanted, text = call.number("in"), said(call.number("in"))
        call.too_wide(x, wanted, "in", f"'{call.path}' expects {text}", f"give '{x.name}' the width {text}, or change 'in'")
    rows = call.number("rows_of") if call.has("rows_of") else outer
    shape = (inner, rows) if call.fields["in_out"] and call.truth("in_out").terms else (rows, inner)
    if call.has("shape"):
        shape = call.numbers("shape")
    weight = call.parameter("weight", shape, field="weight")
    call.parameter("bias", (rows,), when=call.truth("bias"), field="bias_name")
    call.contract("y = xW", whole(x), Operand("W", parameters=weight), inner * outer, x.stream.items, x.stream.rows)
    call.caption = f"{words_of(inner)} -> {words_of(outer)}"
    widths = call.numbers("split") if call.has("split") else (outer,)
    if not call.definitions.equal(Add(*widths), outer):
        total = Add(Integer(0), *widths)
        message, note = f"the parts sum to {total}, the width is {outer}", call.definitions.formulas_of(total, outer)
        call.fail("split-mismatch", message, "split", "the widths under 'split' sum to 'width'", note=note)
    for width in widths:
        call.result(x.stream, width)


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
    rows_match(call.fail, call.definitions.equal, left, right, "from")
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
