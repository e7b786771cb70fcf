"""Aligns the entries of several drafts: equal entries become one, all others keep their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from symflops.draft.fit.config_conditions import Guards
from symflops.draft.write.yaml_text import quoted


@dataclass(slots=True)
class Entry:
    """An entry of some of the branches; its body, if it has one, is aligned in turn."""

    key: str
    fields: dict[str, Any]
    branches: frozenset[int]
    body: list[Entry] | None = None

    @property
    def head(self) -> str:
        """A text that is equal for equal entries, whatever their bodies."""
        return f"{self.key}: {quoted(self.fields)}"


def pairs(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """The places at which two sequences agree, in order."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def entries_of(entries: Sequence[Any], number: int) -> list[Entry]:
    """The entries of one branch."""
    found = []
    for key, fields in entries:
        head = {word: value for word, value in fields.items() if word != "graph"}
        body = entries_of(fields["graph"], number) if "graph" in fields else None
        found.append(Entry(key, head, frozenset([number]), body))
    return found


def joined(one: Sequence[Entry], other: Sequence[Entry]) -> list[Entry]:
    """Two lists of entries as one."""
    found: list[Entry] = []
    left = right = 0
    for here, there in [*pairs([entry.head for entry in one], [entry.head for entry in other]), (len(one), len(other))]:
        found += [*one[left:here], *other[right:there]]
        left, right = here + 1, there + 1
        if here < len(one):
            mine, theirs = one[here], other[there]
            body = None if mine.body is None or theirs.body is None else joined(mine.body, theirs.body)
            found.append(Entry(mine.key, mine.fields, mine.branches | theirs.branches, body))
    return found


def guarded(entries: Sequence[Entry], within: frozenset[int], guards: Guards) -> list[Any]:
    """Entries of a document; one that only some of the branches ``within`` have is under a condition."""
    found = []
    for entry in entries:
        fields = dict(entry.fields)
        if entry.branches != within:
            fields["when"] = guards.of(entry.branches)
        if entry.body is not None:
            fields["graph"] = guarded(entry.body, entry.branches, guards)
        found.append((entry.key, fields))
    return found
