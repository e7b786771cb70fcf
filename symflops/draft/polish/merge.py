"""Merges drafts of several configs into one spec; entries that only some drafts have get a condition.

For each config, the entries whose conditions hold are that config's own draft, so that merging cannot make it wrong. Sizes,
streams and values are first renamed as in the other drafts, so that equal entries look equal.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from symflops.draft.fit.conditions import Guards, guards_between
from symflops.draft.fit.symbols import fresh
from symflops.draft.polish.entries import REFERENCES, carried, count, flat, made, operands, rename, results
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
    """Dotted paths, after ``prefix``, of all fields of a nested config that are not configs themselves."""
    return [
        path
        for name, value in config.items()
        for path in (leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [f"{prefix}{name}"])
    ]


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
    """Entries of variant ``number``, which are pairs (path, fields), as :class:`Entry` objects."""
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
    """Merged entries as pairs (path, fields); one that not all of the variants ``within`` have gets a condition."""
    found = []
    for entry in entries:
        fields = dict(entry.fields)
        if entry.branches != within:
            fields["when"] = guards.of(entry.branches)
        if entry.body is not None:
            fields["graph"] = guarded(entry.body, entry.branches, guards)
        found.append((entry.key, fields))
    return found


WORD = re.compile(r"[A-Za-z_]\w*")
VALUES = {*REFERENCES, "to"}


def union(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Table with the keys of all tables; a key has its value in the first table that has it."""
    return {name: next(one[name] for one in tables if name in one) for table in tables for name in table}


def renamed(known: Sequence[Document], other: Document) -> Document:
    """Document ``other`` with sizes, lengths and streams named as in ``known``, values as in ``known[0]``."""
    letters = letters_of(known, other)
    before = union([one.streams for one in known])
    streams = {name: name_of(relettered(axes, letters), before, name, set(before)) for name, axes in other.streams.items()}
    found = replace(
        other,
        sizes={letters[name]: fields for name, fields in other.sizes.items()},
        lengths={letters[name]: label for name, label in other.lengths.items()},
        derived={letters[name]: relettered(text, letters) for name, text in other.derived.items()},
        streams={streams[name]: relettered(axes, letters) for name, axes in other.streams.items()},
        inputs={name: relettered_fields(fields, letters, streams) for name, fields in other.inputs.items()},
        entries=relettered_entries(other.entries, letters, streams),
    )
    return with_values_of(known[0], found)


def letters_of(known: Sequence[Document], other: Document) -> dict[str, str]:
    """Letter in ``other`` -> the letter to use in its place.

    It is that of the same size, length or derived size in ``known``, or else one that is not used there.
    """
    letters: dict[str, str] = {}
    taken = {name for one in known for name in (*one.sizes, *one.lengths, *one.derived)}
    for number, table in enumerate(meanings(other)):
        before = union([meanings(one)[number] for one in known])
        for name, meaning in table.items():
            wanted = relettered(meaning, letters) if table is other.derived else meaning
            letters[name] = name_of(wanted, before, name, taken)
            taken.add(letters[name])
    return letters


def meanings(one: Document) -> tuple[Mapping[str, str], ...]:
    """Meanings of a document's letters, as three tables.

    They map the letter of a size to its config key, that of a length to its input dimension, and that of a derived size to
    its expression.
    """
    return {name: str(fields["key"]) for name, fields in one.sizes.items()}, one.lengths, one.derived


def name_of(meaning: Any, known: Mapping[str, Any], name: str, taken: set[str]) -> str:
    """Name of ``meaning`` in ``known`` (name -> meaning), else ``name``, numbered if it is ``taken``."""
    return next((own for own, what in known.items() if what == meaning), "") or fresh(name, taken)


def relettered(value: Any, letters: Mapping[str, str]) -> Any:
    """Nested plain data with the letters in all its texts renamed; ``letters`` maps old to new ones."""
    if isinstance(value, Mapping):
        return {relettered(name, letters): relettered(item, letters) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [relettered(item, letters) for item in value]
    return WORD.sub(lambda word: letters.get(word[0], word[0]), value) if isinstance(value, str) else value


def relettered_fields(fields: Mapping[str, Any], letters: Mapping[str, str], streams: Mapping[str, str]) -> dict[str, Any]:
    """Fields of an input or entry with letters and streams renamed; names of values and operators stay.

    ``letters`` and ``streams`` map old to new names.
    """
    found: dict[str, Any] = {}
    for word, value in fields.items():
        if word == "graph":
            found[word] = relettered_entries(value, letters, streams)
        elif word == "stream" and isinstance(value, str):
            found[word] = streams.get(value, value)
        else:
            found[word] = value if word in VALUES or word in ("op", "block") else relettered(value, letters)
    return found


def relettered_entries(entries: Sequence[Any], letters: Mapping[str, str], streams: Mapping[str, str]) -> list[Any]:
    """Entries with letters and streams renamed; ``letters`` and ``streams`` map old to new names."""
    return [(key, relettered_fields(fields, letters, streams)) for key, fields in entries]


def with_values_of(first: Document, other: Document) -> Document:
    """``other`` with values named as in ``first`` where entries are equal; other values that clash are numbered."""
    names = common_values(first, other)
    taken = {*names.values(), *other.inputs}
    for name in made(other.entries):
        if name not in names and name not in other.inputs:
            names[name] = fresh(name, taken)
            taken.add(names[name])
    entries = copy.deepcopy(list(other.entries))
    rename(entries, names)
    return replace(other, entries=entries, outputs=[names.get(name, name) for name in other.outputs])


def common_values(first: Document, other: Document) -> dict[str, str]:
    """Name of a value of ``other`` -> name of the value at the same place of an equal entry of ``first``.

    Results of entries are matched before operands.
    """
    own, theirs = list(flat(first.entries)), list(flat(other.entries))
    same = pairs([shape(one) for one in own], [shape(one) for one in theirs])
    bound, names = set(made(other.entries)) - set(other.inputs), dict[str, str]()
    listings: tuple[Callable[[Mapping[str, Any]], list[str]], ...] = (results, operands)
    for listing in listings:
        for here, there in same:
            for mine, found in zip(listing(own[here][1]), listing(theirs[there][1]), strict=False):
                owners = [name for name, taken in names.items() if taken == mine]
                if found in bound and found not in names and all(is_free(other, name, found) for name in owners):
                    names[found] = mine
    return names


def is_free(document: Document, owner: str, found: str) -> bool:
    """Whether nothing needs value ``owner`` after the entry of the same body that makes value ``found``.

    Then both can have one name.
    """
    for body in [document.entries, *(fields["graph"] for _, fields in flat(document.entries) if "graph" in fields)]:
        places = [place for place, (_, fields) in enumerate(body) if found in results(fields)]
        before = body[: places[0] + 1] if len(places) == 1 else []
        if any(owner in results(fields) for _, fields in before[:-1]):
            earlier = count(before, owner) == count(document.entries, owner)
            return earlier and not {owner, found} & carried(body) and owner not in document.outputs
    return False


def pairs(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs (index in ``one``, index in ``other``) of equal items of two sequences, in order."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def shape(entry: Any) -> str:
    """Comparison key of an entry, equal for entries that differ in names of values and in bodies alone."""
    key, fields = entry
    rest = {word: value for word, value in fields.items() if word not in VALUES and word != "graph"}
    return f"{key}: {quoted(rest)} {len(results(fields))}"
