"""Example inputs of a class: what its forward method takes, by the names of its arguments and the fields of its config.

Each candidate is a dict of keyword arguments whose lengths are given by name, so that they may be symbols:
``b`` samples, ``s`` tokens, ``t`` tokens of the other text, ``h`` and ``w`` sides of an image or a latent, ``f`` frames.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.ir.regime import Regime
from symflops.support.errors import SymflopsError
from symflops.verify.running import needed

Candidate = Callable[[], dict[str, Any]]
LENGTHS = {"b": 3, "s": 14, "t": 11, "h": 16, "w": 24, "f": 5}
"""Lengths of the example: no two are equal."""
RANK = "rank"
ADAPTERS = {RANK: "rank of the adapters"}
"""Lengths beside those of the inputs, with their meanings."""


def ranks(regime: Regime) -> Iterator[tuple[str, int]]:
    """The rank of a regime's adapters, by its name among the lengths; nothing without adapters."""
    yield from ((RANK, adapter.rank) for adapter in regime.adapters)


VISION = (
    "vision_config", "visual_config", "vision_tower_config", "encoder", "image_encoder", "backbone_config", "pixel_config",
)  # fmt: skip
WIDTHS = (
    "cross_attention_dim", "joint_attention_dim", "caption_channels", "text_dim", "text_embed_dim", "text_hidden_dim",
    "text_hidden_size", "cap_feat_dim", "context_in_dim", "text_in_features", "encoder_hidden_size", "text_states_dim",
    "in_text_dim", "dit_text_dim", "condition_dim", "cond_token_dim", "llm_features_dim", "embedding_dim", "encoder_hid_dim",
)  # fmt: skip
"""Fields of diffusers' configs that hold the width of text embeddings."""


