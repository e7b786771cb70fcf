"""Writes contractions of two values, and triangular systems."""

from __future__ import annotations

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Step
from symflops.draft.write.dimensions import constant
from symflops.draft.write.linear import write_sum
from symflops.draft.write.scopes import Fields, Scope, Val
from symflops.draft.write.tables import Tables


def write_matmul(step: Step, scope: Scope, tables: Tables) -> None:
    """A product of two values."""
    write_product(step, scope, tables, tables.dims.slice(step, 0, 4))


def write_product(step: Step, scope: Scope, tables: Tables, sizes: list[Vector]) -> None:
    """A contraction by its index sizes."""
    dims, values = tables.dims, tables.values
    batch, once = dims.rows(dims.times(sizes[0], dims.turns(step)))
    if once and step.kind == "matmul" and constant(sizes[0], 1):  # items may be the rows of one product
        rows, all_once = dims.rows(sizes[1])
        if not all_once:
            batch, once, sizes = dims.one, False, [dims.one, rows, *sizes[2:]]
    read = read_sides(step, batch, once, sizes, scope, tables)
    name = values.names.fresh(step.path or "product")
    rows, width = result_of(step, batch, sizes, tables)
    indices = [size for size in (batch, *sizes[1:]) if not constant(size, 1)] or [dims.one]
    fields: Fields = {"op": "matmul", "from": [value.name for value in read], "dims": dims.listed(indices, step.path)}
    fields |= {"stream": tables.streams.of(rows, once), "width": dims.text(width, step.path), "to": name}
    made = Val(name, rows, width, once, tables.streams.tag(rows, once))
    values.put(step, made, tables.paths.label(step.path, scope), fields, scope)
    write_sum(step, made, values.read_all(step.operands[2:], scope), scope, tables)


def read_sides(step: Step, batch: Vector, once: bool, sizes: list[Vector], scope: Scope, tables: Tables) -> list[Val]:
    """The two operands, at least one of them per item if the product is."""
    dims, values = tables.dims, tables.values
    read = []
    for ref in step.operands[:2]:
        value = values.read(ref, scope)
        read.append(values.operand(ref, dims.times(batch, sizes[1]), sizes[2], scope, once) if value is None else value)
    if not once and all(value.once for value in read):
        read[0] = values.fitted(read[0], dims.times(batch, sizes[1]), sizes[2], scope, False)
    return read


def result_of(step: Step, batch: Vector, sizes: list[Vector], tables: Tables) -> tuple[Vector, Vector]:
    """Rows and width of a product."""
    dims = tables.dims
    if step.kind == "conv":
        return dims.shaped(dims.times(batch, *sizes[len(sizes) // 2 + 1 :]), sizes[1])
    return dims.shaped(dims.times(batch, *sizes[1:-2]), sizes[-1])


def write_solve(step: Step, scope: Scope, tables: Tables) -> None:
    """A triangular system for each item of a batch."""
    dims, values = tables.dims, tables.values
    batch, order, _, columns = dims.slice(step, 0, 4)
    total, once = dims.rows(dims.times(batch, order))
    matrix, right = (
        values.operand(ref, total, width, scope, once) for ref, width in zip(step.operands[:2], (order, columns), strict=True)
    )
    name = values.names.fresh("solved")
    fields = {"op": "triangular_solve", "from": matrix.name, "right": right.name, "order": dims.text(order, step.path)}
    made = Val(name, total, columns, once, right.tag)
    values.put(step, made, tables.paths.label(step.path, scope), {**fields, "to": name}, scope)
