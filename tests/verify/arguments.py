"""Further arguments of the models whose arguments repeat lengths of the batch in products, token ids or lists of tensors.

Each function makes the arguments as a pipeline of the class would: positions of the tokens of an image, token ids with a place
for each token of an image, a list with a tensor for each image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from symflops.verify.cases import LiveCase
from symflops.verify.census.lengths import Arguments

Batch = Mapping[str, Any]
TEXT = 7
"""A token of the text around images."""


def further(name: str, case: LiveCase) -> Arguments | None:
    """The function that makes the further arguments of a spec's case from a batch; None if the census's own suffices."""
    if case.arguments and case.reference.endswith("SequenceClassification"):
        return partial(ended, case)
    return partial(BY_SPEC[name], case) if name in BY_SPEC else None


def ended(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """Token ids of texts that end with the last token of the case's texts, which marks the end."""
    end = case.arguments["input_ids"]["value"][0][-1]
    return {"input_ids": ids([[TEXT] * (length - 1) + [end] * min(length, 1) for length in batch["source"]])}


def ids(rows: Sequence[Sequence[int]]) -> dict[str, Any]:
    return {"value": rows, "dtype": "int64"}


def places(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """Three coordinates for each token of an image and of its prompt."""
    return {"img_ids": {"shape": [batch["latent"][0], 3]}, "txt_ids": {"shape": [batch["prompt"][0], 3]}}


def shapes(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """One image of one row for each sample."""
    return {"img_shapes": [[[1, 1, length]] for length in batch["latent"]]}


def one_timestep_apart(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """Timesteps of frames have an axis for them, and that of a sample has none."""
    one = "time" not in batch or set(batch["time"]) == {1}
    kept = {key: value for key, value in case.arguments.items() if key not in ("timestep", "enable_diffusion_forcing")}
    forced = {"enable_diffusion_forcing": True} if "enable_diffusion_forcing" in case.arguments else {}
    return {**kept, "timestep": {"shape": [len(batch["latent"])]}} if one else {**kept, **forced}


def rows(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """One frame of one row, with a mask of the prompt."""
    mask = {"encoder_attention_mask": {"shape": [len(batch["prompt"]), batch["prompt"][0]], "dtype": "int64"}}
    return {**mask, "num_frames": 1, "height": 1, "width": batch["latent"][0]}


def rows_with_sound(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """One frame of one row, with its sound and masks of the prompt; timesteps of a sample as the case gives them."""
    mask = {"shape": [len(batch["prompt"]), batch["prompt"][0]], "dtype": "int64"}
    masks = {"encoder_attention_mask": mask, "audio_encoder_attention_mask": mask}
    sizes = {"num_frames": 1, "height": 1, "width": batch["latent"][0], "audio_num_frames": batch["audio"][0]}
    return {**case.arguments, **masks, **sizes}


def listed(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """A list with a tensor for each sample, of its image and of its prompt."""
    channels, width = case.arguments["x"][0]["shape"][0], case.arguments["cap_feats"][0]["shape"][-1]
    images, texts = batch["latent"], batch["prompt"]
    lists = {"x": [{"shape": [channels, *sides]} for sides in images], "cap_feats": [{"shape": [length, width]} for length in texts]}
    return {**case.arguments, **lists}


def spans(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """Input images, their places in the prompt (from its second token on if they fit), positions and a mask of the whole."""
    patch, channels = case.config.get("patch_size", 2), case.config.get("in_channels", 4)
    images = iter(batch["images"])
    found: dict[int, list[list[int]]] = {}
    for sample, old in case.arguments["input_image_sizes"].items():
        sizes = [(height // patch) * (width // patch) for height, width in (next(images) for _ in old)]
        start = max(0, min(1, batch["prompt"][sample] - sum(sizes)))
        found[sample] = [[start + sum(sizes[:at]), start + sum(sizes[: at + 1])] for at in range(len(sizes))]
    (height, width), samples = batch["latent"][0], len(batch["latent"])
    length = batch["prompt"][0] + 1 + (height // patch) * (width // patch)
    return {
        "input_img_latents": [{"shape": [1, channels, *sides]} for sides in batch["images"]], "input_image_sizes": found,
        "attention_mask": {"shape": [samples, length, length]}, "position_ids": {"shape": [samples, length], "dtype": "int64"},
    }  # fmt: skip


def filled(texts: Sequence[int], count: int, token: int) -> list[list[int]]:
    """Token ids of texts, of which the first ``count`` are ``token``."""
    found = [token if place < count else TEXT for place in range(sum(texts))]
    return [found[sum(texts[:at]) : sum(texts[: at + 1])] for at in range(len(texts))]


def tiles(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """Token ids with a place for each patch of an image, and for its class if that is projected."""
    vision, more = case.config["vision_config"], case.config.get("vision_feature_select_strategy") == "full"
    count = sum((height // vision["patch_size"]) * (width // vision["patch_size"]) + more for height, width in batch["images"])
    return {"input_ids": ids(filled(batch["text"], count, case.config["image_token_index"]))}


def anyres(case: LiveCase, batch: Batch) -> dict[str, Any] | None:
    """Token ids with a place for each patch of an image that is cut into tiles, narrow enough for the text if there is one.

    None if no image has this number of tiles: sizes of the config decide it, and the class runs no other number.
    """
    from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches

    grid, side = case.config["image_grid_pinpoints"], case.config["vision_config"]["image_size"]
    across = side // case.config["vision_config"]["patch_size"]
    counts = {}
    for height, width in [size for tall, wide in grid for size in ([tall, wide], [tall, 4 * wide], [4 * tall, wide], [1, 10**6])]:
        if {item[0] for item in batch["images"]} == {image_size_to_num_patches([height, width], grid, side)}:
            counts[height, width] = unpadded(height, width, grid, side, across)
    if max(item[0] for item in batch["images"]) < 2:
        counts = {tuple(size): unpadded(*size, grid, side, across) for size in grid}
    if not counts:
        return None
    fits = [size for size in counts if counts[size] * len(batch["images"]) <= sum(batch["text"])]
    size = max(fits, key=lambda one: counts[one]) if fits else min(counts, key=lambda one: counts[one])
    return {
        "input_ids": ids(filled(batch["text"], counts[size] * len(batch["images"]), case.config["image_token_index"])),
        "image_sizes": ids([size for _ in batch["images"]]),
    }


def unpadded(height: int, width: int, grid: Any, side: int, across: int) -> int:
    """Number of tokens of an image: patches of the whole, and of its tiles without padding, with a token for each line."""
    import torch
    from transformers.models.llava_next.modeling_llava_next import get_anyres_image_grid_shape, unpad_image

    tall, wide = get_anyres_image_grid_shape([height, width], grid, side)
    lines = unpad_image(torch.zeros(1, tall * across, wide * across), [height, width]).shape
    return across**2 + lines[1] * (lines[2] + 1)


def grids(case: LiveCase, batch: Batch) -> dict[str, Any]:
    """Token ids with a place for each merged patch, whole images in one text if they fit, and their patches in one tensor.

    Positions follow from the kinds of tokens if each image is whole and apart from others in its text; else they are given.
    """
    vision, image = case.config["vision_config"], case.config["image_token_id"]
    merged = vision.get("spatial_merge_size", 2) ** 2
    counts = [frames * height * width // merged for frames, height, width in batch["images"]]
    patches = sum(frames * height * width for frames, height, width in batch["images"])
    found = {"pixel_values": {"shape": [patches, case.arguments["pixel_values"]["shape"][1]]}}
    texts: list[list[int]] = [[] for _ in batch["text"]]
    at = 0
    for count in counts:
        while at < len(texts) and count and len(texts[at]) + bool(texts[at]) + count > batch["text"][at]:
            at += 1
        if at == len(texts):
            places = {"shape": [3, len(texts), batch["text"][0]], "dtype": "int64"}
            return {**found, "input_ids": ids(filled(batch["text"], sum(counts), image)), "position_ids": places}
        texts[at] += ([TEXT] if texts[at] and count else []) + [image] * count
    texts = [text + [TEXT] * (length - len(text)) for text, length in zip(texts, batch["text"], strict=True)]
    kinds = [[int(token == image) for token in text] for text in texts]
    return {**found, "input_ids": ids(texts), "mm_token_type_ids": ids(kinds)}


BY_SPEC: dict[str, Callable[[LiveCase, Batch], dict[str, Any] | None]] = {
    "chroma": places, "cosmos": one_timestep_apart, "flux_controlnet": places, "llava": tiles, "llava_next": anyres,
    "ltx2_video": rows_with_sound, "ltx_video": rows, "omnigen": spans, "qwen2_5_vl": grids, "qwen2_vl": grids, "qwen3_vl": grids,
    "qwen_image": shapes, "skyreels_v2": one_timestep_apart, "z_image": listed,
}  # fmt: skip
