"""The words that a class's source accepts: comparisons, keys of tables, and annotations, found without running it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from symflops.witness.census.fields import ABOUT_FILES, ConfigField, configs_of, is_of_model

DEPTH = 2
ACTIVATIONS = ("ACT2FN", "ACT2CLS")
UNHEARD = "unheard-of"
"""A word that no source knows."""


class Words:
    """The words that the source of a class compares its fields with.

    Attributes:
        modules: The modules that hold the source: that of the class and of its bases, and what these import of its library.
    """

    def __init__(self, kind: Any) -> None:
        self.modules = list(_modules(kind))
        self.known: dict[str, dict[str, None]] = defaultdict(dict)
        for module in self.modules:
            for name, word in words_in(module):
                self.known[name][word] = None

    def of(self, field: ConfigField) -> list[str]:
        """The words for a field: of its annotation, of what is compared under its name, and those of activations."""
        found = dict.fromkeys(field.literals)
        names = {field.name, field.name.removesuffix("s"), field.name.removesuffix("_type"), f"{field.name}_type"}
        for name in sorted(names):
            found |= self.known.get(name, {})
        if "act" in field.name.split("_") or "activation" in field.name:
            for module in self.modules:
                for table in ACTIVATIONS:
                    found |= dict.fromkeys(getattr(module, table, ()))
        return list(found)


def _modules(kind: Any) -> Iterator[ModuleType]:
    """The modules of a class and of its bases, and those that they import from within the library, two steps deep."""
    library = kind.__module__.partition(".")[0]
    names = [base.__module__ for base in kind.__mro__] + [getattr(getattr(kind, "config_class", kind), "__module__", "")]
    seen: dict[str, None] = {}
    for depth in range(DEPTH + 1):
        names = [name for name in dict.fromkeys(names) if name.partition(".")[0] == library and name not in seen]
        seen |= dict.fromkeys(names)
        inner = (name for module in names if depth < DEPTH for name in _imported(module))
        names = [name for name in inner if "models" in name.split(".") or name.endswith("activations")]
    yield from (sys.modules[name] for name in seen if name in sys.modules)


@cache
def _imported(name: str) -> tuple[str, ...]:
    """The modules that the members of a module come from."""
    module = sys.modules.get(name)
    members = vars(module).values() if module else ()
    return tuple(dict.fromkeys(getattr(member, "__module__", None) or "" for member in members if callable(member)))


@cache
def words_in(module: ModuleType) -> tuple[tuple[str, str], ...]:
    """Pairs of a name and a word that a module's source compares it with, or that is a key of a table it looks up in."""
    return tuple(pair for node in ast.walk(_tree(module)) for pair in _words_of(node, vars(module)))


def _tree(module: ModuleType) -> ast.AST:
    """The syntax tree of a module's source; an empty one if there is none."""
    try:
        return ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])


def unlisted(kind: Any) -> Iterator[ConfigField]:
    """Fields that the source of a class asks a config for (``getattr``, ``hasattr``), and its config class does not have.

    Of a constructor's arguments there is nothing else: what it does not name is dropped.
    """
    if not hasattr(getattr(kind, "config_class", None), "to_dict"):
        return
    own = [base.__module__ for base in kind.__mro__]
    for place, config in configs_of(kind.config_class):
        names = dict.fromkeys([config.__module__.replace(".configuration_", ".modeling_"), *([] if place else own)])
        modules = [
            sys.modules[name] for name in names if name in sys.modules and is_of_model(name) and ".generation_" not in name
        ]
        made, asked = _made(config), dict.fromkeys(name for module in modules for name in asked_in(module))
        lacking = [name for name in asked if name[:1] != "_" and name not in ABOUT_FILES and not hasattr(made, name)]
        yield from (ConfigField(f"{place}{name}") for name in lacking)


def _made(config: Any) -> Any:
    """A config of a class with its defaults; the class itself if it has none."""
    try:
        return config()
    except Exception:  # a class may fail in any way on what it does not accept
        return config


@cache
def asked_in(module: ModuleType) -> tuple[str, ...]:
    """The fields that a module's source reads by ``getattr``, or looks for by ``hasattr``, of what is called a config."""
    return tuple(name for node in ast.walk(_tree(module)) for name in _asked_of(node))


def _asked_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[held, ast.Constant(value=str(name)), *_]):
            if _name(held).endswith("config"):
                yield name


def _words_of(node: ast.AST, names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(left=left, comparators=rights):
            for one, other in ((left, right) for right in rights):
                yield from ((_name(one), word) for word in _texts(other) if _name(one))
                yield from ((_name(other), word) for word in _texts(one) if _name(other))
        case ast.Subscript(value=ast.Name(id=table), slice=key) if isinstance(names.get(table), Mapping) and _name(key):
            yield from ((_name(key), word) for word in names[table] if isinstance(word, str))
        case ast.Call(func=ast.Attribute(value=value, attr="startswith" | "endswith"), args=[part]) if _name(value):
            yield from ((_name(value), word) for word in _texts(part))
        case ast.Match(subject=subject, cases=cases) if _name(subject):
            for case in cases:
                texts = (word for part in ast.walk(case.pattern) for word in _texts(getattr(part, "value", part)))
                yield from ((_name(subject), word) for word in texts)


def _name(node: ast.AST) -> str:
    """The last word of a name: ``config.norm_type`` is ``norm_type``."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for item in node.elts:
            yield from _texts(item)
