"""Reads the lengths of latents from the tensors of a trainer's batch, or from flat lists of lengths.

A trainer stores latents under one of ``KEYS``: packed, in the autoencoder's layout, or with an axis of denoising steps.
Vendored estimators copy the text of these functions (:mod:`symflops.emit.vendor.sizes`), so they import nothing, raise a
plain ``ValueError``, and have lines of at most 120 characters.
"""

from __future__ import annotations

from math import isqrt, prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

KEYS = ("image_latents", "audio_latents", "latents_clean", "all_latents")
"""Batch keys of latents; the first one present is used. ``all_latents`` has an axis of denoising steps after the batch."""

CONDITION = "condition_image_latents"
"""The batch key of an image to edit, packed like the latents."""

PIPELINE_NAMES = {"encoder_hidden_states_image": "image_embeds", "image_context": "image_embeds"}
"""Argument of a denoising model -> its name in pipelines."""


def latent_lengths(data: Any, keys: Sequence[str], form: Sequence[Any], others: Sequence[Any] = ()) -> list[int]:
    """Lengths of the latents of a batch as one list: per sample those of its axes, then those of ``others``.

    ``form`` is what the model takes: layout, axes with lengths, channels. A model of packed tokens sees those of the
    condition (an image to edit) behind its own. Each of ``others`` is a further input as its names, layout and axes;
    it has length 0 if the batch does not hold it.
    """
    key = next((key for key in keys if data.get(key) is not None), None)
    rows = latent_rows(key, data.get(key), key == "all_latents", form) if key else []
    condition = data.get("condition_image_latents") if len(form[1]) == 1 and rows else None
    if condition is not None:
        behind = latent_rows("condition_image_latents", condition, False, form)
        if len(behind) != len(rows):
            raise ValueError(f"'{key}' has {len(rows)} samples, 'condition_image_latents' {len(behind)}")
        rows = [(one[0] + two[0],) for one, two in zip(rows, behind, strict=True)]
    for names, layout, axes in others:
        name = next((name for name in names if data.get(name) is not None), None)
        more = block_lengths(name, data.get(name), layout, axes, len(rows)) if name else (0,) * len(axes)
        rows = [(*row, *more) for row in rows]
    return [length for row in rows for length in row]


def latent_rows(name: str, given: Any, stacked: bool, form: Sequence[Any]) -> list[Any]:
    """Lengths per sample of a tensor, or of a list with a tensor per sample; 0 for a tensor that is no latent."""
    axes = form[1]
    if isinstance(given, (list, tuple)):
        return [latent_sides(name, (1, *sample_shape(name, one, stacked, len(axes))), form) for one in given]
    if getattr(given, "is_nested", False):
        if len(axes) > 1:
            raise ValueError(f"'{name}' is nested, which tells one length per sample, not {', '.join(axes)}")
        return [(int(length),) for length in given.offsets().diff().tolist()]
    shape = tuple(int(side) for side in getattr(given, "shape", ()))
    if len(shape) < (4 if stacked else 3):
        return [(0,) * len(axes)] * shape[0] if shape else []
    return [latent_sides(name, shape[:1] + shape[2:] if stacked else shape, form)] * shape[0]


def sample_shape(name: str, one: Any, stacked: bool, sides: int) -> tuple[int, ...]:
    """The shape of one sample in a list, without an axis of denoising steps, or of a batch of one."""
    if not hasattr(one, "shape"):
        raise ValueError(f"'{name}' is a list with a tensor per sample, which {one!r:.40} is not")
    shape = tuple(int(side) for side in one.shape)
    return shape[1:] if stacked or (shape[:1] == (1,) and len(shape) > 2 + (sides > 1)) else shape


