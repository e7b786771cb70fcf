"""Configs are read as their classes read them: other names, nulls, configs inside configs, config objects, items of lists."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import importlib
import types
import warnings
from typing import Any, NamedTuple

import numpy
import pytest

import symflops
from symflops.analysis.subject import Subject
from symflops.evaluate.config import as_read
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import Stored
from symflops.formula.table import ConfigError
from symflops.library.catalog import by_name
from symflops.library.lookup import catalogs, estimator, interpreted
from symflops.library.naming import estimate
from symflops.support.errors import SymflopsError
from symflops.training.introspect.identity import config_of
from symflops.verify.classes import with_value
from tests.sampling import sampled
from tests.shipped import NAMES, load

FLAT = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "hidden_size": 3584,
    "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "vocab_size": 152064, "tie_word_embeddings": False, "sliding_window": 32768, "use_sliding_window": False,
    "max_window_layers": 28, "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
    "in_chans": 3, "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31], "temporal_patch_size": 2},
}  # fmt: skip
"""The published form of Qwen2.5-VL-7B: the fields of the text model stand around those of the image encoder."""


def sizes(name: str, config: Any) -> dict[str, Any]:
    """The sizes of a config, by the interpreter and by the generated module, which agree."""
    program = by_name(name).program(name)
    found = sizes_of(Stored(program), config)
    module = by_name(name).module(name)
    made = module.Sizes.from_config(config)
    assert {row["letter"]: getattr(made, row["attribute"]) for row in program["fields"]} == {
        row["letter"]: found[row["letter"]] for row in program["fields"]
    }
    return found


def refusal(name: str, config: Any) -> str:
    """The message with which the interpreter and the generated module refuse a config."""
    with pytest.raises(ConfigError) as error:
        sizes_of(Stored(by_name(name).program(name)), config)
    with pytest.raises(ValueError) as other:
        by_name(name).module(name).Sizes.from_config(config)
    assert str(other.value) == str(error.value)
    return str(error.value)


def test_flat_fields_are_those_of_the_text_model() -> None:
    names = [key for key in FLAT if key not in ("architectures", "model_type", "vision_config", "tie_word_embeddings")]
    nested = {key: value for key, value in FLAT.items() if key not in names} | {
        "text_config": {key: FLAT[key] for key in [*names, "tie_word_embeddings"]}
    }
    flat, whole = (estimate(config, {"text": [100]}) for config in (FLAT, nested))
    assert flat == whole
    assert flat["parameters"] == 8_292_166_656


def test_fields_around_a_text_config_that_is_given_do_not_count() -> None:
    assert sizes("qwen2_vl", {"hidden_size": 64, "text_config": {}})["D"] == 8192


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("gpt2", {"hidden_size": 1536, "num_hidden_layers": 24}, {"n_embd": 1536, "n_layer": 24}),
        ("gpt2", {"hidden_size": 1536, "n_embd": 768}, {"n_embd": 1536}),
        ("falcon", {"n_embed": 1024, "num_attention_heads": 16}, {"hidden_size": 1024, "num_attention_heads": 16}),
        ("bloom", {"n_embed": 1024, "num_hidden_layers": 3}, {"hidden_size": 1024, "n_layer": 3}),
        ("mixtral", {"num_experts": 4}, {"num_local_experts": 4}),
        ("t5", {"hidden_size": 256}, {"d_model": 256}),
        ("clip", {"text_config_dict": {"hidden_size": 768}}, {"text_config": {"hidden_size": 768}}),
        ("llama", {"num_key_value_heads": None, "head_dim": None}, {}),
        ("llava", {"vision_config": None}, {}),
        ("llava", {"": 5}, {}),
        ("mamba", {"time_step_rank": "auto", "hidden_size": 320}, {"hidden_size": 320}),
        ("llama4", {"no_rope_layers": [], "num_hidden_layers": 6}, {"num_hidden_layers": 6}),  # as Llama 4 Scout is published
    ],
)
def test_two_ways_to_write_one_config(name: str, one: Any, other: Any) -> None:
    assert sizes(name, one) == sizes(name, other)


def test_a_config_inside_that_is_given_has_the_defaults_of_its_class() -> None:
    assert sizes("llava", {})["Dv"] == 1024
    assert sizes("llava", {"vision_config": {}})["Dv"] == 768


@pytest.mark.parametrize(
    ("name", "config", "letter", "value"),
    [
        ("wan", {"out_channels": None, "in_channels": 36}, "o", 36),
        ("wan", {"ffn_dim": None, "num_attention_heads": 2, "attention_head_dim": 8}, "F", 64),
        ("sd3", {"out_channels": None, "in_channels": 32}, "o", 32),
        ("allegro", {"attention_bias": None}, "biased", False),
        ("flux", {"guidance_embeds": None}, "guided", False),
    ],
)
def test_null_is_what_the_class_makes_of_it(name: str, config: Any, letter: str, value: Any) -> None:
    assert sizes(name, config)[letter] == value


def test_null_without_a_meaning_leaves_the_parameters_that_do_not_depend_on_it() -> None:
    """PyTorch builds a convolution whose stride is null, which then does not run."""
    config = {"in_channels": 4, "out_channels": 8, "kernel_size": 3}
    plain, null = (interpreted(by_name("conv2d"), "conv2d", {**config, **more}, "full", "torch") for more in ({}, {"stride": None}))
    assert null.parameters == plain.parameters == 8 * 4 * 9 + 8
    batch = {"source": [(16, 16)]}
    assert plain.total(plain.moments(**batch))
    for use in (lambda: null.total(null.moments(**batch)), lambda: null.coefficients, lambda: null.terms([16], [16])):
        with pytest.raises(ConfigError, match="'stride' is null"):
            use()


def test_parameters_that_depend_on_a_null_are_refused() -> None:
    with pytest.raises(ConfigError, match="'num_layers' is null"):
        interpreted(by_name("wan"), "wan", {"num_layers": None}, "full", "torch")


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("llama", {"hidden_size": None}, "'hidden_size' is null, which its class refuses"),
        (
            "t5",
            {"num_hidden_layers": 3},
            "'num_layers', which the class sets after other fields: write 'num_decoder_layers', too",
        ),
        ("qwen3_next", {"full_attention_interval": 3}, "'full_attention_interval' is 3: the class makes other fields of it"),
        ("longcat_flash", {"num_layers": 4, "num_hidden_layers": 8}, "'num_hidden_layers' is 8: the class makes other fields of it, leave it out"),
        ("modernbert_masked_lm", {"sliding_window": 32}, "'sliding_window' is 32: the class makes other fields of it, leave it out"),
        ("llava", {"text_config": {"model_type": "opt"}}, "'text_config.model_type' is 'opt': the spec describes llama"),
        ("qwen2_vl", {"text_config": 3}, "'text_config' is 3, not an object"),
        ("llama", [1], "a config is a JSON object, not list"),
        ("swin", {"num_heads": [3, float("-inf"), 12, 24]}, "'num_heads' is [3, -inf, 12, 24], not a list of numbers"),
        ("swin", {"num_heads": [3, 6.5, 12, 24]}, "not a list of numbers"),
        ("swin", {"num_heads": [3, -6, 12, 24]}, "not a list of numbers"),
        ("swin", {"num_heads": [3, True, 12, 24]}, "not a list of numbers"),
        ("wan", {"patch_size": [1.0, 2, 2]}, "'patch_size' is [1.0, 2, 2], not a list of numbers"),
        ("wan", {"patch_size": [1, [2], 2]}, "not a list of numbers"),
        ("autoencoder_kl_wan", {"temperal_downsample": [1, 0, 1]}, "not a list of flags"),
        ("unet_2d_condition", {"down_block_types": [1]}, "not a list of texts"),
        ("unet_2d_condition", {"cross_attention_dim": [float("nan")]}, "not a any"),
        ("llama", {"hidden_size": True}, "'hidden_size' is True, not a number"),
    ],
)
def test_what_no_class_or_no_spec_reads_is_refused_with_its_place(name: str, config: Any, words: str) -> None:
    assert words in refusal(name, config)


@dataclasses.dataclass
class Config:
    """A config of a project's own."""

    architectures: tuple[str, ...] = ("LlamaForCausalLM",)
    hidden_size: int = 64
    num_attention_heads: int = 4


