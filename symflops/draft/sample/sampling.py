"""Draws samples of a subject: builds it with other numbers, tapes and folds it, and keeps those of one structure."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from symflops.draft.fold.fold import folded
from symflops.draft.limits import TooLongError, within
from symflops.draft.sample.family import Family, Sample, executed, skeleton, walk
from symflops.draft.trace.steps import steps_of
from symflops.draft.trace.subject import Subject, class_of, full_config, summed
from symflops.draft.trace.tape import Tape, record
from symflops.draft.vary.variables import Slot, State, applied, slots_of
from symflops.draft.vary.vary import Explorer, Moves, Variable, moved, well_formed
from symflops.witness.tensors import needed

FEWEST_ITEMS = 5
SAMPLES = 22
DRAWS = 60
FAR = 16
MOST_GROWN = 4
SLOWER = 8.0
IGNORED = ("token_id", "token_index", "seed", "pad_", "_id")


@dataclass
class Laboratory:
    """A subject, the states of it that were tried, and the time that is left."""

    subject: Subject
    deadline: float
    tell: Callable[[str], None]
    runs: int = 0
    failures: int = 0
    plans: dict[Any, Sample | None] = field(default_factory=dict)
    unfinished: bool = False
    lists: dict[Any, dict[str, int]] = field(default_factory=dict)
    longest: float = 0.0
    patience: float = 6.0

    @property
    def most(self) -> int:
        """How far numbers may grow: tensors on the meta device take no memory, others do."""
        return 40 if self.subject.device == "meta" else 4

    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.deadline

    def at(self, state: Mapping[Slot, int]) -> Subject:
        """The subject in a state."""
        return self.subject.having(*applied(self.subject.config, self.subject.inputs, state))

    def taped(self, state: Mapping[Slot, int]) -> tuple[Tape, Mapping[str, Any]] | None:
        """The tape in a state, and the complete config; None where the module does not accept it."""
        self.runs += 1
        if self.runs % 20 == 0:
            gc.collect()
        subject = self.at(state)
        started = time.monotonic()
        try:
            with within(max(self.patience, SLOWER * self.longest)):
                model = subject.build()
                arguments = subject.arguments()
                needed("torch").manual_seed(0)
                found = record(model, arguments, summed), full_config(model, subject.config)
        except (Exception, TooLongError):  # whatever a module raises, it does not accept the state
            self.failures += 1
            return None
        self.longest = self.longest or time.monotonic() - started
        return found

    def signature(self, state: State) -> Any:
        """What tells whether a number matters: parameters and the sizes of contractions."""
        found = self.taped(state)
        if found is None:
            return None
        tape = found[0]
        self.lists[key_of(state)] = lists(tape.parameters)
        return (tuple(tape.parameters.items()), tuple((node.kind, node.path, node.sizes) for node in tape.nodes if node.sizes))

    def sample(self, state: State, variable: int = -1) -> Sample | None:
        """The plan in a state."""
        key = key_of(state)
        if key not in self.plans:
            found = self.taped(state)
            self.plans[key] = None if found is None else Sample(state, folded(steps_of(found[0])), found[1], variable)
        return self.plans[key]

    def moves(self) -> Moves:
        """Which numbers move."""
        given = slots_of(self.subject.config, self.subject.inputs)
        given = [slot for slot in given if not any(word in str(slot.key[-1]) for word in IGNORED)]
        base = self.taped({})
        assert base is not None
        renamed = getattr(getattr(class_of(self.subject.reference), "config_class", None), "attribute_map", {})
        hidden = {name for pair in renamed.items() for name in pair if set(pair) & set(self.subject.config)}
        further = [slot for slot in defaults(base[1], self.subject.config) if slot.key[0] not in hidden]
        # no size of a spec is read from a list within a list
        deep = [slot for slot in given if slot.side == "config" and sum(isinstance(part, int) for part in slot.key) > 1]
        given = [slot for slot in given if slot not in deep]
        explorer = Explorer(self.signature, [*given, *further], self.signature({}), self.deadline, self.tell, set(further))
        moves = explorer.run()
        moves.stuck += [slot for slot in deep if slot.kind == "number"]
        return moves

    def base(self, moves: Moves) -> tuple[Sample, list[Variable]]:
        """A base sample in which lists of modules are long enough to tell first, middle and last items apart.

        Also the variables that decide how long they are.
        """
        start = self.sample({})
        assert start is not None
        counts = []
        for variable in moves.variables:
            if variable.lead in moves.filled or self.levels(variable, moves):
                continue
            value = moves.steps.get(variable.lead)
            state = None if value is None else moved({}, [(variable, value)])
            items = None if state is None else self.lists.get(key_of(state))
            if items is not None and variable.lead.value < 16 and items != self.lists[()]:
                counts.append(variable)
        best = start
        chosen: list[tuple[Variable, int]] = []
        for number, variable in enumerate(counts):
            if variable.lead.value >= FEWEST_ITEMS:
                continue
            for value in (FEWEST_ITEMS + number % 3, FEWEST_ITEMS):
                state = moved({}, [*chosen, (variable, value)])
                found = None if state is None else self.sample(state)
                if found is not None:
                    if self.folds(best, found, [*chosen, (variable, value + 1)]):
                        best = found
                        chosen.append((variable, value))
                    break
        return best, counts

    def folds(self, before: Sample, found: Sample, further: list[tuple[Variable, int]]) -> bool:
        """Whether a longer base is a loop somewhere: with one item more it does not grow as much as it did with each."""
        state = moved({}, further)
        after = None if state is None else self.sample(state)
        if after is None:
            return True
        variable, value = further[-1]
        first, second, third = (sum(1 for _ in walk(one.plan.entries)) for one in (before, found, after))
        now = before.state.get(variable.lead, variable.lead.value)
        return third == second or (second - first) != (third - second) * (value - 1 - now)

    @staticmethod
    def levels(variable: Variable, moves: Moves) -> bool:
        """Whether a variable is the length of lists whose items move: how many levels there are, not layers."""
        lengths = [slot.key for slot in variable.slots if slot.kind == "length"]
        return any(slot.key[:-1] in lengths for one in moves.variables for slot in one.slots)

    def typical(self, base: Sample, moves: Moves) -> Sample:
        """A base whose structure stays as it is when a number grows, where that of the given one does not.

        One item of a kind is an item apart, two and three of it are a loop; so are three samples, one after another.
        """
        for variable in moves.variables:
            lead = variable.lead
            now = base.state.get(lead, lead.value)
            first = lead.kind == "dimension" and lead.key[-1] == 0
            counts = first or (lead.side == "config" and not variable.along)
            if not counts or now >= 8 or lead in moves.filled or self.late():
                continue
            if self.levels(variable, moves):
                continue
            before = base
            for value in range(now + 1, now + MOST_GROWN + 1):
                state = moved(base.state, [(variable, value)])
                grown = None if state is None else self.sample(state)
                if grown is None:
                    break
                if skeleton(grown.plan) == skeleton(before.plan):
                    item = lead.side == "config" and isinstance(lead.key[-1], int)
                    if not item or executed(grown.plan.entries) > executed(before.plan.entries):
                        base = before
                    break
                before = grown
        return base

    def together(self, base: Sample, wanted: Any, moves: Moves) -> None:
        """Tie numbers that change the structure alone, and not where they stay equal, as they are in the given subject."""
        for variable in list(moves.variables):
            if variable not in moves.variables or self.late():
                continue
            now = base.state.get(variable.lead, variable.lead.value)
            equal = [
                one for one in moves.variables if one is not variable and one.lead.value == variable.lead.value and now > 1
            ]
            if not equal or variable.lead.side != "config" or self.keeps(base, wanted, variable):
                continue
            for other in equal:
                tied = Variable(variable.lead, (*variable.ratio, *other.slots), variable.delta)
                if not other.delta and self.keeps(base, wanted, tied):
                    moves.variables[moves.variables.index(variable)] = tied
                    moves.variables.remove(other)
                    break

    def keeps(self, base: Sample, wanted: Any, variable: Variable) -> bool:
        """Whether a variable moves without another structure."""
        now = base.state.get(variable.lead, variable.lead.value)
        for value in (now * 2, now + 1):
            state = moved(base.state, [(variable, value)])
            found = None if state is None else self.sample(state)
            if found is not None:
                return bool(skeleton(found.plan) == wanted)
        return False

    def family(self, moves: Moves, random: Random) -> tuple[Family, list[Variable]]:
        """Samples of the structure of the base: each variable moved alone, then many together.

        Also the variables that cannot be moved without changing the structure.
        """
        base, _ = self.base(moves)
        base = self.typical(base, moves)
        wanted = skeleton(base.plan)
        self.together(base, wanted, moves)
        samples, structural = [base], []
        refused = 0
        for number, variable in enumerate(moves.variables):
            self.tell(f"sampling {variable.lead.label} ({number + 1}/{len(moves.variables)})")
            alone: list[Sample] = []
            now = base.state.get(variable.lead, variable.lead.value)
            values = [moves.steps.get(variable.lead, now + 1), now + 1, now + 2, now + 3, now * 2, now - 1, now * 3]
            if variable.lead.kind == "dimension":
                values.insert(1, now - 1)
            # a few in a row tell how a length is rounded
            wanted_alone = 4 if variable.lead.kind == "dimension" else 2 if variable.lead.value < 8 else 1
            for value in dict.fromkeys(value for value in values if value > 0 and value != now):
                if len(alone) >= wanted_alone or self.late():
                    break
                state = moved(base.state, [(variable, value)])
                found = None if state is None else self.sample(state, number)
                if found is not None and skeleton(found.plan) == wanted:
                    alone.append(Sample(found.state, found.plan, found.config, number))
            if alone and any(slot.side == "config" and slot.value >= FAR for slot in variable.slots):
                state = moved(base.state, [(variable, now * FAR)])
                found = None if state is None or self.late() else self.sample(state, number)
                if found is not None and skeleton(found.plan) == wanted:
                    alone.append(Sample(found.state, found.plan, found.config, number))
            samples += alone
            if not alone:
                structural.append(variable)
                if self.late():
                    self.unfinished = True
        free = [variable for variable in moves.variables if variable not in structural]
        joint = tries = 0
        while free and joint < SAMPLES and tries < DRAWS and not self.late():
            tries += 1
            self.tell(f"sampling {joint}/{SAMPLES}")
            state = well_formed(free, random, 0.9 if tries % 3 else 0.4, base.state, self.most)
            found = None if state is None else self.sample(state)
            if found is None:
                continue
            if skeleton(found.plan) == wanted:
                samples.append(found)
                joint += 1
            else:
                refused += 1
        return Family(samples, refused), structural


def key_of(state: Mapping[Slot, int]) -> Any:
    """What tells a state from others."""
    return tuple(sorted(repr((slot.side, slot.key, value)) for slot, value in state.items() if value != slot.value))


def lists(parameters: Iterable[str]) -> dict[str, int]:
    """How many items the lists of modules have, by the names of parameters."""
    found: dict[str, set[str]] = {}
    for name in parameters:
        words = name.split(".")
        for place, word in enumerate(words):
            if word.isdigit():
                found.setdefault(".".join(words[:place]), set()).add(word)
    return {name: len(items) for name, items in found.items()}


def defaults(config: Mapping[str, Any], given: Mapping[str, Any], key: tuple[str, ...] = ()) -> list[Slot]:
    """Whole numbers that the class filled in itself, in parts of the config that were given too."""
    found = []
    for name, value in config.items():
        if isinstance(value, Mapping) and isinstance(given.get(name), Mapping):
            found += defaults(value, given[name], (*key, name))
            continue
        plain = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if plain and name not in given and not any(word in name for word in IGNORED) and not name.startswith("_"):
            found.append(Slot("config", (*key, name), value))
    return found
