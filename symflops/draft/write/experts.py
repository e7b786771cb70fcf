"""Recognises experts: two products with parameters that have one matrix per expert, on rows that a router chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Ref, Step
from symflops.draft.write.attention import Attentive
from symflops.draft.write.writer import Fields, Scope, Val

BLOCK = "routed_mlp"


@dataclass(frozen=True, slots=True)
class Experts:
    """Two products of experts, the router's value, and the join that weighs the result with it."""

    first: Step
    second: Step
    router: Ref
    join: Step


def experts_in(entries: Sequence[Any], readers: dict[int, list[int]], shapes: Any) -> dict[int, Experts]:
    """The experts among entries, by the step of their join; ``shapes`` has the shape of each parameter."""
    steps = {one.id: one for one in entries if isinstance(one, Step)}
    found: dict[int, Experts] = {}
    for join in steps.values():
        if join.kind != "join" or join.quiet or len(join.operands) != 2:
            continue
        for ref, router in (join.operands, join.operands[::-1]):
            second = steps.get(ref.id) if ref.kind == "step" else None
            if second is None or not stacked(second, shapes) or router.kind not in ("step", "carried"):
                continue
            source = second.operands[0]
            first = steps.get(source.id) if source.kind == "step" else None
            if first is None or not stacked(first, shapes) or first.operands[0].kind not in ("step", "carried"):
                continue
            owners = {step.parameters[0].rpartition(".")[0] for step in (first, second)}
            if readers.get(first.id) == [second.id] and readers.get(second.id) == [join.id] and len(owners) == 1:
                found[join.id] = Experts(first, second, router, join)
    return found


def stacked(step: Step, shapes: Any) -> bool:
    """Whether a step is a product with one matrix of many, without anything else."""
    plain = step.kind == "linear" and step.times == 1 and not step.quiet
    return plain and len(step.parameters) == len(step.operands) == 1 and len(shapes[step.parameters[0]]) == 3


class Routing(Attentive):
    """A writer that writes two products as experts."""

    def write_experts(self, one: Experts, readers: dict[int, list[int]], scope: Scope) -> bool:
        """Experts as a block of the library or as an entry of their own; False where they are not of that form."""
        value = self.read(one.first.operands[0], scope)
        router = self.read(one.router, scope)
        shapes = [self.family.shape(step.parameters[0]) for step in (one.first, one.second)]
        (inner, hidden, total), (narrow, outer, end) = map(self.sides, (one.first, one.second))
        if value is None or router is None or value.once or router.once or any(len(shape) != 3 for shape in shapes):
            return False
        count = shapes[0][0]
        chosen = tuple(a // b for a, b in zip(total, value.rows, strict=True))
        whole = self.times(chosen, value.rows) == total == end and inner == value.width
        orders = [self.order(shape, *sides) for shape, sides in zip(shapes, ((hidden, inner), (outer, narrow)), strict=True)]
        gated = hidden == self.times((2,) * self.count, narrow)
        if not whole or None in orders or shapes[1][0] != count or not (gated or hidden == narrow):
            return False
        if router.rows != value.rows or router.width != count or self.measured(chosen) or self.fitter.formula(chosen) is None:
            return False
        owner = one.first.parameters[0].rpartition(".")[0]
        names = [step.parameters[0].rpartition(".")[2] for step in (one.first, one.second)]
        name = self.name(owner)
        fields: Fields = {"experts": self.text(count, owner), "choose": self.text(chosen, owner)}
        made = Val(name, value.rows, outer, False, value.tag)
        call = self.call(owner, router, readers.get(one.router.id) == [one.join.id], value, scope)
        if call is not None and gated and names == ["gate_up_proj", "down_proj"] and not any(orders):
            scope.entries.pop()
            sizes = {"hidden": self.text(narrow, owner), "width": self.text(outer, owner)}
            fields = {"block": BLOCK, "from": value.name, **fields, **sizes, **call, "to": name}
            self.put(one.join, made, self.path(owner.rpartition(".")[0], scope), fields, scope)
        else:
            fields |= {"from": value.name, "weights": router.name, "to": name}
            fields["graph"] = list(self.inside_experts(names, [bool(order) for order in orders], hidden, narrow, outer))
            self.put(one.join, made, self.path(owner, scope), fields, scope)
        self.covered.update(step.parameters[0] for step in (one.first, one.second))
        return True

    def sides(self, step: Step) -> tuple[Vector, Vector, Vector]:
        """What a product reads and makes, and its rows per item."""
        batch, rows, inner, columns = (self.vector(step, place) for place in range(4))
        outer, more = (rows, columns) if step.words[0] == "flipped" else (columns, rows)
        return inner, outer, self.rows(self.times(batch, more))[0]

    def order(self, shape: Sequence[Vector], outer: Vector, inner: Vector) -> bool | None:
        """Whether the matrices are stored (in, out); None where they are neither that nor (out, in)."""
        return False if tuple(shape[1:]) == (outer, inner) else True if tuple(shape[1:]) == (inner, outer) else None

    def call(self, owner: str, router: Val, alone: bool, value: Val, scope: Scope) -> Fields | None:
        """The fields by which a block has this router, whose linear is the last entry; None where it is not of that form."""
        if not alone or not scope.entries or BLOCK not in self.blocks:
            return None
        key, fields = scope.entries[-1]
        above = self.path(owner.rpartition(".")[0], scope)
        said = {"op": "linear", "from": value.name, "width": fields.get("width"), "bias": "false", "to": router.name}
        parent, _, last = key.rpartition(".")
        if fields != said or parent != above or above.startswith("/"):
            return None
        return {} if last == "gate" else {"router": f"'{last}'"}

    def inside_experts(self, names: list[str], orders: list[bool], hidden: Vector, narrow: Vector, outer: Vector) -> Any:
        """What one expert does."""
        for number, (name, flipped, width) in enumerate(zip(names, orders, (hidden, outer), strict=True)):
            fields: Fields = {"op": "linear", "from": "h" if number else "x", "width": self.text(width, name), "bias": "false"}
            if flipped:
                fields["in_out"] = "true"
            yield "_", {**fields, "weight": name, "to": "y" if number else "h"}
            if not number:
                yield "_", {"op": "map", "from": "h", "width": self.text(narrow, name), "to": "h"}
