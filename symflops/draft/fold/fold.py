"""Folds items of module lists into loops: equal bodies, one after another, with the values that one hands to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symflops.draft.fold.branches import merged
from symflops.draft.fold.matching import beside, compare, handing, initials, items_of, lists_in
from symflops.draft.trace.steps import Branch, Loop, Plan, Ref, Step


def folded(plan: Plan) -> Plan:
    """A plan with its module lists folded."""
    folder = Folder(plan.outputs, plan.entries)
    entries = folder.fold(list(plan.entries), "")
    outputs = tuple(folder.alias(ref) for ref in plan.outputs)
    return pruned(replace(plan, entries=tuple(entries), outputs=outputs))


def pruned(plan: Plan) -> Plan:
    """A plan without joins that nobody reads."""
    read: set[int] = set()

    def look(entries: Sequence[Any]) -> None:
        for entry in entries:
            if isinstance(entry, Loop):
                read.update(init.id for init, _ in entry.carried)
                read.update(last for _, last in entry.carried)
                look(entry.body)
            elif isinstance(entry, Branch):
                read.update(ref.id for choice in entry.choices for ref in choice.sources)
                for case in entry.cases:
                    look(case)
            else:
                read.update(ref.id for ref in entry.operands)

    def kept(entries: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            replace(entry, body=kept(entry.body))
            if isinstance(entry, Loop)
            else replace(entry, cases=tuple(map(kept, entry.cases)))
            if isinstance(entry, Branch)
            else entry
            for entry in entries
            if not isinstance(entry, Step) or entry.kind != "join" or entry.id in read
        )

    while True:
        read = {ref.id for ref in plan.outputs}
        look(plan.entries)
        entries = kept(plan.entries)
        if entries == plan.entries:
            return plan
        plan = replace(plan, entries=entries)


class Folder:
    """Folds a list of steps, outermost lists first."""

    def __init__(self, outputs: Sequence[Ref], steps: Sequence[Step]) -> None:
        self.outputs = outputs
        self.aliases: dict[int, int] = {}
        self.readers: dict[int, list[int]] = {}
        for step in steps:
            for ref in step.operands:
                if ref.kind == "step":
                    self.readers.setdefault(ref.id, []).append(step.id)
        self.free = 1 << 40

    def alias(self, ref: Ref) -> Ref:
        """A reference to a step of the last item of a loop, as one to that of its body."""
        while ref.kind in ("step", "carried") and ref.id in self.aliases:
            ref = replace(ref, id=self.aliases[ref.id])
        return ref

    def fold(self, steps: list[Step], inside: str) -> list[Any]:
        """Steps with the lists below ``inside`` folded."""
        found: list[Any] = []
        place = 0
        while place < len(steps):
            prefix, items = self.next_list(steps, place, inside)
            first = items[0][1] if prefix else len(steps)
            turns = self.turns(steps, place, first)
            if turns is not None:
                found += steps[place : turns[0]]
                place = turns[0] + turns[1] * turns[2]
                found += self.again(steps, *turns, inside)
                continue
            found += steps[place:first]
            if not prefix:
                break
            place = items[-1][2]
            found += self.runs(steps, prefix, items)
        return [self.renamed(entry) for entry in found]

    def turns(self, steps: list[Step], place: int, end: int) -> tuple[int, int, int] | None:
        """The same modules that run again at once: the first step, the steps of one turn, the turns."""
        seen: dict[Any, int] = {}
        for position in range(place, min(end, len(steps))):
            step = steps[position]
            if not step.parameters:
                continue
            key = (step.path, step.parameters, step.kind)
            first = seen.get(key)
            seen[key] = position
            if first is None:
                continue
            length = position - first
            turns = 1
            modes: list[Any] = []
            while True:
                a, b = (steps[first + (turns + more) * length :][:length] for more in (-1, 0))
                found = compare(a, b, "", "") if len(b) == length else None
                if found is None or (modes and found != modes):
                    break
                modes = found
                turns += 1
            if turns > 1 and initials(steps[first : first + length], modes) is not None:
                return first, length, turns
        return None

    def again(self, steps: list[Step], first: int, length: int, count: int, inside: str) -> Iterator[Any]:
        """A loop over turns of the same modules; the turns themselves where somebody else reads what one of them made."""
        items = [(turn, first + turn * length, first + (turn + 1) * length) for turn in range(count)]
        bodies = [steps[start:end] for _, start, end in items]
        number, carried, modes = self.run(bodies, 0, "", items, self.read_later(steps, items))
        if number < count:
            for body in bodies:
                yield from body
            return
        links = tuple((self.alias(init), last) for init, last in carried)
        yield Loop(inside, 0, count, tuple(handing(bodies[0], modes)), links, shared=True)
        for a, b in zip(bodies[0], bodies[-1], strict=True):
            if a.id != b.id:
                self.aliases[b.id] = a.id

    def renamed(self, entry: Any) -> Any:
        """An entry that reads what a loop left under the names of its body."""
        if isinstance(entry, Loop):
            carried = tuple((self.alias(init), last) for init, last in entry.carried)
            return replace(entry, body=tuple(self.renamed(one) for one in entry.body), carried=carried)
        if isinstance(entry, Branch):
            cases = tuple(tuple(self.renamed(one) for one in case) for case in entry.cases)
            choices = tuple(replace(one, sources=tuple(map(self.alias, one.sources))) for one in entry.choices)
            return replace(entry, cases=cases, choices=choices)
        return replace(entry, operands=tuple(self.alias(ref) for ref in entry.operands))

    def next_list(self, steps: list[Step], place: int, inside: str) -> tuple[str, list[tuple[int, int, int]]]:
        """The first module list from here on that has several items in a row: its path, and (index, first, end) of each."""
        tried: set[str] = set()
        for position in range(place, len(steps)):
            for prefix in lists_in(steps[position], inside):
                if prefix in tried:
                    continue
                tried.add(prefix)
                items = items_of(steps, position, prefix)
                if len(items) > 1:
                    return prefix, items
        return "", []

    def runs(self, steps: list[Step], prefix: str, items: list[tuple[int, int, int]]) -> Iterator[Any]:
        """Loops for the runs of equal items, steps for the others."""
        bodies = [steps[first:end] for _, first, end in items]
        outside = self.read_later(steps, items)
        place = 0
        while place < len(bodies):
            found = self.several(steps, bodies[place:], prefix, items[place:])
            if found is not None:
                yield found
                return
            count, carried, modes = self.run(bodies, place, prefix, items, outside)
            if count < 2:
                yield from self.fold(bodies[place], f"{prefix}.{items[place][0]}")
                place += 1
                continue
            first, last = bodies[place], bodies[place + count - 1]
            body = self.fold(handing(first, modes), f"{prefix}.{items[place][0]}")
            links = tuple((self.alias(init), self.alias(Ref("step", number)).id) for init, number in carried)
            at, bt = (f"{prefix}.{items[place + more][0]}" for more in (0, 1))
            others = beside(first, bodies[place + 1], at, bt)
            yield Loop(prefix, items[place][0], count, tuple(body), links, others)
            for a, b in zip(first, last, strict=True):
                if a.id != b.id:
                    self.aliases[b.id] = a.id
            place += count

    def several(
        self, steps: list[Step], bodies: list[list[Step]], prefix: str, items: list[tuple[int, int, int]]
    ) -> Loop | None:
        """One loop over items of several kinds."""
        indices = [item[0] for item in items]
        found = merged(bodies, prefix, indices, self.read_later(steps, items), self.free)
        if found is None:
            return None
        self.free = found.free
        for made, new in found.renamed.items():
            self.readers[new] = [found.renamed.get(reader, reader) for reader in self.readers.get(made, [])]
        body: list[Any] = []
        for part in parts(found.body):
            if isinstance(part[0], Branch):
                (branch,) = part
                cases = zip(branch.cases, branch.items, strict=True)
                folded_cases = tuple(tuple(self.fold(list(case), f"{prefix}.{item}")) for case, item in cases)
                body.append(replace(branch, cases=folded_cases))
            else:
                body += self.fold(part, f"{prefix}.{indices[0]}")
        self.aliases.update(found.aliases)
        links = tuple((self.alias(init), self.alias(Ref("step", last)).id) for init, last in found.carried)
        return Loop(prefix, indices[0], len(items), tuple(self.renamed(one) for one in body), links, found.others)

    def read_later(self, steps: list[Step], items: list[tuple[int, int, int]]) -> dict[int, set[int]]:
        """For each step of an item the items in which it is read; -1 for anywhere else."""
        owner = {step.id: number for number, (_, first, end) in enumerate(items) for step in steps[first:end]}
        found = {made: {owner.get(reader, -1) for reader in self.readers[made]} for made in owner if made in self.readers}
        for ref in self.outputs:
            if ref.kind == "step" and ref.id in owner:
                found.setdefault(ref.id, set()).add(-1)
        return found

    def run(
        self,
        bodies: list[list[Step]],
        place: int,
        prefix: str,
        items: list[tuple[int, int, int]],
        outside: Mapping[int, set[int]],
    ) -> tuple[int, list[tuple[Ref, int]], list[Any]]:
        """How many items from here on are equal, what is carried from one to the next, and where that is read."""
        modes: list[Any] = []
        carried: dict[int, Ref] = {}
        count = 1
        while place + count < len(bodies):
            a, b = bodies[place + count - 1], bodies[place + count]
            at, bt = (f"{prefix}.{items[place + count + more][0]}" if prefix else "" for more in (-1, 0))
            found = compare(a, b, at, bt)
            if found is None or (modes and found != modes):
                break
            if not modes:
                initial = initials(a, found)
                if initial is None:
                    break
                carried = initial
                modes = found
            # what an item made is read by the next one only
            position = place + count - 1
            if any(not outside.get(step.id, set()) <= {position, position + 1} for step in a):
                break
            count += 1
        if count > 1:
            first = bodies[place]
            return count, [(ref, first[number].id) for number, ref in carried.items()], modes
        return 1, [], []


def parts(body: Sequence[Any]) -> list[list[Any]]:
    """A body as steps in a row, and single branches."""
    found: list[list[Any]] = []
    for entry in body:
        if found and isinstance(entry, Step) and isinstance(found[-1][-1], Step):
            found[-1].append(entry)
        else:
            found.append([entry])
    return found
