"""Finds conditions on config fields that distinguish variants of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from symflops.draft.fit.symbols import fresh, value_at
from symflops.draft.vary.slots import is_whole
from symflops.support.findings import SymflopsError


@dataclass(frozen=True, slots=True)
class Setting:
    """A config field tested by a condition: its letter, its key, and its value in each config."""

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
        """Letter -> fields for the ``sizes`` of the spec; the default is the value in the first config."""
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
    """Fields among the keys ``given`` whose values differ between configs, fewest numbers first.

    ``taken`` are names that their letters must not have.
    """
    columns = {key: tuple(value_at(config, key.split(".")) for config in configs) for key in given}
    found = [
        Setting(fresh(key.rpartition(".")[2], taken), key, values)
        for key, values in columns.items()
        if len(set(map(repr, values))) > 1 and all(value is None or isinstance(value, (bool, str, int)) for value in values)
    ]
    return sorted(found, key=lambda one: sum(is_whole(value) for value in one.values))
