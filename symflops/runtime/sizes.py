"""The sizes of a program, read from a config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.model.formula import Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text, evaluate
from symflops.model.program import Field, Program

FORMULAS = (Num, Sym, Text, Sum, Prod, Power, Apply, Bracket, TallyOf)
LARGEST = 10**15
MOST = 100_000


class ConfigError(SymflopsError):
    """A config lacks what a size needs, or holds something of another type."""


def settled(formula: Formula, names: Mapping[str, Any]) -> Any:
    """The value of a formula.

    Raises:
        ConfigError: it has none for these sizes: a division by zero, a list that is too short, a text where a number is read.
    """
    try:
        return evaluate(formula, names)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"the config does not fit the model: {error}") from None


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


def checked(field: Field, value: Any) -> Any:
    """``value`` of a config as a size of the field's kind.

    Raises:
        ConfigError: it is not of that kind.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match field.kind:
        case "flag" if isinstance(value, bool):
            return value
        case "text" if isinstance(value, str):
            return value
        case "list" if isinstance(value, (list, tuple)):
            return tuple(value)
        case "any" if isinstance(value, (int, float, str, list, tuple)):
            return tuple(value) if isinstance(value, list) else value
        case "entries" if isinstance(value, (dict, list, tuple)):
            return len(value)
        case "number or list" if isinstance(value, (list, tuple)) and all(_whole(item) for item in value):
            return tuple(value)
        case "number" | "entries" | "number or list" if _whole(value):
            return value
        case "count" if number and isinstance(value, int) and 0 <= value <= MOST:
            return value
        case "position" if number and isinstance(value, int) and -MOST <= value <= MOST:
            return value
        case "rational" if number and 0 <= value < LARGEST:
            return Fraction(repr(value))
    raise ConfigError(f"the config's '{field.keys[0]}' is {value!r}, not a {field.kind}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def default(field: Field, known: Mapping[str, Any]) -> Any:
    """What a size is when the config lacks it."""
    if isinstance(field.default, FORMULAS):
        return settled(field.default, known)
    if field.default is None and field.required:
        raise ConfigError(f"the config has no '{field.keys[0]}'")
    return field.default


def sizes_of(program: Program, config: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every letter of ``program``, derived ones included; a nullable size that is absent is None.

    Raises:
        ConfigError: a field that has no default is missing, or one is not of its type.
    """
    known: dict[str, Any] = {}
    for field in program.fields:
        value = look_up(config, field.keys)
        if value is not None:
            known[field.letter] = checked(field, value)
        else:
            known[field.letter] = None if field.nullable and is_null(config, field.keys) else default(field, known)
    for definition in program.definitions:
        known[definition.letter] = settled(definition.formula, known)
    return known
