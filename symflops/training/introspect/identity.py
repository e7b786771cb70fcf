"""Finds the spec of a live module by its class, and reads its config."""

from __future__ import annotations

from typing import Any

from symflops.evaluate.classes import class_name
from symflops.evaluate.config import as_json
from symflops.library.catalog import Catalog, UnknownModelError, catalogs
from symflops.library.lookup import by_config, by_name
from symflops.library.naming import named
from symflops.training.introspect.tree import LiveModelError, ends_of, weight_of

LIBRARIES, TRACED = ("transformers", "diffusers"), "transformers"
OUT = "name its spec with spec=..., or write one with 'symflops draft'"
TIED = "tie_word_embeddings"
"""The field of a config that PEFT's copies of a head or an embedding overrule."""


def identified(module: Any, spec: str | None = None) -> tuple[Catalog, str, str, dict[str, Any]]:
    """Identify a live module without wrappers: (catalog of its spec, spec name, class name, config).

    Raises:
        SymflopsError: no spec describes the class, or the module has no config.
    """
    (word, root), config = known_class(module), config_of(module)
    if config.get(TIED) and hasattr(module, "get_output_embeddings"):
        ends = [one and weight_of(one) for one in ends_of(module)]
        config[TIED] = ends[0] is ends[1] or None in ends
    if word:
        config["_class_name" if root == "diffusers" else "architectures"] = word if root == "diffusers" else [word]
    if spec is not None:
        name = named(spec).spec
        return by_name(name), name, word or type(module).__name__, config
    if not word:
        children = ((name, child) for name, child in module._modules.items() if child is not None)
        inner = next((f"module.{name}" for name, child in children if known_class(child)[1] in LIBRARIES), "")
        hint = f"give the model that it holds: {inner}" if inner else f"count it with symflops.trace(module, *inputs), {OUT}"
        raise UnknownModelError(f"no spec describes {type(module).__module__}.{type(module).__qualname__}: {hint}")
    return *by_config(config), word, config


def known_class(module: Any) -> tuple[str, str]:
    """Find the first class in a module's MRO that specs know: (class name, package), or two empty texts.

    FSDP2 subclasses the model's class without changing the model. A subclass with its own ``forward`` is another model.

    Raises:
        LiveModelError: a subclass overrides the ``forward`` that a spec describes.
    """
    known = described()
    passed: type | None = None
    for kind in type(module).__mro__:
        root = kind.__module__.partition(".")[0]
        if (root, kind.__name__) in known or (kind.__module__, kind.__name__) in known:
            if passed is not None:
                words = f"{passed.__module__}.{passed.__name__} has a 'forward' of its own"
                raise LiveModelError(f"{words}, which the spec of {kind.__name__} may not describe: {OUT}")
            return kind.__name__, root
        if root in LIBRARIES and hasattr(kind, "named_parameters"):
            return ("", "") if passed else (kind.__name__, root)
        if "forward" in vars(kind) and root != "torch":
            passed = passed or kind
    return "", ""


def described() -> set[tuple[str, str]]:
    """(package or module, class name) of each class that a spec describes."""
    references = [one for catalog in catalogs() for entry in catalog.specs.values() for one in entry["references"]]
    return {(one.partition(":" if ":" in one else ".")[0], class_name(one)) for one in references}


def config_to_trace(module: Any) -> dict[str, Any]:
    """The config of a module of transformers whose class no spec describes, as JSON data; empty for other modules.

    Raises:
        LiveModelError: a subclass overrides the ``forward`` that a spec describes.
    """
    word, root = known_class(module)
    config = config_of(module) if root == TRACED and (root, word) not in described() else {}
    return {**config, "architectures": [word]} if config else {}


def config_of(module: Any) -> dict[str, Any]:
    """The module's ``config`` as a dict; empty if it has none."""
    found = as_json(getattr(module, "config", None))
    return found if isinstance(found, dict) else {}
