"""Other values of the sizes that decide a structure: each condition both ways, lists of other lengths."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from symflops.frontend.unused import expressions, headers
from symflops.model.spec import SizeSpec, Spec

OTHER = "other"
"""A word that no spec knows, for the case that no comparison holds."""
NUMBERS = ("number", "entries", "each", "number or list", "number, list, same or valid")


def other_values(spec: Spec, fixed: Mapping[str, Any], changed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Sizes with other values, by letter, among those that are ``fixed`` and not yet ``changed``: one size, or all lists."""
    sizes = [size for size in spec.sizes if size.keys and size.name.text in fixed and size.name.text not in changed]
    for size in sizes:
        value = fixed[size.name.text]
        yield from ({size.name.text: other} for other in _others(spec, size, value) if other != value)
    lists = {size.name.text: fixed[size.name.text] for size in sizes if isinstance(fixed[size.name.text], (list, tuple))}
    for longer in (True, False) if lists else ():
        resized = {letter: _resized(tuple(value), longer) for letter, value in lists.items()}
        yield from [resized] if resized != lists else []


def _others(spec: Spec, size: SizeSpec, value: Any) -> Iterator[Any]:
    """Other values of one size of the same kind, and null if it may be null."""
    if size.optional and value is not None:
        yield None
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, str):
        yield from words(spec, size.name.text)
        if size.kind == "text":
            yield OTHER
    elif isinstance(value, int):
        yield from (1, value + 1)
    elif value is None and size.kind in NUMBERS:
        yield 2


def _resized(value: tuple[Any, ...], longer: bool) -> tuple[Any, ...]:
    """A list with one more item, twice its last if that is a number, or one less."""
    if not longer:
        return value[:-1] if len(value) > 1 else value
    return (*value, *(2 * item if type(item) is int else item for item in value[-1:]))


def words(spec: Spec, letter: str) -> list[str]:
    """The texts with which a spec compares a size."""
    found = []
    for expression in (*headers(spec), *expressions(spec.graph)):
        for node in ast.walk(expression.tree):
            if isinstance(node, ast.Compare) and any(getattr(each, "id", "") == letter for each in ast.walk(node)):
                found += [
                    each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)
                ]
    return list(dict.fromkeys(found))
