"""Patterns over module and parameter paths: globs, in which a component may select iterations of a repeat.

``*`` matches anything, dots included. At the index of a repeat, a component of a pattern may be a number (``blocks.2.*``), a
number from the end (``blocks.-1.*``) or a slice (``blocks.::4.*``, ``blocks.:2.*``). The repeat is then cut into parts that
match as a whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache

from sympy import Expr

from symflops.model.path import Path

SELECTOR = re.compile(r"-?\d+|-?\d*:-?\d*(:\d+)?")
MARK = "\x00"


def is_selector(component: str) -> bool:
    """Whether a component of a pattern can select iterations."""
    return component not in (":", "::") and SELECTOR.fullmatch(component) is not None


def selectors(patterns: Iterable[str], module_list: Path) -> tuple[str, ...]:
    """The selectors of ``patterns`` at the index of ``module_list``, in order."""
    found: dict[str, None] = {}
    text = marked(module_list, {})
    for pattern in patterns:
        components = pattern.split(".")
        for position, component in enumerate(components):
            if is_selector(component) and _leading(".".join(components[:position])).fullmatch(text):
                found[component] = None
    return tuple(found)


def marked(path: Path, chosen: Mapping[Expr, frozenset[str]]) -> str:
    """A path as text, in which each index lists the selectors that choose it."""
    pieces = []
    for part in path.parts:
        if isinstance(part, str):
            pieces.append(part)
        elif part.is_Integer:
            pieces.append(str(part))
        else:
            pieces.append(MARK + "".join(f"<{name}>" for name in sorted(chosen.get(part, ()))) + MARK)
    return "".join(pieces)


def matches(pattern: str, path: Path, chosen: Mapping[Expr, frozenset[str]]) -> bool:
    """Whether ``pattern`` matches the whole of ``path``."""
    return _regex(pattern).fullmatch(marked(path, chosen)) is not None


@lru_cache(maxsize=4096)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(r"\.".join(_component(component) for component in pattern.split(".")) if pattern else "", re.DOTALL)


@lru_cache(maxsize=4096)
def _leading(pattern: str) -> re.Pattern[str]:
    """The regex of the path to a nested list; a selector in it matches any index of the outer list."""
    pieces = [_component(component) for component in pattern.split(".")]
    loose = [
        f"(?:{piece}|{MARK}{MARK})" if is_selector(component) else piece
        for component, piece in zip(pattern.split("."), pieces, strict=True)
    ]
    return re.compile(r"\.".join(loose) if pattern else "", re.DOTALL)


def _component(component: str) -> str:
    if is_selector(component):
        chosen = f"{MARK}[^{MARK}.]*<{re.escape(component)}>[^{MARK}.]*{MARK}"
        return f"(?:{re.escape(component)}|{chosen})"
    return translate(component).removeprefix("(?s:").rpartition(")")[0]


def spelled(pattern: str, listed: Sequence[tuple[Path, int, frozenset[str]]]) -> tuple[str, ...]:
    """A pattern, and its copies in which the index of an unrolled iteration replaces a selector that chooses it."""
    found: dict[str, None] = {pattern: None}
    components = pattern.split(".")
    for path, index, chosen in listed:
        text = marked(path, {})
        for position, component in enumerate(components):
            if component in chosen and component != str(index) and _leading(".".join(components[:position])).fullmatch(text):
                indexed = ".".join([*components[:position], str(index), *components[position + 1 :]])
                found.update(dict.fromkeys(spelled(indexed, listed)))
    return tuple(found)


def cutting(patterns: Iterable[str]) -> tuple[str, ...]:
    """The ``patterns`` that may select iterations."""
    return tuple(pattern for pattern in patterns if any(is_selector(component) for component in pattern.split(".")))