class Inputs:
    """Makes candidates for one module.

    Args:
        model: The module.
        config: Its config object or its arguments.
        lengths: The value of each named length.
        device: Where tensors are made.
    """

    def __init__(self, model: Any, config: Any, lengths: Mapping[str, Any], device: str) -> None:
        self.model, self.kind, self.config, self.device = model, type(model), config, device
        self.lengths = lengths
        self.torch = needed("torch")
        found = inspect.signature(self.kind.forward).parameters
        skipped = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        self.taken = {name: one for name, one in found.items() if name != "self" and one.kind not in skipped}
        self.required = {name for name, one in self.taken.items() if one.default is one.empty}

    def floats(self, *shape: Any) -> Any:
        """Zeros of this shape."""
        return self.torch.zeros(*shape, device=self.device)

    def ids(self, *shape: Any) -> Any:
        """Token ids, all 0."""
        return self.torch.zeros(*shape, dtype=self.torch.long, device=self.device)

    def field(self, *names: str, default: Any = None, config: Any = None) -> Any:
        """The first of these fields that the config has as a number, of a list its first item."""
        config = self.config if config is None else config
        for name in names:
            value = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
            value = value[0] if isinstance(value, (list, tuple)) and value else value
            if value is not None and not isinstance(value, (bool, str)):
                return value
        return default

    def stem(self, default: int) -> Any:
        """Input channels of the first convolution."""
        kind = self.torch.nn.modules.conv._ConvNd
        return next((one.in_channels for one in self.model.modules() if isinstance(one, kind)), default)

    def candidates(self) -> Iterator[Candidate]:
        """Makers of keyword arguments, the likeliest first."""
        yield from self.of_diffusers() if isinstance(self.config, Mapping) else self.of_transformers()

    def of_transformers(self) -> Iterator[Candidate]:
        """Texts, then images, videos or sounds, as a class of transformers takes them."""
        b, s, t = (self.lengths[name] for name in "bst")
        main = getattr(self.kind, "main_input_name", "input_ids")
        texts: dict[str, Candidate] = {}
        if "input_ids" in self.taken:
            choices = (b, 2, s) if "MultipleChoice" in self.kind.__name__ else (b, s)
            texts["input_ids"] = lambda: self.ids(*choices)
        if "bbox" in self.taken:
            texts["bbox"] = lambda: self.ids(b, s, 4)
        if getattr(self.config, "is_encoder_decoder", False) and "decoder_input_ids" in self.taken:
            texts["decoder_input_ids"] = lambda: self.ids(b, t)
        if "qformer_input_ids" in self.required:
            texts["qformer_input_ids"] = lambda: self.ids(b, t)
        if "inputs_embeds" in self.required:
            texts["inputs_embeds"] = lambda: self.floats(b, s, self.field("hidden_size", "d_model"))
        if "past_values" in self.required:
            texts["past_values"] = lambda: self.floats(b, self.field("context_length"), self.field("num_input_channels"))
        if "return_loss" in self.required:
            texts["return_loss"] = lambda: False  # type: ignore[assignment, return-value]
        others = [*self.images(main), *self.sounds(main)] or [dict]
        for other in others:
            yield lambda other=other: {**{name: make() for name, make in texts.items()}, **other()}  # type: ignore[misc]

    def images(self, main: str) -> Iterator[Candidate]:
        """Pictures and videos: of the size that the config names, else of any."""
        b, h, w = (self.lengths[name] for name in "bhw")
        if "pixel_values_videos" in self.taken and main == "pixel_values_videos":
            frames, side = (
                self.field("num_frames", "frames_per_clip", default=8),
                self.field("image_size", "crop_size", default=224),
            )
            channels = self.field("num_channels", "in_channels", "in_chans", default=self.stem(3))
            yield lambda: {main: self.floats(b, frames, channels, side, side)}
        if "pixel_values" not in self.taken:
            return
        nested = [getattr(self.config, name, None) for name in VISION]
        if main == "input_ids" and "pixel_values" not in self.required:
            yield dict
        for config in [*(one for one in nested if hasattr(one, "to_dict")), self.config][:2]:
            channels = self.field(
                "num_channels", "in_channels", "in_chans", "image_channels", default=self.stem(3), config=config
            )
            side = self.field("image_size", "img_size", "input_size", config=config)
            if side is not None:
                yield lambda channels=channels, side=side: {"pixel_values": self.floats(b, channels, side, side)}  # type: ignore[misc]
                yield lambda channels=channels, side=side: {"pixel_values": self.floats(b, 1, channels, side, side)}  # type: ignore[misc]
            yield lambda channels=channels: {"pixel_values": self.floats(b, channels, h * 8, w * 8)}  # type: ignore[misc]

    def sounds(self, main: str) -> Iterator[Candidate]:
        """Spectrograms and waves."""
        b, s = self.lengths["b"], self.lengths["s"]
        names = ("num_mel_bins", "feature_size", "input_feat_per_channel", "n_mels", "input_dim")
        bins, longest = self.field(*names, default=80), self.field("max_source_positions", default=1500)
        for name in ("input_features", "input_values", "audio_values"):
            if name not in self.taken or not (main == name or name in self.required):
                continue
            shapes = [(b, bins, 2 * longest), (b, s * 8, bins), (b, bins, s * 8), (b, s * 400)]
            if name == "input_values":
                shapes = [(b, s * 400), (b, self.field("max_length", default=1024), bins), (b, 1, s * 400), *shapes]
            for shape in shapes:
                yield lambda name=name, shape=shape: {name: self.floats(*shape)}  # type: ignore[misc]

    def of_diffusers(self) -> Iterator[Candidate]:
        """Latents or images with what conditions them, as a class of diffusers takes them; any module with tensors."""
        b, s, h, w, f = (self.lengths[name] for name in "bshwf")
        name = self.kind.__name__
        names = ("in_channels", "num_channels", "channels", "audio_channels", "io_channels", "latent_channels", "latent_dim")
        stem = self.stem(4)
        channels = self.field(*names, default=stem)
        main = next((one for one in ("hidden_states", "sample") if one in self.taken), next(iter(self.taken), "x"))
        shapes = [(b, channels, h, w), (b, s, channels), (b, channels, f, h, w), (b, channels, s * 16), (b, f, channels, h, w)]
        if "utoencoder" in name or name.startswith("VQ"):
            shapes = [
                (b, channels, h * 8, w * 8),
                (b, channels, 9, h * 8, w * 8),
                (b, channels, s * 2048),
                (b, channels, 8, h * 8, w * 8),
                (b, stem, s * 2048),
            ]
        elif "img_ids" in self.taken:
            shapes = [(b, s, channels)]
        elif self.field("down_block_types") is None and (side := self.field("sample_size")) is not None:
            shapes.insert(0, (b, channels, side, side))
        for masked, shape in itertools.product((False, True), shapes):
            yield lambda masked=masked, shape=shape: {main: self.floats(*shape), **self.conditions(main, shape, masked)}  # type: ignore[misc]

    def conditions(self, main: str, shape: tuple[Any, ...], masked: bool) -> dict[str, Any]:
        """The other arguments of a denoiser: timesteps, texts, positions, masks."""
        b, t, h, w = (self.lengths[name] for name in "bthw")
        width = self.field(*WIDTHS, default=768)
        known: dict[str, Candidate] = {
            **dict.fromkeys(
                ("timestep", "timesteps", "t", "timestep_r", "r_timestep"), lambda: self.torch.ones(b, device=self.device)
            ),
            **dict.fromkeys(("encoder_hidden_states", "context", "txt"), lambda: self.floats(b, t, width)),
            "pooled_projections": lambda: self.floats(b, self.field("pooled_projection_dim", "in_text_dim2", default=768)),
            "global_hidden_states": lambda: self.floats(b, self.field("global_cond_dim")),
            "img_ids": lambda: self.floats(shape[1], 3),
            "txt_ids": lambda: self.floats(t, 3),
            **dict.fromkeys(("class_labels", "class_label"), lambda: self.ids(b)),
            "controlnet_cond": lambda: self.floats(b, self.field("conditioning_channels", default=3), h * 8, w * 8),
            "num_frames": lambda: shape[2] if len(shape) == 5 else 1,  # type: ignore[dict-item, return-value]
        }
        found = {name: make() for name, make in known.items() if name in self.taken and name != main and self.wanted(name)}
        if "guidance" in self.taken and self.config.get("guidance_embeds"):
            found["guidance"] = self.torch.ones(b, device=self.device)
        for name in ("attention_mask", "encoder_attention_mask", "encoder_hidden_states_mask"):
            if name in self.required or (masked and name in self.taken and name != "attention_mask"):
                found[name] = self.torch.ones(b, t, dtype=self.torch.long, device=self.device)
        return found

    def wanted(self, name: str) -> bool:
        """Whether an optional argument is given, too: embeddings of texts and positions are."""
        return name in self.required or name not in ("class_labels", "class_label", "num_frames")


