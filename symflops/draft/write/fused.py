"""Writes attention and experts: products that an operator replaces.

In attention, a product of queries and keys, plus bias, is multiplied with values. Experts are two products with one weight
matrix per expert, on rows that a router selects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.dimensions import Dimensions, quotient
from symflops.draft.write.products import sides_of
from symflops.draft.write.values import Entry, Fields, Scope, Val, Values

SIDES = ("query", "key", "value")
BLOCK = "routed_mlp"
WEIGHTS = ["gate_up_proj", "down_proj"]  # as the block names them


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


@dataclass(frozen=True, slots=True)
class Experts:
    """The steps of a set of experts.

    Attributes:
        first: The product before the activation.
        second: The product after it.
        router: The value of the router.
        join: The step that multiplies the result by the router's value.
    """

    first: Step
    second: Step
    router: Ref
    join: Step

    @property
    def inner(self) -> tuple[int, ...]:
        """Ids of the steps that the experts entry replaces, besides the one that weights the result."""
        return (self.first.id, self.second.id)

    @property
    def owner(self) -> str:
        """Path of the module that owns the weights."""
        return self.first.parameters[0].rpartition(".")[0]

    @property
    def weights(self) -> list[str]:
        """Names of the weights within their module."""
        return [step.parameters[0].rpartition(".")[2] for step in (self.first, self.second)]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of experts over the samples.

    Attributes:
        count: Number of experts.
        chosen: Number of experts per token (top-k).
        hidden: Width before the activation.
        narrow: Width after the activation: half of ``hidden`` if it is ``gated``.
        outer: Width of the result.
        gated: Whether the activation multiplies two halves.
        flipped: Whether each weight is stored as (in, out).
    """

    count: Vector
    chosen: Vector
    hidden: Vector
    narrow: Vector
    outer: Vector
    gated: bool
    flipped: tuple[bool, ...]


def experts_in(entries: Sequence[Any], readers: Mapping[int, list[int]], shapes: Any) -> dict[int, Experts]:
    """Id of the step that weights the result -> experts, for all experts among steps.

    ``readers`` has the ids of the steps that read each value, ``shapes`` the shape of each parameter.
    """
    steps = {one.id: one for one in entries if isinstance(one, Step)}
    found = {}
    for join in steps.values():
        if join.kind == "join" and not join.quiet and len(join.operands) == 2:
            for ref, router in (join.operands, join.operands[::-1]):
                one = experts_of(join, ref, router, steps, shapes)
                if one and readers.get(one.first.id) == [one.second.id] and readers.get(one.second.id) == [join.id]:
                    found[join.id] = one
    return found


def experts_of(join: Step, ref: Ref, router: Ref, steps: Mapping[int, Step], shapes: Any) -> Experts | None:
    """Experts whose result ``ref`` step ``join`` weights by the value ``router``; None if they are none.

    The result must come from two products of one module, each with one matrix per expert.
    """
    second = expert_product(ref, steps, shapes)
    first = expert_product(second.operands[0], steps, shapes) if second else None
    if not first or not second or not all(one.kind in ("step", "carried") for one in (router, first.operands[0])):
        return None
    owners = {step.parameters[0].rpartition(".")[0] for step in (first, second)}
    return Experts(first, second, router, join) if len(owners) == 1 else None


def expert_product(ref: Ref, steps: Mapping[int, Step], shapes: Any) -> Step | None:
    """Step that ``ref`` refers to, if it only multiplies with one matrix per expert; else None."""
    step = step_at(ref, "linear", steps)
    if step is None or step.quiet or (step.times, len(step.parameters), len(step.operands)) != (1, 1, 1):
        return None
    return step if len(shapes[step.parameters[0]]) == 3 else None


