"""``concat``, ``split`` and ``view``: changes of rows and width without work."""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Add, Expr

from symflops.model.index_sets import ONCE
from symflops.model.nodes import Need, Stream, Value
from symflops.ops.elementwise import rows_match
from symflops.ops.fields import FROM, Field, Form
from symflops.ops.kind import Call, operator_kind

ALONG = Field("along", Form.WORD, "what is joined or cut", default="width", words=("width", "tokens"))


@operator_kind("concat", "values one after another, along the width or along tokens", FROM, ALONG, saves="nothing")
def concat(call: Call) -> None:
    """Along the width, widths add; along tokens, parts follow one another, and a split can recover them."""
    values = call.values["from"]
    first = call.operand()
    if call.fields["along"] == "width":
        for other in values[1:]:
            rows_match(call.fail, first, other, "from")
        call.result(first.stream, Add(*(call.width(value) for value in values)))
        return
    for other in values[1:]:
        if other.stream.items != first.stream.items:
            message = f"'{other.name}' and '{first.name}' belong to different index sets"
            hint = "'view' with 'as: batch' takes the items of a batch together"
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
    """Widths that sum to the operand's, or the token parts that were concatenated."""
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
        message = f"the parts sum to {Add(*sizes)}, '{x.name}' has width {x.width}"
        hint = "the widths under 'sizes' sum to the operand's"
        call.fail(
            "split-mismatch", message, "sizes", hint, also=x.wide, note=call.definitions.formulas_of(Add(*sizes), x.width)
        )
    for size in sizes:
        call.result(x.stream, size)


FEWER, MORE = ("crop", "pool", "select"), ("pad", "expand")
KINDS = ("reshape", *MORE, *FEWER, "pad_batch", "batch")


@operator_kind(
    "view",
    "a free change of rows and width; 'as' says which kind, and is checked",
    FROM,
    Field("as", Form.WORD, "the kind of change; a 'pool' leaves at least one row", default="reshape", words=KINDS),
    Field("stream", Form.AXES, "the new stream: its name, or its axes"),
    Field("axes", Form.AXES, "axes of the old stream that change"),
    Field("like", Form.VALUES, "take the stream of this value, which 'stream' and 'axes' may change"),
    Field("width", Form.EXPRESSION, "the new width; default: the old one"),
    saves="nothing",
)
def view(call: Call) -> None:
    """The value in its new stream; a reshape conserves rows times width."""
    x = call.operand()
    stream = batch_stream(call, x) if call.fields["as"] == "batch" else target_stream(call, x.stream)
    if call.fields["as"] == "pad_batch":
        stream = call.streams.padded(stream)
    width = call.number("width") if call.has("width") else x.width
    if call.fields["as"] == "reshape":
        check_elements(call, x, stream, width)
    call.needs += needs(x.stream, stream, str(call.fields["as"]))
    call.result(stream, width)


def needs(old: Stream, new: Stream, kind: str) -> Iterator[Need]:
    """What new lengths need: a pool leaves at least one row, a crop or a selection may leave none.

    If an expansion is along other axes, rows are copied: it has at least as many as before.
    """
    lengths = {name: length for part in old.parts for name, length in part.axes}
    others = {name for part in new.parts for name, _ in part.axes}
    if kind == "expand" and old.items == new.items and lengths and others and lengths.keys().isdisjoint(others):
        yield Need(new.rows - old.rows + 1, new.rows)
    for part in new.parts:
        for name, length in part.axes:
            if length not in lengths.values() and (kind in FEWER or name in lengths):
                yield Need(length, lengths.get(name, old.rows), int(kind == "pool"), keeps=kind not in FEWER)


def target_stream(call: Call, old: Stream) -> Stream:
    """The stream that the fields name."""
    old = call.values["like"][0].stream if call.values.get("like") else old
    if call.fields.get("axes") is not None and call.fields.get("stream") is None:
        return call.streams.replace(call.fields["axes"], old, call)  # type: ignore[no-any-return]
    return call.stream(old)


def batch_stream(call: Call, x: Value) -> Stream:
    """The rows of all items one after another, in one stream for the whole batch."""
    for field in ("stream", "axes", "like"):
        if call.fields.get(field) is not None or call.values.get(field):
            call.fail("bad-field", "the rows of a batch are what they are: one axis, named after their index set", field)
    if x.stream.items == ONCE:
        call.fail("index-set-mismatch", f"'{x.name}' is there once per batch already", "from")
    return call.streams.together(x.stream)  # type: ignore[no-any-return]


def check_elements(call: Call, x: Value, new: Stream, after: Expr | None) -> None:
    """Refuse a reshape that changes the number of elements."""
    old, before = x.stream, call.width(x)
    if after is None or not call.definitions.equal(old.rows * before, new.rows * after):
        message = f"a reshape keeps rows times width: {old} of width {before} became {new} of width {after}"
        hint = "'as: pool', 'select' or 'crop' makes fewer, 'as: expand' or 'pad' more"
        note = call.definitions.formulas_of(before, after)
        call.fail("reshape-mismatch", message, "width" if call.has("width") else "from", hint, also=x.wide, note=note)
