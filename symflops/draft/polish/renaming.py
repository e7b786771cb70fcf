"""Gives a draft the names of other drafts: the same letters for the same sizes, the same names for the same values."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from symflops.draft.fit.symbols import fresh
from symflops.draft.polish.entries import REFERENCES, carried, count, flat, made, operands, rename, results
from symflops.draft.write.draft_document import Document
from symflops.draft.write.yaml_text import quoted

WORD = re.compile(r"[A-Za-z_]\w*")
VALUES = {*REFERENCES, "to"}


def union(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows of all tables; of one name the first."""
    found: dict[str, Any] = {}
    for table in tables:
        found = {**found, **table, **found}
    return found


def renamed(known: Sequence[Document], other: Document) -> Document:
    """A document with the letters, lengths and streams of all ``known`` ones, and the values of the first."""
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
    """A letter for each size, length and derived size: the one that it has in another document, or a free one."""
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
    """What letters stand for: the fields of sizes, the dimensions of lengths, the expressions of derived sizes."""
    return {name: str(fields["key"]) for name, fields in one.sizes.items()}, one.lengths, one.derived


def name_of(meaning: Any, known: Mapping[str, Any], name: str, taken: set[str]) -> str:
    """The known name of a meaning, or one like ``name`` that is free."""
    return next((own for own, what in known.items() if what == meaning), "") or fresh(name, taken)


def relettered(value: Any, letters: Mapping[str, str]) -> Any:
    """Expressions within plain data in other letters."""
    if isinstance(value, Mapping):
        return {relettered(name, letters): relettered(item, letters) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [relettered(item, letters) for item in value]
    return WORD.sub(lambda word: letters.get(word[0], word[0]), value) if isinstance(value, str) else value


def relettered_fields(fields: Mapping[str, Any], letters: Mapping[str, str], streams: Mapping[str, str]) -> dict[str, Any]:
    """The fields of an input or an entry in other letters; names of values and of operators stay."""
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
    """Entries in other letters."""
    return [(key, relettered_fields(fields, letters, streams)) for key, fields in entries]


def with_values_of(first: Document, other: Document) -> Document:
    """A document with the names that ``first`` gives to values, as far as both have the same entries."""
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
    """Values of ``other`` -> the values of ``first`` in the same places of equal entries, results before operands."""
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
    """Whether nothing reads ``owner`` any more once ``found`` is made beside it, so that one name is enough for both."""
    for body in [document.entries, *(fields["graph"] for _, fields in flat(document.entries) if "graph" in fields)]:
        places = [place for place, (_, fields) in enumerate(body) if found in results(fields)]
        before = body[: places[0] + 1] if len(places) == 1 else []
        if any(owner in results(fields) for _, fields in before[:-1]):
            earlier = count(before, owner) == count(document.entries, owner)
            return earlier and not {owner, found} & carried(body) and owner not in document.outputs
    return False


def pairs(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """The places at which two sequences agree, in order."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def shape(entry: Any) -> str:
    """What an entry is, whatever its values are called."""
    key, fields = entry
    rest = {word: value for word, value in fields.items() if word not in VALUES and word != "graph"}
    return f"{key}: {quoted(rest)} {len(results(fields))}"