LETTERS = "bstuvwxyzacdefghijklmnopqr"
"""Names of the lengths of given inputs, in order."""
LARGEST_VALUES = 64
"""Elements of an integer tensor whose values may be kept, in place of zeros."""


class Given:
    """Inputs that a user gives: tensors, or descriptions as in ``{"shape": [2, 24], "dtype": "int64"}``, nested ones, too.

    Each dimension from 2 on is a length of its own; equations of the class tie those that are the same.

    Args:
        args: Positional arguments of the call.
        kwargs: Keyword arguments of the call.
        outputs: Names of the outputs that the loss sums; by default the main output.
        numbers: Whether integers in lists, such as the sides of pictures, are lengths, too.
        taken: Names of fields of the config, which no length may have.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        outputs: Sequence[str] = (),
        numbers: bool = True,
        taken: Collection[str] = (),
    ) -> None:
        self.outputs, self.numbers = outputs, numbers
        self.taken = frozenset(taken)
        self.torch = needed("torch")
        self.lengths: dict[str, int] = {}
        self.origins: dict[str, str] = {}
        self.args = tuple(self.described(one, f"argument {place}") for place, one in enumerate(args))
        self.kwargs = {name: self.described(one, name) for name, one in kwargs.items()}

    def described(self, value: Any, name: str) -> Any:
        """A value with a description in place of each tensor."""
        if isinstance(value, self.torch.Tensor):
            integers = not (value.is_floating_point() or value.is_complex() or value.dtype is self.torch.bool)
            kept = value.tolist() if integers and value.numel() <= LARGEST_VALUES and value.device.type == "cpu" else None
            return Described(self.sides(value.shape, name), value.dtype, kept, value.requires_grad)
        if isinstance(value, Mapping) and {"shape"} <= value.keys() <= {"shape", "dtype"}:
            dtype = getattr(self.torch, str(value.get("dtype", "float32")).partition("(")[0], None)
            if not isinstance(dtype, self.torch.dtype):
                raise SymflopsError(f"torch has no dtype '{value['dtype']}'")
            return Described(self.sides(value["shape"], name), dtype, None, False)
        if isinstance(value, Mapping) and value.keys() == {"value"}:
            return self.described(self.torch.tensor(value["value"]), name)
        if isinstance(value, Mapping):
            return {key: self.described(one, f"{name}.{key}") for key, one in value.items()}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.described(one, f"{name}.{place}") for place, one in enumerate(value))
        if self.numbers and type(value) is int and value > 1 and "." in name:
            return Number(self.length(value, name))
        return value

    def length(self, side: int, origin: str) -> str:
        """The letter of a new length."""
        further = (f"n{number}" for number in itertools.count())
        letter = next(one for one in itertools.chain(LETTERS, further) if one not in self.taken and one not in self.lengths)
        self.lengths[letter], self.origins[letter] = side, origin
        return letter

    def sides(self, shape: Any, name: str) -> tuple[int | str, ...]:
        """A shape with the name of a length in place of each dimension from 2 on."""
        sides = ((int(side), f"{name}[{axis}]") for axis, side in enumerate(shape))
        return tuple(self.length(side, origin) if side > 1 else side for side, origin in sides)

    def candidates(self, lengths: Mapping[str, Any], device: str) -> Iterator[Candidate]:
        """The call with zeros in place of all tensors; then with the values of small integer tensors."""
        for values in (False, True):
            yield lambda values=values: self.made({"args": self.args, "kwargs": self.kwargs}, lengths, device, values)  # type: ignore[misc]

    def made(self, value: Any, lengths: Mapping[str, Any], device: str, values: bool) -> Any:
        """A value with a tensor in place of each description."""
        if isinstance(value, Number):
            return lengths[value.letter]
        if isinstance(value, Described):
            if values and value.values is not None:
                return self.torch.tensor(value.values, dtype=value.dtype, device="cpu")
            shape = [lengths[side] if isinstance(side, str) else side for side in value.shape]
            return self.torch.zeros(shape, dtype=value.dtype, device=device).requires_grad_(value.gradient)
        if isinstance(value, Mapping):
            return {key: self.made(one, lengths, device, values) for key, one in value.items()}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.made(one, lengths, device, values) for one in value)
        return value


@dataclass(frozen=True)
class Number:
    """An integer in a list of given inputs: a length."""

    letter: str


@dataclass(frozen=True)
class Described:
    """A tensor of given inputs: its shape with names of lengths, its dtype, its values if few, whether it needs a gradient."""

    shape: tuple[int | str, ...]
    dtype: Any
    values: Any
    gradient: bool
