"""The sizes of a model, read from a config."""

from __future__ import annotations

from symflops.model.evaluate import ConfigError
from symflops.runtime.census import check_census
from symflops.runtime.config import as_read, checked, is_null, is_whole, look_up
from symflops.runtime.stored import plain

__all__ = ["checked", "default", "is_null", "is_whole", "look_up", "sizes_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.runtime.stored import Stored


def default(field: Mapping[str, Any], program: Stored, known: Mapping[str, Any]) -> Any:
    """What a size is when the config lacks it."""
    return _settled(field, field["default"], program, known)


def of_null(field: Mapping[str, Any], program: Stored, known: Mapping[str, Any]) -> Any:
    """What a size is when the config has null there.

    Without facts about the class that reads the config, null is as absent. A class that takes null takes a flag as false.

    Raises:
        ConfigError: the class takes null, and the spec does not say what it makes of it.
    """
    if "null" in field:
        return _settled(field, field["null"], program, known)
    if field.get("nullable"):
        return None
    if not program.document.get("reading"):
        return default(field, program, known)
    if field["kind"] == "flag":
        return False
    raise ConfigError(f"the config's '{field['keys'][0]}' is null: leave it out for its default")


def _settled(field: Mapping[str, Any], given: Any, program: Stored, known: Mapping[str, Any]) -> Any:
    if isinstance(given, dict) and "formula" in given:
        return program.formulas.settled(given["formula"], known)
    if given is None and field["required"]:
        raise ConfigError(f"the config has no '{field['keys'][0]}'")
    return plain(given)


def sizes_of(program: Stored, config: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every letter of ``program``, derived ones included; a nullable size that is absent is None.

    Raises:
        ConfigError: a field that has no default is missing, one is not of its type, the census refuses its value, or
            sizes do not fit each other.
    """
    config = as_read(program.document, config)
    check_census(program.document, config)
    known: dict[str, Any] = {}
    for field in program.document["fields"]:
        keys = field["keys"]
        value = look_up(config, keys)
        if value is not None:
            known[field["letter"]] = checked(field["kind"], keys[0], value, field.get("items", ""))
        else:
            known[field["letter"]] = (of_null if is_null(config, keys) else default)(field, program, known)
    for row in program.document["definitions"]:
        known[row["letter"]] = program.formulas.settled(row["formula"], known)
    for row in program.document.get("requirements", ()):
        if program.formulas.settled(row["formula"], known) != 0:
            raise ConfigError(f"the config does not fit the model: {row['text']}")
    return known
