"""Writes the whole graph: entries in order, loops with what they carry, parameters that nobody reads, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symflops.draft.operators import Operators
from symflops.draft.steps import Loop, Ref, Step
from symflops.draft.writer import Scope, Val


class Grapher(Operators):
    """Writes a plan from its first entry to its last."""

    def graph(self) -> tuple[list[Any], list[str]]:
        """The entries, and the names of the outputs."""
        scope = Scope("")
        self.axes()
        self.entries(self.plan.entries, scope, [*self.plan.outputs])
        outputs = []
        for ref in self.plan.outputs:
            value = self.read(ref, scope)
            if value is not None:
                outputs.append(value.name)
        self.unread(scope)
        return scope.entries, outputs

    def axes(self) -> None:
        """Find the axes of convolutions first: other lengths are made of them."""
        for step in steps_in(self.plan.entries):
            if step.kind == "conv" and step.parameters:
                rank = step.words[1]
                last = len(step.numbers) - 4 * rank - 1
                for place in range(rank):
                    self.fitter.formula(self.vector(step, 3 + 2 * rank + 2 + place))
                    self.fitter.formula(self.vector(step, last - rank + place))

    def entries(self, entries: Sequence[Any], scope: Scope, later: Sequence[Ref]) -> None:
        """Entries one after another; ``later`` is what is read after them."""
        for place, entry in enumerate(entries):
            if isinstance(entry, Loop):
                self.loop(entry, scope, [*refs_of(entries[place + 1 :]), *later])
            else:
                self.write(entry, scope)

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
            if again or init.kind != "step" or value.once:
                value = self.copy(value, scope)
            self.carried[last] = value
            finals[last] = (value, value)
        count = self.text(self.family.numbers(loop, lambda one: one.count), f"items of {loop.prefix}")
        start = self.text(self.family.numbers(loop, lambda one: one.start), f"first of {loop.prefix}")
        body = Scope(f"{loop.prefix}.{loop.start}", parent=scope)
        after = [Ref("step", last) for last in finals]
        self.entries(loop.body, body, after)
        for last, (value, _) in finals.items():
            made = self.values[last]
            if made.rows != value.rows or made.width != value.width:
                made = self.fitted(made, value.rows, value.width, body, value.once)
            body.entries.append(("_", {"op": "add", "from": made.name, "to": value.name}))
            self.values[last] = value
        self.left(loop, body, later, scope)
        fields: dict[str, Any] = {"repeat": count}
        if start != "0":
            fields["start"] = start
        fields["graph"] = body.entries
        scope.entries.append((self.path(loop.prefix, scope), fields))

    def left(self, loop: Loop, body: Scope, later: Sequence[Ref], scope: Scope) -> None:
        """What the last item made and somebody reads after the loop, without its being carried."""
        carried = {last for _, last in loop.carried}
        made = {step.id for step in steps_in(loop.body)} - carried
        for ref in dict.fromkeys(later):
            if ref.kind == "step" and ref.id in made and ref.id in self.values:
                value = self.values[ref.id]
                name = self.name(value.name)
                stream = "once" if value.once else self.stream(value.rows)
                scope.entries.append(("_", {"op": "zeros", "stream": stream, "width": self.text(value.width, name), "to": name}))
                body.entries.append(("_", {"op": "add", "from": value.name, "to": name}))
                self.values[ref.id] = Val(name, value.rows, value.width, value.once, self.tag(value.rows, value.once))

    def copy(self, value: Val, scope: Scope) -> Val:
        """The same value under a name of its own; one that is there once per batch for every item."""
        name = self.name(value.name)
        scope.entries.append(("_", {"op": "add", "from": value.name, "to": name}))
        return Val(name, value.rows, value.width, value.once, value.tag)

    def final_shapes(self, loop: Loop) -> dict[int, Any]:
        """The shapes of what a loop hands on."""
        found: dict[int, Any] = {}
        wanted = {last for _, last in loop.carried}
        for step in steps_in(loop.body):
            if step.id in wanted:
                ranks = next((word for word in reversed(step.words) if isinstance(word, tuple)), (0,))
                rank = ranks[-1]
                end = len(step.numbers) if step.kind != "conv" else len(step.numbers) - 4 * step.words[1] - 1
                found[step.id] = ([self.vector(step, end - rank + place) for place in range(rank)],)
        return found

    def unread(self, scope: Scope) -> None:
        """Parameters that the run never read."""
        read = set()
        for _, step in self.read_steps(self.plan.entries, ""):
            read.update(step)
        for name in self.plan.parameters:
            if name not in read:
                self.parameter(name, scope)

    def read_steps(self, entries: Sequence[Any], rename: str) -> Any:
        """The names of the parameters that steps read, of every item of a loop."""
        for entry in entries:
            if isinstance(entry, Loop):
                inner = [name for _, names in self.read_steps(entry.body, rename) for name in names]
                first = f"{entry.prefix}.{entry.start}."
                every = []
                for name in inner:
                    if name.startswith(first):
                        every += [f"{entry.prefix}.{entry.start + item}.{name[len(first) :]}" for item in range(entry.count)]
                    else:
                        every.append(name)
                yield entry, every
            else:
                names = [*entry.parameters, *(ref.name for ref in entry.operands if ref.kind == "parameter")]
                yield entry, names


def refs_of(entries: Sequence[Any]) -> list[Ref]:
    """Everything that entries read."""
    found: list[Ref] = []
    for entry in entries:
        if isinstance(entry, Loop):
            found += [init for init, _ in entry.carried]
            found += refs_of(entry.body)
        else:
            found += entry.operands
    return found


def steps_in(entries: Sequence[Any]) -> list[Step]:
    """All steps of entries, those in loops too."""
    found: list[Step] = []
    for entry in entries:
        found += steps_in(entry.body) if isinstance(entry, Loop) else [entry]
    return found
