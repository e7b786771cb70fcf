"""Normalises a config as its class reads it, and checks the values of its fields.

A stored program may have a ``reading``: facts about the class that :mod:`symflops.verify.class_reading` measures; tests
compare them with the class.
"""

from __future__ import annotations

from symflops.formula.table import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


def as_read(document: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """Normalise ``config`` as its class reads it: nested dicts, one name per field, no default nulls.

    ``config`` may be a config object, such as one of transformers or diffusers. The function is idempotent.

    Raises:
        ConfigError: the class or the spec does not support a field's null, type or alternative name.
    """
    found = as_json(config)
    if not isinstance(found, dict):
        raise ConfigError(f"a config is a JSON object, not {type(config).__name__}")
    return _fields_read(_table_of(document, found), found, "")


def places_of(document: Mapping[str, Any], config: Mapping[str, Any], name: str) -> list[str]:
    """The paths under which the spec may read what a config has at the path ``name``: without aliases, inside the sections."""
    return list(_places_in(_table_of(document, config), name))


def _table_of(document: Mapping[str, Any], config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts about how the class of a config reads it; empty if nothing is known."""
    reading = document.get("reading")
    if not reading:
        return {}
    named, tables = config.get("architectures"), reading["tables"]
    names = [*(named if isinstance(named, list) else ()), config.get("_class_name")]
    known = [reading["classes"][name] for name in names if isinstance(name, str) and name in reading.get("classes", ())]
    found: Mapping[str, Any] = tables[known[0] if known else next(iter(tables))]
    return found


def _places_in(table: Mapping[str, Any], name: str) -> Iterator[str]:
    first, dot, rest = name.partition(".")
    for part, inner in table.get("parts", {}).items():
        within = rest if first in (part, inner.get("instead")) else name if name in inner.get("flat", ()) else ""
        yield from (f"{part}.{place}" for place in (_places_in(inner, within) if within else ()))
    if first not in table.get("parts", {}) or not rest:
        own = next((one for one, others in table.get("names", {}).items() if first in others), first)
        yield f"{own}{dot}{rest}"


PLAIN = frozenset((str, int, float, bool))


def as_json(value: Any, around: tuple[int, ...] = ()) -> Any:
    """Convert a config object of any library to dicts and lists; other values are unchanged.

    Supports mappings, objects with ``to_dict`` or ``model_dump``, dataclasses, attrs classes, named tuples, namespaces and
    objects with attributes, nested in any way.

    Raises:
        ConfigError: an object's fields cannot be read.
    """
    if isinstance(value, (str, bytes, int, float, type, type(None))) or len(around) > 16 or id(value) in around:
        return value
    around = (*around, id(value))
    if hasattr(value, "_value_"):  # an enum member
        return as_json(value._value_, around)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    try:
        fields = attributes_of(value)
        found = fields if fields is None else {str(key): as_json(item, around) for key, item in fields.items()}
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"the config of {type(value).__name__} cannot be read: {type(error).__name__}: {error}") from error
    if found is not None:
        return found
    if not is_listed(value):
        return value
    return list(value) if PLAIN.issuperset(map(type, value)) else [as_json(item, around) for item in value]


def is_listed(value: Any) -> bool:
    """Whether a value is a list or tuple, or a list type of another library."""
    return isinstance(value, (list, tuple)) or (hasattr(value, "__len__") and hasattr(value, "index"))


def attributes_of(value: Any) -> Mapping[str, Any] | None:
    """Map the fields of a config object to their values; None if the value is no config object."""
    for name in ("to_dict", "model_dump", "_asdict"):
        if callable(getattr(value, name, None)):
            value = getattr(value, name)()
            break
    if hasattr(value, "keys") and hasattr(value, "items"):
        return dict(value.items())
    names = getattr(value, "__dataclass_fields__", None) or [one.name for one in getattr(value, "__attrs_attrs__", ())]
    if not names and (callable(value) or is_listed(value) or not hasattr(value, "__dict__")):
        return None
    shared = {name: one for kind in reversed(type(value).__mro__[:-1]) for name, one in vars(kind).items()}
    own = [name for name, one in shared.items() if not (callable(one) or hasattr(one, "__get__"))]
    found = {name: getattr(value, name) for name in names or dict.fromkeys((*own, *vars(value))) if not name.startswith("_")}
    return found or None


def _fields_read(table: Mapping[str, Any], given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Normalise the fields of a config to the names that the spec reads.

    Args:
        table: the facts about the class's reading of these fields, from the stored program.
        given: the config, or an inner config.
        place: the path of the inner config with a dot at its end, for messages; empty for the outer config.
    """
    found = dict(given)
    for name, others in table.get("names", {}).items():
        _under_one_name(found, name, others, place)
    for name in table.get("absent", ()):
        if name in found and found[name] is None:
            del found[name]
    for name, unset in table.get("unset", {}).items():
        if found.get(name) == unset:
            del found[name]
    for name in table.get("never", ()):
        if name in found and found[name] is None:
            raise ConfigError(f"the config's '{place}{name}' is null, which its class refuses")
    for name, default in table.get("undescribed", {}).items():
        if found.get(name) not in (None, default):
            told = "leave it out" if default is None else f"the spec describes {default!r} alone"
            raise ConfigError(f"the config's '{place}{name}' is {found[name]!r}: the class makes other fields of it, {told}")
    for name, (default, lists) in table.get("needed", {}).items():
        missing = [other for other in lists if found.get(other) is None]
        if found.get(name) not in (None, default) and missing:
            told = f"the class makes '{place}{missing[0]}' of it, which the spec does not describe: write that, too"
            raise ConfigError(f"the config's '{place}{name}' is {found[name]!r}: {told}")
    for name, inner in table.get("parts", {}).items():
        found[name] = _fields_read(inner, _config_within(inner, found, name, place), f"{place}{name}.")
        found.pop(inner.get("instead"), None)
    return found


def _under_one_name(found: dict[str, Any], name: str, others: Mapping[str, Sequence[str]], place: str) -> None:
    """Rename a field, in place, to ``name``, under which the spec reads it.

    ``others`` maps each name that the class accepts for the field, the strongest first, to fields that must be present with it.
    """
    present = [other for other in others if other in found]
    if present in ([], [name]):
        return
    chosen = present[0]
    needed = [field for field in others[chosen] if found.get(field) is None]
    if chosen != name and (needed or found[chosen] is None):
        told = f"write '{place}{needed[0]}', too" if needed else f"write '{place}{name}'"
        raise ConfigError(f"'{place}{chosen}' stands for '{place}{name}', which the class sets after other fields: {told}")
    value = found[chosen]
    for other in present:
        del found[other]
    found[name] = value


def _config_within(table: Mapping[str, Any], found: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    """Read the inner config ``name``: an object, omitted, or with its fields in the outer config."""
    part = found.get(name)
    instead = table.get("instead")
    if instead is not None and found.get(instead) is not None:
        name, part = instead, found[instead]
    if part is None:
        return {**table.get("whole", {}), **{key: found[key] for key in table.get("flat", ()) if key in found}}
    if not isinstance(part, dict):
        raise ConfigError(f"the config's '{place}{name}' is {part!r}, not an object")
    kinds = table.get("kinds")
    if kinds and part.get("model_type", kinds[0]) not in kinds:
        told = f"the spec describes {', '.join(kinds)}"
        raise ConfigError(f"the config's '{place}{name}.model_type' is {part['model_type']!r}: {told}")
    return {**table.get("partial", {}), **part}


def look_up(config: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The first value under one of ``keys`` (a dot enters a nested config) that is not null, else None."""
    for key in keys:
        value: Any = config
        for word in key.split("."):
            value = value.get(word) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def put(config: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Write a value into ``config``, in place, under the first of ``keys``, and remove the other keys."""
    for key in keys:
        *outer, last = key.split(".")
        place: Any = config
        for word in outer:
            place = place.get(word) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.pop(last, None)
    *outer, last = keys[0].split(".")
    for word in outer:
        inner = config.get(word)
        config[word] = config = inner if isinstance(inner, dict) else {}
    config[last] = value


def is_null(config: Mapping[str, Any], keys: Sequence[str]) -> bool:
    """Whether at least one of ``keys`` is present and null, and none has a value."""
    if look_up(config, keys) is not None:
        return False
    for key in keys:
        *outer, last = key.split(".")
        value = look_up(config, [".".join(outer)]) if outer else config
        if isinstance(value, dict) and last in value:
            return True
    return False


def is_whole(value: Any, most: int = 10**15 - 1, least: int = 0) -> bool:
    """Whether a value is an integer between ``least`` and ``most``; a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_size(kind: str, value: Any, items: str = "") -> bool:
    """Whether a config value is valid for a size of ``kind``; ``items`` is the kind of a list's entries."""
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "text":
        return isinstance(value, str)
    if kind == "rational":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 10**15
    if kind == "position":
        return is_whole(value, 100_000, -100_000)
    if kind == "number, list, same or valid":
        return value in ("same", "valid") if isinstance(value, str) else is_size("number or list", value)
    if isinstance(value, (list, tuple)) and kind in ("list", "number or list", "any", "entries"):
        items = "number" if kind == "number or list" else items
        return kind == "entries" or all(
            is_size(items, item) if items else item is None or is_size("any", item) for item in value
        )
    if kind == "entries" and isinstance(value, dict):
        return True
    if kind == "any" and isinstance(value, (bool, str)):
        return True
    return kind in ("number", "count", "entries", "number or list", "any") and is_whole(
        value, 100_000 if kind == "count" else 10**15 - 1
    )


def as_whole(value: Any) -> str:
    """Hint for messages to write an integer in place of a float such as 8.0; empty for other values."""
    return f": write {int(value)}" if isinstance(value, float) and value.is_integer() else ""


def checked(kind: str, key: str, value: Any, items: str = "") -> Any:
    """Check that ``value`` is valid for a size of ``kind``, and convert lists and rationals.

    A list becomes a tuple (its length if ``kind`` is ``entries``), a rational a Fraction.

    Raises:
        ConfigError: the value is of another kind.
    """
    if not is_size(kind, value, items):
        of = f" of {items}s" if items and kind == "list" else ""
        kind = f"whole {kind}" if kind == "number" and isinstance(value, float) else kind
        raise ConfigError(f"the config's '{key}' is {value!r}, not a {kind}{of}{as_whole(value)}")
    if kind == "rational":
        from fractions import Fraction

        return Fraction(repr(value))
    if kind == "entries" and not isinstance(value, int):
        return len(value)
    return Entries(key, value) if isinstance(value, list) else value


class Entries(tuple):  # type: ignore[type-arg]
    """Tuple of a config list's entries; an index out of range raises a ConfigError that names ``key``."""

    key: str

    def __new__(cls, key: str, entries: Sequence[Any]) -> Entries:
        made = super().__new__(cls, entries)
        made.key = key
        return made

    def __getitem__(self, place: Any) -> Any:
        try:
            return super().__getitem__(place)
        except IndexError:
            entry = f"{len(self)} entries" if len(self) != 1 else "one entry"
            raise ConfigError(f"the config's '{self.key}' has {entry}, and the model reads entry {place}") from None

    def __getnewargs__(self) -> tuple[str, tuple[Any, ...]]:
        return self.key, tuple(self)
