"""Reads the lengths of each stream from a trainer's batch, by the layouts of the model's inputs.

A batch is a mapping of tensors. The lengths of a stream come from the first of:

- the arguments of the model by name (``input_ids``, ``hidden_states``, ``image_grid_thw``, ...), read by their layouts;
  for tokens (``input_ids`` or ``tokens``) a more exact source in the batch: the boundaries of packs, an attention mask, or
  position ids that restart at 0;
- for latents ``image_latents``, ``latents_clean``, ``all_latents`` (with an axis of time steps after the batch), or a named
  key; for prompts ``prompt_embeds_mask`` (dense or nested), then ``prompt_embeds``, else no prompts.

A layout names the dimensions of an input (``b c f h w``, or ``b x w`` for packed tokens). A latent that the model packs may
also come unpacked, as ``(b, [t], c, *spatial)``: packing keeps the number of elements. A ``stacked`` latent has an axis of time
steps after the batch.

A pack is a row of several sub-sequences, separated by attention's ``cu_seqlens``. Squares of lengths use the boundaries without
padding; linear work covers all tokens of a pack, padding included. A pack without a sub-sequence is one sequence.
Megatron-Bridge's ``accumulate_flops_metadata`` has the same rules.

The keys and their order are those of VeRL-Omni's extractors and of the flash-attention arguments of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from symflops.evaluate.batch import BatchError
from symflops.evaluate.boundaries import LengthError, filled, host_array, rows_of, steps, told
from symflops.evaluate.latents import latent_sides, sample_shape
from symflops.evaluate.layouts import count_in, dimensions, shape_of
from symflops.evaluate.lengths import Lengths, joined, marked, of_mask, of_nested, of_position_ids, of_rows, same

TOKENS = ("input_ids", "tokens")
NAMES = ("cu_seqlens_q", "cu_seqlens", "cu_seq_lens_q")
INNER = (*(f"{name}_unpadded" for name in NAMES), *NAMES)
OUTER = (*(f"{name}_padded" for name in NAMES), *NAMES)
OF_KEYS = {"cu_seqlens_q": "cu_seqlens_kv", "cu_seq_lens_q": "cu_seq_lens_k"}
LATENTS = (("image_latents", False), ("latents_clean", False), ("all_latents", True))
GRIDS = ("image_grid_thw", "video_grid_thw")
DECODED, IGNORED = "decoder_input_ids", -100

Rows = Mapping[str, tuple[str, str, int | None]]
"""Argument of the model -> (stream or index set, layout, width or None)."""


def packed(batch: Mapping[str, Any], tokens: Any = None) -> Lengths:
    """Lengths of the sub-sequences in a packed batch.

    Args:
        batch: ``cu_seqlens``, optionally with ``cu_seqlens_unpadded``, and for each the number of valid boundaries, on the
            host, as ``cu_seqlens_argmin`` and ``cu_seqlens_unpadded_argmin``; or ``cu_seqlens_q`` and
            ``cu_seqlens_q_padded``; or ``cu_seq_lens_q``.
        tokens: The length of the pack, or its token ids; by default ``input_ids`` or ``tokens`` of the batch. Tokens beyond
            the last boundary are padding of the last sub-sequence.

    Raises:
        LengthError: the batch has no boundaries, or they do not fit the tokens.
    """
    found = pack_of(batch, tokens)
    if found is None:
        raise LengthError("a packed batch has 'cu_seqlens'")
    return found


def pack_of(batch: Mapping[str, Any], tokens: Any = None) -> Lengths | None:
    """Lengths of the sub-sequences of a batch, as :func:`packed`; None if it has no boundaries.

    Raises:
        LengthError: the boundaries do not fit the tokens.
    """
    inner, outer = (next((key for key in keys if entry(batch, key) is not None), None) for keys in (INNER, OUTER))
    if inner is None and outer is None:
        return None
    if tokens is None:
        tokens = next((batch[key] for key in TOKENS if entry(batch, key) is not None), None)
    keys = OF_KEYS.get(inner or "", "")
    if entry(batch, keys) is not None and _differ(batch[inner or ""], batch[keys]):
        raise LengthError(f"'{inner}' and '{keys}' differ, so queries and keys are not those of the same sequences")
    padding = None if inner is None or outer in (None, inner) else _boundaries(batch, outer)
    return _filled(_boundaries(batch, inner or outer or ""), padding, _shape(tokens))


def entry(batch: Mapping[str, Any], key: str) -> Any:
    """The entry of a mapping or TensorDict under ``key``; None if it has no such entry."""
    try:
        return batch[key]
    except (KeyError, IndexError, TypeError):
        return None


def _differ(one: Any, other: Any) -> bool:
    """Whether two sets of boundaries differ; False if a device other than the CPU has either of them."""
    rows = [host_array(rows_of(given)) for given in (one, other)]
    return not any(hasattr(row, "unsqueeze") for row in rows) and rows[0].tolist() != rows[1].tolist()


def _boundaries(batch: Mapping[str, Any], key: str) -> Any:
    """The boundaries under ``key``, one row per pack, cut to ``<key>_argmin`` entries if the batch has it."""
    rows, least = rows_of(batch[key]), entry(batch, f"{key}_argmin")
    if least is None:
        return rows
    try:
        return rows[:, : index(least.item() if hasattr(least, "item") else least)]
    except (TypeError, ValueError, RuntimeError):
        raise LengthError(f"'{key}_argmin' is one whole number, not {told(least)}") from None


def _shape(tokens: Any) -> Sequence[int] | None:
    """The shape of token ids, or ``(n,)`` for a number of tokens per pack; None if ``tokens`` is None.

    Raises:
        LengthError: ``tokens`` is neither.
    """
    if tokens is None:
        return None
    if getattr(tokens, "is_nested", False):
        return (tokens.numel(),)
    try:
        shape = shape_of(tokens) or (index(tokens),)
    except TypeError:
        shape = (-1,)
    if min(shape) < 0:
        raise LengthError(f"the tokens of a pack are token ids or their number, not {told(tokens)}")
    return shape


def _filled(inner: Any, outer: Any, tokens: Sequence[int] | None) -> Lengths:
    """Compute the real and padded lengths of sub-sequences from their boundaries in each pack.

    Args:
        inner: Boundaries without padding, one row per pack.
        outer: Boundaries with padding, in the same form; None if the batch has only one set of boundaries.
        tokens: The shape of the token ids, or ``(n,)`` for ``n`` tokens per pack; None if unknown.

    Raises:
        LengthError: a pack has no sub-sequence and ``tokens`` is None, or the boundaries do not fit ``tokens``.
    """
    real, mark = steps(inner)
    count, length = (len(real), None) if tokens is None else tokens[:2] if len(tokens) > 1 else (len(real), *tokens)
    if real.shape[1] == 0 or not (mark is None or hasattr(mark, "unsqueeze") or mark.any()):
        if length is None:
            raise LengthError("a pack without a sub-sequence, and without a number of tokens")
        return same(count, length)
    if length is not None and count * length % len(real):
        raise LengthError(f"{len(real)} packs in token ids of shape {tokens}")
    width = None if length is None else count * length // len(real)
    if width is not None and not hasattr(real, "unsqueeze") and (real.sum(1) > width).any():
        raise LengthError(
            f"boundaries of {int(real.sum(1).max())} tokens in a pack of {width}; "
            "if ranks hold slices of it, give the number of all its tokens"
        )
    real, padded, mark = filled(real, mark, None if outer is None else steps(outer)[0], width)
    return marked(real, mark, padded)


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
    names = [name for members in estimator.sets.values() for name, _, _ in members]
    keys = {"latent" if "latent" in names else names[0]: latents} if isinstance(latents, str) else latents
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
        raise LengthError(f"nothing in the batch tells the lengths of '{missing[0]}'; it has {told(batch)}")
    return found


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
    if not nested and mask is not None and len(shape_of(mask)) in (2, 3):
        return of_mask(flattened(mask))
    if not nested and mask is not None and len(shape_of(mask)) == 4:
        raise LengthError(
            "a mask of four dimensions tells no lengths: pass one of shape (samples, positions), or boundaries of packs"
        )
    positions = entry(batch, f"{prefix}position_ids")
    if not nested and mask is None and positions is not None and len(shape_of(positions)) <= 2:
        return of_position_ids(positions)
    return rows_in(flattened(given), "token ids", "(samples, positions)")


def flattened(given: Any) -> Any:
    """View ids or a mask of shape (samples, choices, positions) as rows of positions, as models of several choices do."""
    three = hasattr(given, "reshape") and len(given.shape) == 3 and not getattr(given, "is_nested", False)
    return given.reshape(-1, given.shape[-1]) if three else given


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
