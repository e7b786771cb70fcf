"""Writes joins (values that depend on several others without a contraction) as entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Step
from symflops.draft.write.dimensions import Dimensions, quotient
from symflops.draft.write.scopes import Fields, Scope, Val
from symflops.draft.write.values import Values


def write_join(step: Step, scope: Scope, values: Values) -> None:
    """Write a join, a step that combines values without a contraction, as ``concat`` or elementwise."""
    dims = values.dims
    shape = dims.result(step)
    read = read_operands(step, shape, scope, values)
    elements, once = dims.rows(dims.times(*shape))
    if all(value.once for value in read):
        elements, once = dims.times(*shape), True
    if step.words[0] == "cat" and len(read) > 1 and write_concat(step, read, elements, once, scope, values):
        return
    read, fits = arranged(read, elements, once, dims)
    first = read[0] if fits else values.fitted(read[0], *shape_for(read, elements, shape, dims), scope, once)
    values.made[step.id] = first
    if len(read) > 1:
        read = [first, *read[1:]]
        fields: Fields = {"op": operator(step, read), "from": [value.name for value in read]}
        values.put(step, first, "_", fields, scope)


def arranged(read: Sequence[Val], elements: Vector, once: bool, dims: Dimensions) -> tuple[list[Val], bool]:
    """Reorder the operands of a step: those with as many elements as its result come first.

    Args:
        read: The operands.
        elements: The elements of the result, per item of the batch.
        once: Whether the result exists once per batch, and ``elements`` are per batch.
        dims: Finds formulas of dimensions.

    Returns:
        (All operands in the new order, whether any has as many elements).
    """
    whole = [value for value in read if value.once == once and dims.times(value.rows, value.width) == elements]
    first = [*whole, *(value for value in read if value.once == once), *read][0]
    rest = [value for value in (*whole, *(one for one in read if one not in whole)) if value is not first]
    return [first, *rest], bool(whole)


def read_operands(step: Step, shape: Sequence[Vector], scope: Scope, values: Values) -> list[Val]:
    """Operands of a step, without duplicates; inputs of the module take ``shape``, that of the result."""
    found = values.read_all(step.operands, scope)
    found += [values.in_shape(ref, shape, scope) for ref in step.operands if ref.kind == "input"]
    return list({value.name: value for value in found}.values())


def shape_for(read: Sequence[Val], elements: Vector, shape: Sequence[Vector], dims: Dimensions) -> tuple[Vector, Vector]:
    """(Rows, width) for a value with this number of elements.

    The width is the first of the operands' and the last dimension of ``shape`` for which the rows have a formula.
    """
    widths = [value.width for value in read if not value.once and quotient(elements, value.width) is not None]
    rows_of = {
        width: tuple(e // w if w else 1 for e, w in zip(elements, width, strict=True))
        for width in (*widths, shape[-1] if shape else dims.one)
    }
    width = next((width for width, rows in rows_of.items() if dims.formula(rows) is not None), next(iter(rows_of)))
    return dims.shaped(rows_of[width], width)


def operator(step: Step, read: Sequence[Val]) -> str:
    """Operator of a join (a step that combines values), whose operands are ``read``.

    ``map`` if they are in different streams, ``add`` for a sum of values of equal shape, else ``mul``.
    """
    first = read[0]
    if not all(value.tag == first.tag or value.once or set(value.rows) == {1} for value in read):
        return "map"
    same = all(value.width == first.width and (value.once or value.rows == first.rows) for value in read)
    return "add" if step.words[0] == "add" and same else "mul"  # operators do not add values of fewer rows


def write_concat(step: Step, read: Sequence[Val], elements: Vector, once: bool, scope: Scope, values: Values) -> bool:
    """Write a concatenation along tokens or along the width; returns False if the shapes fit neither.

    Args:
        step: The step.
        read: Its operands.
        elements: The elements of the result, per item of the batch.
        once: Whether the result exists once per batch, and ``elements`` are per batch.
        scope: The list of entries to append to.
        values: The values of the draft.
    """
    if any(value.once != once or not value.width for value in read):
        return False
    first, times = read[0], values.dims.times
    fields: Fields = {"from": [value.name for value in read]}
    rows = tuple(map(sum, zip(*(value.rows for value in read), strict=True)))
    width = tuple(map(sum, zip(*(value.width for value in read), strict=True)))
    if all(value.width == first.width for value in read) and times(rows, first.width) == elements:
        like = Val("joined", rows, first.width, once, ("cat", *(value.tag for value in read)))
        fields = {"along": "tokens", **fields}
    elif all((value.rows, value.tag) == (first.rows, first.tag) for value in read) and times(first.rows, width) == elements:
        like = replace(first, name="joined", width=width)
    else:
        return False
    values.put(step, like, "_", {"op": "concat", **fields}, scope)
    return True