class WithDict(Config):
    """One that says itself what it is as a dict, as those of transformers do."""

    def to_dict(self) -> dict[str, Any]:
        """The fields."""
        return {**dataclasses.asdict(self), "hidden_size": 128}


FIELDS = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4}


class Width(enum.IntEnum):
    """A width by name."""

    SMALL = 64


class Named(NamedTuple):
    """A config as a tuple with names."""

    architectures: tuple[str, ...] = ("LlamaForCausalLM",)
    hidden_size: int = Width.SMALL
    num_attention_heads: int = 4


class Plain:
    """A config with defaults of its class, as minGPT has."""

    architectures = ("LlamaForCausalLM",)
    hidden_size = 96

    def __init__(self, **given: Any) -> None:
        for name, value in given.items():
            setattr(self, name, value)

    @property
    def parameters(self) -> int:
        """Not a field."""
        raise AssertionError

    def build(self) -> None:
        """Not a field."""


class Dumped:
    """A config as pydantic has it, without pydantic."""

    def model_dump(self) -> dict[str, Any]:
        """The fields."""
        return dict(FIELDS)


class Nodes(collections.UserDict):  # type: ignore[type-arg]
    """A mapping that is no dict, with lists that are none, as OmegaConf has."""

    def __getitem__(self, key: str) -> Any:
        found = self.data[key]
        return collections.UserList(found) if isinstance(found, list) else found


