"""``reshape``, ``expand``, ``pad``, ``slice`` and others: changes of rows and width without work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sympy import Expr, Integer, Mul

from symflops.formula.words import said
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Kept, Need, Part, Stream
from symflops.ops.kind import FROM, Call, Field, Form, Kind, operator_kind

WIDTH = Field("width", Form.EXPRESSION, "the new width; default: the old one")
ROWS = (
    Field("stream", Form.AXES, "the new stream: its name, or its axes"),
    Field("axes", Form.AXES, "axes of the old stream that change"),
    Field("like", Form.VALUES, "take the stream of this value, which 'stream' and 'axes' may change"),
    WIDTH,
)
Needs = Callable[[Stream, Stream], Iterator[Need]]


@operator_kind(
    "identity",
    "the same value under another name",
    FROM,
    Field("gradient", Form.EXPRESSION, "whether the class makes it need a gradient in training", default="false"),
    saves="nothing",
)
def identity(call: Call) -> None:
    """Declare the result, which equals the operand; with the field ``gradient`` it needs a gradient."""
    call.forces = call.truth("gradient")
    call.result(call.operand().stream, call.operand().width)


@operator_kind("reshape", "the same elements in other rows: rows times width stay", FROM, *ROWS, saves="nothing")
def reshape(call: Call) -> None:
    """Declare the result in its new stream, and check that rows times width stay the same."""
    changed(call, kept_lengths)
    x, ((stream, width),) = call.operand(), call.results
    before = call.width(x)
    if width is None or not call.definitions.equal(x.stream.rows * before, stream.rows * width):
        message = f"a reshape keeps rows times width: {x.stream} of width {said(before)} became {stream} of width {said(width)}"
        hint = "'pool', 'select' or 'slice' makes fewer, 'expand' or 'pad' more; an axis in a length is that of the operand"
        note = call.definitions.formulas_of(before, width)
        call.fail("reshape-mismatch", message, "width" if call.has("width") else "from", hint, also=x.wide, note=note)


def change_of_rows(name: str, doc: str, needs: Needs) -> Kind:
    """Make the kind of an operator that changes the rows of a value.

    Args:
        name: The name of the kind.
        doc: One line of documentation.
        needs: Function from old and new stream to the lower bounds of the new lengths.
    """
    return Kind(name, doc, (FROM, *ROWS), lambda call: changed(call, needs), saves="nothing")


def changed(call: Call, needs: Needs) -> None:
    """Declare the result in the stream that the fields name, and the lower bounds of its lengths."""
    x = call.operand()
    stream = target_stream(call, x.stream)
    call.needs += needs(x.stream, stream)
    call.result(stream, call.number("width") if call.has("width") else x.width)


def target_stream(call: Call, old: Stream) -> Stream:
    """The stream that the fields ``stream``, ``axes`` and ``like`` describe; ``old`` is the operand's."""
    old = call.values["like"][0].stream if call.values.get("like") else old
    if call.fields.get("axes") is not None and call.fields.get("stream") is None:
        return call.streams.replace(call.fields["axes"], old, call)  # type: ignore[no-any-return]
    return call.stream(old)


def new_lengths(old: Stream, new: Stream) -> Iterator[tuple[str, Expr, Expr | None]]:
    """Yield the axes of ``new`` whose length no axis of ``old`` has.

    Each is (axis, length, length of the axis of this name in ``old``, or None if there is none).
    """
    lengths = {name: length for part in old.parts for name, length in part.axes}
    for part in new.parts:
        for name, length in part.axes:
            if length not in lengths.values():
                yield name, length, lengths.get(name)


def kept_lengths(old: Stream, new: Stream) -> Iterator[Need]:
    """Lower bounds for axes whose length changes: at least 1 exactly if it was before."""
    return (Need(length, before, 0, keeps=True) for _, length, before in new_lengths(old, new) if before is not None)


