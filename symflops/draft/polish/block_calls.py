"""Recognises blocks of the library: entries in a row that one of them describes, as one call of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.polish.block_patterns import Pattern, Step, Value, steps_of
from symflops.draft.polish.polish import carried, needed_later, reads
from symflops.draft.polish.sums import put, sum_of

FEWEST = 2
TAKEN = ("gate", "add_to")  # what a call may say of its result as an operator does
UNSAID = {"bias": "true", "affine": "true"}  # what an operator does where it says nothing


def called(entries: list[Any], patterns: Sequence[Pattern], kept: set[str]) -> list[Any]:
    """Entries in which runs that a block describes are calls of it; names in ``kept`` are read elsewhere."""
    for _, fields in entries:
        if "graph" in fields:
            outside = {name for _, other in entries if other is not fields for name in reads(other)} | kept
            fields["graph"] = called(fields["graph"], patterns, outside | carried(fields["graph"]))
    found = list(replaced(entries, patterns, kept))
    return found if len(found) == len(entries) else called(found, patterns, kept)  # a block may call others


def replaced(entries: list[Any], patterns: Sequence[Pattern], kept: set[str]) -> Iterator[Any]:
    """One list of entries with calls of blocks."""
    place = 0
    while place < len(entries):
        calls = [(one, pattern) for pattern in patterns if (one := matched(pattern, entries, place, kept))]
        found, _ = min(calls, key=plainness, default=(None, None))
        if found is None:
            yield entries[place]
            place += 1
        else:
            yield found[1], found[2]
            place += found[0]


def plainness(found: tuple[tuple[int, str, dict[str, Any]], Pattern]) -> tuple[int, ...]:
    """What orders calls: most entries first, then what says least, then fewest inputs and defaults made of others."""
    (count, _, call), pattern = found
    made_of_others = sum(default not in (None, "true", "false") for default in pattern.parameters.values())
    return -count, len(call), len(pattern.inputs), made_of_others


def matched(pattern: Pattern, entries: Sequence[Any], place: int, kept: set[str]) -> tuple[int, str, dict[str, Any]] | None:
    """A call of a block in place of entries from ``place`` on: how many they are, the path, and the fields; None if not."""
    window = entries[place : place + len(pattern.steps)]
    if len(window) < max(FEWEST, len(pattern.steps)):
        return None
    versions: dict[str, int] = {}
    steps = steps_of(window, versions)
    match = Match(pattern)
    if steps is None or not match.all(steps) or not match.settled():
        return None
    outputs = [match.values[one] for one in pattern.outputs if one in match.values]
    if len(outputs) != len(pattern.outputs) or any(versions[name] != version for name, version in outputs):
        return None
    hidden = set(versions) - {name for name, _ in outputs}
    rest = list(entries[place + len(window) :])
    if any(needed_later(rest, name, kept) for name in hidden):
        return None
    return len(window), match.prefix, match.call(outputs)


def kind(step: Step) -> tuple[str | None, str | None]:
    """The operator and the block of a step; a draft cannot tell a product of one value's parts from another map of it."""
    operator = step.texts.get("op")
    alone = operator == "mul" and len(step.reads.get("from", ())) == 1
    return "map" if alone else operator, step.texts.get("block")


