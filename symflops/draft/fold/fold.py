"""Folds consecutive module-list items with equal bodies into loops with loop-carried values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from symflops.draft.fold.branches import merged
from symflops.draft.fold.matching import Item, next_list, parallel_lists, repeated_modules, run_of, with_carried
from symflops.draft.trace.steps import Branch, Loop, Plan, Ref, Step, parameters_of, readers_of, refs_of, walk

FIRST_NEW = 1 << 40  # ids from here on are in no tape


def with_folded_lists(plan: Plan) -> Plan:
    """Plan with its module lists folded into loops."""
    folder = Folder(plan.outputs, plan.entries)
    entries = folder.fold(list(plan.entries), "")
    return pruned(replace(plan, entries=tuple(entries), outputs=tuple(map(folder.alias, plan.outputs))))


def pruned(plan: Plan) -> Plan:
    """Plan without the joins whose values nothing reads."""
    while True:
        read = {ref.id for ref in (*plan.outputs, *refs_of(plan.entries))}
        read |= {last for _, one in walk(plan.entries) if isinstance(one, Loop) for _, last in one.carried}
        entries = without_joins(plan.entries, read)
        if entries == plan.entries:
            return plan
        plan = replace(plan, entries=entries)


def without_joins(entries: Sequence[Any], read: set[int]) -> tuple[Any, ...]:
    """Entries without the joins whose ids are not in ``read``, also within loops and branches."""
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, Loop):
            found.append(replace(entry, body=without_joins(entry.body, read)))
        elif isinstance(entry, Branch):
            found.append(replace(entry, cases=tuple(without_joins(case, read) for case in entry.cases)))
        elif entry.kind != "join" or entry.id in read:
            found.append(entry)
    return tuple(found)


class Folder:
    """Folds the module lists of a plan into loops, outermost lists first.

    Attributes:
        outputs: References to the values that the module returns.
        aliases: Id of a step of a folded item -> id of the step of the loop's body that replaces it.
        readers: Id of a value -> ids of the steps that read it; -1 stands for loops and branches.
        free: The next unused id.
        users: Parameter -> ids of the steps that read it.
    """

    def __init__(self, outputs: Sequence[Ref], steps: Sequence[Step]) -> None:
        self.outputs = outputs
        self.aliases: dict[int, int] = {}
        self.readers = readers_of(steps, ())
        self.free = FIRST_NEW
        self.users: dict[str, set[int]] = {}
        for step in steps:
            for name in parameters_of(step):
                self.users.setdefault(name, set()).add(step.id)

    def alias(self, ref: Ref) -> Ref:
        """``ref``, or if it refers to a folded item, the reference to the same step of the loop's body."""
        while ref.kind in ("step", "carried") and ref.id in self.aliases:
            ref = replace(ref, id=self.aliases[ref.id])
        return ref

    def links(self, carried: Sequence[tuple[Ref, int]]) -> tuple[tuple[Ref, int], ...]:
        """Loop-carried values, with references to folded items replaced by references to loop bodies.

        Each is a pair: the initial value, and the id of the step that computes the value for the next item.
        """
        return tuple((self.alias(init), self.alias(Ref("step", last)).id) for init, last in carried)

    def add_aliases(self, first: Sequence[Step], last: Sequence[Step]) -> None:
        """Add pairs to ``aliases``: id of a step of a loop's last item -> id of the same step of the first.

        ``first`` and ``last`` are the steps of these items. The first item becomes the loop's body.
        """
        self.aliases |= {b.id: a.id for a, b in zip(first, last, strict=True) if a.id != b.id}

    def fold(self, steps: list[Step], inside: str) -> list[Any]:
        """``steps`` in order as steps and loops: the module lists below the path ``inside`` are folded into loops."""
        found: list[Any] = []
        place = 0
        while place < len(steps):
            prefix, items = next_list(steps, place, inside)
            first = items[0].first if prefix else len(steps)
            repeated = repeated_modules(steps, place, first)
            if repeated is not None:
                found += steps[place : repeated[0].first]
                place = repeated[-1].end
                found += self.shared_loop(steps, repeated, inside)
                continue
            found += steps[place:first]
            if not prefix:
                break
            place = items[-1].end
            found += self.runs(steps, prefix, items)
        return [self.renamed(entry) for entry in found]

    def shared_loop(self, steps: list[Step], turns: Sequence[Item], inside: str) -> Iterator[Any]:
        """Fold repeated runs of the same modules (``turns``) into a loop with shared parameters.

        If a value that is not loop-carried is read outside of the loop, the runs stay unrolled.
        """
        bodies = [steps[turn.first : turn.end] for turn in turns]
        run = run_of(bodies, [""] * len(turns), 0, self.read_later(steps, turns))
        if run.count < len(turns):
            for body in bodies:
                yield from body
            return
        links = tuple((self.alias(init), last) for init, last in run.carried)
        yield Loop(inside, 0, run.count, tuple(with_carried(bodies[0], run.modes)), links, shared=True)
        self.add_aliases(bodies[0], bodies[-1])

    def renamed(self, entry: Any) -> Any:
        """Step, loop or branch with references to folded items replaced by references to loop bodies."""
        if isinstance(entry, Loop):
            carried = tuple((self.alias(init), last) for init, last in entry.carried)
            return replace(entry, body=tuple(map(self.renamed, entry.body)), carried=carried)
        if isinstance(entry, Branch):
            cases = tuple(tuple(self.renamed(one) for one in case) for case in entry.cases)
            choices = tuple(replace(one, sources=tuple(map(self.alias, one.sources))) for one in entry.choices)
            return replace(entry, cases=cases, choices=choices)
        return replace(entry, operands=tuple(self.alias(ref) for ref in entry.operands))

    def runs(self, steps: list[Step], prefix: str, items: list[Item]) -> Iterator[Any]:
        """Fold the items of the module list at path ``prefix``; yields loops, and steps of unfolded items.

        If ``items`` are of a few kinds, they become one loop with branches. Otherwise each run of consecutive equal items
        becomes a loop.
        """
        bodies = [steps[item.first : item.end] for item in items]
        names = [f"{prefix}.{item.index}" for item in items]
        outside = self.read_later(steps, items)
        place, lent = 0, self.sharing_parameters(bodies)
        while place < len(bodies):
            end = next((number for number in lent if number > place), len(bodies))
            found = self.merged_loop(steps, bodies[place:], prefix, items[place:]) if not lent else None
            if found is not None:
                yield found
                return
            run = run_of(bodies[:end], names[:end], place, outside)
            if run.count < 2 or place in lent:
                yield from self.fold(bodies[place], names[place])
            else:
                body = self.fold(with_carried(bodies[place], run.modes), names[place])
                others = parallel_lists(bodies[place], bodies[place + 1], names[place])
                yield Loop(prefix, items[place].index, run.count, tuple(body), self.links(run.carried), others)
                self.add_aliases(bodies[place], bodies[place + run.count - 1])
            place += 1 if place in lent else run.count

    def sharing_parameters(self, bodies: Sequence[list[Step]]) -> list[int]:
        """Positions in ``bodies`` of the items whose parameters other steps read, too: these are not folded."""
        found = []
        for number, body in enumerate(bodies):
            own = {step.id for step in body}
            if any(not self.users.get(name, own) <= own for step in body for name in parameters_of(step)):
                found.append(number)
        return found

    def merged_loop(self, steps: list[Step], bodies: list[list[Step]], prefix: str, items: list[Item]) -> Loop | None:
        """Loop over items of several kinds, with branches where they differ; None if they cannot be merged."""
        indices = [item.index for item in items]
        found = merged(bodies, prefix, indices, self.read_later(steps, items), self.free)
        if found is None:
            return None
        self.free = found.free
        for made, new in found.renamed.items():
            self.readers[new] = [found.renamed.get(reader, reader) for reader in self.readers.get(made, [])]
        body: list[Any] = []
        for first, *rest in parts(found.body):
            if isinstance(first, Branch):
                cases = zip(first.cases, first.items, strict=True)
                folded_cases = tuple(tuple(self.fold(list(case), f"{prefix}.{item}")) for case, item in cases)
                body.append(replace(first, cases=folded_cases))
            else:
                body += self.fold([first, *rest], f"{prefix}.{indices[0]}")
        self.aliases.update(found.aliases)
        return Loop(prefix, indices[0], len(items), tuple(map(self.renamed, body)), self.links(found.carried), found.others)

    def read_later(self, steps: list[Step], items: Sequence[Item]) -> Mapping[int, set[int]]:
        """Id of a step of ``items`` -> the items that read its value; -1 stands for other steps and outputs."""
        owner = {step.id: number for number, item in enumerate(items) for step in steps[item.first : item.end]}
        found = {made: {owner.get(reader, -1) for reader in self.readers[made]} for made in owner if made in self.readers}
        for ref in self.outputs:
            if ref.kind == "step" and ref.id in owner:
                found.setdefault(ref.id, set()).add(-1)
        return found


def parts(body: Sequence[Any]) -> list[list[Any]]:
    """Parts of a loop body: lists of consecutive steps, and lists of a single branch."""
    return [list(part) for _, part in groupby(body, lambda entry: None if isinstance(entry, Step) else id(entry))]
