"""``scan``: a diagonal recurrence over the tokens of a sample, as selective state-space models have it."""

from __future__ import annotations

from sympy import Integer

from symflops.formula.words import words_of
from symflops.ir.contraction import Operand
from symflops.ir.nodes import Kept
from symflops.ops.elementwise import rows_match
from symflops.ops.kind import FROM, Call, Field, Form, operator_kind, whole


@operator_kind(
    "scan",
    "a diagonal recurrence over tokens; written as products and sums, which PyTorch's counter does not see",
    FROM,
    Field("dt", Form.VALUES, "the steps, one per channel", required=True),
    Field("write", Form.VALUES, "what is written to the state (B),", required=True),
    Field("decay", Form.VALUES, "the decay (A), a parameter"),
    Field("state", Form.EXPRESSION, "numbers per channel", required=True),
)
def scan(call: Call) -> None:
    """Declare ``h_t = exp(dt_t A) h_{t-1} + dt_t B_t u_t``: per token, ``state`` numbers per channel.

    Each of its two products has ``channels * state`` multiply-adds per row; the result has the states of all tokens.

    Source: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces" (2023), algorithm 2.
    """
    u, dt, write = call.operand(), call.operand("dt"), call.operand("write")
    for other, field in ((dt, "dt"), (write, "write")):
        rows_match(call.fail, call.definitions.equal, u, other, field)
    axes = [name for part in u.stream.parts for name, length in part.axes if length != 1]
    if len(u.stream.parts) == 1 and len(axes) > 1:
        message = f"a recurrence runs over all tokens of '{u.name}', which has the axes {', '.join(axes)}"
        hint = "first make one axis of them, such as 'reshape' with 'stream: {n: tokens}': convolutions run along the last one"
        call.warn("several-axes", message, "from", hint, u.long)
    size = call.width(u) * call.number("state")
    items, rows = u.stream.items, u.stream.rows
    decays = tuple(value.id for value in (dt, *call.values.get("decay", ())))
    call.contract("b = dt B u", whole(u), Operand("B", (write.id, dt.id)), size, items, rows, "scan", seen=False)
    inner = Operand("b", inner=("b = dt B u",))
    call.contract("h = a h + b", Operand("a", decays), inner, size, items, rows, "scan", seen=False)
    call.keeps.append(Kept("state", u.stream, Integer(1), size))
    call.caption = f"{words_of(call.number('state'))} per channel"
    call.result(u.stream, size)
