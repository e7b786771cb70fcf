"""Finds conditions on the index of a list: which items are of a kind, in sizes and lists of the config, over all samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.symbols import Names, fresh
from symflops.draft.sample.family import Family

Test = Callable[[int, int], bool]
PERIODS = range(2, 9)


@dataclass(frozen=True, slots=True)
class Rows:
    """Which items of a list are of a kind: for each sample the index of its first item, and a truth value for each item."""

    starts: Sequence[int]
    truths: Sequence[Sequence[bool]]

    def are(self, test: Test) -> bool:
        """Whether a test says the same of every item of every sample."""
        return all(
            test(sample, start + place) == truth
            for sample, (start, truths) in enumerate(zip(self.starts, self.truths, strict=True))
            for place, truth in enumerate(truths)
        )

    @property
    def otherwise(self) -> Rows:
        """The items that are not of the kind."""
        return Rows(self.starts, [[not truth for truth in truths] for truths in self.truths])


def condition(rows: Rows, index: str, count: str, family: Family, names: Names) -> str | None:
    """A condition that says which items are of a kind, sizes first, then lists, then numbers; None where none is found."""
    other = rows.otherwise
    for yes, no, test in (
        *of_sizes(rows, index, count, names),
        *of_lists(rows, index, family, names),
        *of_numbers(rows, index),
    ):
        if rows.are(test):
            return yes()
        if other.are(test):
            return no()
    return None


Candidate = tuple[Callable[[], str], Callable[[], str], Test]


def candidate(yes: str, no: str, test: Test) -> Candidate:
    """A candidate whose texts are known."""
    return lambda: yes, lambda: no, test


def of_sizes(rows: Rows, index: str, count: str, names: Names) -> Iterator[Candidate]:
    """The first items, the last ones, one in so many."""
    sizes = {name: vector for name, vector in names.vectors.items() if name in names.sizes}
    ends = [start + len(truths) for start, truths in zip(rows.starts, rows.truths, strict=True)]
    for number in (1, 2, 3):
        yield candidate(f"{index} < {number}", f"{index} >= {number}", below([number] * len(ends)))
        if count.isidentifier() and not any(rows.starts):
            last = f"{count} - {number}"
            yield candidate(f"{index} < {last}", f"{index} >= {last}", below([end - number for end in ends]))
    for name, values in sizes.items():
        yield candidate(f"{index} < {name}", f"{index} >= {name}", below(values))
        yield candidate(f"{index} == {name}", f"{index} != {name}", remainder([1 << 40] * len(values), values))
    zeros = [0] * len(ends)
    for name, values in sizes.items():
        lasts = [value - 1 for value in values]
        yield candidate(f"({index} + 1) % {name} == 0", f"({index} + 1) % {name} != 0", remainder(values, lasts))
        yield candidate(f"{index} % {name} == 0", f"{index} % {name} != 0", remainder(values, zeros))
        for number in (1, 2, 3):
            text = f"{index} % {name}"
            yield candidate(f"{text} == {number}", f"{text} != {number}", remainder(values, [number] * len(ends)))
    for name, values in sizes.items():
        for other, offsets in sizes.items():
            if other != name:
                yield candidate(f"{index} % {name} == {other}", f"{index} % {name} != {other}", remainder(values, offsets))


def of_lists(rows: Rows, index: str, family: Family, names: Names) -> Iterator[Candidate]:
    """What a list of the config says of an item, or that it has the item's index."""
    every = [dict(lists_in(sample.config, ())) for sample in family.samples]
    for key, items in every[0].items():
        columns = [lists.get(key, ()) for lists in every]
        ends = [start + len(truths) for start, truths in zip(rows.starts, rows.truths, strict=True)]

        def text(said: str, key: tuple[Any, ...] = key) -> Callable[[], str]:
            return lambda: said.replace("LIST", named(key, names, "in LIST" in said))

        if all(len(column) >= end for column, end in zip(columns, ends, strict=True)):
            for word in dict.fromkeys(items):
                shown = f"'{word}'" if isinstance(word, str) else str(word).lower()
                yield text(f"LIST[{index}] == {shown}"), text(f"LIST[{index}] != {shown}"), said_of(columns, word)
        if all(isinstance(item, int) and not isinstance(item, bool) for column in columns for item in column):
            yield text(f"{index} in LIST"), text(f"{index} not in LIST"), among(columns)


def of_numbers(rows: Rows, index: str) -> Iterator[Candidate]:
    """One in so many, by plain numbers."""
    count = len(rows.starts)
    for period in PERIODS:
        for offset in range(period):
            text = f"({index} + 1) % {period}" if offset == period - 1 else f"{index} % {period}"
            told = 0 if offset == period - 1 else offset
            yield candidate(f"{text} == {told}", f"{text} != {told}", remainder([period] * count, [offset] * count))


def below(ends: Sequence[int]) -> Test:
    """Whether an index is below a number."""
    return lambda sample, i: i < ends[sample]


def remainder(periods: Sequence[int], offsets: Sequence[int]) -> Test:
    """Whether an index leaves a remainder."""
    return lambda sample, i: i % periods[sample] == offsets[sample]


def said_of(columns: Sequence[Sequence[Any]], word: Any) -> Test:
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
    """The letter of a list of the config; one of ``numbers`` may be absent."""
    known = next((letter for letter, one in names.sizes.items() if one == key), None)
    letter = known or fresh(str(key[-1]).rpartition("_")[2] or "kinds", {*names.sizes, *names.lengths})
    names.sizes[letter] = key
    names.listed[letter] = numbers
    return letter
