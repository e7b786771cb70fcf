"""Example batches of vendored estimators, as arguments of a project's function, with the FLOPs that symflops derives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

from symflops.emit.vendor.files import SUMS, Example, tokens_of
from symflops.emit.vendor.targets import Target
from symflops.evaluate.batch import BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.latent_inputs import LatentInputs
from symflops.evaluate.latents import KEYS, latent_lengths
from symflops.evaluate.units import in_flops
from symflops.formula.formula import evaluate
from symflops.ir.program import Program

LENGTHS = ((512, 1024, 2048), (4096, 4096, 4096), (77, 1, 4095))
OTHERS = ((64, 33, 226), (512, 512, 512), (1, 77, 300))
IMAGES = ((256,), (), (1024, 64))
IMAGE_TOKENS = (257, 0, 64)
VIDEOS = ((17, 32), (5, 64), (2, 16))
WAYS = ((1, False), (512, False), (1, True))
"""Fallbacks for models that refuse the usual batches: a factor on the lengths, and whether images are square."""
SIDES = ((2, 32, 48), (8, 64, 64), (16, 64, 32), (4, 128, 32))


@dataclass(frozen=True, slots=True)
class Shaped:
    """Stand-in for a tensor that has only a shape."""

    shape: tuple[int, ...]


def examples(
    estimator: InterpretedEstimator, program: Program, target: Target, streams: Mapping[str, tuple[str, ...]]
) -> Iterator[Example]:
    """Yield example batches, each as arguments of the project's function, with the expected FLOPs."""
    for place in range(len(LENGTHS)):
        for way in WAYS:
            batch = batch_of(place, *way, target, streams)
            try:
                moments = estimator.moments(**batch)
                flops = estimator.forward(moments) if target.feeds == "video" else in_flops(estimator, estimator.total(moments))
            except BatchError:  # too short for the model, or of another form
                if way == WAYS[-1]:
                    raise
                continue
            yield Example(arguments_of(batch, program, target, estimator.sizes), flops)
            break


def batch_of(place: int, factor: int, square: bool, target: Target, streams: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Build the example batch number ``place``: map each stream to the lengths of its items.

    Lengths are multiplied by ``factor``. If ``square``, the last two sides of an item are equal.
    """
    batch: dict[str, Any] = {}
    for number, (name, axes) in enumerate(streams.items()):
        sides = [[*side[-len(axes) :]] for side in (*SIDES[place:], *SIDES[:place])][: len(LENGTHS[place])]
        sides = [[*side[:-2], side[-1], side[-1]] for side in sides] if square and len(axes) > 1 else sides
        lengths = [factor * length for length in (OTHERS if number else LENGTHS)[place]]
        batch[name] = sides if len(axes) > 1 else lengths
        if number and len(axes) > 1:
            batch[name] = [laid_out(axes, length) for length in IMAGE_TOKENS]
    if target.feeds == "lists" and len(streams) > 1:
        name, axes = list(streams.items())[1]
        batch[name] = [laid_out(axes, patches) if len(axes) > 1 else patches for patches in IMAGES[place]]
    if target.feeds == "video":  # a frame is a square, and a prompt is there only after the first batch
        batch = {
            name: videos(axes, VIDEOS[place]) if not number else [place] for number, (name, axes) in enumerate(streams.items())
        }
    return {name: given[-1:] for name, given in batch.items()} if target.feeds == "one" else batch


def laid_out(axes: tuple[str, ...], patches: int) -> list[int]:
    """Return the sides of an image with ``patches`` patches, as close to a square as possible.

    >>> laid_out(("t", "h", "w"), 128)
    [1, 8, 16]
    """
    side = next((side for side in range(isqrt(patches), 0, -1) if patches % side == 0), 1)
    return [1] * (len(axes) - 2) + [side, patches // side]


def videos(axes: tuple[str, ...], video: tuple[int, int]) -> list[Any]:
    """Convert a video (frames, side of a frame) to a list with one item, which has three sides or one."""
    frames, side = video
    return [[frames, side, side]] if len(axes) > 1 else [frames * side**2]


def divided(places: int) -> tuple[int, int]:
    """Split the number of latent positions of a video into (frames, side of a square frame).

    The side is the largest possible.

    >>> divided(5 * 64 * 64)
    (5, 64)
    """
    side = next(side for side in range(isqrt(places), 0, -1) if places % side**2 == 0)
    return places // side**2, side


def arguments_of(batch: Mapping[str, list[Any]], program: Program, target: Target, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Map each argument of the project's function to its value for ``batch``."""
    first, *others = batch.values()
    further = [given for name, given in list(batch.items())[1:] if name != "prompt"] if target.feeds == "latents" else []
    rows = zip(first, *further, strict=True)
    flat = [side for row in rows for item in row for side in (item if isinstance(item, list) else [item])]
    match target.feeds:
        case "one":
            return {"seq_len": first[0]}
        case "video":
            frames, side = first[0][:2] if isinstance(first[0], list) else divided(first[0])
            prompts = {f"{name}_tokens": given[0] for name, given in list(batch.items())[1:]}
            return {"num_frames": frames, "latent_size": side, **prompts}
        case "lists":
            patches = [prod(item) if isinstance(item, list) else item for item in others[0]] if others else None
            return {"batch_seqlens": first, **({} if patches is None else {"images_seqlens": patches})}
        case "latents":
            return {"latent_seqlens": flat, "prompt_seqlens": batch.get("prompt", [])}
    axes = {stream.name: stream.variables for stream in program.streams}
    found: dict[str, int] = {}
    for items in zip(*batch.values(), strict=True):
        lengths_of = [(axes[name], item if isinstance(item, list) else [item]) for name, item in zip(batch, items, strict=True)]
        lengths = {axis: side for names, sides in lengths_of for axis, side in zip(names, sides, strict=True)}
        for formula, name in tokens_of(program):
            found[SUMS[name]] = found.get(SUMS[name], 0) + int(evaluate(formula, {**sizes, **lengths}))
    return found


def latents_in(estimator: InterpretedEstimator, inputs: LatentInputs) -> Iterator[tuple[dict[str, tuple[int, ...]], list[int]]]:
    """Yield (shapes of tensors by key, the lengths read from them) for each layout of a trainer."""
    width = evaluate(inputs.width, estimator.sizes) if inputs.width else 16
    others = [one for one in inputs.others if one.stream in estimator.implied]
    more: dict[str, tuple[int, ...]] = {}
    for one in others:
        words = one.layout.split()
        more[one.names[0]] = tuple(2 if word.startswith("b") else 257 if word == one.axes[-1] else 8 for word in words)
    form = inputs.layout, inputs.axes, width
    for key, shape in shapes_of(inputs, width):
        data = {key: shape, **more}
        held = {name: Shaped(given) for name, given in data.items()}
        yield data, latent_lengths(held, KEYS, form, [(one.names, one.layout, one.axes) for one in others])


def shapes_of(inputs: LatentInputs, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield (key, shape) of latents of two samples, in three layouts of trainers.

    These are the model input, the same with an axis of steps, and the output of the autoencoder with ``width`` channels.
    """
    sides = (16, 64, 32)[-len(inputs.axes) :]
    own = dict(zip(inputs.axes, sides if len(sides) > 1 else (1024,), strict=True))
    words = [word for word in inputs.layout.split() if word != "b"]
    shape = tuple(own.get(word, width) for word in words)
    yield "image_latents", (2, *shape)
    yield "all_latents", (2, 11, *shape)
    yield "latents_clean", (2, width, *own.values()) if len(sides) > 1 or words[0] != inputs.axes[0] else (2, width, 64, 32)
