"""Families of samples: plans of equal structure, with every number as a vector over the samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.trace.steps import Branch, Loop, Plan, Ref, Step, parameters_of, walk
from symflops.draft.vary.variables import State, Variable

INDEX = re.compile(r"(?<=\.)\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of the module.

    Attributes:
        state: The changed numbers of config and inputs (slot -> value).
        plan: The traced steps, with module lists folded into loops.
        config: Field -> value, for all fields of the config.
        variable: The position, among all variables, of the only one that differs from the base sample; -1 if several do.
    """

    state: State
    plan: Plan
    config: Mapping[str, Any]
    variable: int = -1


@dataclass
class Family:
    """Samples (runs with other configs and inputs) of equal structure; the first one is the base.

    Attributes:
        samples: The samples.
        refused: The number of further samples with another structure.
        structural: Variables that cannot change without changing the structure.
        unfinished: Whether time was up before all variables were tried.
        parts: Position in the plan (path of indices) -> the step, loop or branch there in each sample.
        place: ``id`` of a step, loop or branch of the base -> its position in the plan.
        names: For each sample, base parameter name -> name in the sample.
    """

    samples: list[Sample]
    refused: int = 0
    structural: list[Variable] = field(default_factory=list)
    unfinished: bool = False
    parts: dict[Any, list[Any]] = field(default_factory=dict)
    place: dict[int, tuple[int, ...]] = field(default_factory=dict)
    names: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = {id(part): place for place, part in walk(self.samples[0].plan.entries)}
        for sample in self.samples:
            called: dict[str, str] = {}
            for key, part in walk(sample.plan.entries):
                self.parts.setdefault(key, []).append(part)
                if isinstance(part, Step):
                    called.update(zip(parameters_of(self.parts[key][0]), parameters_of(part), strict=True))
            self.names.append(called)

    def numbers(self, part: Any, pick: Callable[[Any], int]) -> tuple[int, ...]:
        """Vector of the number that ``pick`` reads from a step, loop or branch.

        ``part`` is that of the base; other samples have theirs at the same position.
        """
        return tuple(pick(one) for one in self.parts[self.place[id(part)]])

    def shape(self, name: str) -> tuple[tuple[int, ...], ...]:
        """Shape of a parameter of the base: a vector for each dimension; empty if samples differ in their number.

        In a sample whose module list has other items, it is that of the parameter in the same position of the plan. A sample
        without the parameter counts with the base's shape.
        """
        base = self.samples[0].plan.parameters[name]
        shapes = [
            sample.plan.parameters.get(called.get(name, name), base)
            for sample, called in zip(self.samples, self.names, strict=True)
        ]
        return tuple(zip(*shapes, strict=True)) if all(len(shape) == len(base) for shape in shapes) else ()

    def items(self) -> dict[str, tuple[int, ...]]:
        """Path of an item of a module list in the base -> vector of the item's index, for items where it varies."""
        found: dict[str, tuple[int, ...]] = {}
        for name in self.names[0]:
            words = [called.get(name, name).split(".") for called in self.names]
            for place, word in enumerate(words[0]):
                if word.isdigit() and any(one[place] != word for one in words):
                    found.setdefault(".".join(words[0][: place + 1]), tuple(int(one[place]) for one in words))
        return found


def skeleton(plan: Plan) -> Any:
    """Comparison key of a plan: equal if plans differ in sizes and in indices of modules alone."""
    order: dict[int, int] = {}
    for _, part in walk(plan.entries):
        if isinstance(part, Step):
            order[part.id] = len(order)
        elif isinstance(part, Branch):
            order |= {choice.id: len(order) + place for place, choice in enumerate(part.choices)}
    return (tuple(entry_key(one, order) for one in plan.entries), refs_key(plan.outputs, order))


def entry_key(entry: Any, order: Mapping[int, int]) -> tuple[Any, ...]:
    """Comparison key of a step, loop or branch, without sizes and with stars for the indices of modules.

    ``order`` maps the id of each value to its position in the plan.
    """
    if isinstance(entry, Loop):
        carried = tuple((*refs_key((init,), order), order.get(last, -1)) for init, last in entry.carried)
        body = tuple(entry_key(one, order) for one in entry.body)
        return ("loop", starred(entry.prefix), entry.others, entry.shared, carried, body)
    if isinstance(entry, Branch):
        cases = tuple(tuple(entry_key(one, order) for one in case) for case in entry.cases)
        return ("branch", cases, tuple(refs_key(choice.sources, order) for choice in entry.choices))
    names = tuple(map(starred, entry.parameters))
    words = tuple(starred(word) if isinstance(word, str) else word for word in entry.words)
    operands = refs_key(entry.operands, order)
    return (entry.kind, starred(entry.path), operands, len(entry.numbers), words, names, entry.quiet)


def refs_key(refs: Iterable[Ref], order: Mapping[int, int]) -> tuple[Any, ...]:
    """Comparison key of references, with stars for indices in names.

    ``order`` maps the id of each value to its position in the plan.
    """
    return tuple((ref.kind, order.get(ref.id, -1), starred(ref.name)) for ref in refs)


def starred(name: str) -> str:
    """Dotted name with its indices replaced by stars."""
    return INDEX.sub("*", name)


def executed(entries: Any) -> int:
    """Number of steps and branches that run, each counted once per iteration of the loops around it."""
    return sum(one.count * executed(one.body) if isinstance(one, Loop) else 1 for one in entries)
