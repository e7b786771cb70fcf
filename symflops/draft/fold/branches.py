"""Folds items of a module list that are of several kinds: one body, with a branch wherever the kinds differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.draft.fold.align import Column, Key, aligned, key_of
from symflops.draft.fold.matching import beside
from symflops.draft.trace.steps import Branch, Choice, Ref, Step

MOST_KINDS = 6
MOST_CASES = 4
Place = tuple[int, int, int]  # column, case (-1 for what all items do), step


@dataclass(frozen=True, slots=True)
class Merged:
    """One body for all items: steps and branches, what is carried, and the steps of the last item as those of the body."""

    body: list[Any]
    carried: list[tuple[Ref, int]]
    aliases: dict[int, int]
    others: tuple[str, ...]
    renamed: dict[int, int]
    free: int


@dataclass
class Variable:
    """A value that an item makes and the next one reads: the step of each item, and where it is read."""

    steps: dict[int, int]
    readers: set[tuple[Place, int]]
    init: Ref | None = None
    made: int = -1


class Refused(Exception):
    """Items cannot be one body."""


def merged(
    bodies: Sequence[list[Step]], prefix: str, indices: Sequence[int], outside: Mapping[int, set[int]], first: int
) -> Merged | None:
    """One body for all items; None where they are of one kind, or too many, or hand values on in another way.

    ``outside`` are the items that read each step, -1 for anything else; new values are numbered from ``first`` on.
    """
    keys = [[key_of(step, f"{prefix}.{index}") for step in body] for body, index in zip(bodies, indices, strict=True)]
    kinds = list(dict.fromkeys(map(tuple, keys)))
    if not 1 < len(kinds) <= MOST_KINDS or len(kinds) == len(bodies):
        return None
    columns = aligned(kinds, [0] * len(kinds))
    if not any(column.common for column in columns):
        return None
    try:
        return Merger(
            bodies, prefix, indices, [kinds.index(tuple(one)) for one in keys], kinds, columns, outside, first
        ).merged()
    except Refused:
        return None


@dataclass
class Merger:
    """Items, their kinds, and the columns of the kinds."""

    bodies: Sequence[list[Step]]
    prefix: str
    indices: Sequence[int]
    kind: list[int]
    kinds: Sequence[Sequence[Key]]
    columns: list[Column]
    outside: Mapping[int, set[int]]
    free: int
    place: dict[int, Place] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)
    chosen: dict[int, list[int]] = field(default_factory=dict)
    cases: dict[int, list[tuple[Key, ...]]] = field(default_factory=dict)
    choices: dict[int, dict[tuple[Ref, ...], int]] = field(default_factory=dict)
    model: dict[Place, int] = field(default_factory=dict)
    origin: dict[Place, Step] = field(default_factory=dict)

    def merged(self) -> Merged:
        """The body.

        Raises:
            Refused: items cannot be one body.
        """
        self.sort()
        self.check()
        variables = self.variables()
        for variable in variables:
            found = self.resolved({n: self.place[step] for n, step in variable.steps.items()}, ())
            if found.kind != "step":
                raise Refused
            variable.made = found.id
        body = self.body(variables)
        carried = [(variable.init, variable.made) for variable in variables if variable.init]
        renamed = {step.id: self.model[where] for where, step in self.origin.items() if step.id != self.model[where]}
        return Merged(body, carried, self.aliases(), self.others(), renamed, self.free)

    def others(self) -> tuple[str, ...]:
        """The lists beside this one whose modules run in the body, as two items of one kind tell.

        Raises:
            Refused: an item that runs such a module is the only one of its kind.
        """
        found: dict[str, None] = {}
        for number, kind in enumerate(self.kinds):
            first, *more = [item for item, one in enumerate(self.kind) if one == number]
            if more:
                at, bt = (f"{self.prefix}.{self.indices[item]}" for item in (first, more[0]))
                found |= dict.fromkeys(beside(self.bodies[first], self.bodies[more[0]], at, bt))
            elif any("*" in name for key in kind for name in (key[0], *key[1][-1])):
                raise Refused
        return tuple(found)

    def sort(self) -> None:
        """Find the cases of each column, and the place of every step."""
        for number, column in enumerate(self.columns):
            parts = [tuple(kind[a:b]) for kind, (a, b) in zip(self.kinds, column.spans, strict=True)]
            if column.common:
                self.chosen[number] = [-1] * len(self.bodies)
            else:
                cases = sorted(set(parts), key=lambda case: repr([key[:2] for key in case]))
                plain = [[key[:2] for key in case] for case in cases]
                if len(cases) > MOST_CASES or any(plain.count(one) > 1 for one in plain):
                    raise Refused
                self.cases[number] = cases
                self.chosen[number] = [cases.index(parts[kind]) for kind in self.kind]
                self.choices[number] = {}
            for item, steps in enumerate(self.bodies):
                start, end = column.spans[self.kind[item]]
                for offset, step in enumerate(steps[start:end]):
                    where = (number, self.chosen[number][item], offset)
                    self.place[step.id] = where
                    self.owner[step.id] = item
                    if where not in self.origin:
                        # what the last item makes is known after the loop by another name than within it
                        alone = item == len(self.bodies) - 1
                        self.origin[where] = step
                        self.model[where] = self.free if alone else step.id
                        self.free += alone

    def check(self) -> None:
        """What an item makes is read by itself, by the next one, and, of the last item, by anything else."""
        for item, steps in enumerate(self.bodies[:-1]):
            if any(not self.outside.get(step.id, set()) <= {item, item + 1} for step in steps):
                raise Refused

    def variables(self) -> list[Variable]:
        """What is carried, and what it is at first."""
        read: dict[tuple[Place, int], dict[int, int]] = {}
        for item, steps in enumerate(self.bodies[1:], start=1):
            for step in steps:
                for position, ref in enumerate(step.operands):
                    if ref.kind == "step" and self.owner.get(ref.id) == item - 1:
                        read.setdefault((self.place[step.id], position), {})[item - 1] = ref.id
                    elif ref.kind == "step" and self.owner.get(ref.id, item) != item:
                        raise Refused
        found: list[Variable] = []
        for reader, made in sorted(read.items(), key=lambda one: -len(one[1])):
            for variable in found:
                if all(variable.steps.get(item) == step for item, step in made.items()):
                    variable.readers.add(reader)
                    break
            else:
                if len(made) != len(self.bodies) - 1:
                    raise Refused
                found.append(Variable(made, {reader}))
        for variable in found:
            firsts = {
                step.operands[position]
                for step in self.bodies[0]
                for position in range(len(step.operands))
                if (self.place[step.id], position) in variable.readers
            }
            if len(firsts) != 1 or (init := next(iter(firsts))).id in self.owner:
                raise Refused
            variable.init = init
        if not found:
            raise Refused
        return sorted(found, key=lambda variable: min(variable.readers))

    def resolved(self, places: Mapping[int, Any], reader: tuple[int, ...]) -> Ref:
        """One reference for what several items read, each with a place or a reference; in a ``reader`` column and case."""
        found = set(places.values())
        if len(found) == 1:
            one = next(iter(found))
            return one if isinstance(one, Ref) else Ref("step", self.model[one])
        split = max((one[0] for one in found if not isinstance(one, Ref) and one[1] >= 0), default=None)
        if split is None:
            raise Refused
        sources = []
        for case in range(len(self.cases[split])):
            part = {item: one for item, one in places.items() if self.chosen[split][item] == case}
            if not part:
                raise Refused
            sources.append(self.resolved(part, (split, case)))
        if any(source.kind not in ("step", "carried") for source in sources):
            raise Refused
        known = self.choices[split]
        if tuple(sources) not in known:
            known[tuple(sources)] = self.free
            self.free += 1
        return Ref("step", known[tuple(sources)])

    def operand(self, where: Place, position: int, variables: Sequence[Variable]) -> Ref:
        """What a step of the body reads."""
        seen: dict[int, Any] = {}
        for item, steps in enumerate(self.bodies):
            step = next((one for one in steps if self.place[one.id] == where), None)
            if step is None:
                continue
            ref = step.operands[position]
            if ref.kind == "step" and self.owner.get(ref.id) == item:
                seen[item] = self.place[ref.id]
            elif ref.kind == "parameter":  # that it is the same one is part of the key
                seen[item] = self.origin[where].operands[position]
            else:
                carrier = self.carrier(ref, item, (where, position), variables)
                seen[item] = Ref("carried", carrier.made) if carrier else ref
        return self.resolved(seen, where[:2])

    def carrier(self, ref: Ref, item: int, reader: tuple[Place, int], variables: Sequence[Variable]) -> Variable | None:
        """The carried value that an item reads."""
        for variable in variables:
            if item and variable.steps.get(item - 1) == ref.id and ref.kind == "step":
                return variable
            if not item and ref == variable.init and (reader in variable.readers or self.alone(reader[0])):
                return variable
        return None

    def alone(self, where: Place) -> bool:
        """Whether the first item alone has a step."""
        return where[1] >= 0 and self.chosen[where[0]].count(where[1]) == 1

    def body(self, variables: Sequence[Variable]) -> list[Any]:
        """Steps and branches; the choices of a branch are those that anything reads."""
        wired: dict[Place, Step] = {}
        for where, step in self.origin.items():
            refs = tuple(self.operand(where, position, variables) for position in range(len(step.operands)))
            wired[where] = replace(step, id=self.model[where], operands=refs)
        found: list[Any] = []
        for number, column in enumerate(self.columns):
            if column.common:
                found += [wired[where] for where in sorted(wired) if where[0] == number]
                continue
            cases = tuple(
                tuple(wired[where] for where in sorted(wired) if where[:2] == (number, case))
                for case in range(len(self.cases[number]))
            )
            items = tuple(self.indices[self.chosen[number].index(case)] for case in range(len(cases)))
            choices = tuple(Choice(one, sources) for sources, one in self.choices[number].items())
            found.append(Branch(cases, items, tuple(self.chosen[number]), choices))
        return found

    def aliases(self) -> dict[int, int]:
        """The steps of the last item as those of the body.

        Raises:
            Refused: somebody reads what the last item has made in one case of a branch alone.
        """
        found: dict[int, int] = {}
        last = len(self.bodies) - 1
        for step in self.bodies[-1]:
            column, case, _ = where = self.place[step.id]
            model = self.model[where]
            if case >= 0:
                one = next((one for one in self.choices[column] if one[case] == Ref("step", model)), None)
                if one is not None:
                    model = self.choices[column][one]
                elif not self.outside.get(step.id, set()) <= {last}:
                    raise Refused
            if step.id != model:
                found[step.id] = model
        return found
