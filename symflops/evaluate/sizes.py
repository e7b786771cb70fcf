"""Reads the sizes of a model from a config, and checks that they fit each other."""

from __future__ import annotations

from symflops.evaluate.classes import check_census, failure
from symflops.evaluate.config import as_read, checked, is_null, is_whole, look_up
from symflops.evaluate.stored import config_value
from symflops.formula.table import ConfigError

__all__ = ["checked", "default", "is_null", "is_whole", "look_up", "sizes_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.evaluate.stored import Stored


def default(field: Mapping[str, Any], program: Stored, known: Mapping[str, Any]) -> Any:
    """Evaluate the default of a size that the config omits; ``known`` has the values of earlier sizes."""
    return _value_of(field, field["default"], program, known)


def of_null(field: Mapping[str, Any], program: Stored, known: Mapping[str, Any]) -> Any:
    """Evaluate a size that is null in the config; ``known`` has the values of earlier sizes.

    The spec may give null a meaning. Otherwise, if the program has no ``reading`` (facts about how the class reads configs),
    null means the default. With a ``reading``, a null flag is False, and a null number becomes a :class:`MissingSize`.
    """
    if "null" in field:
        return _value_of(field, field["null"], program, known)
    if field.get("nullable"):
        return None
    if not program.document.get("reading"):
        return default(field, program, known)
    if field["kind"] == "flag":
        return False
    return MissingSize(f"the config's '{field['keys'][0]}' is null: leave it out for its default")


class MissingSize:
    """Placeholder for the value of a missing size; any arithmetic on the placeholder raises ConfigError.

    With it, parameters that do not depend on the size can be counted. For example, a class may be built with null as the number
    of experts per token, and fail only when it runs.
    """

    def __init__(self, message: str) -> None:
        self.message = message

    def _refuse(self, *_: Any) -> Any:
        raise ConfigError(self.message)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __int__ = __index__ = __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def unanswered(program: Stored, config: Mapping[str, Any], sizes: Mapping[str, Any]) -> str:
    """Explain why a config has no FLOPs (a size is missing, or its class cannot run); empty if it has."""
    told = next((value.message for value in sizes.values() if type(value) is MissingSize), "")
    return told or failure(program.document, as_read(program.document, config))


def _value_of(field: Mapping[str, Any], given: Any, program: Stored, known: Mapping[str, Any]) -> Any:
    if isinstance(given, dict) and "formula" in given:
        return program.formulas.checked(given["formula"], known)
    if given is None and field["required"]:
        raise ConfigError(f"the config has no '{field['keys'][0]}'")
    return config_value(given)


def sizes_of(program: Stored, config: Mapping[str, Any]) -> dict[str, Any]:
    """Map each letter of ``program``, derived sizes included, to its value for a config.

    A nullable size that is null is None. A null size without a meaning in the spec is a :class:`MissingSize`. Use
    :func:`check_fit` with the program of the config's structure to check that sizes fit each other.

    Raises:
        ConfigError: a field that has no default is missing, one is not of its type, or the census refuses its value.
    """
    config = as_read(program.document, config)
    check_census(program.document, config, idle=True)
    known: dict[str, Any] = {}
    for field in program.document["fields"]:
        keys = field["keys"]
        value = look_up(config, keys)
        if value is not None:
            known[field["letter"]] = checked(field["kind"], keys[0], value, field.get("items", ""))
        else:
            known[field["letter"]] = (of_null if is_null(config, keys) else default)(field, program, known)
    return defined(program, known)


def defined(program: Stored, known: dict[str, Any]) -> dict[str, Any]:
    """Add the values of derived sizes to ``known`` (letter -> value), in place, and return ``known``.

    A derived size without a value is a :class:`MissingSize` if ``known`` has another one.
    """
    for row in program.document["definitions"]:
        try:
            known[row["letter"]] = program.formulas.checked(row["formula"], known)
        except ConfigError as error:
            if not any(type(value) is MissingSize for value in known.values()):
                raise
            known[row["letter"]] = MissingSize(str(error))
    return known


def check_fit(program: Stored, sizes: Mapping[str, Any]) -> None:
    """Check that sizes meet the requirements of a program.

    Raises:
        ConfigError: a requirement is not met.
    """
    for row in program.document.get("requirements", ()):
        if not holds(program, row["formula"], sizes):
            raise ConfigError(f"the config does not fit the model: {row['text']}")


def holds(program: Stored, formula: int, sizes: Mapping[str, Any]) -> bool:
    """Whether a requirement, the formula at a position, is met: whether its value is 0.

    True if it depends on a missing list entry or a missing size; False if it has no value for another reason.
    """
    try:
        return bool(program.formulas.value(formula, sizes) == 0)
    except (LookupError, ConfigError):
        return True
    except (ArithmeticError, TypeError, ValueError):
        return False
