"""Merges module-list items of several kinds into one loop body, with branches where the kinds differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.draft.fold.layout import Layout, Place, layout_of
from symflops.draft.trace.steps import CONSTANT, Branch, Choice, Ref, Step


@dataclass(frozen=True, slots=True)
class Merged:
    """One loop body for all items of a module list.

    Attributes:
        body: The steps and branches.
        carried: The loop-carried values: initial value, and id of the body's step that computes the next value.
        aliases: Id of a step of the last item -> id of the value of the body that replaces it after the loop.
        others: Paths of further module lists, whose modules with the same index run in the body.
        renamed: Former id -> new id, for the other steps of the body that got a new one.
        free: The next unused id.
    """

    body: list[Any]
    carried: list[tuple[Ref, int]]
    aliases: dict[int, int]
    others: tuple[str, ...]
    renamed: dict[int, int]
    free: int


@dataclass
class Carried:
    """A loop-carried value.

    Attributes:
        steps: Item -> id of the step that computes the value for the next item.
        readers: Where the value is read: the place of the step in the body, and the position of the operand.
        init: What the first item reads.
        value: The id of the step or choice in the body that computes the value.
    """

    steps: dict[int, int]
    readers: set[tuple[Place, int]]
    init: Ref = CONSTANT
    value: int = -1


def merged(
    bodies: Sequence[list[Step]], prefix: str, indices: Sequence[int], outside: Mapping[int, set[int]], first: int
) -> Merged | None:
    """Merge the items of a module list into one loop body.

    Args:
        bodies: The steps of each item.
        prefix: The path of the list.
        indices: The index of each item.
        outside: Id of a step -> the items that read its value; -1 stands for other readers.
        first: The first unused id.

    Returns:
        The body; None if the items have equal steps, or too many kinds of them, or do not each read the item before.
    """
    layout = layout_of(bodies, prefix, indices, first)
    return None if layout is None else Merger(layout, outside, layout.free).merged()


@dataclass
class Merger:
    """Merges the items of a layout into one loop body, and finds what each step of the body reads.

    Attributes:
        layout: The columns of the body: runs of steps that are common to all items, or have alternatives (cases).
        outside: Id of a step -> the items that read its value; -1 stands for other readers.
        free: The next unused id.
        choices: For each column with cases, the values that are read after it: value in each case -> id of the choice.
    """

    layout: Layout
    outside: Mapping[int, set[int]]
    free: int
    choices: dict[int, dict[tuple[Ref, ...], int]] = field(default_factory=lambda: defaultdict(dict))

    def merged(self) -> Merged | None:
        """Loop body that all items of the layout share; None if their operands do not allow it."""
        layout = self.layout
        bodies = enumerate(self.layout.bodies[:-1])  # whose values the item itself and the next one may read
        near = all(self.outside.get(step.id, set()) <= {item, item + 1} for item, steps in bodies for step in steps)
        variables = self.carried() if near else None
        if variables is None:
            return None
        for variable in variables:
            found = self.resolved({item: layout.place[step] for item, step in variable.steps.items()})
            if found is None or found.kind != "step":
                return None
            variable.value = found.id
        body, aliases, others = self.body(variables), self.aliases(), layout.other_lists()
        if body is None or aliases is None or others is None:
            return None
        renamed = {step.id: layout.model[where] for where, step in layout.origin.items() if step.id != layout.model[where]}
        return Merged(body, [(one.init, one.value) for one in variables], aliases, others, renamed, self.free)

    def reads(self) -> dict[tuple[Place, int], dict[int, int]] | None:
        """Reads of an item's values by the next item; None if an item reads one that is further back.

        Returns:
            (Place of the reading step, position of the operand) -> item -> id of its step that the next item reads.
        """
        found: dict[tuple[Place, int], dict[int, int]] = {}
        for item, steps in enumerate(self.layout.bodies[1:], start=1):
            for step in steps:
                for position, ref in enumerate(step.operands):
                    owner = self.layout.owner.get(ref.id, item) if ref.kind == "step" else item
                    if owner == item - 1:
                        found.setdefault((self.layout.place[step.id], position), {})[owner] = ref.id
                    elif owner != item:
                        return None
        return found

    def carried(self) -> list[Carried] | None:
        """Values that each item computes and the next reads; None if there are none, or an item lacks one."""
        found: list[Carried] = []
        for reader, made in sorted((self.reads() or {}).items(), key=lambda one: -len(one[1])):
            known = next((variable for variable in found if made.items() <= variable.steps.items()), None)
            if known is not None:
                known.readers.add(reader)
            elif len(made) == len(self.layout.bodies) - 1:
                found.append(Carried(made, {reader}))
            else:
                return None
        for variable in found:
            firsts = {
                ref
                for step in self.layout.bodies[0]
                for position, ref in enumerate(step.operands)
                if (self.layout.place[step.id], position) in variable.readers
            }
            if len(firsts) != 1:
                return None
            (variable.init,) = firsts
            if variable.init.id in self.layout.owner:
                return None
        return sorted(found, key=lambda variable: min(variable.readers)) or None

    def resolved(self, places: Mapping[int, Place | Ref]) -> Ref | None:
        """Find one reference that stands for what the operand of a step reads in each item.

        If the items read steps in different cases (alternatives) of a branch, the reference is to a choice of the branch,
        which is added to ``choices`` if it is new.

        Args:
            places: Item -> what it reads: a place in the body, or a reference to something outside.

        Returns:
            The reference; None if the items differ by more than a branch.
        """
        found = set(places.values())
        if len(found) == 1:
            one = found.pop()
            return one if isinstance(one, Ref) else Ref("step", self.layout.model[one])
        split = max((one[0] for one in found if not isinstance(one, Ref) and one[1] >= 0), default=None)
        if split is None:
            return None
        sources: list[Ref] = []
        for case in range(len(self.layout.cases[split])):
            part = {item: one for item, one in places.items() if self.layout.chosen[split][item] == case}
            source = self.resolved(part) if part else None
            if source is None or source.kind not in ("step", "carried"):
                return None
            sources.append(source)
        known = self.choices[split]
        if tuple(sources) not in known:
            known[tuple(sources)] = self.free
            self.free += 1
        return Ref("step", known[tuple(sources)])

    def operand(self, where: Place, position: int, variables: Sequence[Carried]) -> Ref | None:
        """Operand ``position`` of the body's step at ``where``; None if no reference is right for all items."""
        seen: dict[int, Place | Ref] = {}
        for item, steps in enumerate(self.layout.bodies):
            step = next((one for one in steps if self.layout.place[one.id] == where), None)
            if step is None:
                continue
            ref = step.operands[position]
            if ref.kind == "step" and self.layout.owner.get(ref.id) == item:
                seen[item] = self.layout.place[ref.id]
            elif ref.kind == "parameter":  # the key guarantees that it is the same parameter
                seen[item] = self.layout.origin[where].operands[position]
            else:
                carrier = self.carrier(ref, item, (where, position), variables)
                seen[item] = Ref("carried", carrier.value) if carrier else ref
        return self.resolved(seen)

    def carrier(self, ref: Ref, item: int, reader: tuple[Place, int], variables: Sequence[Carried]) -> Carried | None:
        """Loop-carried value that the operand ``ref`` of an item stands for; None if it stands for none.

        In the first item the operand is the initial value. ``reader`` is the place of the step that reads, and the operand's
        position.
        """
        column, case, _ = reader[0]
        alone = case >= 0 and self.layout.chosen[column].count(case) == 1
        for variable in variables:
            if item and variable.steps.get(item - 1) == ref.id and ref.kind == "step":
                return variable
            if not item and ref == variable.init and (alone or reader in variable.readers):
                return variable
        return None

    def body(self, variables: Sequence[Carried]) -> list[Any] | None:
        """Steps and branches of the body; None if no reference is right for an operand in all items."""
        wired: dict[Place, Step] = {}
        for where, step in self.layout.origin.items():
            refs = [self.operand(where, position, variables) for position in range(len(step.operands))]
            known = tuple(ref for ref in refs if ref is not None)
            if len(known) < len(refs):
                return None
            wired[where] = replace(step, id=self.layout.model[where], operands=known)
        order = sorted(wired)
        found: list[Any] = []
        for number, column in enumerate(self.layout.columns):
            if column.common:
                found += [wired[where] for where in order if where[0] == number]
                continue
            numbers = range(len(self.layout.cases[number]))
            cases = tuple(tuple(wired[where] for where in order if where[:2] == (number, case)) for case in numbers)
            items = tuple(self.layout.indices[self.layout.chosen[number].index(case)] for case in numbers)
            choices = tuple(Choice(one, sources) for sources, one in self.choices[number].items())
            found.append(Branch(cases, items, tuple(self.layout.chosen[number]), choices))
        return found

    def aliases(self) -> dict[int, int] | None:
        """Id of a step of the last item -> id of the body's value that replaces it; without those that stay the same.

        None if a value that only one case of a branch computes is read outside of the last item.
        """
        found: dict[int, int] = {}
        last = len(self.layout.bodies) - 1
        for step in self.layout.bodies[-1]:
            column, case, _ = where = self.layout.place[step.id]
            model = self.layout.model[where]
            choice = next((made for one, made in self.choices[column].items() if one[case] == Ref("step", model)), None)
            if case >= 0 and choice is None and not self.outside.get(step.id, set()) <= {last}:
                return None
            model = model if choice is None else choice
            if step.id != model:
                found[step.id] = model
        return found
