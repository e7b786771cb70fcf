"""Reads the lengths of a model's inputs from their shapes.

An input's layout names its dimensions (``b c f h w``, or ``b x w`` for packed tokens). A latent that the model packs may also
come unpacked, as ``(b, [t], c, *spatial)``: packing keeps the number of elements. A ``stacked`` latent has an axis of time
steps after the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symflops.runtime.at_hand import LengthError
from symflops.runtime.latents import latent_sides, sample_shape
from symflops.runtime.layouts import shape_of
from symflops.runtime.lengths import Lengths, joined, of_nested, of_rows, same


def read(
    name: str, row: tuple[str, str, int | None], axes: Sequence[str], given: Any, stacked: bool | None = None, items: int = 0
) -> Lengths:
    """The lengths of the stream with these ``axes``, from one argument: a tensor, or a list of one tensor per item.

    ``row`` is the argument's row of ``inputs()``. If an argument holds several blocks per item, ``items`` is their number.
    ``stacked`` is None for anything else than latents under a key of their own.

    Raises:
        LengthError: its shape does not fit the layout.
    """
    _, layout, width = row
    words = layout.split()
    if words[:1] == ["values:"]:
        return of_rows(given, len(axes))
    if getattr(given, "is_nested", False):
        return of_nested(given)
    if isinstance(given, (list, tuple)) and given and all(len(getattr(item, "shape", ())) > 1 for item in given):
        channels = of_channels(words, axes)
        single = words[0] == "b" or bool("b" not in words and channels)
        whole = [(1,) * (single and ("b" not in words or len(item.shape) < len(words))) + shape_of(item) for item in given]
        if stacked is not None and channels:
            whole = [(1, *sample_shape(name, item, stacked, len(axes))) for item in given]
        return joined([by_layout(name, words, axes, width, shape) for shape in whole])
    shape = shape_of(given)
    if shape == (0,):
        return same(0, *(0 for _ in axes))
    if stacked:
        if len(shape) < 2:
            raise LengthError(f"'{name}' of shape {shape} has no axis of time steps")
        shape = (shape[0], *shape[2:])
    return by_layout(name, words, axes, width, shape, items)


def by_layout(
    name: str, words: Sequence[str], axes: Sequence[str], width: int | None, shape: tuple[int, ...], items: int = 0
) -> Lengths:
    """The lengths in a shape, by a layout or by the unpacked form of a latent.

    Raises:
        LengthError: it fits neither.
    """
    channels = of_channels(words, axes)
    if channels and ("b" in words or len(shape) != len(words) or shape[words.index(channels)] != width):
        try:
            return same(shape[0], *latent_sides(name, shape, (" ".join(words), axes, width)))
        except ValueError as error:
            raise LengthError(str(error)) from None
    named = [word.partition("=") for word in words]
    if not sum(not default for _, default, _ in named) <= len(shape) <= len(words):
        raise LengthError(f"'{name}' has {len(shape)} dimensions, its layout '{' '.join(words)}' has {len(words)}")
    return _named(name, named, axes, shape, items)


def of_channels(words: Sequence[str], axes: Sequence[str]) -> str:
    """The word for channels in a layout that has nothing else than samples and ``axes``; empty for any other layout."""
    others = [word for word in words if word not in axes and word != "b"]
    return others[0] if axes and len(others) == 1 and others[0].isalpha() and {*axes} < {*words} else ""


def _named(
    name: str, words: Sequence[tuple[str, str, str]], axes: Sequence[str], shape: tuple[int, ...], items: int
) -> Lengths:
    found: dict[str, int] = {}
    heads = [word for word, _, _ in words]
    count = shape[heads.index("b")] if "b" in heads[: len(shape)] else items if "b" in heads[0] else 1
    for place, (word, _, default) in enumerate(words):
        head, _, blocks = word.partition("*")
        size = shape[place] if place < len(shape) else int(default)
        if head == "b" and blocks:
            if not items or size % items:
                raise LengthError(f"'{name}' has {size} rows, several per item: give the number of items with it")
            found[blocks] = size // items
        elif head == "1" and found.get(blocks, size) != size:
            raise LengthError(f"'{name}' of shape {shape} has two lengths for '{blocks}', {found[blocks]} and {size}")
        else:
            found[word] = size
    if not set(axes) <= found.keys():
        raise LengthError(f"the layout of '{name}' does not tell {', '.join(sorted(set(axes) - found.keys()))}")
    return same(count, *(found[axis] for axis in axes))
