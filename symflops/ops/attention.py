"""``attention``: softmax attention of any number of query and key streams, with masks, folds and windows."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any, NoReturn

from sympy import Add, Expr, Integer, Mul

from symflops.formula.domain import Setting, is_null
from symflops.formula.functions import Equal, FloorDiv, Least, Modulo, Most
from symflops.formula.masks import Mask, bounds_of as mask_bounds, useful_pairs
from symflops.formula.truth import NO, YES, Truth, all_of
from symflops.formula.words import said, words_of
from symflops.ir.contraction import Extent, Operand, Pairs
from symflops.ir.nodes import OF_OTHERS, Kept, Part, Stream, Value
from symflops.ops.attention_blocks import with_blocks
from symflops.ops.elementwise import joining
from symflops.ops.kind import Call, Field, Form, cases, operator_kind, symbol_or_value
from symflops.support.findings import did_you_mean

BOUNDS = ("prefix", "sliding", "local", "chunked")


@operator_kind(
    "attention",
    "softmax attention: scores = q k^T, mix = p v",
    Field("query", Form.VALUES, "queries; a list is a concatenation along tokens", required=True),
    Field("key", Form.VALUES, "keys", required=True),
    Field("value", Form.VALUES, "values, row for row with the keys", required=True),
    Field("heads", Form.EXPRESSION, "query heads", required=True),
    Field("kv_heads", Form.EXPRESSION, "key and value heads; default: as many as query heads"),
    Field("mask", Form.WORD, "which pairs are useful", default="full", words=("full", "causal", "prefix", "block")),
    Field("blocks", Form.LENGTHS, "tokens that see each other: a list of lengths, or a stream with an item for each block"),
    Field("sees", Form.LENGTHS, "keys of each query, by its place 'row'; a list with one number each; or a stream of pairs"),
    Field("sparse", Form.EXPRESSION, "whether only the useful pairs are computed", default="false"),
    Field("prefix", Form.EXPRESSION, "keys that a prefix mask lets everybody see"),
    Field("sliding", Form.EXPRESSION, "only the last this many keys"),
    Field("local", Form.EXPRESSION, "only keys at most this far away, on both sides"),
    Field("chunked", Form.EXPRESSION, "only keys of the same chunk of this many tokens"),
    Field("fold", Form.VALUES, "axes that become batch"),
    Field("window", Form.WINDOW, "axes that are cut into windows of this size"),
    Field("shift", Form.WINDOW, "rows by which the windows of an axis move, over its end; both ends do not see each other"),
    Field("bias", Form.VALUES, "values that are added to the scores"),
)
def attention(call: Call) -> None:
    """Declare the two products of attention, and a result for each value of queries.

    The result has the rows of the queries, and the width ``heads`` times that of one value head.
    """
    queries, keys, values = (call.values[name] for name in ("query", "key", "value"))
    heads = call.number("heads")
    groups = call.number("kv_heads") if call.has("kv_heads") else heads
    inner = head_widths(call, queries, keys, heads, groups)
    mixed = mixed_width(call, values, heads, groups)
    check_rows(call, keys, values)
    items = queries[0].stream.items
    if any(value.stream.items != items for value in (*queries, *keys)):
        call.fail(
            "index-set-mismatch",
            "queries and keys belong to different index sets",
            "key",
            joining((*queries, *keys), "'flatten_batch' takes the items of a batch together"),
            also=(*queries[0].long, *keys[0].long),
        )
    extents = extents_of(call, queries, keys)
    keep_keys(call, extents[items], keys, values)
    bias = call.values.get("bias", ())
    q = Operand("q", tuple(value.id for value in queries))
    k = Operand("k", tuple(value.id for value in keys))
    v = Operand("v", tuple(value.id for value in values))
    p = Operand("p", tuple(value.id for value in bias), inner=("scores = qk",))
    for over, extent in extents.items():
        of = f" ({over})" if over != items else ""
        call.contract(f"scores = qk{of}", q, k, inner, over, extent, "attention")
        call.contract(f"mix = pv{of}", p, v, mixed, over, extent, "attention")
    call.caption = f"{words_of(heads)} heads"
    for query in queries:
        call.result(query.stream, mixed)


def head_widths(call: Call, queries: tuple[Value, ...], keys: tuple[Value, ...], heads: Expr, groups: Expr) -> Expr:
    """The width of the queries, after a check that query heads and key heads are equally wide.

    ``heads`` is the number of query heads, ``groups`` that of key heads.
    """
    width = call.equally_wide(queries, "query", "queries are equally wide")
    one = call.definitions.divide(width, heads)
    exact: dict[Expr, Expr] = {}
    if one is None or not one.is_integer:
        if not allows_rounding(call, width, heads):
            refuse_heads(call, queries[0], heads, "heads")
        exact = {FloorDiv(width, heads): width / heads}
        text = f"the width of '{queries[0].name}', {said(width)}, does not divide into {said(heads)} heads"
        call.divides(width, heads, text)
    if call.definitions.divide(heads, groups) is None:
        call.divides(heads, groups, f"{said(heads)} query heads do not divide into {said(groups)} groups")
    for key in keys:
        wide = call.definitions.expand(call.width(key, "key")).expr.xreplace(exact)
        if not call.definitions.equal(wide * heads, width * groups):
            needed = width * groups / heads
            message = (
                f"'{key.name}' has width {said(key.width)}; {said(groups)} key heads as wide as "
                f"the {said(heads)} query heads of '{queries[0].name}' ({said(width)}) need {said(needed)}"
            )
            hint = f"give '{key.name}' the width {said(needed)}, or change 'heads' or 'kv_heads'"
            call.too_wide(key, needed, "key", f"{said(needed)} is expected here", hint, queries[0].wide, message)
    return width


def refuse_heads(call: Call, value: Value, heads: Expr, field: str) -> NoReturn:
    """Raise the error that the width of ``value`` is not a multiple of the number of heads."""
    message = f"the width of '{value.name}', {said(value.width)}, does not divide into {said(heads)} heads"
    hint = f"the width is {heads} times that of one head"
    call.fail("head-mismatch", message, field, hint, also=value.wide, note=call.definitions.formulas_of(value.width, heads))


def allows_rounding(call: Call, width: Expr, heads: Expr) -> bool:
    """Whether a spec may leave it to each config to make ``width`` a multiple of ``heads``.

    True for a product of sizes of which none is in ``heads``; then a config that does not fit is refused. False for a sum, and
    for a width with a size of ``heads`` in it, which are taken for mistakes of the spec.
    """
    whole, parts = call.definitions.expand(width), call.definitions.expand(heads).expr.free_symbols
    letters = whole.expr.free_symbols
    return bool(letters | parts) and not letters & parts and len(whole.terms) == 1


def mixed_width(call: Call, values: tuple[Value, ...], heads: Expr, groups: Expr) -> Expr:
    """The width of the result: ``heads`` times that of one value head, of which there are ``groups``."""
    width = call.equally_wide(values, "value", "values are equally wide")
    if call.definitions.equal(heads, groups):
        return width
    mixed = call.definitions.divide(width * heads, groups)
    if mixed is None:
        refuse_heads(call, values[0], groups, "value")
    return mixed


def check_rows(call: Call, keys: tuple[Value, ...], values: tuple[Value, ...]) -> None:
    """Check that there are as many values as keys, and that each has the rows of its key."""
    if len(keys) != len(values):
        hint = "each list of keys has its values, in the same order"
        call.fail("operand-count", f"{len(keys)} keys and {len(values)} values", "value", hint)
    for key, value in zip(keys, values, strict=True):
        if not key.stream.alike(value.stream, call.definitions.equal):
            call.fail(
                "row-mismatch",
                f"'{key.name}' and '{value.name}' have different rows",
                "value",
                also=(*key.long, *value.long),
            )


def extents_of(call: Call, queries: tuple[Value, ...], keys: tuple[Value, ...]) -> dict[str, Extent]:
    """Index set -> pairs that the model computes per item, and those of them that the mask leaves."""
    items, folded = queries[0].stream.items, call.fields.get("fold") or ()
    windows = call.fields.get("window") or {}
    fold, lq = lengths(call, queries, folded, "query")
    other, lk = lengths(call, keys, folded, "key")
    if folded and not call.definitions.equal(fold, other):
        hint = "an axis that becomes batch is as long for queries as for keys"
        call.fail("fold-mismatch", f"queries fold to {fold} and keys to {other}", "fold", hint)
    lk = lq if call.definitions.equal(lq, lk) else lk
    found, heads = masks_of(call), call.number("heads")
    masks, others = with_blocks(call, queries[0].stream, (fold, lq, lk), found)
    if windows or call.fields.get("shift"):
        refuse_masks(call, masks)
        pairs, useful = (fold * each for each in windowed(call, queries, folded, windows))
        mask = Mask() if useful == pairs else Mask(picked=useful)
        return {items: Extent(pairs, useful, mask.name, pairs=Pairs(Integer(1), pairs, Integer(1), ((mask, YES),), heads))}
    extents = {items: masked(call, masks, fold, lq, lk, bool(folded))}
    for over, mask in others.items():
        pairs = useful_pairs(mask, Integer(0), Integer(0))
        extents[over] = Extent(Integer(0), pairs, mask.name, pairs=Pairs(Integer(1), pairs, Integer(1), ((mask, YES),), heads))
    return extents if call.truth("sparse") is NO else {over: computed(call, extent) for over, extent in extents.items()}


def computed(call: Call, extent: Extent) -> Extent:
    """``extent``; if the field ``sparse`` holds, only the pairs that the mask leaves are executed."""
    sparse = call.truth("sparse").expr
    return replace(extent, executed=sparse * extent.useful + (1 - sparse) * extent.executed)


def masked(call: Call, masks: dict[Mask, Truth], fold: Expr, lq: Expr, lk: Expr, folded: bool) -> Extent:
    """The pairs of queries and keys that the model computes, and those of them that masks leave.

    Causal self-attention of a stateful call also has the keys that it kept of the past: those within the bounds of its mask.

    Args:
        call: The call of the operator.
        masks: Each mask with the condition under which it applies.
        fold: Product of the folded axes: how often these pairs occur.
        lq: Number of queries.
        lk: Number of keys.
        folded: Whether there are folded axes.
    """
    past = call.state.past
    names = dict.fromkeys(mask.name or "full" for mask in masks)
    all_causal = all(mask.base == "causal" and mask.local is None and not mask.looks_ahead for mask in masks)
    square, kept = (all_causal and not folded and lk == rows for rows in (lq, lq + past))
    if square:
        executed = lq * (lq + Add(*(case.expr * within(mask, past) for mask, case in masks.items())))
        lk += past
        for bound in dict.fromkeys(bound for mask in masks for bound in mask_bounds(mask) if past != 0):
            call.fits.append(
                (Equal(bound, Integer(1)), "a cache keeps all tokens of a window of 1 token, which no regime says")
            )
    else:
        executed = fold * lq * lk
    useful = Add(*(case.expr * useful_pairs(mask, lq, lk) for mask, case in masks.items()))
    name = "" if list(names) == ["full"] else " or ".join(names)
    pairs = Pairs(fold, lq, lk, tuple(masks.items()), call.number("heads"))
    return Extent(executed, fold * useful, name, lq if square or kept else None, pairs)


def within(mask: Mask, keys: Expr) -> Expr:
    """Number of the last ``keys`` that are kept for further tokens: with a bound, all but one of the keys within it."""
    return reduce(Least, (bound - 1 for bound in mask_bounds(mask)), keys) if keys != 0 else keys


def keep_keys(call: Call, extent: Extent, keys: tuple[Value, ...], values: tuple[Value, ...]) -> None:
    """Declare that attention keeps its keys and values, unless they were made of what another operator keeps.

    Those of another sequence are kept if the queries are tokens that a call adds.
    """
    if extent.pairs is None or len(keys) != 1:
        return
    key, width = keys[0], call.width(keys[0], "key") + call.width(values[0], "value")
    if extent.tokens is None and any(query.stream != key.stream for query in call.values["query"]):
        call.keeps.append(Kept(OF_OTHERS, key.stream, key.stream.rows, width))
    elif extent.tokens is not None and key.stream.rows == extent.tokens:
        rows = extent.tokens + call.state.past
        left = Add(*(case.expr * within(mask, rows) for mask, case in extent.pairs.masks))
        call.keeps.append(Kept("keys and values", key.stream, left, width))


def masks_of(call: Call) -> dict[Mask, Truth]:
    """Mask -> the condition under which it applies; a config may decide about bounds of a mask."""
    base = call.fields["mask"]
    if base == "prefix" and "prefix" not in call.places:
        call.fail("missing-field", "the mask 'prefix' needs 'prefix', the number of keys that everybody sees", "mask")
    if base != "prefix" and call.has("prefix"):
        call.fail("bad-field", f"'prefix' belongs to the mask 'prefix', not to '{base}'", "prefix")
    found: dict[Mask, Truth] = {}
    for bounds in product(*(bounds_of(call, name) for name in BOUNDS)):
        case = all_of(truth for truth, _ in bounds)
        if case is not NO:
            mask = Mask(base, **{name: size for name, (_, size) in zip(BOUNDS, bounds, strict=True)})
            found[mask] = found.get(mask, NO).plus(case)
    return found


def bounds_of(call: Call, name: str) -> list[tuple[Truth, Expr | None]]:
    """(condition, size) pairs for the field ``name``, which bounds a mask; the size is None for no bound."""
    found: list[tuple[Truth, Expr | None]] = []
    for case, value in cases(call.fields.get(name)):
        null = is_null(value)
        size = value.symbol if isinstance(value, Setting) and value.kind in ("number", "item") else value
        if null is not YES and not isinstance(size, Expr):
            call.fail("bad-field", f"'{name}' must be a number or null", name)
        if null is not YES and size.is_Number and size < int(name in ("sliding", "chunked")):
            call.fail("bad-field", f"'{name}' cannot be {said(size)}", name, "write null where there is no bound")
        if null is not NO and null is not YES and name == "chunked":
            size = Most(size, Integer(1))  # a null size reads as 0: avoid dividing by it
        found += [(case & null, None), (case & ~null, size)]
    return [(case, size) for case, size in found if case is not NO]


def refuse_masks(call: Call, masks: dict[Mask, Truth]) -> None:
    """Raise an error if one of ``masks`` is not the full one: windows allow no other mask."""
    for name in (mask.name for mask in masks if mask.name):
        call.fail(
            "mask-unsupported",
            f"the mask '{name}' is not known within windows of axes",
            "window",
            "take 'mask', or 'window', away",
        )


def lengths(call: Call, values: tuple[Value, ...], folded: tuple[str, ...], field: str) -> tuple[Expr, Expr]:
    """Return (number of folded batches of ``values``, number of tokens in each).

    The first is the product of the axes ``folded``, the second that of the other axes, summed over parts and values.
    """
    fold: Expr = Integer(1)
    rest: list[Expr] = []
    for part in (part for value in values for part in value.stream.parts):
        missing = [axis for axis in folded if part.get(axis) is None]
        if missing:
            axes = ", ".join(axis for axis, _ in part.axes)
            hint = did_you_mean(missing[0], [axis for axis, _ in part.axes], "name axes of the queries and keys")
            call.fail("fold-mismatch", f"a {field} has no axis '{missing[0]}' to fold (it has {axes})", "fold", hint)
        fold = Mul(*(part.get(axis) for axis in folded))
        rest.append(Mul(*(length for axis, length in part.axes if axis not in folded)))
    return fold, Add(*rest)


def windowed(call: Call, queries: tuple[Value, ...], folded: tuple[str, ...], windows: dict[str, Any]) -> tuple[Expr, Expr]:
    """The number of pairs within windows that the model computes, and of those that the mask leaves.

    ``windows`` has the size of the windows of an axis. The last window may be smaller. A window that a shift moves over the end
    of its axis has ``size - shift`` rows of the end and ``shift`` of the start, which do not see each other.
    """
    parts: list[Part] = [part for value in queries for part in value.stream.parts]
    if len(parts) != 1:
        call.fail("bad-field", "windows need queries of one part", "window")
    shifts, stream, axes = call.fields.get("shift") or {}, queries[0].stream, [axis for axis, _ in parts[0].axes]
    for field, named, known in (("window", windows, axes), ("shift", shifts, list(windows))):
        for axis in named.keys() - set(known):
            hint = did_you_mean(axis, known, "'window' names axes of the queries, and 'shift' some of them")
            call.fail(
                "bad-field", f"'{field}' has '{axis}', which is no axis{' with a window' * (field == 'shift')}", field, hint
            )
    pairs: list[Expr] = []
    useful: list[Expr] = []
    for axis, length in parts[0].axes:
        if axis not in windows:
            pairs.append(length**2 if axis not in folded else Integer(1))
            useful.append(pairs[-1])
            continue
        size = rows_in(call, windows[axis], stream, "window")
        count = call.definitions.divide(length, size)
        fit = count is not None and count.is_integer
        pairs.append(length * size if fit else size**2 * FloorDiv(length, size) + Modulo(length, size) ** 2)
        shift = rows_in(call, shifts[axis], stream, "shift") if axis in shifts else Integer(0)
        if shift != 0 and not fit:
            call.fail("mask-unsupported", f"shifted windows must divide the axis '{axis}'", "shift", "'pad' the axis before")
        useful.append(pairs[-1] - 2 * shift * (size - shift))
    return Mul(*pairs), Mul(*useful)


def rows_in(call: Call, expression: Any, stream: Stream, field: str) -> Expr:
    """The number of rows that a ``window`` or a ``shift`` (the ``field``) has; only a shift may be 0."""
    value = symbol_or_value(call.streams.value(expression, stream))
    if not isinstance(value, Expr) or (value.is_Number and value < int(field == "window")):
        call.fail(
            "bad-field", f"'{field}' cannot be {expression.text}", field, "write a number of rows, or an expression of sizes"
        )
    return value
