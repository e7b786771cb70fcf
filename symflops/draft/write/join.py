"""Writes joins: values that depend on several others without a contraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Step
from symflops.draft.write.dimensions import quotient
from symflops.draft.write.scopes import Fields, Scope, Val
from symflops.draft.write.tables import Tables


@dataclass(frozen=True, slots=True)
class Result:
    """What a join makes: its elements (per item, or per batch if ``once``), and its last dimension."""

    elements: Vector
    once: bool
    last: Vector

    def has(self, value: Val, tables: Tables) -> bool:
        """Whether a value has as many elements."""
        return value.once == self.once and tables.dims.times(value.rows, value.width) == self.elements


def write_join(step: Step, scope: Scope, tables: Tables) -> None:
    """A concatenation, a sum, a product, or a function of several values."""
    values = tables.values
    shape = tables.dims.result(step)
    read = read_operands(step, shape, scope, tables)
    total = tables.dims.times(*shape)
    elements, once = tables.dims.rows(total)
    if all(value.once for value in read):
        elements, once = total, True
    result = Result(elements, once, shape[-1] if shape else tables.dims.one)
    if step.words[0] == "cat" and len(read) > 1 and write_concat(step, read, result, scope, tables):
        return
    read.sort(key=lambda value: not result.has(value, tables))
    if not result.has(read[0], tables):
        first = next((value for value in read if value.once == once), read[0])
        read = [first_fitted(first, read, result, scope, tables), *(value for value in read if value is not first)]
    first = read[0]
    name = values.names.fresh(first.name)
    if len(read) == 1:
        values.made[step.id] = first
        return
    fields: Fields = {"op": operator(step, read), "from": [value.name for value in read], "to": name}
    values.put(step, replace(first, name=name), "_", fields, scope)


def read_operands(step: Step, shape: Sequence[Vector], scope: Scope, tables: Tables) -> list[Val]:
    """The operands, each once; inputs in the shape of the result."""
    found = tables.values.read_all(step.operands, scope)
    found += [tables.values.in_shape(ref, shape, scope) for ref in step.operands if ref.kind == "input"]
    return list({value.name: value for value in found}.values())


def first_fitted(first: Val, read: Sequence[Val], result: Result, scope: Scope, tables: Tables) -> Val:
    """The first operand with as many elements as the result, in the first width for which the rows have a formula."""
    dims = tables.dims
    widths = [value.width for value in read if not value.once and quotient(result.elements, value.width) is not None]
    rows_of = {
        width: tuple(e // w if w else 1 for e, w in zip(result.elements, width, strict=True))
        for width in (*widths, result.last)
    }
    width = next((width for width, rows in rows_of.items() if dims.formula(rows) is not None), next(iter(rows_of)))
    return tables.values.fitted(first, *dims.shaped(rows_of[width], width), scope, result.once)


def operator(step: Step, read: Sequence[Val]) -> str:
    """The operator of a join: a sum or a product of values of one stream, else any function."""
    first = read[0]
    if not all(value.tag == first.tag or value.once or set(value.rows) == {1} for value in read):
        return "map"
    same = all(value.width == first.width and (value.once or value.rows == first.rows) for value in read)
    return "add" if step.words[0] == "add" and same else "mul"  # operators do not add values of fewer rows


def write_concat(step: Step, read: Sequence[Val], result: Result, scope: Scope, tables: Tables) -> bool:
    """Values joined along tokens or along the width; False if it is neither."""
    if any(value.once != result.once or not value.width for value in read):
        return False
    first = read[0]
    name = tables.values.names.fresh("joined")
    fields: Fields = {"op": "concat", "from": [value.name for value in read], "to": name}
    rows, width = (
        tuple(map(sum, zip(*sides, strict=True))) for sides in zip(*((one.rows, one.width) for one in read), strict=True)
    )
    tags = [value.tag for value in read]
    if all(value.width == first.width for value in read) and tables.dims.times(rows, first.width) == result.elements:
        made = Val(name, rows, first.width, result.once, ("cat", *tags))
        fields = {"op": "concat", "along": "tokens", **fields}
    elif same_rows(read) and tables.dims.times(first.rows, width) == result.elements:
        made = replace(first, name=name, width=width)
    else:
        return False
    tables.values.put(step, made, "_", fields, scope)
    return True


def same_rows(read: Sequence[Val]) -> bool:
    """Whether values have the rows of the first one."""
    return all(value.rows == read[0].rows and value.tag == read[0].tag for value in read)