def write_experts(one: Experts, alone: bool, blocks: Collection[str], scope: Scope, values: Values) -> bool:
    """Write experts as a library block or an ``experts`` entry; returns False if they fit neither.

    ``alone`` says that nothing else reads the router's value; ``blocks`` are the names of the library's blocks.
    """
    dims, owner = values.dims, one.owner
    value, router = values.read_all((one.first.operands[0], one.router), scope)
    sizes = sizes_of(one, value, router, values)
    if sizes is None:
        return False
    like = Val(owner, value.rows, sizes.outer, False, value.tag)
    fields: Fields = {"experts": dims.text(sizes.count, owner), "choose": dims.text(sizes.chosen, owner)}
    usual = alone and BLOCK in blocks and sizes.gated and one.weights == WEIGHTS and not any(sizes.flipped)
    call = router_field(owner, router, value, scope, values) if usual else None
    if call is not None:
        scope.entries.pop()
        widths = {"hidden": dims.text(sizes.narrow, owner), "width": dims.text(sizes.outer, owner)}
        fields = {"block": BLOCK, "from": value.name, **fields, **widths, **call}
        owner = owner.rpartition(".")[0]
    else:
        graph = list(expert(one.weights, sizes, dims))
        fields |= {"from": value.name, "weights": router.name, "graph": graph}
    values.put(one.join, like, values.paths.relative(owner, scope), fields, scope)
    values.paths.used.update(step.parameters[0] for step in (one.first, one.second))
    return True


def sizes_of(one: Experts, value: Val, router: Val, values: Values) -> Sizes | None:
    """Sizes of experts that read ``value`` and are weighted by ``router``; None if shapes do not fit."""
    dims = values.dims
    (inner, hidden, total), (narrow, outer, end) = (sides_of(step, dims) for step in (one.first, one.second))
    (total, _), (end, _) = dims.rows(total), dims.rows(end)
    (count, *before), (same, *after) = (dims.family.shape(step.parameters[0]) or ((),) for step in (one.first, one.second))
    if value.once or router.once or (router.rows, router.width, same) != (value.rows, count, count):
        return None
    chosen = tuple(a // b for a, b in zip(total, value.rows, strict=True))
    gated = hidden == dims.times((2,) * len(hidden), narrow)
    whole = dims.times(chosen, value.rows) == total == end and inner == value.width and (gated or hidden == narrow)
    flipped = is_flipped(before, hidden, inner), is_flipped(after, outer, narrow)
    if not whole or None in flipped or not dims.is_size(chosen):
        return None
    return Sizes(count, chosen, hidden, narrow, outer, gated, tuple(map(bool, flipped)))


def is_flipped(stored: Sequence[Vector], outer: Vector, inner: Vector) -> bool | None:
    """True if the shape ``stored`` is (``inner``, ``outer``), False if the reverse, None if it is neither."""
    return False if [*stored] == [outer, inner] else True if [*stored] == [inner, outer] else None


def router_field(owner: str, router: Val, value: Val, scope: Scope, values: Values) -> Fields | None:
    """Field ``router`` of a block call: the last word of the path of the linear that makes ``router``.

    Empty if that is ``gate``, the block's default. None if the last entry is not this linear, which reads ``value``, or if
    it is not in the same module as ``owner``, the module of the experts.
    """
    above = values.paths.relative(owner.rpartition(".")[0], scope)
    key, fields = scope.entries[-1] if scope.entries else ("", {})
    expected = {"op": "linear", "from": value.name, "width": fields.get("width"), "bias": "false", "to": router.name}
    parent, _, last = key.rpartition(".")
    if fields != expected or parent != above or above.startswith("/"):
        return None
    return {} if last == "gate" else {"router": f"'{last}'"}


def expert(weights: Sequence[str], sizes: Sizes, dims: Dimensions) -> Iterator[Entry]:
    """Entries of one expert's body: two linears with an activation in between."""
    ends = (("x", "h", sizes.hidden), ("h", "y", sizes.outer))
    for name, flipped, (source, target, width) in zip(weights, sizes.flipped, ends, strict=True):
        fields: Fields = {"op": "linear", "from": source, "width": dims.text(width, name), "bias": "false"}
        if flipped:
            fields["in_out"] = "true"
        yield "_", {**fields, "weight": name, "to": target}
        if target == "h":
            yield "_", {"op": "map", "from": "h", "width": dims.text(sizes.narrow, name), "to": "h"}
