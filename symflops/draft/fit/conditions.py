"""Finds conditions of a draft: on config fields that tell variants apart, and on the index of a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from symflops.draft.fit.symbols import Names, fresh
from symflops.draft.sample.samples import Family
from symflops.draft.vary.slots import is_whole
from symflops.support.findings import SymflopsError
from symflops.verify.census.fields import value_at


@dataclass(frozen=True, slots=True)
class Setting:
    """A config field that conditions test.

    Attributes:
        letter: Its letter in the spec.
        key: Its dotted path in the config.
        values: Its value in each config.
    """

    letter: str
    key: str
    values: tuple[Any, ...]

    def equals(self, value: Any) -> str:
        """Condition, as text, that the field equals ``value``."""
        if isinstance(value, bool) and all(isinstance(one, bool) for one in self.values):
            return self.letter if value else f"not {self.letter}"
        if value is None:
            return f"{self.letter} == null"
        if None in self.values and len(set(map(repr, self.values))) == 2:
            return f"{self.letter} != null"
        return f"{self.letter} == {written(value)}"

    def among(self, chosen: Sequence[int]) -> str:
        """Condition that the field is as in the ``chosen`` configs, which are given by number.

        It counts a value that no config has as that of the first config.
        """
        others = [number for number in range(len(self.values)) if number not in chosen]
        texts = list(dict.fromkeys(self.equals(self.values[number]) for number in (others if 0 in chosen else chosen)))
        if 0 not in chosen or set(map(type, self.values)) == {bool}:
            return " or ".join(texts) if 0 not in chosen else self.equals(self.values[chosen[0]])
        if len(texts) > 1:
            return f"not ({' or '.join(texts)})"
        return texts[0].replace(" != ", " == ") if " != " in texts[0] else texts[0].replace(" == ", " != ")

    def decides(self, chosen: Sequence[int]) -> bool:
        """Whether no value of the field is both in a ``chosen`` config (given by number) and in another one."""
        inside = {repr(self.values[number]) for number in chosen}
        return not inside & {repr(value) for number, value in enumerate(self.values) if number not in chosen}


def written(value: Any) -> str:
    """Literal of ``value`` in the expression language of specs."""
    return f"'{value}'" if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Guards:
    """Fields that together tell all configs apart.

    Attributes:
        settings: The fields.
        count: The number of configs.
    """

    settings: tuple[Setting, ...]
    count: int

    def of(self, chosen: frozenset[int]) -> str:
        """Condition that holds in exactly the configs with numbers ``chosen``; empty if these are all."""
        numbers = sorted(chosen)
        if len(numbers) == self.count:
            return ""
        alone = [one.among(numbers) for one in self.settings if one.decides(numbers)]
        if alone:
            return min(alone, key=len)
        return " or ".join(f"({' and '.join(one.equals(one.values[number]) for one in self.settings)})" for number in numbers)

    @property
    def sizes(self) -> dict[str, dict[str, Any]]:
        """Letter of a field -> its declaration for the ``sizes`` of the spec: ``key``, and ``default`` or ``optional``.

        The default is the text of the value in the first config; a field that is null there is optional.
        """
        return {
            one.letter: {"key": one.key}
            | ({"optional": "true"} if one.values[0] is None else {"default": written(one.values[0])})
            for one in self.settings
        }


def guards_between(configs: Sequence[Mapping[str, Any]], given: Sequence[str], taken: set[str], names: Sequence[str]) -> Guards:
    """Smallest set of fields that distinguishes all configs, preferring switches and words to numbers.

    Args:
        configs: The complete config of each variant.
        given: The keys to look at.
        taken: Names that letters must not have.
        names: The name of each variant, for the message.

    Returns:
        These fields; none if there is only one config.

    Raises:
        SymflopsError: Two configs do not differ in any of the fields.
    """
    settings = settings_between(configs, given, taken)
    for number in range(1, len(settings) + 1):
        for some in combinations(settings, number):
            if len({tuple(repr(one.values[place]) for one in some) for place in range(len(configs))}) == len(configs):
                return Guards(some, len(configs))
    if len(configs) == 1:
        return Guards((), 1)
    raise SymflopsError(
        f"variants {', '.join(filter(None, names))}: two of the configs do not differ in any switch, word or number that a "
        "condition could ask for"
    )


def settings_between(configs: Sequence[Mapping[str, Any]], given: Sequence[str], taken: set[str]) -> list[Setting]:
    """Fields among the keys ``given`` whose values differ between configs; those with fewest integers come first.

    ``taken`` are names that their letters must not have.
    """
    columns = {key: tuple(value_at(config, key.split(".")) for config in configs) for key in given}
    found = [
        Setting(fresh(key.rpartition(".")[2], taken), key, values)
        for key, values in columns.items()
        if len(set(map(repr, values))) > 1 and all(value is None or isinstance(value, (bool, str, int)) for value in values)
    ]
    return sorted(found, key=lambda one: sum(is_whole(value) for value in one.values))


Test = Callable[[int, int], bool]
PERIODS = range(2, 9)


@dataclass(frozen=True, slots=True)
class Rows:
    """Which items of a module list are of one kind, in each sample (run with another config).

    Attributes:
        starts: The index of the first item in each sample.
        truths: For each sample, whether each item is of the kind.
    """

    starts: Sequence[int]
    truths: Sequence[Sequence[bool]]

    def are(self, test: Test, of_kind: bool = True) -> bool:
        """Whether a test of (sample, index) selects exactly the items of the kind in every sample.

        If ``of_kind`` is False: exactly the other items.
        """
        return all(
            test(sample, start + place) == (truth == of_kind)
            for sample, (start, truths) in enumerate(zip(self.starts, self.truths, strict=True))
            for place, truth in enumerate(truths)
        )

    @property
    def ends(self) -> list[int]:
        """Index after the last item of the module list, in each sample."""
        return [start + len(truths) for start, truths in zip(self.starts, self.truths, strict=True)]


def condition(rows: Rows, index: str, count: str, family: Family, names: Names) -> str | None:
    """Condition on the index of a loop that holds for exactly the items of one kind.

    Args:
        rows: Which items are of the kind.
        index: The letter of the index.
        count: The number of items, as a formula.
        family: The samples.
        names: The letters of sizes; a list that the condition reads is added.

    Returns:
        The condition by position, sizes, config lists or constants, whichever fits first; None if none does.
    """
    for yes, no, test in (
        *of_ends(rows, index, count),
        *of_sizes(index, names),
        *of_lists(rows, index, family, names),
        *of_numbers(rows, index),
    ):
        if rows.are(test):
            return yes()
        if rows.are(test, of_kind=False):
            return no()
    return None


# functions that return a condition and its negation, and the test of (sample, index) that it makes
Candidate = tuple[Callable[[], str], Callable[[], str], Test]


def candidate(yes: str, no: str, test: Test) -> Candidate:
    """Candidate (functions that return a condition and its negation, and the test) from two fixed texts."""
    return lambda: yes, lambda: no, test


def equation(term: str, value: str | int, test: Test) -> Candidate:
    """Candidate condition ``term == value``, which has the given test."""
    return candidate(f"{term} == {value}", f"{term} != {value}", test)


def bound(index: str, end: str | int, ends: Sequence[int]) -> Candidate:
    """Candidate condition ``index < end``; ``ends`` has the value of ``end`` in each sample."""
    return candidate(f"{index} < {end}", f"{index} >= {end}", lambda sample, i: i < ends[sample])


def of_ends(rows: Rows, index: str, count: str) -> Iterator[Candidate]:
    """Candidate conditions for the first one to three items, or all but the last one to three."""
    for number in (1, 2, 3):
        yield bound(index, number, [number] * len(rows.ends))
        if count.isidentifier() and not any(rows.starts):
            yield bound(index, f"{count} - {number}", [end - number for end in rows.ends])


def of_sizes(index: str, names: Names) -> Iterator[Candidate]:
    """Candidate conditions that compare the index with a size, or its remainder modulo a size."""
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
    """Candidate conditions that read a config list at the index, or test whether the list has the index."""
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
    """Function that returns ``text`` with the letter of the config list at ``key`` for ``LIST``.

    A list without a letter gets one then, so that unused candidates leave no letters in ``names``.
    """
    return lambda: text.replace("LIST", letter_of_list(key, names, "in LIST" in text))


def of_numbers(rows: Rows, index: str) -> Iterator[Candidate]:
    """Candidate conditions for every n-th item, with constant periods and offsets."""
    count = len(rows.starts)
    for period in PERIODS:
        for offset in range(period):
            text = f"({index} + 1) % {period}" if offset == period - 1 else f"{index} % {period}"
            yield equation(text, 0 if offset == period - 1 else offset, remainder([period] * count, [offset] * count))


def remainder(periods: Sequence[int], offsets: Sequence[int]) -> Test:
    """Test of (sample, index): the index modulo the sample's period equals the sample's offset."""
    return lambda sample, i: i % periods[sample] == offsets[sample]


def has_word(columns: Sequence[Sequence[Any]], word: Any) -> Test:
    """Test of (sample, index): the sample's list, one of ``columns``, has ``word`` at the index."""
    return lambda sample, i: bool(columns[sample][i] == word)


def among(columns: Sequence[Sequence[Any]]) -> Test:
    """Test of (sample, index): the sample's list, one of ``columns``, contains the index."""
    return lambda sample, i: i in columns[sample]


def lists_in(config: Any, key: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Sequence[Any]]]:
    """Pairs (key, list) of the lists of strings, integers or booleans in a config that is at ``key``."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from lists_in(value, (*key, name))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(item, (str, int)) for item in value):
            yield (*key, name), value


def letter_of_list(key: tuple[Any, ...], names: Names, numbers: bool) -> str:
    """Letter of the config list at ``key``; ``names`` gets the letter if the list has none yet.

    ``numbers`` says that it is a list of indices, which may be missing from a config.
    """
    known = next((letter for letter, one in names.sizes.items() if one == key), None)
    letter = known or fresh(str(key[-1]).rpartition("_")[2] or "kinds", {*names.sizes, *names.lengths})
    names.sizes[letter] = key
    names.listed[letter] = numbers
    return letter
