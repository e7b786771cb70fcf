"""Writes linears, products of two values, triangular solves, embeddings, normalisations and joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.dimensions import Dimensions, constant, quotient
from symflops.draft.write.values import Fields, Scope, Val, Values


def write_linear(step: Step, scope: Scope, values: Values) -> None:
    """Write a linear, with its bias and further values added to the result."""
    dims, paths = values.dims, values.paths
    inner, outer, total = sides_of(step, dims)
    rows, once = rows_read(step.operands[0], total, scope, values)
    value = values.operand(step.operands[0], rows, inner, scope, once)
    weight, *bias = step.parameters
    key = paths.label(step.path, scope)
    others = values.read_all(step.operands[1:], scope)
    fields: Fields = {"op": "linear", "from": value.name, "width": dims.text(outer, f"{step.path}: width")}
    if not bias:
        fields["bias"] = "false"
    fields |= paths.parameters(step.parameters, key, scope)
    fields |= weight_shape(weight, outer, inner, dims)
    stored_rows = dims.family.shape(weight)[0] if "rows_of" in fields else outer
    if bias and dims.family.shape(bias[0]) != (stored_rows,):
        fields.pop("bias_name", None)
        fields["bias"] = "false"
        others.append(values.parameter(bias.pop(), scope))
    like = replace(value, name=weight.rpartition(".")[0] or weight, width=outer)
    made = values.put(step, like, key, fields, scope, (weight, *bias))
    write_sum(step, made, others, scope, values)


def sides_of(step: Step, dims: Dimensions) -> tuple[Vector, Vector, Vector]:
    """(Input width, output width, rows in the whole batch) of a product with a parameter."""
    batch, rows, inner, columns = dims.slice(step, 0, 4)
    outer, per_batch = (rows, columns) if step.words[0] == "flipped" else (columns, rows)
    return inner, outer, dims.times(batch, per_batch, dims.turns(step))


def rows_read(ref: Ref, total: Vector, scope: Scope, values: Values) -> tuple[Vector, bool]:
    """(Rows of the operand of a linear per item, False), or (rows per batch, True).

    ``total`` is their number in the whole batch.
    """
    rows, once = values.dims.rows(total)
    known = values.read(ref, scope) if ref.kind in ("step", "carried") else None
    if known is not None and known.once and not once and values.dims.formula(total) is not None and known.rows == total:
        return total, True
    return rows, once


def weight_shape(weight: str, outer: Vector, inner: Vector, dims: Dimensions) -> Fields:
    """Fields for the shape in which a weight is stored, empty if that is (``outer``, ``inner``).

    They are ``in_out`` if it is the reverse, ``rows_of`` if only the rows differ, else ``shape``.
    """
    shape = dims.family.shape(weight)
    if shape == (outer, inner):
        return {}
    if shape == (inner, outer):
        return {"in_out": "true"}
    if len(shape) == 2 and shape[1] == inner:
        return {"rows_of": dims.text(shape[0], weight)}
    return {"shape": dims.listed(shape, weight)}


def write_sum(step: Step, made: Val, others: Sequence[Val], scope: Scope, values: Values) -> None:
    """Append a ``map`` that adds ``others`` to ``made``, the result of a step; nothing if there are none."""
    if others:
        fields = {"op": "map", "from": [made.name, *(one.name for one in others)]}
        values.made[step.id] = values.derived(made, fields, scope)


def write_product(step: Step, scope: Scope, values: Values) -> None:
    """Write a product or convolution of two values as a ``matmul`` with its index sizes."""
    dims = values.dims
    sizes = dims.slice(step, 0, 4 if step.kind == "matmul" else len(step.numbers) - sum(step.words[1]))
    batch, once = dims.rows(dims.times(sizes[0], dims.turns(step)))
    if once and step.kind == "matmul" and constant(sizes[0], 1):  # batch items may be the rows of one product
        rows, all_once = dims.rows(sizes[1])
        if not all_once:
            batch, once, sizes = dims.one, False, [dims.one, rows, *sizes[2:]]
    read = read_sides(step, batch, once, sizes, scope, values)
    rows, width = result_of(step, batch, sizes, values)
    indices = [size for size in (batch, *sizes[1:]) if not constant(size, 1)] or [dims.one]
    fields: Fields = {"op": "matmul", "from": [value.name for value in read], "dims": dims.listed(indices, step.path)}
    fields |= {"stream": values.streams.of(rows, once), "width": dims.text(width, step.path)}
    like = Val(step.path or "product", rows, width, once, values.streams.tag(rows, once))
    made = values.put(step, like, values.paths.label(step.path, scope), fields, scope)
    write_sum(step, made, values.read_all(step.operands[2:], scope), scope, values)


def read_sides(step: Step, batch: Vector, once: bool, sizes: list[Vector], scope: Scope, values: Values) -> list[Val]:
    """Both operands of a product; if the product exists per item, so does at least one of them.

    Args:
        step: The product.
        batch: Its batch size: per item of the model's batch, or in all if ``once``.
        once: Whether the product exists once per batch of the model.
        sizes: Its index sizes: batch, rows, inner, columns.
        scope: The list of entries to append to.
        values: The values of the draft.
    """
    dims = values.dims
    read = []
    for ref in step.operands[:2]:
        value = values.read(ref, scope)
        read.append(values.operand(ref, dims.times(batch, sizes[1]), sizes[2], scope, once) if value is None else value)
    if not once and all(value.once for value in read):
        read[0] = values.fitted(read[0], dims.times(batch, sizes[1]), sizes[2], scope, False)
    return read


def result_of(step: Step, batch: Vector, sizes: list[Vector], values: Values) -> tuple[Vector, Vector]:
    """(Rows, width) of the result of a product or convolution of two values, from its index sizes."""
    dims = values.dims
    if step.kind == "conv":
        return dims.shaped(dims.times(batch, *sizes[len(sizes) // 2 + 1 :]), sizes[1])
    return dims.shaped(dims.times(batch, *sizes[1:-2]), sizes[-1])


def write_solve(step: Step, scope: Scope, values: Values) -> None:
    """Write a triangular solve per batch item."""
    dims = values.dims
    batch, order, _, columns = dims.slice(step, 0, 4)
    total, once = dims.rows(dims.times(batch, order))
    matrix, right = (
        values.operand(ref, total, width, scope, once) for ref, width in zip(step.operands[:2], (order, columns), strict=True)
    )
    fields = {"op": "triangular_solve", "from": matrix.name, "right": right.name, "order": dims.text(order, step.path)}
    like = Val("solved", total, columns, once, right.tag)
    values.put(step, like, values.paths.label(step.path, scope), fields, scope)


def write_embedding(step: Step, scope: Scope, values: Values) -> None:
    """Write a lookup: an embedding if its indices are an input of ids, else the parameter, reshaped."""
    dims = values.dims
    weight = step.parameters[0]
    rows, once = dims.rows(dims.times(*dims.slice(step, 2, step.words[0][1])))
    source = step.operands[0].name
    if source and source in values.plan.inputs and not once:
        ids = values.input(source, rows, ())
        if ids.width == () and ids.rows == rows:
            write_lookup(step, ids, scope, values)
            return
    table = values.parameter(weight, scope)
    values.made[step.id] = table if once else values.fitted(table, rows, dims.family.shape(weight)[1], scope, False)


def write_lookup(step: Step, ids: Val, scope: Scope, values: Values) -> None:
    """Write an embedding entry for the input ``ids``."""
    dims, paths = values.dims, values.paths
    weight = step.parameters[0]
    path = weight.rpartition(".")[0]
    key = paths.relative(path, scope)
    count, width = dims.family.shape(weight)
    fields: Fields = {"op": "embedding", "from": ids.name, "rows": dims.text(count, weight), "width": dims.text(width, weight)}
    fields |= paths.parameters((weight,), key, scope)
    values.put(step, replace(ids, name=path, width=width), key, fields, scope, step.parameters)


def write_norm(step: Step, scope: Scope, values: Values) -> None:
    """Write a normalisation with parameters."""
    dims, paths = values.dims, values.paths
    value = values.source(step.operands[0], dims.slice(step, 0, step.words[1][0]), scope)
    weight = step.parameters[0]
    value = in_norm_rows(value, dims.family.shape(weight), scope, values)
    path = weight.rpartition(".")[0]
    key = paths.relative(path, scope)
    fields: Fields = {"op": step.words[0], "from": value.name, **norm_shape(weight, value.width, dims)}
    biased = len(step.parameters) > 1
    if biased != (step.words[0] != "rms_norm"):
        fields["bias"] = str(biased).lower()
    fields |= paths.parameters(step.parameters, key, scope)
    values.put(step, replace(value, name=path), key, fields, scope, step.parameters)


def in_norm_rows(value: Val, shape: tuple[Vector, ...], scope: Scope, values: Values) -> Val:
    """Value in rows as long as a weight of this ``shape``; itself if its width is a multiple of that.

    If its number of elements is no multiple of the length, it keeps its number of rows, and these are cut.
    """
    if len(shape) != 1 or quotient(value.width, shape[0]) is not None:
        return value
    rows = quotient(values.dims.times(value.rows, value.width), shape[0])
    return values.fitted(value, rows or value.rows, shape[0], scope, value.once)


def norm_shape(weight: str, width: Vector, dims: Dimensions) -> Fields:
    """Field for the shape of a normalisation's weight, empty if that is the operand's ``width``.

    It is ``dim`` for one dimension, else ``shape``.
    """
    shape = dims.family.shape(weight)
    if shape == (width,):
        return {}
    return {"dim": dims.text(shape[0], weight)} if len(shape) == 1 else {"shape": dims.listed(shape, weight)}


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