class Odd:
    """A config that cannot say what is in it."""

    def to_dict(self) -> dict[str, Any]:
        """Fails."""
        raise RuntimeError("not yet")


@pytest.mark.parametrize(
    ("config", "width"),
    [
        (Config(), 64),
        (WithDict(), 128),
        (types.MappingProxyType(FIELDS), 64),
        (types.SimpleNamespace(**FIELDS), 64),
        (argparse.Namespace(**FIELDS), 64),
        (Named(), 64),
        (Plain(num_attention_heads=4), 96),
        (Dumped(), 64),
        (Nodes(FIELDS), 64),
        ({**FIELDS, "hidden_size": numpy.int64(64)}, 64),
    ],
    ids=lambda value: type(value).__name__,
)
def test_config_objects_are_taken_as_json_is(config: Any, width: int) -> None:
    assert sizes("llama", config)["D"] == width
    assert (
        estimator(by_name("llama"), "llama", config)[1].parameters
        == estimator(by_name("llama"), "llama", {**FIELDS, "hidden_size": width})[1].parameters
    )


@pytest.mark.parametrize("config", [Config(), types.SimpleNamespace(**FIELDS), Nodes(FIELDS), Plain(num_attention_heads=4)])
def test_a_config_object_is_a_config_wherever_one_is_taken(config: Any) -> None:
    """Its width is that of the estimate, of the closed forms, of a meter and of a live module that holds it."""
    width = config["hidden_size"] if isinstance(config, Nodes) else config.hidden_size
    whole = 2 * 32000 * width + width + 32 * (4 * width**2 + 3 * width * 11008 + 2 * width)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            estimate(config, {"text": [3]})["parameters"],
            symflops.estimate(config, {"text": [3]})["parameters"],
            symflops.explain(config).estimate["parameters"],
            load("llama").estimator(config).parameters,
            load("llama").derive(config=config).estimator(config).parameters,
            Subject("llama", config, "full", "symflops").estimator.parameters,
            load("llama").known(config, "num_hidden_layers=32").config["hidden_size"],
            symflops.MFUMeter.of_config(config, devices=1, peak_tflops=1.0).phases.popitem()[1].estimator.parameters,
            config_of(types.SimpleNamespace(config=config))["hidden_size"],
        ]
    assert [one for one in found if one != width] == [whole] * 7 and found.count(width) == 2


@pytest.mark.parametrize("package", ["attr", "pydantic"])
def test_config_objects_of_libraries(package: str) -> None:
    """Objects of attrs and of pydantic, one in the other's place, too."""
    library = importlib.import_module(package)
    if package == "attr":
        inner = library.make_class("Inner", {"hidden_size": library.ib(default=8)}, slots=True)
        outer = library.make_class("Outer", {"width": library.ib(default=3), "text_config": library.ib(factory=inner)}, slots=True)
    else:
        inner = library.create_model("Inner", hidden_size=(int, 8))
        outer = library.create_model("Outer", width=(int, 3), text_config=(inner, inner()))
    expected = {"width": 3, "text_config": {"hidden_size": 8}}
    assert as_read({}, outer()) == expected
    assert as_read({}, {"all": [outer(), types.SimpleNamespace(one=outer())]}) == {"all": [expected, {"one": expected}]}


@pytest.mark.parametrize(("config", "words"), [(Odd(), "the config of Odd cannot be read: RuntimeError: not yet"), (Config, "not type"), (print, "not builtin"), ([1], "not list"), (object(), "not object")])
def test_what_is_no_config_is_refused(config: Any, words: str) -> None:
    with pytest.raises(SymflopsError, match=words):
        estimate(config, {"text": [3]})


