"""``conv``: a convolution over the last axes of a stream, plain or transposed."""

from __future__ import annotations

from dataclasses import replace

from sympy import Dummy, Expr, Integer, Mul, expand
from sympy.core.symbol import Str

from symflops.formula.domain import Setting
from symflops.formula.functions import Each, Equal, FloorDiv, Reading
from symflops.formula.polynomial import Polynomial
from symflops.formula.truth import NO, YES, Truth
from symflops.formula.words import said, words_of
from symflops.ir.contraction import Operand
from symflops.ir.nodes import Need, Part, Stream, Value
from symflops.ops.kind import BIAS_NAME, FROM, TIE, WEIGHT, Call, Field, Form, operator_kind, whole

WORD_OR_ROWS = "number, list, same or valid"


@operator_kind(
    "conv",
    "a convolution over the last axes of a stream, as many as the kernel has entries",
    FROM,
    Field("width", Form.EXPRESSION, "channels of the result", required=True),
    Field("kernel", Form.EXPRESSION, "sides of the kernel, a list or one number", required=True),
    Field("stride", Form.EXPRESSION, "steps, per axis or one for all", default="1"),
    Field(
        "padding",
        Form.EXPRESSION,
        "rows added on both sides, a word, or a size of type 'padding'",
        default="0",
        words=("same", "valid"),
    ),
    Field("dilation", Form.EXPRESSION, "distance of kernel entries, per axis or one for all", default="1"),
    Field("groups", Form.EXPRESSION, "groups of channels that do not mix", default="1"),
    Field("bias", Form.EXPRESSION, "whether there is a bias", default="true"),
    Field("transposed", Form.EXPRESSION, "whether it is the transpose of a convolution", default="false"),
    Field("output_padding", Form.EXPRESSION, "rows added to a transposed one, per axis or one for all", default="0"),
    Field("fixed", Form.EXPRESSION, "whether the weight is a constant: no parameter, and without a gradient", default="false"),
    Field("weight_norm", Form.EXPRESSION, "the weight is made of a direction and a norm along all dimensions but this one"),
    WEIGHT,
    TIE,
    BIAS_NAME,
)
def conv(call: Call) -> None:
    """Declare a convolution of ``in * out / groups * prod(kernel)`` multiply-adds per row, and its result.

    These are rows of the result, or of the operand if transposed.
    """
    x = call.operand()
    inner, outer, kernel = call.width(x), call.number("width"), call.numbers("kernel")
    per_group_in, per_group_out = divided(call, inner, "from"), divided(call, outer, "width")
    transposed = bool(call.truth("transposed").terms)
    shape = (inner, per_group_out, *kernel) if transposed else (outer, per_group_in, *kernel)
    weight = weight_parameters(call, shape)
    call.parameter("bias", (outer,), when=call.truth("bias"), field="bias_name")
    stream = result_stream(call, x, kernel, transposed)
    rows = x.stream.rows if transposed else stream.rows
    size = Mul(inner, per_group_out, *kernel)
    side = Operand("W", parameters=weight, counted=call.number("groups"))  # PyTorch's counter takes the full width twice
    call.contract("y = xW", whole(x), side, size, x.stream.items, rows, "conv")
    call.caption = f"{words_of(inner)} -> {words_of(outer)}, {' x '.join(map(words_of, kernel))}"
    call.result(stream, outer)


def weight_parameters(call: Call, shape: tuple[Expr, ...]) -> tuple[int, ...]:
    """Declare the weight, or the norm and direction that make it, and return the parameters' positions."""
    learned = ~call.truth("fixed")
    if not call.has("weight_norm"):
        return call.parameter("weight", shape, when=learned, field="weight")
    kept = call.number("weight_norm")
    if kept not in range(len(shape)):
        call.fail(
            "bad-field",
            f"the weight has the dimensions 0 to {len(shape) - 1}, not {kept}",
            "weight_norm",
            "the dimension that keeps a norm of its own for each index",
        )
    norm = tuple(size if position == kept else Integer(1) for position, size in enumerate(shape))
    path = "parametrizations.weight.original"
    return (*call.parameter(f"{path}0", norm, when=learned), *call.parameter(f"{path}1", shape, when=learned))


def divided(call: Call, width: Expr, field: str) -> Expr:
    """``width / groups``; if ``width`` is a single size, each config is checked to have no remainder."""
    groups = call.number("groups")
    quotient = call.definitions.divide(width, groups)
    if quotient is None or (quotient.is_Rational and not quotient.is_Integer):
        if not (width.is_Symbol or isinstance(width, Reading)):
            hint = "'groups' divides the operand's width and the result's"
            call.fail("group-mismatch", f"the width {said(width)} does not divide into {said(groups)} groups", field, hint)
        call.divides(width, groups, f"the width {said(width)} does not divide into {said(groups)} groups")
        return FloorDiv(width, groups)
    return quotient


