"""Writes the whole graph: entries in order, loops with what they carry, parameters that nobody reads, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from symflops.draft.fit.axes import Axes
from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.formula import Formula, Vector
from symflops.draft.fit.symbols import Names, fresh
from symflops.draft.polish.block_calls import called
from symflops.draft.polish.inlining import inlined
from symflops.draft.polish.joint_attention import listed
from symflops.draft.polish.polish import polished, tidied
from symflops.draft.sample.family import Family
from symflops.draft.trace.reads import names_read, readers_of, refs_of, steps_in, values_in
from symflops.draft.trace.steps import Branch, Loop, Ref, Step
from symflops.draft.write.attention import pairs_in
from symflops.draft.write.branches import Switching
from symflops.draft.write.experts import experts_in
from symflops.draft.write.operators import AXES
from symflops.draft.write.writer import Scope, Val


class Grapher(Switching):
    """Writes a plan from its first entry to its last."""

    def __init__(self, family: Family, names: Names, fitter: Fitter, attention: bool = True, grids: bool = True) -> None:
        super().__init__(family, names, fitter, attention)
        self.lengths, self.with_grids = Axes(fitter), grids

    def graph(self) -> tuple[list[Any], list[str]]:
        """The entries, and the names of the outputs."""
        scope = Scope("")
        self.axes()
        self.heads()
        self.entries(self.plan.entries, scope, [*self.plan.outputs])
        outputs = []
        for ref in self.plan.outputs:
            value = self.read(ref, scope)
            if value is not None:
                outputs.append(value.name)
        self.unread(scope)
        listed(
            scope.entries, {**{value.name: value for value in self.values.values()}, **self.selected}, scope.entries, outputs
        )
        entries = inlined(called(polished(scope.entries, set(outputs)), self.patterns, set(outputs)))
        return entries, tidied(entries, outputs, {value.name for value in self.inputs.values()})

    def axes(self) -> None:
        """Find the axes of convolutions first: other lengths are made of them."""
        for step in steps_in(self.plan.entries):
            if step.kind != "conv":
                continue
            given = step.parameters and not step.words[0]
            shapes = step.words[3] if step.parameters else step.words[1]
            rank = shapes[0] - 2
            first, last = 3 + 2 * rank, 3 + 2 * rank + sum(shapes)
            for place in range(rank):
                before, after = (self.vector(step, at + place) for at in (first + 2, last - rank))
                if given:
                    kernel, *options = (self.vector(step, at + place) for at in (3, last, last + rank, last + 2 * rank))
                    self.lengths.convolved(before, after, kernel, *options)
                else:
                    self.lengths.formula(before)
                    self.lengths.formula(after)
            for at in (first + 2, last - rank) if self.with_grids else ():
                self.grid([self.vector(step, at + place) for place in range(rank)], self.vector(step, first))

    def derivable(self, axes: list[tuple[Vector, ...]]) -> bool:
        """Whether the formulas of axes are those that a convolution derives."""
        return all(axis in self.lengths.derived for axis in axes)

    def grid(self, axes: list[Vector], items: Vector) -> None:
        """Remember the axes that the rows of one item have; one that is as long as an input needs no remembering."""
        if items == self.names.batch and (len(axes) > 1 or axes[0] not in self.fitter.symbols.values()):
            wanted = {label: self.text(size, "axes") for label, size in zip(AXES[len(axes)], axes, strict=True)}
            self.grids.setdefault(self.times(*axes), (("axes", (items,), tuple(axes)), wanted))

    def heads(self) -> None:
        """Find the sizes of heads next: a quotient gets a letter of its own, so that widths are multiples of it."""
        for step in steps_in(self.plan.entries):
            if step.kind != "matmul":
                continue
            for place in (2, 3):
                vector = self.vector(step, place)
                found = self.fitter.formula(vector)
                if found is None or self.measured(vector) or not any(power < 0 for one, _ in found.terms for _, power in one):
                    continue
                letter = fresh("d", {*self.names.sizes, *self.names.lengths, *self.fitter.derived})
                self.fitter.derived[letter] = found.text
                self.fitter.known[vector] = Formula(((((letter, 1),), Fraction(1)),))
                self.fitter.quotients = {letter: vector, **{n: v for n, v in self.fitter.quotients.items() if v != vector}}

    def entries(self, entries: Sequence[Any], scope: Scope, later: Sequence[Ref]) -> None:
        """Entries one after another; ``later`` is what is read after them."""
        readers = readers_of(entries, later)
        pairs = pairs_in(entries, readers) if self.with_attention else {}
        experts = experts_in(entries, readers, self.plan.parameters) if self.with_attention else {}
        held = {number: pair.mix.id for pair in pairs.values() for number in (pair.scores.id, *pair.joins)}
        held |= {step.id: one.join.id for one in experts.values() for step in (one.first, one.second)}
        waiting: dict[int, list[Step]] = {}
        for place, entry in enumerate(entries):
            if isinstance(entry, Loop):
                self.loop(entry, scope, [*refs_of(entries[place + 1 :]), *later])
            elif isinstance(entry, Branch):
                self.branch(entry, scope, [*refs_of(entries[place + 1 :]), *later])
            elif entry.id in held:
                waiting.setdefault(held[entry.id], []).append(entry)
            elif entry.id in experts and self.write_experts(experts[entry.id], readers, scope):
                continue
            elif entry.id not in pairs or not self.write_attention(pairs[entry.id], scope):
                for step in (*waiting.get(entry.id, ()), entry):
                    self.write(step, scope)

    def loop(self, loop: Loop, scope: Scope, later: Sequence[Ref]) -> None:
        """A loop: what it carries has one name before, in, and after it."""
        inside = refs_of(loop.body)
        finals: dict[int, tuple[Val, Val]] = {}
        shapes = self.final_shapes(loop)
        for init, last in loop.carried:
            wanted = shapes[last]
            value = self.read(init, scope)
            if value is None:
                value = self.source(init, list(wanted[0]), scope)
            again = Ref(init.kind, init.id, init.name) in [*later, *inside] or [one for one, _ in loop.carried].count(init) > 1
            if value.once and not self.rows(self.times(*wanted[0]))[1]:
                rows = self.rows(self.times(*wanted[0][:-1]))[0]
                value = self.fitted(value, rows, wanted[0][-1], scope, False)
            elif again or init.kind != "step" or value.once:
                value = self.copy(value, scope)
            if value.tag != self.tag(value.rows, False) and not value.once:
                value = self.plain(value, scope)
            self.carried[last] = value
            finals[last] = (value, value)
        count = self.text(self.family.numbers(loop, lambda one: one.count), f"items of {loop.prefix}")
        start = self.text(self.family.numbers(loop, lambda one: one.start), f"first of {loop.prefix}")
        body = Scope(scope.prefix if loop.shared else f"{loop.prefix}.{loop.start}", parent=scope)
        index = "ijk"[min(2, depth_of(scope))]
        body.index, body.loop = index, loop
        body.count = count
        if loop.others:
            lists = (loop.prefix, *loop.others)
            body.indexed = {f"{one}.{loop.start}": f"{self.path(one, scope)}.{{{index}}}" for one in lists}
            body.prefix = scope.prefix
        after = [Ref("step", last) for last in finals]
        self.entries(loop.body, body, after)
        for last, (value, _) in finals.items():
            made = self.values[last]
            if made.rows != value.rows or made.width != value.width or made.once != value.once:
                made = self.fitted(made, value.rows, value.width, body, value.once)
            if made.tag != value.tag and not value.once:
                made = self.plain(made, body)
            body.entries.append(("_", {"op": "add", "from": made.name, "to": value.name}))
            self.values[last] = value
        self.left(loop, body, later, scope)
        fields: dict[str, Any] = {"repeat": count}
        if start != "0":
            fields["start"] = start
        if loop.shared:
            fields["shared"] = "true"
        if loop.others or any(isinstance(entry, Branch) for entry in loop.body):
            fields["index"] = index
        fields["graph"] = body.entries
        scope.entries.append(("_" if loop.shared or loop.others else self.path(loop.prefix, scope), fields))

    def left(self, loop: Loop, body: Scope, later: Sequence[Ref], scope: Scope) -> None:
        """What the last item made and somebody reads after the loop, without its being carried."""
        carried = {last for _, last in loop.carried}
        made = values_in(loop.body) - carried
        for ref in dict.fromkeys(later):
            if ref.kind == "step" and ref.id in made and ref.id in self.values:
                value = self.values[ref.id]
                name = self.name(value.name)
                stream = self.whole(value.rows) if value.once else self.stream(value.rows)
                scope.entries.append(
                    ("_", {"op": "zeros", "stream": stream, "width": self.text(value.width, name), "to": name})
                )
                body.entries.append(("_", {"op": "add", "from": value.name, "to": name}))
                self.values[ref.id] = Val(name, value.rows, value.width, value.once, self.tag(value.rows, value.once))

    def copy(self, value: Val, scope: Scope) -> Val:
        """The same value under a name of its own; one that is there once per batch for every item."""
        name = self.name(value.name)
        scope.entries.append(("_", {"op": "add", "from": value.name, "to": name}))
        return Val(name, value.rows, value.width, value.once, value.tag)

    def plain(self, value: Val, scope: Scope) -> Val:
        """A value whose rows are written as one length."""
        name = self.name(value.name)
        fields = {"op": "view", "from": value.name, "as": "select", "stream": self.stream(value.rows), "to": name}
        scope.entries.append(("_", fields))
        return Val(name, value.rows, value.width, value.once, self.tag(value.rows, value.once))

    def final_shapes(self, loop: Loop) -> dict[int, Any]:
        """The shapes of what a loop hands on."""
        found: dict[int, Any] = {}
        wanted = {last for _, last in loop.carried}
        chosen = {choice.id: choice for entry in loop.body if isinstance(entry, Branch) for choice in entry.choices}
        origins: dict[int, int] = {}
        for number in wanted:
            origin = number
            while origin in chosen:
                origin = next(ref.id for ref in chosen[origin].sources if ref.kind == "step")
            origins[number] = origin
        for step in steps_in(loop.body):
            for number in [number for number, origin in origins.items() if origin == step.id]:
                ranks = next((word for word in reversed(step.words) if isinstance(word, tuple)), (0,))
                rank = ranks[-1]
                end = len(step.numbers) if step.kind != "conv" else len(step.numbers) - 4 * step.words[1] - 1
                found[number] = ([self.vector(step, end - rank + place) for place in range(rank)],)
        return found

    def unread(self, scope: Scope) -> None:
        """Parameters that the run never read."""
        read = set(names_read(self.plan.entries))
        for name in self.plan.parameters:
            if name not in read:
                self.parameter(name, scope)


def depth_of(scope: Scope) -> int:
    """How many scopes are around one."""
    return 0 if scope.parent is None else 1 + depth_of(scope.parent)
