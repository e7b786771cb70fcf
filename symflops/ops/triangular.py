"""Systems with unit lower triangular matrices, one for each chunk of tokens in a delta rule."""

from __future__ import annotations

from sympy import Expr, Rational

from symflops.formula.words import said, words_of
from symflops.ir.contraction import Extent, Operand
from symflops.ops.elementwise import rows_match
from symflops.ops.fields import FROM, Field, Form
from symflops.ops.kind import Call, operator_kind, whole

ORDER = Field("order", Form.EXPRESSION, "rows of one matrix: this many rows of the operand, one after another", required=True)


def systems(call: Call) -> Expr:
    """Number of matrices side by side in a row of the operand, one per head."""
    a, order = call.operand(), call.number("order")
    count = call.definitions.divide(call.width(a), order)
    if count is None:
        message = f"'{a.name}' has width {call.width(a)}, which is no multiple of {order}"
        call.too_wide(a, order, "order", "", f"a row of the matrix is {order} wide", (), message)
    return count


@operator_kind(
    "triangular_solve",
    "solve systems with unit triangular matrices; PyTorch's counter sees of it the gradient of the matrices alone",
    FROM,
    ORDER,
    Field("right", Form.VALUES, "the right-hand sides", required=True),
)
def triangular_solve(call: Call) -> None:
    """``order * (order - 1) / 2`` multiply-adds for each system and column; the counted product fills the square.

    ``x`` of ``A x = b``, row after row: ``x_i = b_i - sum_{j<i} A_ij x_j``. Its backward pass always solves ``A^T db = dx``.
    ``dA = -db x^T`` is a plain product, of which the entries below the diagonal are used.
    """
    a, b, order = call.operand(), call.operand("right"), call.number("order")
    rows_match(call.fail, a, b, "right")
    size, count = call.width(b, "right"), systems(call)
    if call.definitions.divide(size, count) is None:
        message = f"'{b.name}' has width {said(size)}, which is no multiple of {said(count)} systems"
        call.too_wide(b, count, "right", "", f"each of the {said(count)} systems has as many right sides", (), message)
    rows = a.stream.rows
    extent = Extent(rows * order, rows * (order - 1) * Rational(1, 2), mask="triangular")
    matrix = Operand("A", (a.id,), seen=True)
    solution = Operand("x", (b.id, a.id))
    call.contract("Ax = b", matrix, solution, size, a.stream.items, extent, "product", seen=False)
    call.caption = f"order {words_of(order)}, {words_of(size)} wide"
    call.result(a.stream, size)


@operator_kind(
    "triangular_inverse",
    "invert unit triangular matrices row by row, as products and sums, which PyTorch's counter does not see",
    FROM,
    ORDER,
)
def triangular_inverse(call: Call) -> None:
    """``i * i`` executed multiply-adds for row ``i``, of which ``i * (i - 1) / 2`` have non-zero factors.

    ``T`` of ``A T = 1``, row after row: ``T_i = 1_i - sum_{j<i} A_ij T_j``, where row ``T_j`` has ``j`` non-zero entries.
    """
    a, order = call.operand(), call.number("order")
    rows, third = a.stream.rows, Rational(1, 6)
    extent = Extent(rows * (order - 1) * (2 * order - 1) * third, rows * (order - 1) * (order - 2) * third, mask="triangular")
    left, right = whole(a, "A"), whole(a, "T")
    call.contract("AT = 1", left, right, systems(call), a.stream.items, extent, "product", seen=False)
    call.caption = f"order {words_of(order)}"
    call.result(a.stream, a.width)
