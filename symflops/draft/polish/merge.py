"""Merges drafts of several configs of a class into one spec: an entry that only some of them have gets a condition.

For each config, the entries whose conditions hold are that config's own draft, so that merging cannot make it wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symflops.draft.fit.config_conditions import Guards, guards_between
from symflops.draft.polish.alignment import entries_of, guarded, joined
from symflops.draft.polish.entries import made
from symflops.draft.polish.renaming import renamed, union
from symflops.draft.write.document import Document


@dataclass(frozen=True, slots=True)
class Branch:
    """The draft of one config.

    Attributes:
        name: The variant.
        document: Its draft.
        config: The complete config.
        given: The fields that were given.
    """

    name: str
    document: Document
    config: Mapping[str, Any]
    given: Mapping[str, Any]


def merged(branches: Sequence[Branch]) -> Document:
    """One document for all branches, with the first one's names.

    Raises:
        SymflopsError: no field of the configs distinguishes two branches.
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
    """Conditions that distinguish the branches: on given fields that no size has."""
    tables = [(*one.sizes, *one.derived, *one.lengths, *one.inputs, *one.streams) for one in documents]
    taken = {name for names in (*tables, *(made(one.entries) for one in documents)) for name in names}
    moving = {str(fields["key"]) for one in documents for fields in one.sizes.values()}
    given = [key for branch in branches for key in leaves(branch.given) if key not in moving]
    return guards_between([one.config for one in branches], list(dict.fromkeys(given)), taken, [one.name for one in branches])


def leaves(config: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The fields of a config; those of its parts with dots."""
    found: list[str] = []
    for name, value in config.items():
        found += leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [f"{prefix}{name}"]
    return found


def inputs_of(documents: Sequence[Document], guards: Guards) -> dict[str, Any]:
    """All inputs; those of some branches under a condition."""
    found: dict[str, Any] = {}
    for name, fields in union([one.inputs for one in documents]).items():
        condition = guards.of(frozenset(number for number, one in enumerate(documents) if name in one.inputs))
        found[name] = {**fields, "when": condition} if condition else fields
    return found
