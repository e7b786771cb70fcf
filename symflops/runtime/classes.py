"""The class that a config names, and whether a spec describes it."""

from __future__ import annotations

from symflops.model.evaluate import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

MOST_NAMED = 6
NAMING = ("architectures", "_class_name", "model_type")
"""The fields by which a config names its class or model type."""


def named_classes(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The classes that a config names, the one that was saved first: (field, name)."""
    words = config.get("architectures")
    for word in words if isinstance(words, (list, tuple)) else ():
        yield "architectures", str(word)
    if isinstance(config.get("_class_name"), str):
        yield "_class_name", config["_class_name"]


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
    """The config with ``name`` as its class."""
    return {**config, "architectures": [class_name(name)]}


def class_name(reference: str) -> str:
    """The class name in a reference, ``package.Class`` or ``module:Class``."""
    return reference.replace(":", ".").rpartition(".")[2]


def check_class(spec: str, references: Sequence[str], model_types: Sequence[str], config: Mapping[str, Any]) -> None:
    """Refuse a config of a class that is not among the ``references`` of a spec, or of another model type.

    A spec without references is of no library class and takes any config. A model type counts only where no class is named.

    Raises:
        ConfigError: the config names another class or model type.
    """
    classes, name = [class_name(reference) for reference in references], class_in(config)
    if name and classes and name not in classes:
        raise ConfigError(f"the config is of the class {name}, and '{spec}' describes {listed(classes)}")
    kind = config.get("model_type")
    if not name and model_types and isinstance(kind, str) and kind not in model_types:
        raise ConfigError(f"the config is of the model type '{kind}', and '{spec}' describes {listed(model_types)}")


def listed(names: Iterable[str]) -> str:
    """Names as words of a sentence, the first few of many."""
    every = list(names)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
