"""Writes attention: a product of queries and keys whose result, plus bias, is multiplied with values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.dimensions import Dimensions, quotient
from symflops.draft.write.scopes import Fields, Scope, Val
from symflops.draft.write.values import Values

SIDES = ("query", "key", "value")


@dataclass(frozen=True, slots=True)
class Attention:
    """The steps of one attention.

    Attributes:
        scores: The product of queries and keys.
        mix: The product of weights and values.
        bias: References to what is added to the scores.
        joins: The ids of the steps between the products, which add the biases.
    """

    scores: Step
    mix: Step
    bias: tuple[Ref, ...]
    joins: tuple[int, ...]

    @property
    def inner(self) -> tuple[int, ...]:
        """Ids of the steps that the attention operator replaces, besides the product with values."""
        return (self.scores.id, *self.joins)


def attentions_in(entries: Sequence[Any], readers: Mapping[int, list[int]]) -> dict[int, Attention]:
    """Id of the product with values -> attention, for all attentions among steps.

    ``readers`` has the ids of the steps that read each value.
    """
    steps = {one.id: one for one in entries if isinstance(one, Step)}
    products = [step for step in steps.values() if is_product(step) and not step.quiet]
    return {step.id: one for step in products if (one := attention_of(step, steps, readers)) is not None}


def is_product(step: Step) -> bool:
    """Whether a step is a single matmul of two values."""
    return step.kind == "matmul" and step.times == 1 and len(step.operands) == 2


def attention_of(mix: Step, steps: Mapping[int, Step], readers: Mapping[int, list[int]]) -> Attention | None:
    """Attention whose product with values is ``mix``; None if the step is no such product.

    Its first operand must be a product of two values that nothing else reads. ``steps`` are all steps by id, ``readers`` the
    ids of the steps that read each value.
    """
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


def step_at(ref: Ref, kind: str, steps: Mapping[int, Step]) -> Step | None:
    """Step that ``ref`` refers to, if it is of the given kind; else None. ``steps`` are all steps by id."""
    step = steps.get(ref.id) if ref.kind == "step" else None
    return step if step is not None and step.kind == kind else None


def leads_to_scores(ref: Ref, steps: Mapping[int, Step]) -> bool:
    """Whether ``ref`` is a product of two values, or a sum or similar step (join) of one and others."""
    while (join := step_at(ref, "join", steps)) is not None:
        inner = [one for one in join.operands if step_at(one, "matmul", steps)]
        if len(inner) != 1:
            return False
        ref = inner[0]
    return step_at(ref, "matmul", steps) is not None


def write_attention(one: Attention, scope: Scope, values: Values) -> bool:
    """Write an attention entry; returns False if heads or lengths do not fit the operator."""
    dims, path = values.dims, one.scores.path
    batch, queries, wide, keys = dims.slice(one.scores, 0, 4)
    deep = dims.of(one.mix, 3)
    heads, once = dims.rows(batch)
    if once or not dims.is_size(heads) or dims.has_length(wide) or dims.has_length(deep):
        return False
    refs = (*one.scores.operands, one.mix.operands[1])
    read = values.read_all(refs, scope)
    if len(read) < len(refs) or any(value.once for value in read):
        return False
    groups = groups_of(((read[1], wide), (read[2], deep)), keys, heads, dims)
    sides = ((queries, heads, wide), (keys, groups, wide), (keys, groups, deep))
    read = in_heads(read, sides, scope, values)
    fields: Fields = {"op": "attention", "heads": dims.text(heads, path)}
    if groups != heads:
        fields["kv_heads"] = dims.text(groups, path)
    fields |= {side: value.name for side, value in zip(SIDES, read, strict=True)}
    bias = [value.name for value in values.read_all(one.bias, scope)]
    if bias:
        fields["bias"] = bias
    like = Val("a", queries, dims.times(heads, deep), False, read[0].tag)
    values.put(one.mix, like, values.paths.label(one.mix.path, scope), fields, scope)
    return True


def in_heads(read: Sequence[Val], sides: Sequence[tuple[Vector, ...]], scope: Scope, values: Values) -> list[Val]:
    """[Queries, keys, values], each reshaped to its rows, heads and head size in ``sides``."""
    times = values.dims.times
    pairs = list(zip(read, sides, strict=True))
    found = [values.fitted(one, rows, times(heads, size), scope, False) for one, (rows, heads, size) in pairs]
    if sides[0][1] == sides[1][1]:
        return found
    return [whole_heads(one, heads, size, scope, values) for one, (_, heads, size) in zip(found, sides, strict=True)]


def whole_heads(value: Val, heads: Vector, size: Vector, scope: Scope, values: Values) -> Val:
    """Value whose width is written as ``heads*size``, by a new entry if it is not yet.

    Only if the head size is a quotient with a letter of its own; else the value itself.
    """
    dims = values.dims
    text, unit = dims.text(heads, "heads"), dims.text(size, "head")
    if unit not in dims.fitter.derived or dims.text(value.width, "width") in (f"{text}*{unit}", f"{unit}*{text}"):
        return value
    return values.derived(value, {"op": "map", "from": value.name, "width": f"{text}*{unit}"}, scope)


def groups_of(sides: Sequence[tuple[Val, Vector]], keys: Vector, heads: Vector, dims: Dimensions) -> Vector:
    """Number of key-value heads, from the numbers of elements; ``heads`` if that is no grouping.

    Args:
        sides: Keys and values, each with its head size.
        keys: The number of keys.
        heads: The number of query heads.
        dims: Finds formulas of dimensions.
    """
    found = [quotient(dims.times(value.rows, value.width), dims.times(keys, size)) for value, size in sides]
    groups = found[0]
    if groups is None or groups != found[1] or any(not a or h % a for a, h in zip(groups, heads, strict=True)):
        return heads
    return groups if dims.formula(groups) is not None else heads
