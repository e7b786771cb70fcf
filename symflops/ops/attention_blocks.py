"""Attention masks that one number cannot describe: blocks of unequal lengths, and a number of keys per query."""

from __future__ import annotations

from typing import Any, NoReturn

from sympy import Expr, Integer, Rational

from symflops.formula.domain import is_null
from symflops.formula.functions import Excess, Least, size_symbol
from symflops.formula.language_functions import list_total
from symflops.formula.masks import Mask
from symflops.formula.polynomial import Polynomial
from symflops.formula.summation import closed_sum
from symflops.formula.truth import NO, YES, Truth
from symflops.formula.words import said
from symflops.ir.nodes import Need, Stream
from symflops.ops.kind import Call, cases, symbol_or_value

Masks = dict[Mask, Truth]
Sides = tuple[Expr, Expr, Expr]
ROW = size_symbol("row@")
SEEN = "a formula of 'row', the place of the query: row, row//B, row % B, min, max and comparisons"


def with_blocks(call: Call, stream: Stream, sides: Sides, masks: Masks) -> tuple[Masks, dict[str, Mask]]:
    """Replace ``masks`` as the field ``blocks`` or ``sees`` says.

    ``sides`` are the product of the folded axes, the number of queries and the number of keys.

    Returns:
        Masks on the pairs of queries and keys, and masks on pairs per item of another index set (index set -> mask).
    """
    field = next((name for name in ("blocks", "sees") if call.has(name)), "")
    if not field:
        return masks, {}
    base = call.fields["mask"]
    allowed = {"blocks": ("causal", "block"), "sees": ("full", "causal")}[field]
    if call.has("blocks") and call.has("sees"):
        call.fail("bad-field", "a mask has blocks, or a number of keys that each query sees, not both", "sees")
    if base not in allowed or any(mask.name not in ("", base) for mask in masks):
        hint = "bounds and windows do not go with it" if base in allowed else f"write 'mask: {' or '.join(allowed)}'"
        call.fail("mask-unsupported", f"'{field}' does not go with this mask", field, hint)
    return of_blocks(call, stream, sides, base) if field == "blocks" else of_keys(call, stream, sides, base)


def of_blocks(call: Call, stream: Stream, sides: Sides, base: str) -> tuple[Masks, dict[str, Mask]]:
    """The pair that :func:`with_blocks` returns, for tokens that see each other only within blocks.

    The field ``blocks`` has a list of lengths, or a stream with an item for each block. ``base`` is the field ``mask``.
    """
    fold, queries, keys = sides
    past = Polynomial.of(keys - queries).expr
    if not past.is_nonnegative or (base == "block" and past != 0):
        which = "are all the keys" if base == "block" else "are among the keys, its last ones"
        call.fail("mask-unsupported", f"'blocks' are of queries that {which}", "blocks")
    expression = call.fields["blocks"]
    given = call.streams.declared(expression)
    if given is not None:
        inside = pairs_within(given.rows)
        if given.items == stream.items:
            return {Mask(base, within=inside): YES}, {}
        refuse_folds(call, fold, "blocks")
        over = Mask("within", within=inside if base == "causal" else 2 * inside)
        return {Mask(base, within=Integer(0)): YES}, {given.items: over}
    value = call.streams.value(expression, stream)
    inside, total = list_total(value, pairs_within), list_total(value)
    if inside is None or total is None:
        refuse_list(call, "blocks", "a list of lengths, or a stream whose items are the blocks")
    call.needs.append(Need(Polynomial.of(queries - total + 1).expr, queries))
    return {Mask(base, within=inside): YES}, {}


def of_keys(call: Call, stream: Stream, sides: Sides, base: str) -> tuple[Masks, dict[str, Mask]]:
    """The pair that :func:`with_blocks` returns, for a number of keys that each query sees.

    The field ``sees`` has a formula, a list with a number per query, or a stream of pairs. ``base`` is the field ``mask``.
    """
    fold, queries, keys = sides
    expression = call.fields["sees"]
    given = call.streams.declared(expression)
    if given is not None:
        refuse_folds(call, fold, "sees")
        if given.items == stream.items:
            return {Mask(base, picked=given.rows): YES}, {}
        return {Mask(base, picked=Integer(0)): YES}, {given.items: Mask("within", within=given.rows)}
    value = call.streams.value(expression, stream, row=ROW)
    found: Masks = {}
    for case, one in cases(value):
        null = is_null(one)
        if case & null is not NO:
            found[Mask(base)] = case & null
        if null is not YES:
            mask = Mask(base, picked=total_seen(call, one, queries, keys, base))
            found[mask] = found.get(mask, NO).plus(case & ~null)
    return {mask: case for mask, case in found.items() if case is not NO}, {}


def total_seen(call: Call, value: Any, queries: Expr, keys: Expr, base: str) -> Expr:
    """Number of pairs if each query sees ``value`` keys, but no more than the mask ``base`` leaves.

    ``value`` is a formula of the query's position, or a list with a number per query.
    """
    value = symbol_or_value(value)
    if isinstance(value, Truth):
        value = value.expr
    if not isinstance(value, Expr):
        total, count = list_total(value), list_total(value, lambda _: Integer(1))
        if total is None or count is None:
            refuse_list(call, "sees", SEEN)
        if not call.definitions.equal(count, queries):
            hint = "give the stream of the queries this length"
            call.fail("row-mismatch", f"'sees' is a list of {said(count)}, and there are {said(queries)} queries", "sees", hint)
        return total
    past = Polynomial.of(keys - queries).expr
    if base == "causal" and not past.is_nonnegative:
        call.fail("mask-unsupported", "'sees' under a causal mask is of queries that are the last of the keys", "sees")
    most = ROW + 1 + past if base == "causal" else keys
    total = closed_sum(ROW, Integer(0), queries, Least(value if value.is_nonnegative else Excess(value), most))
    if total is None:
        text = call.fields["sees"].text
        call.fail("mask-unsupported", f"no closed form for the sum of '{text}' over the queries", "sees", SEEN)
    return total


def pairs_within(length: Expr) -> Expr:
    """Number of unordered pairs of different tokens in a block of ``length`` tokens."""
    return Rational(1, 2) * length * (length - 1)


def refuse_folds(call: Call, fold: Expr, field: str) -> None:
    """Raise an error if axes are folded: items of a stream cannot be matched with positions along them."""
    if fold != 1:
        hint = (
            "a formula of 'row', or a list, goes with it: it holds in each fold; else 'reshape' the folded axes into one before"
        )
        call.fail("mask-unsupported", f"'{field}' of a stream does not go with 'fold'", field, hint)


def refuse_list(call: Call, field: str, hint: str) -> NoReturn:
    """Raise the error for a value of ``field`` that is not a list of numbers."""
    call.fail("bad-field", f"'{field}' is {call.fields[field].text}, which is no list of numbers", field, hint)