def test_objects_that_hold_each_other_end() -> None:
    one, other = types.SimpleNamespace(**FIELDS), types.SimpleNamespace()
    one.other, other.one = other, one
    assert as_read({}, one)["hidden_size"] == 64


@pytest.mark.parametrize("name", ["gpt2", "qwen2_5_vl", "clip", "llava"])
def test_reading_twice_changes_nothing(name: str) -> None:
    document = by_name(name).program(name)
    for config in ({}, FLAT, {"text_config_dict": {"hidden_size": 8}}, {"vision_config": {}}):
        once = as_read(document, config)
        assert as_read(document, once) == once


SHIPPED = next(catalog for catalog in catalogs() if catalog.shipped)
LISTS = [(name, row["keys"][0]) for name in NAMES for row in SHIPPED.program(name)["fields"] if row["kind"] == "list"]


@pytest.mark.parametrize(("name", "key"), sampled(LISTS, 16, 4))
def test_a_list_that_is_too_short_is_refused_with_its_name(name: str, key: str) -> None:
    """An empty list has no entry for any layer: what a model makes of it is an answer, or a refusal that names the list."""
    config = with_value({}, key, [])
    for make in (lambda: interpreted(SHIPPED, name, config), lambda: estimator(SHIPPED, name, config)[1]):
        try:
            assert make().parameters > 0
        except (ValueError, SymflopsError) as error:
            assert key in str(error) or "the config" in str(error) or "outside a list of 0" in str(error)


@pytest.mark.parametrize(
    ("name", "config"),
    [("dinov2", {"patch_size": 0}), ("modernbert_masked_lm", {"global_attn_every_n_layers": 0}), ("llama", {"num_attention_heads": 0})],
)
def test_a_divisor_of_zero_is_refused(name: str, config: Any) -> None:
    for make in (lambda: interpreted(SHIPPED, name, config), lambda: estimator(SHIPPED, name, config)[1]):
        with pytest.raises((ValueError, SymflopsError), match="the config does not fit the model"):
            make()


def test_a_number_of_items_is_bounded() -> None:
    for made in (interpreted(SHIPPED, "gru_cell", CELL), estimator(SHIPPED, "gru_cell", CELL)[1]):
        assert made.forward(made.moments(sample=3)) == 3 * made.forward(made.moments(sample=1))
        with pytest.raises((ValueError, SymflopsError), match="at most"):
            made.moments(sample=10**8)


CELL = {"input_size": 4, "hidden_size": 8}


def test_words_with_which_the_class_fails_to_run_leave_the_parameters() -> None:
    """Diffusers builds Latte with any norm; with most of them its blocks fail."""
    config = {"in_channels": 4, "out_channels": 4, "patch_size": 2, "caption_channels": 8, "num_layers": 1, "norm_elementwise_affine": True}
    runs, fails = (load("latte").estimator({**config, "norm_type": word}, "full", "torch") for word in ("layer_norm", "rms_norm"))
    assert runs.parameters - fails.parameters == 2 * 2 * 16 * 88  # the third norm of both blocks
    batch = {"latent": [(16, 8, 8)], "prompt": [5], "sample": [1]}
    with pytest.raises(ConfigError, match="'norm_type' is 'rms_norm': the class is built with it, and fails to run"):
        fails.total(fails.moments(**{name: batch[name] for name in fails.streams if name in batch}))
    with pytest.raises(ConfigError, match="whose effect 'latte' does not describe"):
        load("latte").estimator({**config, "norm_type": "other"}, "full", "torch")


@pytest.mark.parametrize(("word", "gated"), [("gated-gelu", True), ("relu", False), (None, False)])
@pytest.mark.parametrize("spec", ["t5", "t5_encoder"])
def test_a_default_may_depend_on_a_word(spec: str, word: str | None, gated: bool) -> None:
    config: dict[str, Any] = {"d_model": 96, "d_kv": 20, "d_ff": 208, "num_layers": 3, "num_heads": 6, **({"feed_forward_proj": word} if word else {})}
    catalog = by_name(spec)
    for given in (config, {**config, "is_gated_act": gated}):
        for one in (interpreted(catalog, spec, given), estimator(catalog, spec, given)[1]):
            second = sum(count for name, count in one.tensors().items() if ".wi_1." in name)
            assert bool(second) is gated
