"""Systems with unit lower triangular matrices, one for each chunk of tokens in a delta rule."""

from __future__ import annotations

from sympy import Expr, Rational

from symflops.formula.words import said, words_of
from symflops.ir.contraction import Extent, Operand
from symflops.ops.elementwise import rows_match
from symflops.ops.kind import FROM, Call, Field, Form, operator_kind, whole

ORDER = Field("order", Form.EXPRESSION, "rows of one matrix: this many rows of the operand, one after another", required=True)


def systems(call: Call) -> Expr:
    """The number of matrices that are side by side in a row of the operand, one per head."""
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
    """Declare the solution ``x`` of ``A x = b`` for a unit lower triangular ``A``.

    It needs ``order * (order - 1) / 2`` multiply-adds per matrix and column of ``b``, since ``x_i = b_i - sum_{j<i} A_ij x_j``;
    executed are ``order * order``. The backward pass always solves ``A^T db = dx``. ``dA = -db x^T`` is a plain product, of
    which only the entries below the diagonal are used.
    """
    a, b, order = call.operand(), call.operand("right"), call.number("order")
    rows_match(call.fail, call.definitions.equal, a, b, "right")
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
    """Declare the inverse ``T`` of a unit lower triangular ``A``, computed row by row.

    ``T_i = 1_i - sum_{j<i} A_ij T_j``. Row ``i`` executes ``i * i`` multiply-adds. As row ``T_j`` has ``j`` non-zero entries,
    only ``i * (i - 1) / 2`` of them have non-zero factors.
    """
    a, order = call.operand(), call.number("order")
    rows, third = a.stream.rows, Rational(1, 6)
    extent = Extent(rows * (order - 1) * (2 * order - 1) * third, rows * (order - 1) * (order - 2) * third, mask="triangular")
    left, right = whole(a, "A"), whole(a, "T")
    call.contract("AT = 1", left, right, systems(call), a.stream.items, extent, "product", seen=False)
    call.caption = f"order {words_of(order)}"
    call.result(a.stream, a.width)