def result_stream(call: Call, x: Value, kernel: tuple[Expr, ...], transposed: bool) -> Stream:
    """The stream of the result: the axes along which the kernel moves keep their names, with new lengths."""
    parts = x.stream.parts
    if len(parts) != 1:
        call.fail("bad-field", f"'{x.name}' has {len(parts)} parts: a convolution needs one", "from", "split it first")
    axes = parts[0].axes
    if len(axes) < len(kernel):
        known = ", ".join(name for name, _ in axes) or "none"
        message = f"a kernel of {len(kernel)} sides needs as many axes of '{x.name}' ({known})"
        call.fail("axis-mismatch", message, "kernel", "one side for each of the last axes that it moves along", also=x.long)
    first = len(axes) - len(kernel)
    changed = []
    for position, ((name, length), side) in enumerate(zip(axes[first:], kernel, strict=True)):
        new = (transposed_length if transposed else plain_length)(call, position, length, side)
        call.needs += needs(call, position, Need(new, length), transposed)
        changed.append(call.streams.resized(name, new, length))
    return Stream(x.stream.items, (Part((*axes[:first], *changed)),))


def needs(call: Call, position: int, need: Need, transposed: bool) -> tuple[Need, ...]:
    """Lower bounds for one axis: with padding it is as long as the kernel, whose length is at least 1.

    Args:
        call: The call.
        position: The axis among those of the kernel.
        need: The new length, computed from the old one.
        transposed: Whether the convolution is transposed.
    """
    if transposed:
        return (need, Need(need.of, need.of, keeps=True))
    if is_same(call) is YES:
        return (replace(need, keeps=True),)
    further = Dummy(integer=True, nonnegative=True)
    rows = call.numbers("kernel")[position]
    side = rows if rows.is_Number else 1 + further
    grown = expand(added(call, position).subs(rows, side) - along(call, "dilation", position) * (side - 1))
    if grown.is_positive or (grown.is_nonnegative and grown != 0 and along(call, "stride", position) == 1):
        return ()
    return (replace(need, implied=bool(grown.is_nonpositive), keeps=grown == 0),)


def plain_length(call: Call, position: int, length: Expr, side: Expr) -> Expr:
    """The new length of an axis: ``(n + 2p - d(k-1) - 1) // s + 1``, with multiples of ``s`` taken out.

    ``length`` is ``n``, ``side`` is ``k``; ``p``, ``d`` and ``s`` are padding, dilation and stride.
    """
    stride, same = along(call, "stride", position), is_same(call)
    if same is YES:
        if stride != 1:
            call.fail("bad-field", "'same' padding goes with a stride of 1", "padding", "say the padding as a number")
        return length
    call.fits.append((same.expr * (stride - 1), "'same' padding goes with a stride of 1"))
    border = added(call, position) - along(call, "dilation", position) * (side - 1) - 1
    steps, all_of_it = (exact_quotient(call, amount, stride) for amount in (border, length))
    if steps is not None:
        return (FloorDiv(length, stride) if all_of_it is None else all_of_it) + steps + 1
    return FloorDiv(length + border + stride, stride)


def exact_quotient(call: Call, amount: Expr, stride: Expr) -> Expr | None:
    """``amount / stride`` if that is an integer for all sizes, else None."""
    quotient = call.definitions.divide(amount, stride)
    whole = quotient is not None and all(factor.denominator == 1 for factor in Polynomial.of(quotient).terms.values())
    return quotient if whole else None


def transposed_length(call: Call, position: int, length: Expr, side: Expr) -> Expr:
    """The new length if transposed: ``(n - 1)s - 2p + d(k-1) + output_padding + 1``.

    ``length`` is ``n``, ``side`` is ``k``; ``p``, ``d`` and ``s`` are padding, dilation and stride.
    """
    if is_same(call) is not NO:
        call.fail("bad-field", "a transposed convolution has no 'same' padding", "padding", "say the padding as a number")
    stride, dilation, extra = (along(call, field, position) for field in ("stride", "dilation", "output_padding"))
    grown = (length - 1) * stride - 2 * padding(call, position) + dilation * (side - 1) + extra + 1
    return Polynomial.of(grown).expr


def is_same(call: Call) -> Truth:
    """The condition under which the padding is the word ``same``: the result is as long as the operand."""
    size, given = padding_size(call), call.fields["padding"]
    return Truth.of(Equal(size, Str("same"))) if size is not None else YES if given == "same" else NO


def added(call: Call, position: int) -> Expr:
    """Number of rows that padding adds to the axis at ``position``, at both ends together."""
    grown = along(call, "dilation", position) * (call.numbers("kernel")[position] - 1)
    return 2 * padding(call, position) + is_same(call).expr * grown


def padding(call: Call, position: int) -> Expr:
    """Number of rows that padding adds at each end of an axis; 0 for a word such as ``same``."""
    size = padding_size(call)
    if size is not None:
        return Each(size, Integer(position))
    return Integer(0) if call.fields["padding"] in ("same", "valid") else along(call, "padding", position)


def padding_size(call: Call) -> Expr | None:
    """The symbol of the size that says the padding as number, list or word; None if the spec says it."""
    given = call.fields["padding"]
    return given.symbol if isinstance(given, Setting) and given.kind == WORD_OR_ROWS else None


def along(call: Call, field: str, position: int) -> Expr:
    """The entry of ``field`` for the axis at ``position``; a single number is for all axes."""
    numbers, rank = call.numbers(field), len(call.numbers("kernel"))
    if len(numbers) not in (1, rank):
        hint = f"one number for all axes, or {rank} of them"
        call.fail("bad-field", f"'{field}' has {len(numbers)} numbers, the kernel {rank}", field, hint)
    return numbers[position] if len(numbers) > 1 else numbers[0]