def copied_rows(old: Stream, new: Stream) -> Iterator[Need]:
    """Lower bounds for an expansion: as :func:`kept_lengths`.

    If it replaces all axes, it also has at least as many rows as before.
    """
    names, others = ({name for part in stream.parts for name, _ in part.axes} for stream in (old, new))
    if old.items == new.items and names and others and names.isdisjoint(others):
        yield Need(new.rows - old.rows + 1, new.rows)
    yield from kept_lengths(old, new)


def taken_rows(least: int) -> Needs:
    """Make the function that yields lower bounds for an operator that keeps some of the rows.

    It demands at least ``least`` rows along each axis whose length changes.
    """

    def needs(old: Stream, new: Stream) -> Iterator[Need]:
        for _, length, before in new_lengths(old, new):
            yield Need(length, old.rows if before is None else before, least)

    return needs


expand = change_of_rows("expand", "copies along new or longer axes", copied_rows)
pad = change_of_rows("pad", "rows added at the ends of axes", kept_lengths)


@operator_kind(
    "pool",
    "rows made of several ones each; at least one is left; over windows along axes that stay, it saves its operand",
    FROM,
    *ROWS,
    saves="nothing",
)
def pool(call: Call) -> None:
    """Declare a result of fewer rows; autograd saves the operand if each axis stays with several rows."""
    old = call.operand().stream
    changed(call, taken_rows(1))
    axes, left = (dict(pair for part in stream.parts for pair in part.axes) for stream in (old, target_stream(call, old)))
    if axes.keys() == left.keys() and not call.has("width") and Integer(1) not in left.values():
        call.saves = "operands"


slice_ = change_of_rows("slice", "the first rows, or those in the middle, of each axis; it may leave none", taken_rows(0))
select = change_of_rows("select", "some of the rows, each at most once, in any order; it may leave none", taken_rows(0))


@operator_kind(
    "keep",
    "the rows of earlier calls before those of this one, which keeps them for later calls",
    FROM,
    Field("kind", Form.WORD, "what it is", default="latent", words=("latent", "convolution", "state")),
    Field("last", Form.EXPRESSION, "how many of the last rows are kept; default: all"),
    Field("width", Form.EXPRESSION, "elements that are kept for each; default: the operand's width"),
    saves="nothing",
)
def keep(call: Call) -> None:
    """Declare the result, the past along the last axis before the operand; without ``last`` the tokens of all calls."""
    x = call.operand()
    if len(x.stream.parts) != 1 or not x.stream.parts[0].axes:
        call.fail("bad-field", f"'{x.name}' has no axis of tokens", "from", "keep a value with one part")
    (*axes, (name, length)) = x.stream.parts[0].axes
    past, width = call.state.past, call.number("width") if call.has("width") else call.width(x)
    rows = length + past
    if call.has("last"):
        rows = call.number("last")
        past = rows * call.state.resumed.expr
    call.keeps.append(Kept(call.fields["kind"], x.stream, Mul(*(size for _, size in axes), rows), width))
    call.result(Stream(x.stream.items, (Part((*axes, (name, length + past))),)), x.width)


@operator_kind("pad_batch", "rows added to each item, up to the longest one of the batch", FROM, *ROWS, saves="nothing")
def pad_batch(call: Call) -> None:
    """Declare the result, in which each item has as many rows as the longest one of the batch."""
    old, width = call.operand().stream, call.operand().width
    stream = call.streams.padded(target_stream(call, old))
    call.needs += kept_lengths(old, stream)
    call.result(stream, call.number("width") if call.has("width") else width)


@operator_kind(
    "flatten_batch",
    "the rows of all items one after another, once for the whole batch: one axis with the name of their index set, 'samples'",
    FROM, WIDTH, saves="nothing",
)  # fmt: skip
def flatten_batch(call: Call) -> None:
    """Declare the result, in which the rows of all items are one axis, named after their index set."""
    x = call.operand()
    if x.stream.items == ONCE:
        call.fail("index-set-mismatch", f"'{x.name}' is there once per batch already", "from")
    call.result(call.streams.together(x.stream), call.number("width") if call.has("width") else x.width)