@dataclass
class Match:
    """What a pattern's names stand for, as far as entries have been compared with its steps."""

    pattern: Pattern
    prefix: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    values: dict[Value, Value] = field(default_factory=dict)
    widths: dict[Value, str] = field(default_factory=dict)
    equations: list[tuple[str, str]] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)

    def all(self, entries: list[Step]) -> bool:
        """Whether each step describes one entry; entries may stand in another order than the steps."""
        left = list(entries)
        for step in self.pattern.steps:
            found = next((one for one in left if self.alike(step, one)), None)
            if found is None or not self.takes(step, found):
                return False
            left.remove(found)
        return bool(self.prefix)

    def alike(self, step: Step, entry: Step) -> bool:
        """Whether an entry may be a step by its operator and its path; the first path decides where the block is."""
        if kind(step) != kind(entry):
            return False
        if entry.path == "_" or step.path == "_":
            return entry.path in ("_", self.prefix) if self.prefix else entry.path == "_"
        if self.prefix:
            return entry.path == f"{self.prefix}.{step.path}"
        return entry.path.endswith(f".{step.path}")

    def takes(self, step: Step, entry: Step) -> bool:
        """Whether an entry's fields are a step's, and what its names stand for then."""
        if not self.prefix and step.path != "_":
            self.prefix = entry.path[: -len(step.path) - 1]
        if set(step.reads) != set(entry.reads) - ({"gate", "add_to"} - set(step.reads)):
            return False
        for word, values in step.reads.items():
            if len(values) != len(entry.reads[word]):
                return False
            if any(self.values.setdefault(one, other) != other for one, other in zip(values, entry.reads[word], strict=True)):
                return False
        return self.says(step, entry) and self.makes(step, entry)

    def says(self, step: Step, entry: Step) -> bool:
        """Whether an entry's expressions are a step's."""
        source = self.widths.get(step.reads["from"][0], "") if "from" in step.reads else ""
        unsaid = {**UNSAID, "dim": source} if source else UNSAID
        if "_" not in (step.path, entry.path):
            self.shared.add(entry.texts.get("shared", "false"))
        for word in {**step.texts, **entry.texts}:
            if word in ("op", "block", "shared"):
                continue
            theirs, mine = step.texts.get(word, unsaid.get(word)), entry.texts.get(word, unsaid.get(word))
            if theirs is None or mine is None:
                return False
            if theirs not in self.pattern.parameters:
                self.equations.append((theirs, mine))
            elif sum_of(self.texts.setdefault(theirs, mine)) != sum_of(mine):
                return False
        return True

    def makes(self, step: Step, entry: Step) -> bool:
        """Whether an entry binds what a step binds; the block's only result may be gated and added as an operator's is."""
        further = {word: entry.reads[word][0][0] for word in TAKEN if word in entry.reads and word not in step.reads}
        mine = [value for values in entry.writes.values() for value in values]
        theirs = [value for values in step.writes.values() for value in values]
        if len(mine) != len(theirs):
            return False
        if further:
            if self.taken or tuple(theirs) != self.pattern.outputs or any(entry.reads[word][0][1] for word in further):
                return False
            if any(theirs[0] in values for one in self.pattern.steps for values in one.reads.values()):
                return False
            self.taken = further
        for one, other in zip(theirs, mine, strict=True):
            self.values[one] = other
            self.widths[one] = entry.texts.get("width", self.widths.get(next(iter(step.reads.get("from", ())), ("", 0)), ""))
        return True

    def settled(self) -> bool:
        """Whether what is left holds: parameters that no entry showed have their defaults, and all equations are true."""
        self.counted()
        known = dict(self.texts)
        for name, default in self.pattern.parameters.items():
            if name not in known and name not in self.pattern.switches:
                if default is None:
                    return False
                known[name] = put(default, self.texts)
        if len(self.shared) > 1 or any((name, 0) not in self.values or self.values[name, 0][1] for name in self.pattern.inputs):
            return False
        return all(sum_of(theirs, known) == sum_of(mine) for theirs, mine in self.equations)

    def counted(self) -> None:
        """Find the parameters that only say how many times another is in a width."""
        for theirs, mine in self.equations:
            for name in self.pattern.parameters:
                factor = sum_of(theirs, {**self.texts, name: "1"})
                if name not in self.texts and factor.scale(7) == sum_of(theirs, {**self.texts, name: "7"}):
                    times = sum_of(mine).over(factor)
                    self.texts |= {name: str(times)} if times else {}

    def call(self, outputs: Sequence[Value]) -> dict[str, Any]:
        """The fields of the call."""
        inputs = [self.values[name, 0][0] for name in self.pattern.inputs]
        call: dict[str, Any] = {"block": self.pattern.name, "from": inputs if len(inputs) > 1 else inputs[0]}
        for name, default in self.pattern.parameters.items():
            said = self.pattern.switches.get(name, self.texts.get(name))
            if said is not None and (default is None or sum_of(said) != sum_of(default, self.texts)):
                call[name] = said
        if "true" in self.shared:
            call["shared"] = "true"
        names = [name for name, _ in outputs]
        if "add_to" not in self.taken:
            call["to"] = names if len(names) > 1 else names[0]
        return call | self.taken