def latent_sides(name: str, shape: Sequence[int], form: Sequence[Any]) -> tuple[int, ...]:
    """Lengths of the axes in latents of a shape (samples, ...), by the layout of the model or of the autoencoder.

    The autoencoder's is (samples, channels, sides). An image has no axis of frames. A model with packed tokens takes
    as many numbers as the autoencoder gives; of an image its tokens are squares. Latents may have fewer channels than
    the model, which takes those of a condition beside them; if there seem to be more, channels are last or second.
    """
    layout, axes, width = form
    words = [word for word in layout.split() if word != "b"]
    channels = next(word for word in words if word not in axes)
    if words == [*axes, channels] and len(axes) == 1:
        return packed_tokens(name, shape, width)
    known = [["b", *words], *(["b", channels, *axes[gone:]] for gone in range(max(1, len(axes) - 1)))]
    known = [names for names in known if len(names) == len(shape)]
    if not known:
        raise ValueError(f"'{name}' has {len(shape)} dimensions, its layout '{layout}' has {len(layout.split())}")
    found = next((names for names in known if shape[names.index(channels)] == width), known[0])
    if width and shape[found.index(channels)] > width:
        sides = axes[len(axes) + 2 - len(shape) :]
        others = [["b", *sides[:place], channels, *sides[place:]] for place in (len(sides), 1)]
        found = next((names for names in others if shape[names.index(channels)] == width), found)
    return tuple(int(shape[found.index(axis)]) if axis in found else 1 for axis in axes)


def packed_tokens(name: str, shape: Sequence[int], width: Any) -> tuple[int]:
    """Tokens of a sample for a model of packed tokens with ``width`` channels, some of which may be a condition's."""
    wrong = ValueError(f"'{name}' of shape {tuple(shape)} does not pack into tokens of {width} channels")
    if len(shape) < 4:
        if shape[-1] != width and shape[1] == width:
            return (int(shape[2]),)
        if width and shape[-1] > width:
            raise wrong
        return (int(shape[1]),)
    if not width or prod(shape[1:]) % width:
        raise wrong
    side = isqrt(width // shape[1]) if len(shape) == 4 and shape[1] else 0
    if side and (side * side * shape[1] != width or shape[2] % side or shape[3] % side):
        raise wrong
    return (prod(shape[1:]) // width,)


def block_lengths(name: str, given: Any, layout: str, axes: Sequence[str], samples: int) -> tuple[int, ...]:
    """Lengths of an input that holds several rows per sample if its layout begins with ``b*rows``."""
    words, shape = layout.split(), tuple(getattr(given, "shape", ()))
    rows = words[0].partition("*")[2]
    if len(shape) != len(words) or (shape[0] % samples if rows and samples else shape[0] != samples):
        raise ValueError(f"'{name}' of shape {shape} is no '{layout}' of {samples} samples")
    found = {**dict(zip(words, shape, strict=True)), rows: shape[0] // samples if samples else 0}
    return tuple(int(found[axis]) for axis in axes)


def columns_in(latents: Any, prompts: Any, axes: Sequence[str], others: Sequence[Any], units: Any) -> list[list[int]]:
    """Flat lists of lengths as one list per axis, and at last one for the prompts.

    Each of ``others`` is a further input: the field of the config that switches it on, its axes, and whether it is
    on. A model whose work depends on the number of patches alone also takes one number per sample; ``units`` are the
    sides of a patch.
    """
    flat, texts = whole_lengths("latent_seqlens", latents), whole_lengths("prompt_seqlens", prompts)
    names = [*axes, *(axis for _, own, on in others if on for axis in own)]
    told = f"got {len(flat)} and {len(texts)}"
    count = len(texts) or len(flat) // len(names)
    flat, texts = flat or [0] * (count * len(names)), texts or [0] * count
    if len(flat) == count and len(names) == len(axes) > 1 and units:
        flat = [side for patches in flat for side in (*units[:-1], units[-1] * patches)]
    if len(flat) != count * len(names):
        if len(names) == 1:
            raise ValueError(f"latent_seqlens and prompt_seqlens must have the same length, {told}")
        given = "".join(f"since the config has '{field}', " for field, _, on in others if on)
        form = f"{len(names)} numbers per sample ({', '.join(names)})"
        raise ValueError(f"{given}latent_seqlens has {form} and prompt_seqlens one: {told}")
    known = {name: flat[place :: len(names)] for place, name in enumerate(names)}
    every = (*axes, *(axis for _, own, _ in others for axis in own))
    return [*(known.get(name, [0] * count) for name in every), texts]


def whole_lengths(name: str, given: Any) -> list[int]:
    """The lengths in a list, none in None."""
    try:
        lengths = [int(length) if length == int(length) else -1 for length in (() if given is None else given)]
    except (TypeError, ValueError, OverflowError):
        lengths = [-1]
    if min(lengths, default=0) < 0:
        raise ValueError(f"{name} must be a list of lengths, not {given!r:.60}")
    return lengths
