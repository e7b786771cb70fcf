"""The sizes of a model, read from a config."""

from __future__ import annotations

from symflops.model.evaluate import ConfigError
from symflops.runtime.stored import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from symflops.runtime.stored import Stored

LARGEST = 10**15
MOST = 100_000


def look_up(config: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The first of ``keys`` (points walk into nested configs) that is there and not null, else None."""
    for key in keys:
        value: Any = config
        for word in key.split("."):
            value = value.get(word) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def is_null(config: Mapping[str, Any], keys: Sequence[str]) -> bool:
    """Whether one of ``keys`` is there and null, and none has a value."""
    if look_up(config, keys) is not None:
        return False
    for key in keys:
        *outer, last = key.split(".")
        value = look_up(config, [".".join(outer)]) if outer else config
        if isinstance(value, dict) and last in value:
            return True
    return False


def is_whole(value: Any, most: int = LARGEST - 1, least: int = 0) -> bool:
    """Whether a value is an integer between ``least`` and ``most``; a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


KINDS: dict[str, Callable[[Any], bool]] = {
    "flag": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "list": lambda value: isinstance(value, (list, tuple)),
    "any": lambda value: isinstance(value, (int, float, str, list, tuple)),
    "entries": lambda value: isinstance(value, (dict, list, tuple)) or is_whole(value),
    "number": is_whole,
    "number or list": lambda value: all(map(is_whole, value)) if isinstance(value, (list, tuple)) else is_whole(value),
    "count": lambda value: is_whole(value, MOST),
    "position": lambda value: is_whole(value, MOST, -MOST),
    "rational": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LARGEST,
}
"""Per kind of size, whether a value of a config is one."""


def checked(kind: str, key: str, value: Any) -> Any:
    """The ``value`` that a config has under ``key``, as a size of ``kind``: lists as tuples, rationals as Fractions.

    Raises:
        ConfigError: it is not of that kind.
    """
    if kind not in KINDS or not KINDS[kind](value):
        raise ConfigError(f"the config's '{key}' is {value!r}, not a {kind}")
    if kind == "rational":
        from fractions import Fraction

        return Fraction(repr(value))
    if kind == "entries" and not isinstance(value, int):
        return len(value)
    return tuple(value) if isinstance(value, list) else value


def default(field: Mapping[str, Any], program: Stored, known: Mapping[str, Any]) -> Any:
    """What a size is when the config lacks it."""
    given = field["default"]
    if isinstance(given, dict) and "formula" in given:
        return program.formulas.settled(given["formula"], known)
    if given is None and field["required"]:
        raise ConfigError(f"the config has no '{field['keys'][0]}'")
    return plain(given)


def sizes_of(program: Stored, config: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every letter of ``program``, derived ones included; a nullable size that is absent is None.

    Raises:
        ConfigError: a field that has no default is missing, or one is not of its type.
    """
    known: dict[str, Any] = {}
    for field in program.document["fields"]:
        keys, letter = field["keys"], field["letter"]
        value = look_up(config, keys)
        if value is not None:
            known[letter] = checked(field["kind"], keys[0], value)
        else:
            known[letter] = None if field.get("nullable") and is_null(config, keys) else default(field, program, known)
    for row in program.document["definitions"]:
        known[row["letter"]] = program.formulas.settled(row["formula"], known)
    return known
