"""Lengths of the inputs of a model, read off their shapes by its layouts.

An input's layout names its dimensions (``b c f h w``, or ``b x w`` for packed tokens). A latent is also taken in the other
form: unpacked ``(b, [t], c, *spatial)`` where the model packs, in which case packing keeps the number of elements; and with
an axis of time steps after the batch, where it is ``stacked``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symflops.runtime.lengths import LengthError, Lengths, of_nested, of_rows, same


def read(name: str, row: tuple[str, str, int | None], axes: Sequence[str], given: Any, stacked: bool = False) -> Lengths:
    """The lengths that one argument tells about the stream with these ``axes``; ``row`` is its line of ``inputs()``.

    Raises:
        LengthError: its shape does not fit the layout.
    """
    _, layout, width = row
    words = layout.split()
    if words[:1] == ["values:"]:
        return of_rows(given, len(axes))
    if getattr(given, "is_nested", False):
        return of_nested(given)
    shape = shape_of(given)
    if stacked:
        if len(shape) < 2:
            raise LengthError(f"'{name}' of shape {shape} has no axis of time steps")
        shape = (shape[0], *shape[2:])
    return by_layout(name, words, axes, width, shape)


def by_layout(name: str, words: Sequence[str], axes: Sequence[str], width: int | None, shape: tuple[int, ...]) -> Lengths:
    """The lengths that a shape tells by a layout, or by the other form of a latent.

    Raises:
        LengthError: it fits neither.
    """
    named = [word.partition("=") for word in words]
    required = [word for word, default, _ in named if not default]
    packed = len(axes) == 1 and words[:2] == ["b", axes[0]] and len(words) == 3
    fits = len(required) <= len(shape) <= len(words)
    if packed and width and not (fits and shape[-1] == width) and len(shape) >= 3:
        elements = 1
        for size in shape[1:]:
            elements *= size
        if len(shape) > 3 or shape[-1] != width:
            if elements % width:
                raise LengthError(f"'{name}' of shape {shape} does not pack into tokens of {width} channels")
            return same(shape[0], elements // width)
    if not fits:
        raise LengthError(f"'{name}' has {len(shape)} dimensions, its layout '{' '.join(words)}' has {len(words)}")
    return _named(name, named, axes, shape)


def _named(name: str, words: Sequence[tuple[str, str, str]], axes: Sequence[str], shape: tuple[int, ...]) -> Lengths:
    found: dict[str, int] = {}
    count = shape[0] if words[0][0] == "b" else 1
    for place, (word, _, default) in enumerate(words):
        head, _, blocks = word.partition("*")
        size = shape[place] if place < len(shape) else int(default)
        if head == "b" and blocks:
            found["b*"] = size
            found[blocks] = -1
        else:
            found[word] = size
    if not set(axes) <= found.keys():
        raise LengthError(f"the layout of '{name}' does not tell {', '.join(sorted(set(axes) - found.keys()))}")
    if any(found[axis] < 0 for axis in axes):
        raise LengthError(f"'{name}' holds several blocks per item: give the number of items with it")
    return same(count, *(found[axis] for axis in axes))


def shape_of(given: Any) -> tuple[int, ...]:
    """The shape of a tensor, of an array, or of nested lists."""
    shape = getattr(given, "shape", None)
    if shape is not None:
        return tuple(int(size) for size in shape)
    found: list[int] = []
    while isinstance(given, (list, tuple)):
        found.append(len(given))
        given = given[0] if given else None
    return tuple(found)
