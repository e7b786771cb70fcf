"""The sizes of a generated module, read from a config, and the tables that it writes in them.

Generated modules import this; those that stand alone hold the text below the line.
"""

from __future__ import annotations

from symflops.model.evaluate import ConfigError
from symflops.runtime.census import check_census
from symflops.runtime.classes import check_class
from symflops.runtime.config import as_read, checked, is_null, look_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

# ---- what modules that stand alone hold, too
if TYPE_CHECKING:
    Own = TypeVar("Own", bound="ModelSizes")
    Line = tuple[str, tuple[int, ...], int, int, tuple[int, ...], int]
    Rows = Sequence[tuple[Any, ...]]
    Counts = Sequence[tuple[str, Any]]


class ModelSizes:
    """The sizes of one model; each is the field of its config of the same name."""

    _name = ""
    _classes: tuple[str, ...] = ()
    _model_types: tuple[str, ...] = ()
    _fields: tuple[tuple[Any, ...], ...] = ()  # the arguments of field_of
    _required: tuple[str, ...] = ()
    _nullable: tuple[str, ...] = ()
    _nulls: Mapping[str, Callable[[Any], Any]] = {}  # what a null sets, by attribute
    _reading: Mapping[str, Any] = {}  # how the class reads its config
    _census: Mapping[str, Any] = {}  # per class the fields that it reads and the module does not describe, with their values

    _read: tuple[tuple[str, str, tuple[str, ...], str], ...] = ()
    _required_keys: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __init_subclass__(cls) -> None:
        cls._read = tuple([field_of(*row) for row in cls._fields])
        cls._required_keys = tuple([(name, keys) for name, _, keys, _ in cls._read if name in cls._required])

    @classmethod
    def from_config(cls: type[Own], config: Mapping[str, Any]) -> Own:
        """Read the sizes from the contents of a config.json, or from a config object, as the model's class reads it.

        Raises:
            ValueError: a field that has no default is missing, or is not of its type; the config is of another class, or one
                of its fields has an effect that is not described.
        """
        config = as_read({"reading": cls._reading}, config)
        check_class(cls._name, cls._classes, cls._model_types, config)
        check_census({"name": cls._name, "census": cls._census}, config)
        found: dict[str, Any] = {}
        nulls: list[str] = []
        for attribute, kind, keys, items in cls._read:
            value = look_up(config, keys)
            if value is not None:
                found[attribute] = checked(kind, keys[0], value, items)
            elif is_null(config, keys):
                cls._take_null(attribute, kind, keys[0], found, nulls)
        for attribute, keys in cls._required_keys:
            if attribute not in found:
                raise ConfigError(f"the config has no '{keys[0]}'")
        for attribute in nulls:
            found[attribute] = cls._nulls[attribute](cls(**found))
        return cls(**found)

    @classmethod
    def _take_null(cls, attribute: str, kind: str, key: str, found: dict[str, Any], nulls: list[str]) -> None:
        """What a null under ``key`` sets: None, a size that waits for the others (``nulls``), false, or the default."""
        if attribute in cls._nullable:
            found[attribute] = None
        elif attribute in cls._nulls:
            nulls.append(attribute)
        elif cls._reading:
            if kind != "flag":
                raise ConfigError(f"the config's '{key}' is null: leave it out for its default")
            found[attribute] = False

    def __repr__(self) -> str:
        return f"Sizes({', '.join(f'{name}={getattr(self, name)!r}' for name, *_ in self._fields)})"


def field_of(attribute: str, kind: str, keys: tuple[str, ...] = (), items: str = "") -> tuple[str, str, tuple[str, ...], str]:
    """A field: attribute, kind, keys of the config, and the kind of the items of a list."""
    return attribute, kind, keys or (attribute,), items


class OtherStructure(ValueError):  # noqa: N818 - a published name
    """The sizes are of a model whose structure is not that of this module."""


class NullList(tuple[object, ...]):
    """A list that is null: it counts as 0, and so do its items."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return 0


def each(size: Any, place: int) -> int:
    """The number at ``place`` of a list, or the one that stands at every place; a word counts 0."""
    if isinstance(size, str):
        return 0
    found: int = size[place] if isinstance(size, (list, tuple)) else size
    return found


def as_tuple(value: Any) -> Any:
    """Lists as tuples."""
    return tuple(as_tuple(item) for item in value) if isinstance(value, (list, tuple)) else value


def lines_of(rows: Rows, column: int, gradients: bool, recomputed: bool, path: str = "") -> list[Line]:
    """The lines of a regime: module, what it runs over, FLOPs each, times forward, times each gradient, times recomputed.

    A row of two cells is a module and the rows inside it. Others have a cell per kind of regime (``column``): times forward,
    times each gradient, times recomputed (0 if it lacks), and what stands behind the module's name; empty if nothing runs.
    """
    found: list[Line] = []
    place = column + 3
    for row in rows:
        if len(row) == 2:
            found += lines_of(row[1], column, gradients, recomputed, f"{path}{row[0]}.")
            continue
        cell = row[place] if place < len(row) else ()
        if cell:
            name = f"{path}{row[0]}{cell[3]}" if len(cell) > 3 else path + row[0]
            times = cell[1] if gradients else (0,) * len(cell[1])
            again = cell[2] if recomputed and len(cell) > 2 else 0
            found.append((name, row[1], row[2], cell[0], times, again))
    return found


def in_flops(lines: Sequence[Line], shares: int) -> list[Line]:
    """Lines whose FLOPs are in so many parts, in whole FLOPs or fractions."""
    from fractions import Fraction

    found: list[Line] = []
    for name, amount, unit, forward, gradients, again in lines:
        found.append((name, amount, settled(Fraction(unit, shares)), forward, gradients, again))
    return found


def settled(value: Any) -> Any:
    """A number as an int where it is whole."""
    return int(value) if getattr(value, "denominator", 0) == 1 else value


def elements_of(counts: Counts, path: str = "") -> list[tuple[str, int]]:
    """The parameters of a table in which an entry may be a module with parameters of its own."""
    found: list[tuple[str, int]] = []
    for name, count in counts:
        if type(count) is list:
            found += elements_of(count, f"{path}{name}.")
        else:
            found.append((path + name, count))
    return found


def tensors_of(own: Counts, adapters: Counts | None = None) -> dict[str, int]:
    """Elements per parameter; a module with ``adapters`` keeps its own parameters below ``base_layer``."""
    if not adapters:
        return dict(elements_of(own))
    behind: dict[str, dict[str, int]] = {}
    for name, count in elements_of(adapters):
        behind.setdefault(name.partition(".lora_")[0], {})[name] = count
    found: dict[str, int] = {}
    before = ""
    for name, count in elements_of(own):
        module, _, leaf = name.rpartition(".")
        if module != before:
            found.update(behind.get(before, {}))
        before = module
        found[f"{module}.base_layer.{leaf}" if module in behind else name] = count
    found.update(behind.get(before, {}))
    return found


def total_of(value: Any) -> int:
    """A total as an integer; nothing that is negative or no number leaves an estimator."""
    if type(value) is int and value >= 0:
        return value
    if not value >= 0 or value != int(value):
        raise ValueError(f"config and batch do not fit the model: a total of {value}")
    return int(value)
