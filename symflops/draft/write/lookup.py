"""Writes look-ups in a table of parameters, and normalisations."""

from __future__ import annotations

from dataclasses import replace

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Step
from symflops.draft.write.dimensions import Dimensions
from symflops.draft.write.scopes import Fields, Scope, Val
from symflops.draft.write.values import Tables


def write_embedding(step: Step, scope: Scope, tables: Tables) -> None:
    """A look-up: an embedding of token ids, or a parameter in another shape if its indices are no such input."""
    dims, values = tables.dims, tables.values
    weight = step.parameters[0]
    rows, once = dims.rows(dims.times(*dims.slice(step, 2, step.words[0][1])))
    source = step.operands[0].name
    if source and source in tables.plan.inputs and not once:
        ids = values.input(source, rows, ())
        if ids.width == () and ids.rows == rows:
            write_lookup(step, ids, scope, tables)
            return
    table = values.parameter(weight, scope)
    values.made[step.id] = table if once else values.fitted(table, rows, dims.family.shape(weight)[1], scope, False)


def write_lookup(step: Step, ids: Val, scope: Scope, tables: Tables) -> None:
    """An embedding of ids."""
    dims, paths = tables.dims, tables.paths
    weight = step.parameters[0]
    path = weight.rpartition(".")[0]
    key, name = paths.relative(path, scope), tables.values.names.fresh(path)
    count, width = dims.family.shape(weight)
    fields: Fields = {"op": "embedding", "from": ids.name, "rows": dims.text(count, weight), "width": dims.text(width, weight)}
    fields |= {**paths.parameters((weight,), key, scope), "to": name}
    paths.use(key, fields, scope, step.parameters)
    tables.values.put(step, replace(ids, name=name, width=width), key, fields, scope)


def write_norm(step: Step, scope: Scope, tables: Tables) -> None:
    """A normalisation with parameters."""
    dims, paths, values = tables.dims, tables.paths, tables.values
    value = values.source(step.operands[0], dims.slice(step, 0, step.words[1][0]), scope)
    weight = step.parameters[0]
    path = weight.rpartition(".")[0]
    key, name = paths.relative(path, scope), values.names.fresh(path)
    fields: Fields = {"op": step.words[0], "from": value.name, **normalised(weight, value.width, dims)}
    biased = len(step.parameters) > 1
    if biased != (step.words[0] != "rms_norm"):
        fields["bias"] = str(biased).lower()
    fields |= {**paths.parameters(step.parameters, key, scope), "to": name}
    paths.use(key, fields, scope, step.parameters)
    values.put(step, replace(value, name=name), key, fields, scope)


def normalised(weight: str, width: Vector, dims: Dimensions) -> Fields:
    """The shape of a normalisation's weight, if it is not the width of what is read."""
    shape = dims.family.shape(weight)
    if shape == (width,):
        return {}
    return {"dim": dims.text(shape[0], weight)} if len(shape) == 1 else {"shape": dims.listed(shape, weight)}
