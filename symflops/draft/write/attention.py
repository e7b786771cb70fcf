"""Writes attention: a product of queries and keys whose result, perhaps with a bias, is multiplied with values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.dimensions import quotient
from symflops.draft.write.scopes import Fields, Scope, Val
from symflops.draft.write.tables import Tables

Readers = Mapping[int, list[int]]
Steps = Mapping[int, Step]


@dataclass(frozen=True, slots=True)
class Attention:
    """Two products that are one attention: scores and mix, the biases of the scores, and the joins that add them."""

    scores: Step
    mix: Step
    bias: tuple[Ref, ...]
    joins: tuple[int, ...]

    @property
    def inner(self) -> tuple[int, ...]:
        """The steps that the mix stands for."""
        return (self.scores.id, *self.joins)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of an attention over the samples: heads, items of both sides, and elements per head."""

    heads: Vector
    queries: Vector
    keys: Vector
    wide: Vector
    deep: Vector


def attentions_in(entries: Sequence[Any], readers: Readers) -> dict[int, Attention]:
    """The attentions among entries, by the step of their mix; ``readers`` are the steps that read each value."""
    steps = {one.id: one for one in entries if isinstance(one, Step)}
    found = {}
    for step in steps.values():
        if is_product(step) and not step.quiet:
            one = attention_of(step, steps, readers)
            if one is not None:
                found[step.id] = one
    return found


def is_product(step: Step | None) -> bool:
    """Whether a step is one product of two values."""
    return step is not None and step.kind == "matmul" and step.times == 1 and len(step.operands) == 2


def attention_of(mix: Step, steps: Steps, readers: Readers) -> Attention | None:
    """The attention that ends with a product; None if its first operand is no scores that nothing else reads."""
    bias: list[Ref] = []
    joins: list[int] = []
    ref, reader = mix.operands[0], mix.id
    while (join := step_at(ref, "join", steps)) is not None and readers.get(ref.id, []) == [reader]:
        inner = [one for one in join.operands if leads_to_scores(one, steps)]
        if len(inner) != 1:
            break
        bias += [one for one in join.operands if one != inner[0]]
        joins.append(join.id)
        ref, reader = inner[0], join.id
    scores = step_at(ref, "matmul", steps)
    if scores is None or not is_product(scores) or readers.get(scores.id) != [reader]:
        return None
    a, b = scores.numbers, mix.numbers
    return Attention(scores, mix, tuple(bias), tuple(joins)) if (a[0], a[1], a[3]) == (b[0], b[1], b[2]) else None


def step_at(ref: Ref, kind: str, steps: Steps) -> Step | None:
    """The step that a reference names, if it is of a kind."""
    step = steps.get(ref.id) if ref.kind == "step" else None
    return step if step is not None and step.kind == kind else None


def leads_to_scores(ref: Ref, steps: Steps) -> bool:
    """Whether a reference is a product of two values, perhaps within joins."""
    while (join := step_at(ref, "join", steps)) is not None:
        inner = [one for one in join.operands if step_at(one, "matmul", steps)]
        if len(inner) != 1:
            return False
        ref = inner[0]
    return step_at(ref, "matmul", steps) is not None


def write_attention(one: Attention, scope: Scope, tables: Tables) -> bool:
    """One attention; False if its heads or lengths do not have that form."""
    dims, values, path = tables.dims, tables.values, one.scores.path
    sizes = sizes_of(one, tables)
    refs = (*one.scores.operands, one.mix.operands[1])
    read = [] if sizes is None else values.read_all(refs, scope)
    if sizes is None or len(read) < len(refs) or any(value.once for value in read):
        return False
    heads, groups = sizes.heads, groups_of(read[1], read[2], sizes, tables)
    sides = ((sizes.queries, heads, sizes.wide), (sizes.keys, groups, sizes.wide), (sizes.keys, groups, sizes.deep))
    read = [
        values.fitted(value, rows, dims.times(number, size), scope, False)
        for value, (rows, number, size) in zip(read, sides, strict=True)
    ]
    if groups != heads:
        read = [whole_heads(value, number, size, scope, tables) for value, (_, number, size) in zip(read, sides, strict=True)]
    name = values.names.fresh("a")
    fields: Fields = {"op": "attention", "heads": dims.text(heads, path)}
    if groups != heads:
        fields["kv_heads"] = dims.text(groups, path)
    fields |= zip(("query", "key", "value"), (value.name for value in read), strict=True)
    bias = [value.name for value in values.read_all(one.bias, scope)]
    fields |= {"bias": bias, "to": name} if bias else {"to": name}
    made = Val(name, sizes.queries, dims.times(heads, sizes.deep), False, read[0].tag)
    values.put(one.mix, made, tables.paths.label(one.mix.path, scope), fields, scope)
    return True


def sizes_of(one: Attention, tables: Tables) -> Sizes | None:
    """The sizes of an attention; None if heads exist once per batch or have no formula, or a size varies with lengths."""
    dims = tables.dims
    batch, queries, wide, keys = dims.slice(one.scores, 0, 4)
    deep = dims.of(one.mix, 3)
    heads, once = dims.rows(batch)
    if once or dims.has_length(heads) or dims.has_length(wide) or dims.has_length(deep) or dims.formula(heads) is None:
        return None
    return Sizes(heads, queries, keys, wide, deep)


def whole_heads(value: Val, heads: Vector, size: Vector, scope: Scope, tables: Tables) -> Val:
    """A value whose width is heads times the size of one, written as that product if the size is a rounded quotient."""
    dims = tables.dims
    text, unit = dims.text(heads, "heads"), dims.text(size, "head")
    if unit not in dims.fitter.derived or dims.text(value.width, "width") in (f"{text}*{unit}", f"{unit}*{text}"):
        return value
    return tables.values.derived(value, {"op": "map", "from": value.name, "width": f"{text}*{unit}"}, scope)


def groups_of(k: Val, v: Val, sizes: Sizes, tables: Tables) -> Vector:
    """How many heads keys and values have: fewer than queries if they have fewer elements."""
    times = tables.dims.times
    found = [
        quotient(times(value.rows, value.width), times(sizes.keys, size)) for value, size in ((k, sizes.wide), (v, sizes.deep))
    ]
    groups = found[0]
    if groups is None or groups != found[1] or any(not a or h % a for a, h in zip(groups, sizes.heads, strict=True)):
        return sizes.heads
    return groups if tables.dims.formula(groups) is not None else sizes.heads
