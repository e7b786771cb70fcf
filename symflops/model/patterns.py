"""Patterns over module and parameter paths: globs, in which a component may select iterations of a repeat.

``*`` matches anything, points included. Where a path has the index of a repeat, a component of a pattern may be a number
(``blocks.2.*``), a number from the end (``blocks.-1.*``), or a slice (``blocks.::4.*``, ``blocks.:2.*``): the repeat is cut
so that each part is wholly in or out.
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
    """The selectors of ``patterns`` that stand where ``module_list`` has its index, in order."""
    found: dict[str, None] = {}
    text = marked(module_list, {})
    for pattern in patterns:
        components = pattern.split(".")
        for position, component in enumerate(components):
            if is_selector(component) and _leading(".".join(components[:position])).fullmatch(text):
                found[component] = None
    return tuple(found)


def marked(path: Path, chosen: Mapping[Expr, frozenset[str]]) -> str:
    """A path as text in which an index carries the selectors that choose it."""
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
    """What leads to a list inside a list: a selector stands for any index of the outer one, whichever it will choose."""
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
    """A pattern, and it with the index of each iteration that is written out in the place of a selector that chooses it."""
    found: dict[str, None] = {pattern: None}
    components = pattern.split(".")
    for path, index, chosen in listed:
        text = marked(path, {})
        for position, component in enumerate(components):
            if component in chosen and component != str(index) and _leading(".".join(components[:position])).fullmatch(text):
                text_there = ".".join([*components[:position], str(index), *components[position + 1 :]])
                found.update(dict.fromkeys(spelled(text_there, listed)))
    return tuple(found)


def cutting(patterns: Iterable[str]) -> tuple[str, ...]:
    """Those of ``patterns`` that may select iterations."""
    return tuple(pattern for pattern in patterns if any(is_selector(component) for component in pattern.split(".")))
