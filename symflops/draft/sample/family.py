"""Samples of one structure: plans that differ in numbers only, and every number as a vector over the samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.trace.steps import Branch, Loop, Plan, Step
from symflops.draft.vary.variables import State

INDEX = re.compile(r"(?<=\.)\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Sample:
    """One configuration: its state, its plan, and its complete config."""

    state: State
    plan: Plan
    config: Mapping[str, Any]
    variable: int = -1


@dataclass
class Family:
    """Samples of equal structure; the first one is the base."""

    samples: list[Sample]
    structural: int = 0
    parts: dict[Any, list[Any]] = field(default_factory=dict)
    place: dict[int, tuple[int, ...]] = field(default_factory=dict)
    called: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = {id(part): place for place, part in walk(self.samples[0].plan.entries)}
        for sample in self.samples:
            called: dict[str, str] = {}
            for key, part in walk(sample.plan.entries):
                self.parts.setdefault(key, []).append(part)
                if isinstance(part, Step):
                    called.update(zip(parameters_of(self.parts[key][0]), parameters_of(part), strict=True))
            self.called.append(called)

    def numbers(self, part: Any, pick: Any) -> tuple[int, ...]:
        """A number of a step or loop of the base, over all samples."""
        return tuple(pick(one) for one in self.parts[self.place[id(part)]])

    def shape(self, name: str) -> tuple[tuple[int, ...], ...]:
        """The dimensions of a parameter, each over all samples (that of the base where a sample lacks it).

        Where items of a list differ, another sample may have another item of this kind.
        """
        base = self.samples[0].plan.parameters[name]
        shapes = [
            sample.plan.parameters.get(called.get(name, name), base)
            for sample, called in zip(self.samples, self.called, strict=True)
        ]
        return tuple(zip(*shapes, strict=True)) if all(len(shape) == len(base) for shape in shapes) else ()

    def items(self) -> dict[str, tuple[int, ...]]:
        """Items of lists, by their path in the base, whose index is another one in other samples: the index in each."""
        found: dict[str, tuple[int, ...]] = {}
        for name in self.called[0]:
            words = [called.get(name, name).split(".") for called in self.called]
            for place, word in enumerate(words[0]):
                if word.isdigit() and any(one[place] != word for one in words):
                    found.setdefault(".".join(words[0][: place + 1]), tuple(int(one[place]) for one in words))
        return found


def skeleton(plan: Plan) -> Any:
    """The structure of a plan without its numbers."""
    order: dict[int, int] = {}
    for _, part in walk(plan.entries):
        if isinstance(part, Step):
            order[part.id] = len(order)
        elif isinstance(part, Branch):
            order.update({choice.id: len(order) + place for place, choice in enumerate(part.choices)})

    def ref(one: Any) -> Any:
        return (one.kind, order.get(one.id, -1), INDEX.sub("*", one.name))

    def entry(one: Any) -> Any:
        if isinstance(one, Loop):
            return (
                "loop",
                INDEX.sub("*", one.prefix),
                one.others,
                one.shared,
                tuple((ref(a), order.get(b, -1)) for a, b in one.carried),
                tuple(map(entry, one.body)),
            )
        if isinstance(one, Branch):
            choices = tuple(tuple(map(ref, choice.sources)) for choice in one.choices)
            return ("branch", tuple(tuple(map(entry, case)) for case in one.cases), choices)
        names = tuple(INDEX.sub("*", name) for name in one.parameters)
        words = tuple(INDEX.sub("*", word) if isinstance(word, str) else word for word in one.words)
        return (one.kind, INDEX.sub("*", one.path), tuple(map(ref, one.operands)), len(one.numbers), words, names, one.quiet)

    return (tuple(map(entry, plan.entries)), tuple(map(ref, plan.outputs)))


def walk(entries: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every step and loop with its place."""
    for place, one in enumerate(entries):
        yield (*at, place), one
        if isinstance(one, Loop):
            yield from walk(one.body, (*at, place))
        elif isinstance(one, Branch):
            for case, entries_of_case in enumerate(one.cases):
                yield from walk(entries_of_case, (*at, place, case))


def parameters_of(step: Step) -> tuple[str, ...]:
    """The parameters that a step reads."""
    return (*step.parameters, *(ref.name for ref in step.operands if ref.kind == "parameter"))


def executed(entries: Any) -> int:
    """How many steps run, those of loops as often as they do."""
    return sum(one.count * executed(one.body) if isinstance(one, Loop) else 1 for one in entries)
