"""Replaces consecutive entries that a library block describes by one call of that block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.polish.block_patterns import Pattern, Step, Value, multiple, steps_of, substitute, sum_of
from symflops.draft.polish.entries import kept_by, needed_later

FEWEST = 2  # entries that a call replaces
AFTER = ("gate", "add_to")  # fields that gate or add the result of a call or an operator
DEFAULTS = {"bias": "true", "affine": "true"}  # of operators


def called(entries: list[Any], patterns: Sequence[Pattern], kept: set[str]) -> list[Any]:
    """Entries in which a call of a library block replaces each run of entries that the block describes, in bodies too.

    The fields of ``entries`` that have a body are changed in place.
    ``kept`` are the names that are read outside of ``entries``.
    """
    for _, fields in entries:
        if "graph" in fields:
            fields["graph"] = called(fields["graph"], patterns, kept_by(entries, fields, kept))
    found = list(replaced(entries, patterns, kept))
    return found if len(found) == len(entries) else called(found, patterns, kept)  # a block may call others


def replaced(entries: list[Any], patterns: Sequence[Pattern], kept: set[str]) -> Iterator[Any]:
    """Yield the entries of one list, with a call of a block in place of each run of entries that one of ``patterns`` matches.

    Of several patterns that match at a position, one that replaces most entries is taken. ``kept`` are names that are read
    outside of the list, which a call must still write. Bodies of loops and groups stay as they are.
    """
    place = 0
    while place < len(entries):
        calls = [(one, pattern) for pattern in patterns if (one := matched(pattern, entries, place, kept))]
        (count, *entry), _ = min(calls, key=preference, default=((1, *entries[place]), None))
        yield tuple(entry)
        place += count


def preference(found: tuple[tuple[int, str, dict[str, Any]], Pattern]) -> tuple[int, ...]:
    """Sort key of a block's match, best first: most entries replaced, then the fewest others.

    These are the fields of the call, the inputs of the block, and the parameters whose default is an expression. ``found``
    has the match ((number of entries, path, fields of the call), pattern).
    """
    (count, _, call), pattern = found
    made_of_others = sum(default not in (None, "true", "false") for default in pattern.parameters.values())
    return -count, len(call), len(pattern.inputs), made_of_others


def matched(pattern: Pattern, entries: Sequence[Any], place: int, kept: set[str]) -> tuple[int, str, dict[str, Any]] | None:
    """Match a block with the entries from ``place`` on; None if they differ.

    Returns:
        The number of entries to replace, and the path and the fields of the call.
    """
    end = place + len(pattern.steps)
    versions: dict[str, int] = {}
    steps = steps_of(entries[place:end], versions) if end <= len(entries) and len(pattern.steps) >= FEWEST else None
    match = Match(pattern)
    if steps is None or not match.all(steps) or not match.complete():
        return None
    outputs = [match.values[one] for one in pattern.outputs if one in match.values]
    if len(outputs) != len(pattern.outputs) or any(versions[name] != version for name, version in outputs):
        return None
    hidden = set(versions) - {name for name, _ in outputs}
    if any(needed_later(entries[end:], name, kept) for name in hidden):
        return None
    return len(pattern.steps), match.prefix, match.call(outputs)


def kind(step: Step) -> tuple[str | None, str | None]:
    """Operator and block of a step, one of them None; ``mul`` of one operand is ``map``, as in drafts."""
    operator = step.texts.get("op")
    alone = operator == "mul" and len(step.reads.get("from", ())) == 1
    return "map" if alone else operator, step.texts.get("block")


@dataclass
class Match:
    """A comparison of a draft's entries with a block's steps (entries), and what follows for a call of it.

    Attributes:
        pattern: The block.
        prefix: The path of the call.
        texts: Parameter of the block -> expression that the call gives for it.
        values: Value of the block -> value of the draft.
        widths: Value of the block -> its width in the draft.
        equations: Pairs of expressions, the block's and the draft's, that must be equal.
        after: ``gate`` and ``add_to`` of the call -> names of their values.
        shared: The different texts of the field ``shared`` in entries with a path.
    """

    pattern: Pattern
    prefix: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    values: dict[Value, Value] = field(default_factory=dict)
    widths: dict[Value, str] = field(default_factory=dict)
    equations: list[tuple[str, str]] = field(default_factory=list)
    after: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)

    def all(self, entries: list[Step]) -> bool:
        """Whether the steps of the block and the entries match one to one, in any order."""
        left = list(entries)
        for step in self.pattern.steps:
            found = next((one for one in left if self.comparable(step, one)), None)
            if found is None or not self.equal(step, found):
                return False
            left.remove(found)
        return bool(self.prefix)

    def comparable(self, step: Step, entry: Step) -> bool:
        """Whether an entry has the same operator as a block's step, and a path that fits the step's.

        It fits if it is the step's path after ``prefix``, or after anything while that is not known. If one of the two has
        no path, the entry must have none, or just the prefix.
        """
        if kind(step) != kind(entry):
            return False
        if "_" in (entry.path, step.path):
            return entry.path == "_" or (bool(self.prefix) and entry.path == self.prefix)
        return entry.path == f"{self.prefix}.{step.path}" if self.prefix else entry.path.endswith(f".{step.path}")

    def equal(self, step: Step, entry: Step) -> bool:
        """Whether an entry has the operands, expressions and results of a block's step.

        Stores the values and parameters that follow from the match, even if it fails later.
        """
        if not self.prefix and step.path != "_":
            self.prefix = entry.path[: -len(step.path) - 1]
        if set(step.reads) != set(entry.reads) - (set(AFTER) - set(step.reads)):
            return False
        for word, values in step.reads.items():
            pairs = list(zip(values, entry.reads[word], strict=False))
            if len(values) != len(entry.reads[word]) or any(
                self.values.setdefault(one, other) != other for one, other in pairs
            ):
                return False
        return self.equal_texts(step, entry) and self.equal_results(step, entry)

    def equal_texts(self, step: Step, entry: Step) -> bool:
        """Whether the expressions of an entry may equal those of a block's step.

        False if a field is missing in one of them, or if a parameter of the block would get two values. Other expressions are
        added to ``equations``, to be compared when all parameters are known.
        """
        source = self.widths.get(step.reads["from"][0], "") if "from" in step.reads else ""
        defaults = {**DEFAULTS, "dim": source} if source else DEFAULTS
        if "_" not in (step.path, entry.path):
            self.shared.add(entry.texts.get("shared", "false"))
        for word in [word for word in {**step.texts, **entry.texts} if word not in ("op", "block", "shared", "role")]:
            theirs, mine = (one.texts.get(word, defaults.get(word)) for one in (step, entry))
            if theirs is None or mine is None:
                return False
            if theirs not in self.pattern.parameters:
                self.equations.append((theirs, mine))
            elif sum_of(self.texts.setdefault(theirs, mine)) != sum_of(mine):
                return False
        return True

    def equal_results(self, step: Step, entry: Step) -> bool:
        """Whether an entry has as many results as a block's step, and no gate or sum that a call cannot have."""
        mine, theirs = ([value for values in one.writes.values() for value in values] for one in (entry, step))
        after = {word: entry.reads[word][0] for word in AFTER if word in entry.reads and word not in step.reads}
        if len(mine) != len(theirs) or (after and not self.move_to_call(after, theirs)):
            return False
        source = next(iter(step.reads.get("from", ())), ("", 0))
        width = entry.texts.get("width", self.widths.get(source, ""))
        self.values.update(zip(theirs, mine, strict=True))
        self.widths.update(dict.fromkeys(theirs, width))
        return True

    def move_to_call(self, after: dict[str, Value], results: list[Value]) -> bool:
        """Whether an entry's gate and sum may move to the call; if so, they are stored in the match.

        They may if the entry's ``results`` are the only outputs of the block, and nothing in the block reads them.
        ``after`` maps ``gate`` and ``add_to`` to the values.
        """
        read = {value for step in self.pattern.steps for values in step.reads.values() for value in values}
        if self.after or tuple(results) != self.pattern.outputs or results[0] in read:
            return False
        self.after = {word: name for word, (name, _) in after.items()}
        return not any(version for _, version in after.values())

    def complete(self) -> bool:
        """Whether all inputs and parameters of the block are known, or have a default, and all equations hold."""
        self.find_counts()
        known = dict(self.texts)
        for name, default in self.pattern.parameters.items():
            if name not in known and name not in self.pattern.switches:
                if default is None:
                    return False
                known[name] = substitute(default, self.texts)
        if len(self.shared) > 1 or any(self.values.get((name, 0), ("", 1))[1] for name in self.pattern.inputs):
            return False
        return all(sum_of(theirs, known) == sum_of(mine) for theirs, mine in self.equations)

    def find_counts(self) -> None:
        """Find parameters of the block that are integer factors of an expression, and add them to ``texts``.

        If an expression of the block is proportional to a parameter that is not known, the pair of expressions in
        ``equations`` gives its value.
        """
        for theirs, mine in self.equations:
            for name in self.pattern.parameters:
                factor = sum_of(theirs, {**self.texts, name: "1"})
                if name not in self.texts and factor.scale(7) == sum_of(theirs, {**self.texts, name: "7"}):
                    times = multiple(sum_of(mine), factor)
                    self.texts |= {name: str(times)} if times else {}

    def call(self, outputs: Sequence[Value]) -> dict[str, Any]:
        """Fields of the block call, without parameters at their defaults; ``outputs`` are its results."""
        inputs = [self.values[name, 0][0] for name in self.pattern.inputs]
        call: dict[str, Any] = {"block": self.pattern.name, "from": inputs if len(inputs) > 1 else inputs[0]}
        for name, default in self.pattern.parameters.items():
            text = self.pattern.switches.get(name, self.texts.get(name))
            if text is not None and (default is None or sum_of(text) != sum_of(default, self.texts)):
                call[name] = text
        if "true" in self.shared:
            call["shared"] = "true"
        names = [name for name, _ in outputs]
        if "add_to" not in self.after:
            call["to"] = names if len(names) > 1 else names[0]
        return call | self.after
