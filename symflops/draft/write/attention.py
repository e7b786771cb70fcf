"""Recognises attention: a product of queries and keys whose result, perhaps with a bias, is multiplied with values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.formula import Vector
from symflops.draft.trace.steps import Loop, Ref, Step
from symflops.draft.write.operators import Operators
from symflops.draft.write.writer import Fields, Scope, Val


@dataclass(frozen=True, slots=True)
class Pair:
    """Two products that are one attention: scores and mix, what is added to the scores, and the joins that add it."""

    scores: Step
    mix: Step
    bias: tuple[Ref, ...]
    joins: tuple[int, ...]


def pairs_in(entries: Sequence[Any], readers: dict[int, list[int]]) -> dict[int, Pair]:
    """The attentions among entries, by the step of their mix."""
    steps = {one.id: one for one in entries if isinstance(one, Step)}
    found: dict[int, Pair] = {}
    for step in steps.values():
        if step.kind != "matmul" or step.times != 1 or step.quiet or len(step.operands) != 2:
            continue
        bias: list[Ref] = []
        joins: list[int] = []
        ref = step.operands[0]
        while (
            ref.kind == "step"
            and ref.id in steps
            and steps[ref.id].kind == "join"
            and readers.get(ref.id, []) == [joins[-1] if joins else step.id]
        ):
            join = steps[ref.id]
            inner = [one for one in join.operands if leads_to_scores(one, steps)]
            if len(inner) != 1:
                break
            bias += [one for one in join.operands if one != inner[0]]
            joins.append(join.id)
            ref = inner[0]
        scores = steps.get(ref.id) if ref.kind == "step" else None
        reader = joins[-1] if joins else step.id
        if (
            scores is None
            or scores.kind != "matmul"
            or scores.times != 1
            or len(scores.operands) != 2
            or readers.get(scores.id) != [reader]
        ):
            continue
        a, b = scores.numbers[:4], step.numbers[:4]
        if a[0] == b[0] and a[1] == b[1] and a[3] == b[2]:
            found[step.id] = Pair(scores, step, tuple(bias), tuple(joins))
    return found


def leads_to_scores(ref: Ref, steps: dict[int, Step]) -> bool:
    """Whether an operand is a product of two values, perhaps within joins."""
    while ref.kind == "step" and ref.id in steps and steps[ref.id].kind == "join":
        inner = [
            one for one in steps[ref.id].operands if one.kind == "step" and one.id in steps and steps[one.id].kind == "matmul"
        ]
        if len(inner) != 1:
            return False
        ref = inner[0]
    return ref.kind == "step" and ref.id in steps and steps[ref.id].kind == "matmul"


class Attentive(Operators):
    """A writer that writes two products as one attention."""

    def write_attention(self, pair: Pair, scope: Scope) -> bool:
        """One attention; False where its heads or its lengths are not of that form."""
        batch, queries, wide, keys = (self.vector(pair.scores, place) for place in range(4))
        deep = self.vector(pair.mix, 3)
        heads, once = self.rows(batch)
        if once or self.measured(heads) or self.measured(wide) or self.measured(deep) or self.fitter.formula(heads) is None:
            return False
        refs = (*pair.scores.operands, pair.mix.operands[1])
        read = [self.read(ref, scope) if ref.kind not in ("input", "constant") else None for ref in refs]
        if any(value is None or value.once for value in read):
            return False
        q, k, v = (value for value in read if value is not None)
        groups = self.groups(k, v, keys, wide, deep, heads)
        q = self.fitted(q, queries, self.times(heads, wide), scope, False)
        k = self.fitted(k, keys, self.times(groups, wide), scope, False)
        v = self.fitted(v, keys, self.times(groups, deep), scope, False)
        if groups != heads:
            q = self.multiple(q, heads, wide, scope)
            k = self.multiple(k, groups, wide, scope)
            v = self.multiple(v, groups, deep, scope)
        name = self.name("a")
        fields: Fields = {"op": "attention", "heads": self.text(heads, pair.scores.path)}
        if groups != heads:
            fields["kv_heads"] = self.text(groups, pair.scores.path)
        fields |= {"query": q.name, "key": k.name, "value": v.name}
        bias = [value.name for ref in pair.bias if ref.kind not in ("constant", "input") and (value := self.read(ref, scope))]
        if bias:
            fields["bias"] = bias
        fields["to"] = name
        width = self.times(heads, deep)
        self.put(pair.mix, Val(name, queries, width, False, q.tag), self.label(pair.mix, scope), fields, scope)
        return True

    def multiple(self, value: Val, heads: Vector, size: Vector, scope: Scope) -> Val:
        """A value whose width is written as heads times the size of one, where that is a rounded quotient."""
        text, unit = self.text(heads, "heads"), self.text(size, "head")
        if unit not in self.fitter.derived or self.text(value.width, "width") in (f"{text}*{unit}", f"{unit}*{text}"):
            return value
        name = self.name(value.name)
        scope.entries.append(("_", {"op": "map", "from": value.name, "width": f"{text}*{unit}", "to": name}))
        return Val(name, value.rows, value.width, value.once, value.tag)

    def groups(self, k: Val, v: Val, keys: Vector, wide: Vector, deep: Vector, heads: Vector) -> Vector:
        """How many heads keys and values have: fewer than queries where their elements say so."""
        found = []
        for value, size in ((k, wide), (v, deep)):
            total = self.times(value.rows, value.width)
            unit = self.times(keys, size)
            if any(a % b for a, b in zip(total, unit, strict=True)):
                return heads
            found.append(tuple(a // b for a, b in zip(total, unit, strict=True)))
        divides = all(0 < a <= h and h % a == 0 for a, h in zip(found[0], heads, strict=True))
        return found[0] if found[0] == found[1] and divides and self.fitter.formula(found[0]) is not None else heads


__all__ = ["Attentive", "Loop", "Pair", "pairs_in"]
