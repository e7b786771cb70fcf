"""Merges drafts of several configs of a class into one spec: what only some of them have stands under a condition.

In every config, what its conditions leave is that config's own draft, entry by entry: merging cannot make it wrong.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from symflops.draft.fit.config_conditions import Guards, guards_between
from symflops.draft.fit.symbols import fresh
from symflops.draft.polish.polish import REFERENCES, carried, made, reads, relabelled
from symflops.draft.write.document import Document
from symflops.draft.write.yaml_text import quoted

WORD = re.compile(r"[A-Za-z_]\w*")
VALUES = {*REFERENCES, "to"}


@dataclass(frozen=True, slots=True)
class Branch:
    """The draft of one config: the complete config, and the fields that were given."""

    name: str
    document: Document
    config: Mapping[str, Any]
    given: Mapping[str, Any]


@dataclass(slots=True)
class Entry:
    """An entry of some of the branches; the body of a repeat is merged in turn."""

    key: str
    fields: dict[str, Any]
    branches: frozenset[int]
    body: list[Entry] | None = None

    @property
    def head(self) -> str:
        """What is the same where it is the same entry."""
        return f"{self.key}: {quoted(self.fields)}"


def merged(branches: Sequence[Branch]) -> Document:
    """One document for all branches, the first one's names in all of them.

    Raises:
        SymflopsError: two branches cannot be told apart by their configs.
    """
    first = branches[0].document
    if len(branches) == 1:
        return first
    documents = [first]
    for branch in branches[1:]:
        documents.append(alike(documents, branch.document))
    taken = {name for one in documents for name in (*one.sizes, *one.derived, *one.lengths, *one.inputs, *one.streams)}
    taken |= {name for one in documents for name in made(list(one.entries))}
    differing = [key for branch in branches for key in leaves(branch.given)]
    moving = {str(fields["key"]) for one in documents for fields in one.sizes.values()}
    given = [key for key in dict.fromkeys(differing) if key not in moving]
    guards = guards_between([one.config for one in branches], given, taken, [one.name for one in branches])
    entries: list[Entry] = []
    for number, document in enumerate(documents):
        own = entries_of(document.entries, number)
        entries = joined(entries, own) if number else own
    return Document(
        first.title,
        first.reference,
        {**union([one.sizes for one in documents]), **guards.sizes},
        union([one.derived for one in documents]),
        union([one.streams for one in documents]),
        inputs_of(documents, guards),
        plain(entries, frozenset(range(len(documents))), guards),
        list(dict.fromkeys(name for one in documents for name in one.outputs)),
        list(dict.fromkeys(note for one in documents for note in one.unsolved)),
        union([one.lengths for one in documents]),
    )


def leaves(config: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The fields of a config, those of parts of it with dots."""
    found: list[str] = []
    for name, value in config.items():
        found += leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [f"{prefix}{name}"]
    return found


