"""``concat`` and ``split``: values joined and cut without work."""

from __future__ import annotations

from sympy import Add

from symflops.formula.words import said
from symflops.ir.nodes import Stream
from symflops.ops.elementwise import joining, rows_match
from symflops.ops.kind import FROM, Call, Field, Form, operator_kind

ALONG = Field("along", Form.WORD, "what is joined or cut", default="width", words=("width", "tokens"))


@operator_kind("concat", "values one after another, along the width or along tokens", FROM, ALONG, saves="nothing")
def concat(call: Call) -> None:
    """Declare the concatenation along the width, or along tokens: parts that ``split`` can separate."""
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
            hint = joining((first, other), "'flatten_batch' takes the items of a batch together")
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
    """Declare one result per width in ``sizes``, or along tokens one per operand of the concatenation."""
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
        message = f"the parts sum to {said(Add(*sizes))}, '{x.name}' has width {said(x.width)}"
        hint = "the widths under 'sizes' sum to the operand's"
        call.fail(
            "split-mismatch", message, "sizes", hint, also=x.wide, note=call.definitions.formulas_of(Add(*sizes), x.width)
        )
    for size in sizes:
        call.result(x.stream, size)
