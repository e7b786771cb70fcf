"""Merges drafts of several configs into one spec; entries that only some drafts have get a condition.

For each config, the entries whose conditions hold are that config's own draft, so that merging cannot make it wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symflops.draft.fit.conditions import Guards, guards_between
from symflops.draft.polish.entries import made
from symflops.draft.polish.renaming import pairs, renamed, union
from symflops.draft.write.draft_document import Document, quoted


@dataclass(frozen=True, slots=True)
class Branch:
    """The draft of one config.

    Attributes:
        name: The variant's name.
        document: Its draft.
        config: The complete config.
        given: The config as the user gave it, without defaults.
    """

    name: str
    document: Document
    config: Mapping[str, Any]
    given: Mapping[str, Any]


@dataclass(slots=True)
class Entry:
    """A graph entry that some variants of a model have.

    Attributes:
        key: The path of the entry.
        fields: Its fields, without the body.
        branches: The numbers of the variants that have it.
        body: The entries of its body; None if it has none.
    """

    key: str
    fields: dict[str, Any]
    branches: frozenset[int]
    body: list[Entry] | None = None

    @property
    def head(self) -> str:
        """Text of path and fields, equal for entries that differ in their bodies alone."""
        return f"{self.key}: {quoted(self.fields)}"


def merged(branches: Sequence[Branch]) -> Document:
    """One document for all variants (branches), with the names of the first.

    Raises:
        SymflopsError: No field of the configs distinguishes two branches.
    """
    first = branches[0].document
    if len(branches) == 1:
        return first
    documents = [first]
    for branch in branches[1:]:
        documents.append(renamed(documents, branch.document))
    guards = guards_of(branches, documents)
    entries = entries_of(first.entries, 0)
    for number, document in enumerate(documents[1:], 1):
        entries = joined(entries, entries_of(document.entries, number))
    return replace(
        first,
        sizes={**union([one.sizes for one in documents]), **guards.sizes},
        derived=union([one.derived for one in documents]),
        streams=union([one.streams for one in documents]),
        inputs=inputs_of(documents, guards),
        entries=guarded(entries, frozenset(range(len(documents))), guards),
        outputs=list(dict.fromkeys(name for one in documents for name in one.outputs)),
        unsolved=list(dict.fromkeys(note for one in documents for note in one.unsolved)),
        lengths=union([one.lengths for one in documents]),
    )


def guards_of(branches: Sequence[Branch], documents: Sequence[Document]) -> Guards:
    """Find the config fields by whose values conditions tell the variants apart.

    These are fields that a user gave for some variant (``branches``) and that are no size of a draft (``documents``).
    """
    tables = [(*one.sizes, *one.derived, *one.lengths, *one.inputs, *one.streams) for one in documents]
    taken = {name for names in (*tables, *(made(one.entries) for one in documents)) for name in names}
    moving = {str(fields["key"]) for one in documents for fields in one.sizes.values()}
    given = [key for branch in branches for key in leaves(branch.given) if key not in moving]
    return guards_between([one.config for one in branches], list(dict.fromkeys(given)), taken, [one.name for one in branches])


def leaves(config: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted paths of all fields of a nested config."""
    found: list[str] = []
    for name, value in config.items():
        found += leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [f"{prefix}{name}"]
    return found


def inputs_of(documents: Sequence[Document], guards: Guards) -> dict[str, Any]:
    """Input name -> fields of its declaration, for the inputs of all variants.

    An input that only some variants have gets a condition, ``when``, on the config fields of ``guards``.
    """
    found: dict[str, Any] = {}
    for name, fields in union([one.inputs for one in documents]).items():
        condition = guards.of(frozenset(number for number, one in enumerate(documents) if name in one.inputs))
        found[name] = {**fields, "when": condition} if condition else fields
    return found


def entries_of(entries: Sequence[Any], number: int) -> list[Entry]:
    """Plain entries of variant ``number`` as :class:`Entry` objects."""
    found = []
    for key, fields in entries:
        head = {word: value for word, value in fields.items() if word != "graph"}
        body = entries_of(fields["graph"], number) if "graph" in fields else None
        found.append(Entry(key, head, frozenset([number]), body))
    return found


def joined(one: Sequence[Entry], other: Sequence[Entry]) -> list[Entry]:
    """Merged list of two variants' entries: equal ones once, with bodies merged, others side by side."""
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
    """Merged entries as plain entries; one that not all of the variants ``within`` have gets a condition."""
    found = []
    for entry in entries:
        fields = dict(entry.fields)
        if entry.branches != within:
            fields["when"] = guards.of(entry.branches)
        if entry.body is not None:
            fields["graph"] = guarded(entry.body, entry.branches, guards)
        found.append((entry.key, fields))
    return found