def union(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All rows, the first of a name."""
    found: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            found.setdefault(name, value)
    return found


def inputs_of(documents: Sequence[Document], guards: Guards) -> dict[str, Any]:
    """All inputs, those of some branches under their condition."""
    found: dict[str, Any] = {}
    for name, fields in union([one.inputs for one in documents]).items():
        condition = guards.of(frozenset(number for number, one in enumerate(documents) if name in one.inputs))
        found[name] = {**fields, "when": condition} if condition else fields
    return found


# the same names for the same things


def alike(known: Sequence[Document], other: Document) -> Document:
    """``other`` with the letters, lengths, streams and values of documents that came before it."""
    letters: dict[str, str] = {}
    taken = {name for one in known for name in (*one.sizes, *one.lengths, *one.derived)}
    for meanings in (keys, labels, texts):
        before = union([meanings(one) for one in known])
        for name, meaning in meanings(other).items():
            wanted = reworded(meaning, letters) if meanings is texts else meaning
            letters[name] = next((own for own, what in before.items() if what == wanted), "") or fresh(name, taken)
            taken.add(letters[name])
    streams: dict[str, str] = {}
    named = union([one.streams for one in known])
    for name, axes in other.streams.items():
        axes = deep(axes, letters)
        same = next((own for own, what in named.items() if what == axes), None)
        streams[name] = same or fresh(name, set(named))
    found = replace(
        other,
        sizes={letters[name]: fields for name, fields in other.sizes.items()},
        lengths={letters[name]: label for name, label in other.lengths.items()},
        derived={letters[name]: reworded(text, letters) for name, text in other.derived.items()},
        streams={streams[name]: deep(axes, letters) for name, axes in other.streams.items()},
        inputs={name: settled(fields, letters, streams) for name, fields in other.inputs.items()},
        entries=relettered(other.entries, letters, streams),
    )
    return valued(known[0], found)


def keys(one: Document) -> Mapping[str, str]:
    """The fields of the sizes."""
    return {name: str(fields["key"]) for name, fields in one.sizes.items()}


def labels(one: Document) -> Mapping[str, str]:
    """The dimensions of the lengths."""
    return one.lengths


def texts(one: Document) -> Mapping[str, str]:
    """The expressions of derived sizes."""
    return one.derived


def reworded(text: Any, letters: Mapping[str, str]) -> Any:
    """An expression in other letters."""
    return WORD.sub(lambda word: letters.get(word[0], word[0]), text) if isinstance(text, str) else text


def deep(value: Any, letters: Mapping[str, str]) -> Any:
    """Expressions within plain data in other letters."""
    if isinstance(value, Mapping):
        return {deep(name, letters): deep(item, letters) for name, item in value.items()}
    return [deep(item, letters) for item in value] if isinstance(value, (list, tuple)) else reworded(value, letters)


def settled(fields: Mapping[str, Any], letters: Mapping[str, str], streams: Mapping[str, str]) -> dict[str, Any]:
    """The fields of an input or an entry in other letters; names of values and of operators stay."""
    found: dict[str, Any] = {}
    for word, value in fields.items():
        if word == "graph":
            found[word] = relettered(value, letters, streams)
        elif word == "stream" and isinstance(value, str):
            found[word] = streams.get(value, value)
        else:
            found[word] = value if word in VALUES or word in ("op", "block") else deep(value, letters)
    return found


def relettered(entries: Sequence[Any], letters: Mapping[str, str], streams: Mapping[str, str]) -> list[Any]:
    """Entries in other letters."""
    return [(key, settled(fields, letters, streams)) for key, fields in entries]


def valued(first: Document, other: Document) -> Document:
    """``other`` with the names of values that the entries of ``first`` give, where both have the same entries."""
    own, theirs = list(flat(first.entries)), list(flat(other.entries))
    same = pairs([shape(one) for one in own], [shape(one) for one in theirs])
    bound, names = set(made(list(other.entries))) - set(other.inputs), dict[str, str]()
    for of in (results, operands):  # what both make is called the same, and what both read where it is made otherwise
        for here, there in same:
            for mine, found in zip(of(own[here]), of(theirs[there]), strict=False):
                held = [name for name, other_name in names.items() if other_name == mine]
                if found in bound and found not in names and all(gives_way(other, name, found) for name in held):
                    names[found] = mine
    taken = {*names.values(), *other.inputs}
    for name in made(list(other.entries)):
        if name not in names and name not in other.inputs:
            names[name] = fresh(name, taken)
            taken.add(names[name])
    entries = copy.deepcopy(list(other.entries))
    relabelled(entries, names)
    return replace(other, entries=entries, outputs=[names.get(name, name) for name in other.outputs])


def gives_way(document: Document, held: str, found: str) -> bool:
    """Whether nobody reads ``held`` any more where ``found`` is made beside it, so that one name is enough for both."""
    for body in bodies(document.entries):
        places = [place for place, entry in enumerate(body) if found in results(entry)]
        before = body[: places[0] + 1] if len(places) == 1 else []
        if any(held in results(entry) for entry in before[:-1]):
            read = [sum(list(reads(fields)).count(held) for _, fields in some) for some in (before, document.entries)]
            return read[0] == read[1] and not {held, found} & carried(list(body)) and held not in document.outputs
    return False


def bodies(entries: Sequence[Any]) -> Any:
    """All lists of entries, from the outermost on."""
    yield entries
    for _, fields in entries:
        if "graph" in fields:
            yield from bodies(fields["graph"])


def flat(entries: Sequence[Any]) -> Any:
    """All entries, those of bodies too."""
    for key, fields in entries:
        yield key, fields
        yield from flat(fields.get("graph", ()))


def shape(entry: Any) -> str:
    """What an entry is, whatever its values are called."""
    key, fields = entry
    rest = {word: value for word, value in fields.items() if word not in VALUES and word != "graph"}
    return f"{key}: {quoted(rest)} {len(results(entry))}"


def results(entry: Any) -> list[str]:
    """The names that an entry binds by itself."""
    to = entry[1].get("to", [])
    return [to] if isinstance(to, str) else list(to)


def operands(entry: Any) -> list[str]:
    """The names that an entry reads by itself, field by field."""
    return list(reads({word: value for word, value in entry[1].items() if word != "graph"}))


def pairs(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """The places where two sequences agree, in order."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


# entries side by side


def entries_of(entries: Sequence[Any], number: int) -> list[Entry]:
    """The entries of one branch."""
    found = []
    for key, fields in entries:
        head = {word: value for word, value in fields.items() if word != "graph"}
        body = entries_of(fields["graph"], number) if "graph" in fields else None
        found.append(Entry(key, head, frozenset([number]), body))
    return found


def joined(one: Sequence[Entry], other: Sequence[Entry]) -> list[Entry]:
    """Two lists of entries as one: what both have once, the rest where it stands."""
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


def plain(entries: Sequence[Entry], within: frozenset[int], guards: Guards) -> list[Any]:
    """Entries as a document has them; each that only some of the branches around it have is under a condition."""
    found = []
    for entry in entries:
        fields = dict(entry.fields)
        if entry.branches != within:
            fields["when"] = guards.of(entry.branches)
        if entry.body is not None:
            fields["graph"] = plain(entry.body, entry.branches, guards)
        found.append((entry.key, fields))
    return found
