"""Finds the spec of a live module by its library class and its config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from symflops.evaluate.classes import class_name
from symflops.evaluate.config import as_json
from symflops.library.catalog import Catalog, UnknownModelError, catalogs
from symflops.library.lookup import by_config, by_name
from symflops.training.introspect.tree import LiveModelError

LIBRARIES = ("transformers", "diffusers")
OUT = "name its spec with spec=..., or write one with 'symflops draft'"


def identified(module: Any, spec: str | None = None) -> tuple[Catalog, str, str, dict[str, Any]]:
    """Identify a live module without wrappers: (catalog of its spec, spec name, class name, config).

    Raises:
        SymflopsError: no spec describes the class, or the module has no config.
    """
    word, root = known_class(module)
    config = config_of(module)
    if word:
        config["_class_name" if root == "diffusers" else "architectures"] = word if root == "diffusers" else [word]
    if spec is not None:
        return by_name(spec), spec, word or type(module).__name__, config
    if not word:
        raise UnknownModelError(_unknown(module))
    return *by_config(config), word, config


def known_class(module: Any) -> tuple[str, str]:
    """Return (class name, package) of the first class in a module's MRO that specs know, or empty texts.

    FSDP2 subclasses the model's class without changing the model. A subclass with its own ``forward`` is another model.

    Raises:
        LiveModelError: a subclass overrides the ``forward`` that a spec describes.
    """
    named = set(_references())
    passed: type | None = None
    for kind in type(module).__mro__:
        root = kind.__module__.partition(".")[0]
        if (root, kind.__name__) in named or (kind.__module__, kind.__name__) in named:
            if passed is not None:
                words = f"{passed.__module__}.{passed.__name__} has a 'forward' of its own"
                raise LiveModelError(f"{words}, which the spec of {kind.__name__} may not describe: {OUT}")
            return kind.__name__, root
        if root in LIBRARIES and hasattr(kind, "named_parameters"):
            return ("", "") if passed else (kind.__name__, root)
        if "forward" in vars(kind) and root != "torch":
            passed = passed or kind
    return "", ""


def _references() -> Iterator[tuple[str, str]]:
    """Yield (package or module, class name) for every class that a spec names."""
    for catalog in catalogs():
        for entry in catalog.specs.values():
            for reference in entry["references"]:
                place = reference.partition(":")[0] if ":" in reference else reference.partition(".")[0]
                yield place, class_name(reference)


def config_of(module: Any) -> dict[str, Any]:
    """The module's ``config`` as a dict; empty if it has none."""
    found = as_json(getattr(module, "config", None))
    return found if isinstance(found, dict) else {}


def _unknown(module: Any) -> str:
    kind = type(module)
    inner = [f"module.{name}" for name, child in module._modules.items() if child is not None and known_class(child)[0]]
    hint = f"give the model that it holds: {inner[0]}" if inner else OUT
    return f"no spec describes {kind.__module__}.{kind.__qualname__}: {hint}"
