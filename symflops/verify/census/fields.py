"""The fields of a real class's config, read from its signature or from its config class; no spec is consulted."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.ir.spec import SizeSpec
from symflops.verify.classes import config_class_of, parts_of

ABOUT_FILES = {
    "architectures", "transformers_version", "dtype", "torch_dtype", "device", "id2label", "label2id", "quantization_config",
    "return_dict", "model_type", "_name_or_path", "name_or_path", "auto_map",
}  # fmt: skip
"""Fields about files, types of numbers and labels: no closed form depends on them."""
QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One field of a config class: its dotted path, and its type annotation as text."""

    path: str
    annotation: str = ""

    @property
    def name(self) -> str:
        """The field's own name: the last part of its dotted path."""
        return self.path.rpartition(".")[2]

    @property
    def literals(self) -> list[str]:
        """The strings that a ``Literal`` annotation lists; empty for any other annotation."""
        return QUOTED.findall(self.annotation) if "Literal" in self.annotation else []

    def admits(self, *kinds: str) -> bool:
        """Whether the annotation contains one of ``kinds``, names of types such as ``int``."""
        return any(re.search(rf"\b{kind}\b", self.annotation, re.IGNORECASE) for kind in kinds)


def fields_of(kind: Any) -> list[ConfigField]:
    """List the fields of a model class's config, nested ones included, or else its constructor arguments."""
    config_class = config_class_of(kind)
    return list(_of_config(config_class, "") if dataclasses.is_dataclass(config_class) else _of_signature(config_class or kind))


def _of_signature(kind: Any) -> Iterator[ConfigField]:
    for item in inspect.signature(kind).parameters.values():
        if (
            item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
            and item.name not in {"self", *ABOUT_FILES}
            and item.name[:1] != "_"
        ):
            yield ConfigField(item.name, text_of(item.annotation))


def _of_config(kind: Any, prefix: str) -> Iterator[ConfigField]:
    parts = inner_configs(kind)
    for item in dataclasses.fields(kind):
        if part := parts.get(item.name):
            yield from _of_config(part, f"{prefix}{item.name}.")
        elif item.init and item.name not in ABOUT_FILES and item.name[:1] != "_":
            yield ConfigField(prefix + item.name, text_of(item.type))


def configs_of(kind: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path prefix, class) for a config class and its nested ones; ``place`` is the first prefix."""
    yield place, kind
    for name, part in inner_configs(kind).items():
        yield from configs_of(part, f"{place}{name}.")


def inner_configs(kind: Any) -> dict[str, Any]:
    """Map the fields of a config class that hold nested configs to the classes of these configs."""
    if not hasattr(kind, "to_dict"):
        return {name: part for name, part in parts_of(kind) if dataclasses.is_dataclass(part)}
    found = {name: _part(kind, part, name) for name, part in (getattr(kind, "sub_configs", None) or {}).items()}
    return {name: part for name, part in found.items() if part}


def is_of_model(module: str) -> bool:
    """Whether the module of this name defines models or their configs, not base classes of a library."""
    library = module.partition(".")[0]
    return library not in ("builtins", "torch") and (".models." in module or library not in ("transformers", "diffusers"))


def setters_of(kind: Any) -> list[str]:
    """Names of a config class's public properties that have a setter."""
    own = [base for base in kind.__mro__ if is_of_model(base.__module__)]
    found = [name for base in own for name, item in vars(base).items() if getattr(item, "fset", None)]
    return [name for name in dict.fromkeys(found) if name[:1] != "_"]


def settable(kind: Any) -> list[ConfigField]:
    """List the properties with a setter of a model's config class, nested ones included, as fields."""
    config = getattr(kind, "config_class", None)
    places = configs_of(config) if hasattr(config, "to_dict") else ()
    return [ConfigField(f"{place}{name}") for place, own in places for name in setters_of(own)]


def undeclared(kind: Any, config: Mapping[str, Any], known: set[str]) -> Iterator[ConfigField]:
    """Yield entries of ``config`` that the user's config class for the model ``kind`` does not declare.

    ``known`` are the paths of declared fields. A nested config that is null in ``config`` is yielded as well.
    """
    own = config_class_of(kind)
    for name in () if own is None or hasattr(own, "to_dict") else config:
        inside = any(path.startswith(f"{name}.") for path in known)
        if name not in known and not (inside and isinstance(config[name], Mapping)):
            yield ConfigField(name)


def _part(kind: Any, part: Any, name: str) -> Any:
    """The dataclass of the nested config in the field ``name``; None if it is no dataclass.

    ``part`` is the declared class. If that is no dataclass (a config of any model), the class of the default value is used.
    """
    found = part if dataclasses.is_dataclass(part) else type(getattr(kind(), name))
    return found if dataclasses.is_dataclass(found) else None


def further_fields(
    known: Sequence[ConfigField], configs: Sequence[Mapping[str, Any]], read: Iterable[ConfigField] = ()
) -> list[ConfigField]:
    """List the fields that no config class declares.

    Args:
        known: The declared fields.
        configs: Complete configs, in which classes may have added scalars that they compute.
        read: Fields that a spec reads.
    """
    named = {item.path.partition(".")[0] for item in known} | ABOUT_FILES
    found = {name: value for config in configs for name, value in config.items() if name[:1] != "_" and name not in named}
    computed = [name for name, value in found.items() if isinstance(value, (bool, int, float, str))]
    more = [item for item in read if item.path.partition(".")[0] not in (*named, *computed)]
    return [*map(ConfigField, computed), *more]


ANNOTATIONS = {"number": "int", "rational": "float", "flag": "bool"}
"""Annotation of a field, by the type of the size that a spec reads from it; other types are not varied."""


def read_fields(sizes: Iterable[SizeSpec], aliases: Iterable[str]) -> list[ConfigField]:
    """List, as fields, the numbers and flags that a spec reads under no declared name (``aliases``)."""
    return [
        ConfigField(size.keys[0], ANNOTATIONS[size.kind])
        for size in sizes
        if size.kind in ANNOTATIONS and size.evaluation is None and not set(size.keys) & {*aliases, *ABOUT_FILES}
    ]


def text_of(annotation: Any) -> str:
    """Convert a type annotation to text."""
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def value_at(config: Any, path: str | Sequence[Any]) -> Any:
    """The value at a dotted path, or at a sequence of keys and indices, of nested data; None if it is missing."""
    for word in path.split(".") if isinstance(path, str) else path:
        listed = isinstance(config, (list, tuple)) and isinstance(word, int) and word < len(config)
        config = config.get(word) if isinstance(config, Mapping) else config[word] if listed else None
    return config
