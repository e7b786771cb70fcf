"""Writes experts: two products with one weight matrix per expert, on rows that a router selects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.attention import step_at
from symflops.draft.write.dimensions import Dimensions
from symflops.draft.write.products import sides_of
from symflops.draft.write.scopes import Entry, Fields, Scope, Val
from symflops.draft.write.values import Values

BLOCK = "routed_mlp"
WEIGHTS = ["gate_up_proj", "down_proj"]  # as the block names them


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
    second = stacked(ref, steps, shapes)
    first = stacked(second.operands[0], steps, shapes) if second else None
    if not first or not second or not all(one.kind in ("step", "carried") for one in (router, first.operands[0])):
        return None
    owners = {step.parameters[0].rpartition(".")[0] for step in (first, second)}
    return Experts(first, second, router, join) if len(owners) == 1 else None


def stacked(ref: Ref, steps: Mapping[int, Step], shapes: Any) -> Step | None:
    """Step that ``ref`` refers to, if it only multiplies with one matrix per expert; else None."""
    step = step_at(ref, "linear", steps)
    if step is None or step.quiet or (step.times, len(step.parameters), len(step.operands)) != (1, 1, 1):
        return None
    return step if len(shapes[step.parameters[0]]) == 3 else None


def write_experts(one: Experts, alone: bool, blocks: Collection[str], scope: Scope, values: Values) -> bool:
    """Write experts as a library block or an ``experts`` entry; returns False if they fit neither.

    ``alone`` says that nothing else reads the router's value; ``blocks`` are the names of the library's blocks.
    """
    dims, values, owner = values.dims, values, one.owner
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
