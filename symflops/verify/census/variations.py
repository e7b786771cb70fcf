"""Variations of one field of a config: flipped, null, scaled, other words, other items. No spec is consulted.

The words that a class accepts come from its source, without running it: comparisons, keys of tables, and annotations.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

from symflops.verify.census.fields import ABOUT_FILES, ConfigField, configs_of, is_of_model, value_at

Changes = Mapping[str, Any]
"""New values by path."""
PARTNERS = 6

DEPTH = 2
ACTIVATIONS = ("ACT2FN", "ACT2CLS")
UNHEARD = "unheard-of"
"""A word that no source knows."""


def variations(field: ConfigField, value: Any, words: Sequence[str], widths: Sequence[int], random: Random) -> Iterator[Any]:
    """Yield other values to try in a field.

    Args:
        field: The field.
        value: The present value of the field.
        words: Strings to try, from the source of the class.
        widths: Numbers to try if ``value`` is null.
        random: The generator that picks the factors of larger numbers.
    """
    found: list[Any] = []
    if isinstance(value, bool):
        found = [not value]
    elif isinstance(value, int):
        found = _scaled(value, random)
    elif isinstance(value, float):
        found = [value * 2, value / 2, value + 1.0] if value else [0.25, 0.5]
    elif isinstance(value, str):
        found = [*words, UNHEARD]
    elif isinstance(value, (list, tuple)):
        found = list(_lists(list(value), words, random))
    elif value is None:
        found = list(_filled(field, words, widths))
    for other in [*found, None]:
        if other != value or type(other) is not type(value):
            yield other


def _scaled(value: int, random: Random) -> list[int]:
    """List numbers to try in place of the integer ``value``, larger and smaller ones."""
    if value in (0, -1):
        return [1, 2, 8]
    down = [value // divisor for divisor in (2, 3) if value > 1 and value % divisor == 0][:1] or [max(value - 1, 0)]
    return list(dict.fromkeys([value * random.choice((2, 2, 3)), *down, value + 1, value + 2, 3 * value]))


def edges(field: ConfigField, value: Any) -> list[Any]:
    """Boundary numbers to try in place of ``value``: 0 to 3, and the next odd one; empty for other types."""
    anything = not field.admits("int", "float", "bool", "str", "list", "tuple", "dict")
    if isinstance(value, bool) or not (isinstance(value, int) or (value is None and (anything or field.admits("int")))):
        return []
    found = [0, 1, 2, 3] if value is None else [0, 1, 2, 3, value + 1 + value % 2]
    return [other for other in dict.fromkeys(found) if other != value]


def alike(path: str, value: Any, config: Mapping[str, Any], times: Sequence[int] = (1,)) -> list[int]:
    """List proper divisors of ``value``: numbers of the config, multiplied by each factor in ``times``.

    ``path`` is the field of ``value``; only numbers of the same (nested) config are used. With such a divisor in the field, the
    quotient of two numbers may become 1, an axis along which a class may broadcast.
    """
    if not (_number(value) and value > 1):
        return []
    part = path.rpartition(".")[0]
    beside = [other for other in (value_at(config, part) if part else config).values() if _number(other) and other > 0]
    return sorted(
        {other for factor in times for other in (factor * one for one in beside) if other < value and value % other == 0}
    )


def _lists(value: list[Any], words: Sequence[str], random: Random) -> Iterator[Any]:
    """Yield lists to try in place of ``value``: with other items, one more, one less, or none."""
    if not value:
        yield from ([0], [1], [0, 1], [8])
        return
    if all(isinstance(item, str) for item in value):
        for word in words:
            yield [*value[:-1], word]
        for word in dict.fromkeys([*words, *value]):
            yield [word] * len(value)
    elif all(isinstance(item, bool) for item in value):
        yield [not item for item in value]
        yield [*value[:-1], not value[-1]]
    elif all(isinstance(item, (int, float)) for item in value):
        yield [2 * item for item in value]
        yield [*value[:-1], 2 * value[-1]]
        yield [*value[:-1], value[-1] + 1]
        yield value[::-1]
        yield random.choice(value)
    yield [*value, value[-1]]
    yield value[:-1]
    yield []


def _filled(field: ConfigField, words: Sequence[str], widths: Sequence[int]) -> Iterator[Any]:
    """Yield values to try in a field that is null, by its annotation: flags, ``words``, ``widths``, lists."""
    anything = not field.admits("int", "float", "bool", "str", "list", "tuple", "dict")
    if field.admits("bool") or anything:
        yield from (True, False)
    if field.admits("str", "Literal") or words:
        yield from words
        yield UNHEARD
    if field.admits("int", "float") or anything:
        yield from (2, 8, *widths)
    if field.admits("list", "tuple"):
        yield from ([0], [1], [0, 1])


def partnered(path: str, value: Any, other: Any, config: Mapping[str, Any], fields: Sequence[ConfigField]) -> Iterator[Changes]:
    """Yield joint changes (path -> new value) of related fields, for a change that is refused alone.

    Numbers beside the field change by the same factor, one at a time: equal ones first, then divisors and multiples. Lists
    change together with all lists of equal length.

    Args:
        path: The field.
        value: Its present value.
        other: Its new value.
        config: The complete config.
        fields: All fields of the config.
    """
    same = [item for item in fields if item.path != path and item.path.rpartition(".")[0] == path.rpartition(".")[0]]
    if isinstance(value, list) and isinstance(other, list) and value and len(other) != len(value):
        lists = [(item.path, value_at(config, item.path)) for item in same]
        twins = {name: list(found) for name, found in lists if isinstance(found, (list, tuple)) and len(found) == len(value)}
        grown = len(other) > len(value)
        if twins and other:
            yield {path: other} | {name: [*found, found[-1]] if grown else found[:-1] for name, found in twins.items()}
        return
    if not (_number(value) and _number(other) and value and other):
        return
    numbers = [(item.path, value_at(config, item.path)) for item in same]
    related = [(name, found) for name, found in numbers if _number(found) and found > 1]
    related.sort(key=lambda pair: (pair[1] != value, pair[1] % value != 0 and value % pair[1] != 0))
    for name, found in related[:PARTNERS]:
        if found * other % value == 0:
            yield {path: other, name: found * other // value}


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Words:
    """Strings that config fields are compared with in the source of a class.

    Attributes:
        modules: The modules searched: those of the class and its bases, and modules of the same library that they import.
    """

    def __init__(self, kind: Any) -> None:
        self.modules = list(_modules(kind))
        self.known: dict[str, dict[str, None]] = defaultdict(dict)
        for module in self.modules:
            for name, word in words_in(module):
                self.known[name][word] = None

    def of(self, field: ConfigField) -> list[str]:
        """List strings to try in a field: from its annotation, comparisons in source, tables of activations."""
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
    """Yield the modules of a class and its bases, and modules of the library imported within two steps."""
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
    """Names of the modules that define the members of the module ``name``."""
    module = sys.modules.get(name)
    members = vars(module).values() if module else ()
    return tuple(dict.fromkeys(getattr(member, "__module__", None) or "" for member in members if callable(member)))


@cache
def words_in(module: ModuleType) -> tuple[tuple[str, str], ...]:
    """Pairs (variable, string) that a source compares, directly or as an index and a key of a dict."""
    return tuple(pair for node in ast.walk(_tree(module)) for pair in _words_of(node, vars(module)))


def _tree(module: ModuleType) -> ast.AST:
    """The syntax tree of a module's source; an empty one if there is none."""
    try:
        return ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])


def unlisted(kind: Any) -> Iterator[ConfigField]:
    """Yield fields that a class's source reads by ``getattr`` or ``hasattr`` and a default config lacks.

    Nothing is yielded for a class without a config class: its constructor drops arguments that it does not name.
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
    """Build ``config``, a config class, with its defaults; return the class itself if that fails."""
    try:
        return config()
    except Exception:  # a class may fail in any way on what it does not accept
        return config


@cache
def asked_in(module: ModuleType) -> tuple[str, ...]:
    """Names that a module's source passes to ``getattr`` or ``hasattr`` of a variable named ``...config``."""
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
    """The last part of a dotted name in source code: ``norm_type`` for ``config.norm_type``."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for item in node.elts:
            yield from _texts(item)
