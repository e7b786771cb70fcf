"""Finds conditions on the index of a list: which items are of a kind, by sizes and lists of the config, over all samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.symbols import Names, fresh
from symflops.draft.sample.family import Family
from symflops.draft.vary.slots import is_whole

Test = Callable[[int, int], bool]
PERIODS = range(2, 9)


@dataclass(frozen=True, slots=True)
class Rows:
    """Which items of a list are of a kind: for each sample the index of its first item, and a truth value for each item."""

    starts: Sequence[int]
    truths: Sequence[Sequence[bool]]

    def are(self, test: Test, of_kind: bool = True) -> bool:
        """Whether a test holds for the items of the kind, and for no other, in every sample; or for just the others."""
        return all(
            test(sample, start + place) == (truth == of_kind)
            for sample, (start, truths) in enumerate(zip(self.starts, self.truths, strict=True))
            for place, truth in enumerate(truths)
        )

    @property
    def ends(self) -> list[int]:
        """For each sample the index after its last item."""
        return [start + len(truths) for start, truths in zip(self.starts, self.truths, strict=True)]


def condition(rows: Rows, index: str, count: str, family: Family, names: Names) -> str | None:
    """A condition that says which items are of a kind, of sizes, then lists, then numbers; None if none is found."""
    for yes, no, test in (
        *of_ends(rows, index, count),
        *of_sizes(rows, index, names),
        *of_lists(rows, index, family, names),
        *of_numbers(rows, index),
    ):
        if rows.are(test):
            return yes()
        if rows.are(test, of_kind=False):
            return no()
    return None


Candidate = tuple[Callable[[], str], Callable[[], str], Test]


def candidate(yes: str, no: str, test: Test) -> Candidate:
    """A candidate whose texts are known."""
    return lambda: yes, lambda: no, test


def equation(term: str, value: str | int, test: Test) -> Candidate:
    """A candidate that compares a term with a value."""
    return candidate(f"{term} == {value}", f"{term} != {value}", test)


def bound(index: str, end: str | int, ends: Sequence[int]) -> Candidate:
    """A candidate for the items below an end."""
    return candidate(f"{index} < {end}", f"{index} >= {end}", lambda sample, i: i < ends[sample])


def of_ends(rows: Rows, index: str, count: str) -> Iterator[Candidate]:
    """The first items, or all but the last ones."""
    for number in (1, 2, 3):
        yield bound(index, number, [number] * len(rows.ends))
        if count.isidentifier() and not any(rows.starts):
            yield bound(index, f"{count} - {number}", [end - number for end in rows.ends])


def of_sizes(rows: Rows, index: str, names: Names) -> Iterator[Candidate]:
    """Items below a size, or one in so many, by sizes."""
    sizes = {name: vector for name, vector in names.vectors.items() if name in names.sizes}
    for name, values in sizes.items():
        yield bound(index, name, values)
        yield equation(index, name, remainder([1 << 40] * len(values), values))
    for name, values in sizes.items():
        yield equation(f"({index} + 1) % {name}", 0, remainder(values, [value - 1 for value in values]))
        rests = {number: remainder(values, [number] * len(values)) for number in (0, 1, 2, 3)}
        yield from (equation(f"{index} % {name}", number, test) for number, test in rests.items())
    for name, values in sizes.items():
        for other, offsets in sizes.items():
            if other != name:
                yield equation(f"{index} % {name}", other, remainder(values, offsets))


def of_lists(rows: Rows, index: str, family: Family, names: Names) -> Iterator[Candidate]:
    """What a list of the config says of an item, or whether it has the item's index."""
    every = [dict(lists_in(sample.config, ())) for sample in family.samples]
    for key, items in every[0].items():
        columns = [lists.get(key, ()) for lists in every]
        if all(len(column) >= end for column, end in zip(columns, rows.ends, strict=True)):
            for word in dict.fromkeys(items):
                shown = f"'{word}'" if isinstance(word, str) else str(word).lower()
                yes, no = (of_list(f"LIST[{index}] {sign} {shown}", key, names) for sign in ("==", "!="))
                yield yes, no, has_word(columns, word)
        if all(is_whole(item) for column in columns for item in column):
            yes, no = (of_list(f"{index} {word} LIST", key, names) for word in ("in", "not in"))
            yield yes, no, among(columns)


def of_list(text: str, key: tuple[Any, ...], names: Names) -> Callable[[], str]:
    """A condition on a list of the config; the list gets a letter when the condition is chosen."""
    return lambda: text.replace("LIST", named(key, names, "in LIST" in text))


def of_numbers(rows: Rows, index: str) -> Iterator[Candidate]:
    """One in so many, by plain numbers."""
    count = len(rows.starts)
    for period in PERIODS:
        for offset in range(period):
            text = f"({index} + 1) % {period}" if offset == period - 1 else f"{index} % {period}"
            yield equation(text, 0 if offset == period - 1 else offset, remainder([period] * count, [offset] * count))


def remainder(periods: Sequence[int], offsets: Sequence[int]) -> Test:
    """Whether an index leaves a remainder."""
    return lambda sample, i: i % periods[sample] == offsets[sample]


def has_word(columns: Sequence[Sequence[Any]], word: Any) -> Test:
    """Whether a list has a word at an index."""
    return lambda sample, i: bool(columns[sample][i] == word)


def among(columns: Sequence[Sequence[Any]]) -> Test:
    """Whether an index is in a list."""
    return lambda sample, i: i in columns[sample]


def lists_in(config: Any, key: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Sequence[Any]]]:
    """The lists of words, numbers or truth values of a config."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from lists_in(value, (*key, name))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(item, (str, int)) for item in value):
            yield (*key, name), value


def named(key: tuple[Any, ...], names: Names, numbers: bool) -> str:
    """The letter of a list of the config; a list of ``numbers`` may be missing."""
    known = next((letter for letter, one in names.sizes.items() if one == key), None)
    letter = known or fresh(str(key[-1]).rpartition("_")[2] or "kinds", {*names.sizes, *names.lengths})
    names.sizes[letter] = key
    names.listed[letter] = numbers
    return letter
