"""Fields of a config that modules keep as attributes of their own, such as the number of experts of a token.

``__init__`` of a class copies the field. If a copy or the field changes later, the modules run by the copy.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from symflops.training.introspect.tree import tree_of_source


def steered(root: Any, changes: Iterable[str]) -> dict[str, Any]:
    """Map each field of a config that ``changes`` concern to the value by which all modules of a class run.

    ``changes`` are those of :meth:`symflops.training.introspect.fingerprint.Fingerprint.changes`.
    """
    modules, found = dict(root.named_modules()), dict[str, Any]()
    kinds: dict[str, Any] = {path: type(module) for path, module in modules.items()}
    for change in changes:
        path, _, name = change.rpartition(".")
        if path.partition(".")[0] == "config":
            copies = {(kind, copy) for kind in set(kinds.values()) for copy, field in copied(kind).items() if field == name}
        else:
            copies = {(kinds[path], name)} if name in copied(kinds.get(path, object)) else set()
        values = [getattr(one, copy, None) for kind, copy in copies for one in modules.values() if type(one) is kind]
        if values and all(value == values[0] for value in values):
            kind, copy = next(iter(copies))
            found[copied(kind)[copy]] = values[0]
    return found


def with_fields(config: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` with ``fields``, each at the one place in it or in a config inside of it that has the field."""
    inner = [value for name, value in config.items() if name.endswith("_config") and isinstance(value, dict)]
    for name, value in fields.items():
        holders = [table for table in (config, *inner) if name in table]
        if len(holders) == 1:
            holders[0][name] = value
    return config


@lru_cache(maxsize=1024)
def copied(kind: type) -> dict[str, str]:
    """Attributes to which ``__init__`` of a class assigns a field of a config, each with the name of the field."""
    found: dict[str, str] = {}
    makers = [vars(owner)["__init__"] for owner in kind.__mro__ if inspect.isfunction(vars(owner).get("__init__"))]
    trees = [tree_of_source(maker) for maker in makers if not maker.__module__.startswith("torch.")]
    for tree in filter(None, trees):
        for node in ast.walk(tree):
            match node:
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
                    value=ast.Attribute(value=ast.Name(id="config"), attr=field),
                ):
                    found.setdefault(name, field)
    return found
