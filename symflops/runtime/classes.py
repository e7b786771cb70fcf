"""The class that a config names, and whether a spec describes it."""

from __future__ import annotations

from symflops.model.evaluate import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

NAMING = ("architectures", "_class_name", "model_type")
"""The fields by which a config names its class or model type."""


def class_in(config: Mapping[str, Any]) -> str:
    """The class that a config names; empty if it names none.

    >>> class_in({"architectures": ["LlamaModel"], "model_type": "llama"})
    'LlamaModel'
    """
    return next((name for _, name in named_classes(config)), "")


def without_pipeline(config: Mapping[str, Any], pipelines: Sequence[str]) -> Mapping[str, Any]:
    """The config without the name of a pipeline, which is no class of a model.

    >>> without_pipeline({"_class_name": "FluxPipeline", "num_layers": 2}, ["FluxPipeline"])
    {'num_layers': 2}
    """
    if config.get("_class_name") not in pipelines:
        return config
    return {key: value for key, value in config.items() if key != "_class_name"}


def of_class(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The config with ``name`` as its class, whatever model type it has."""
    return {**{key: value for key, value in config.items() if key != "model_type"}, "architectures": [class_name(name)]}


MOST_NAMED = 6


def named_classes(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The classes that a config names, the one that was saved first: (field, name).

    Raises:
        ConfigError: ``architectures`` is no list of names, or ``_class_name`` no name.
    """
    words, own = config.get("architectures"), config.get("_class_name")
    if words is not None and not (isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words)):
        hint = f": write [{words!r}]" if isinstance(words, str) else ""
        raise ConfigError(f"the config's 'architectures' is {words!r}, not a list of class names{hint}")
    if own is not None and not isinstance(own, str):
        raise ConfigError(f"the config's '_class_name' is {own!r}, not the name of a class")
    yield from (("architectures", word) for word in words or () if word)
    if own:
        yield "_class_name", own


def model_type_in(config: Mapping[str, Any]) -> str:
    """The model type that a config names; empty if it names none.

    Raises:
        ConfigError: it is no text.
    """
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise ConfigError(f"the config's 'model_type' is {kind!r}, not a text")
    return kind or ""


def class_name(reference: str) -> str:
    """The class name in a reference, ``package.Class`` or ``module:Class``."""
    return reference.replace(":", ".").rpartition(".")[2]


def check_class(spec: str, references: Sequence[str], model_types: Sequence[str], config: Mapping[str, Any]) -> None:
    """Refuse a config of a class that is not among the ``references`` of a spec, of several, or of another model type.

    A spec without references is of no library class and takes any config. Beside a class that a config names, a model type of
    code of its own (``auto_map``) says nothing.

    Raises:
        ConfigError: the config names another class or model type, or two that contradict each other.
    """
    classes = [class_name(reference) for reference in references]
    named = {name: field for field, name in named_classes(config)}
    others = [name for name in named if name not in classes]
    if others and classes and len(named) > 1:
        told = " and ".join(f"{name} ({field})" for name, field in named.items())
        raise ConfigError(f"the config is of the classes {told}: which of them is it?")
    if others and classes:
        raise ConfigError(f"the config is of the class {others[0]}, and '{spec}' describes {listed(classes)}")
    kind = model_type_in(config)
    if kind and model_types and kind not in model_types and not (named and "auto_map" in config):
        raise ConfigError(f"the config is of the model type '{kind}', and '{spec}' describes {listed(model_types)}")
    if kind and not model_types and config.get("_class_name") in classes:
        raise ConfigError(f"the config is of the model type '{kind}', and {class_name(references[0])} has none")


def listed(names: Iterable[str]) -> str:
    """Names as words of a sentence, the first few of many."""
    every = list(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
