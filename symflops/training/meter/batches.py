"""Reads the lengths of each stream from a trainer's batch, by the layouts of the model's inputs.

A batch is a mapping of tensors. The lengths of a stream come from the first of:

- the arguments of the model by name (``input_ids``, ``hidden_states``, ``image_grid_thw``, ...), read by their layouts;
  for tokens (``input_ids`` or ``tokens``) a more exact source in the batch: the boundaries of packs
  (:mod:`symflops.training.meter.packs`), an attention mask, or position ids that restart at 0;
- for latents ``image_latents``, ``latents_clean``, ``all_latents`` (with an axis of time steps after the batch), or a named
  key; for prompts ``prompt_embeds_mask`` (dense or nested), then ``prompt_embeds``, else no prompts.

A layout names the dimensions of an input (``b c f h w``, or ``b x w`` for packed tokens). A latent that the model packs may
also come unpacked, as ``(b, [t], c, *spatial)``: packing keeps the number of elements. A ``stacked`` latent has an axis of time
steps after the batch.

The keys and their order are those of VeRL-Omni's extractors and of the flash-attention arguments of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.evaluate.batch import BatchError
from symflops.evaluate.boundaries import LengthError
from symflops.evaluate.latents import latent_sides, sample_shape
from symflops.evaluate.layouts import count_in, dimensions, shape_of
from symflops.evaluate.lengths import Lengths, joined, of_mask, of_nested, of_position_ids, of_rows, same
from symflops.training.meter.packs import TOKENS, entry, pack_of

LATENTS = (("image_latents", False), ("latents_clean", False), ("all_latents", True))
GRIDS = ("image_grid_thw", "video_grid_thw")
DECODED, IGNORED = "decoder_input_ids", -100


Rows = Mapping[str, tuple[str, str, int | None]]


def streams_of(estimator: Any, batch: Mapping[str, Any], latents: str | Mapping[str, str] = "") -> dict[str, Any]:
    """Map each stream of the model that is in ``batch`` to its lengths.

    Args:
        estimator: The estimator of the model.
        batch: The tensors of a trainer's batch, by name.
        latents: The key of the latents if it is not one of ``LATENTS``, or such keys by stream. A single key belongs to the
            stream ``latent``, or to the first stream if none has that name.

    Raises:
        LengthError: the batch lacks the lengths of a required stream, or a shape does not fit.
    """
    rows = estimator.inputs()
    keys = latents if not isinstance(latents, str) else {_latent_stream(estimator): latents}
    found: dict[str, Any] = {}
    for items, members in estimator.sets.items():
        for name, axes, _ in members:
            lengths = _stream(name, axes, rows, batch, keys.get(name), _items(found))
            if lengths is not None:
                found[name] = lengths
            elif name == "prompt" or (items != "samples" and not estimator.streams[name]):  # the batch has no such items
                found[name] = same(_items(found) if items == "samples" else 0, *(0 for _ in axes))
    missing = [name for name, optional in estimator.streams.items() if not optional and name not in found]
    if missing:
        has = ", ".join(map(str, batch)) or "nothing"
        raise LengthError(f"nothing in the batch tells the lengths of '{missing[0]}'; it has {has}")
    return found


def _latent_stream(estimator: Any) -> str:
    names = [name for members in estimator.sets.values() for name, _, _ in members]
    return "latent" if "latent" in names else names[0]


def _items(found: Mapping[str, Any]) -> int:
    return max((entry.count for entry in found.values()), default=0)


def _stream(
    name: str, axes: Sequence[str], rows: Rows, batch: Mapping[str, Any], latents: str | None, items: int
) -> Lengths | None:
    """The lengths of one stream; None if the batch does not contain it.

    ``axes`` are the stream's axes, ``rows`` the model's ``inputs()``. ``items`` is the largest number of items in the streams
    read so far. ``latents`` is the key of the latents: empty for the usual keys, None for a
    stream that holds no latents.
    """
    mine = {argument: row for argument, row in rows.items() if row[0] == name or row[1] == f"values: {' '.join(axes)}"}
    for argument, row in mine.items():
        keys = GRIDS if argument in GRIDS else sorted(TOKENS, key=argument.__ne__) if argument in TOKENS else (argument,)
        found = [(key, entry(batch, key)) for key in keys if entry(batch, key) is not None]
        if len(axes) == 1 and row[1] == f"b {axes[0]}":
            pack = pack_of(batch) if argument in TOKENS and not found else None
            if pack is not None:
                return pack
            if found:
                return tokens(batch, found[0][1], argument.removesuffix("input_ids") if argument.endswith("_input_ids") else "")
        if found:  # the rows of images, followed by those of videos
            return joined([read(key, row, axes, given, items=items) for key, given in found])
        if argument == DECODED and row[1] == f"b {axes[0]}" and len(shape_of(entry(batch, "labels"))) == 2:
            return of_labels(batch["labels"])
    if not mine or not axes:
        return None
    if name == "prompt":
        return prompts(batch)
    return None if latents is None else _latents(latents, next(iter(mine.values())), axes, batch)


def _latents(name: str, row: tuple[str, str, int | None], axes: Sequence[str], batch: Mapping[str, Any]) -> Lengths | None:
    """The lengths of the latents under the key ``name``, by default one of ``LATENTS``; None without any."""
    for key, stacked in ((name, name == "all_latents"),) if name else LATENTS:
        given = entry(batch, key)
        if given is not None:
            return read(key, row, axes, given, stacked)
    return None


def tokens(batch: Mapping[str, Any], given: Any, prefix: str = "") -> Lengths:
    """Read the lengths of token sequences: from pack boundaries, mask, position ids, or a shape.

    ``given`` are token ids of shape (samples, positions). ``prefix`` begins the keys of their mask and position ids
    (``decoder_``).

    Raises:
        LengthError: ``given`` is not two-dimensional, and no other entry has the lengths.
    """
    pack = None if prefix else pack_of(batch, given)
    if pack is not None:
        return pack
    nested = getattr(given, "is_nested", False)
    mask = entry(batch, f"{prefix}attention_mask")
    if not nested and mask is not None and len(shape_of(mask)) == 2:
        return of_mask(mask)
    positions = entry(batch, f"{prefix}position_ids")
    if not nested and mask is None and positions is not None and len(shape_of(positions)) <= 2:
        return of_position_ids(positions)
    return rows_in(given, "token ids", "(samples, positions)")


def rows_in(given: Any, what: str, expected: str) -> Lengths:
    """Read the lengths of the rows of a tensor, nested or dense; ``what`` and ``expected`` are for errors.

    Raises:
        LengthError: a dense tensor has fewer than two dimensions.
    """
    if getattr(given, "is_nested", False):
        return of_nested(given)
    shape = shape_of(given)
    if len(shape) < 2:
        raise LengthError(f"{what} of shape {shape}: expected {expected}")
    return same(shape[0], shape[1])


def of_labels(labels: Any) -> Lengths:
    """Read decoder lengths from labels: in each row, the number of labels that are not ignored (-100)."""
    return of_mask(labels != IGNORED if hasattr(labels, "dtype") else [[label != IGNORED for label in row] for row in labels])


def prompts(batch: Mapping[str, Any]) -> Lengths | None:
    """Read the prompt lengths of a diffusion batch, from the mask or the embeddings; None without both."""
    mask, embeddings = entry(batch, "prompt_embeds_mask"), entry(batch, "prompt_embeds")
    if mask is not None:
        return of_nested(mask) if getattr(mask, "is_nested", False) else of_mask(mask)
    return None if embeddings is None else rows_in(embeddings, "prompt embeddings", "(samples, tokens, width)")


def read(
    name: str, row: tuple[str, str, int | None], axes: Sequence[str], given: Any, stacked: bool | None = None, items: int = 0
) -> Lengths:
    """Read the lengths along ``axes`` from one argument: a tensor, or a list of one tensor per item.

    Args:
        name: The name of the argument.
        row: Its row of the estimator's ``inputs()``: (stream or index set, layout, width).
        axes: The axes of the stream.
        given: The argument.
        stacked: Whether latents have an axis of time steps; None for other arguments.
        items: The number of items, needed if the argument has several rows per item.

    Raises:
        LengthError: the shape does not fit the layout.
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
    """Read the lengths along ``axes`` off a shape, by its layout ``words`` or as an unpacked latent.

    ``width`` is the length of the channels, ``items`` the number of items if a layout has several rows per item.

    Raises:
        LengthError: the shape fits neither.
    """
    channels = of_channels(words, axes)
    if channels and ("b" in words or len(shape) != len(words) or shape[words.index(channels)] != width):
        try:
            return same(shape[0], *latent_sides(name, shape, (" ".join(words), axes, width)))
        except ValueError as error:
            raise LengthError(str(error)) from None
    if words[0].startswith("b*") and shape and (not items or shape[0] % items):
        raise LengthError(f"'{name}' has {shape[0]} rows, several per item: give the number of items with it")
    count = count_in(words, shape, items)
    try:
        found = dict(dimensions(name, words, shape, count))
    except BatchError as error:
        raise LengthError(str(error)) from None
    if not set(axes) <= found.keys():
        raise LengthError(f"the layout of '{name}' does not tell {', '.join(sorted(set(axes) - found.keys()))}")
    return same(count, *(found[axis] for axis in axes))


def of_channels(words: Sequence[str], axes: Sequence[str]) -> str:
    """The word for channels in a layout of samples, channels and ``axes``; empty for any other layout."""
    others = [word for word in words if word not in axes and word != "b"]
    return others[0] if axes and len(others) == 1 and others[0].isalpha() and {*axes} < {*words} else ""
