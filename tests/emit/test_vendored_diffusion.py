"""What a trainer of diffusion models hands over: layouts of latents, images beside the prompt, flat lists; adapter and vendored file alike.

Expected numbers are those of VeRL-Omni's extractors, of its page on new architectures, and of plain arithmetic.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from symflops.cli.actions.vendor import Order, plan
from symflops.emit.vendor.targets import TARGETS
from symflops.evaluate.latents import KEYS
from symflops.library import lookup
from symflops.support.errors import SymflopsError
from symflops.training.frameworks import verl_omni
from symflops.training.meter.batches import streams_of
from tests.emit.vendored import names_of
from tests.sampling import sampled

PEERS = Path(__file__).resolve().parents[1] / "data/peers"
FOUND = {name: catalog.specs[name] for catalog in lookup.catalogs() for name in catalog.specs if catalog.specs[name]["pipelines"]}
I2V = {"num_layers": 2, "num_attention_heads": 2, "attention_head_dim": 16, "ffn_dim": 48, "in_channels": 36, "out_channels": 16, "text_dim": 24, "freq_dim": 32, "image_dim": 20, "added_kv_proj_dim": 32}
FOURTEEN = {"in_channels": 36, "image_dim": 1280, "added_kv_proj_dim": 5120}
BOTH = ("adapter", "vendored")


def tensor(*shape, lengths=None):
    """A tensor as an extractor sees it; with ``lengths`` a nested one."""
    offsets = SimpleNamespace(diff=lambda: SimpleNamespace(tolist=lambda: lengths))
    return SimpleNamespace(shape=shape, ndim=len(shape), is_nested=lengths is not None, offsets=lambda: offsets)


@pytest.fixture
def made(projects):
    """Estimators of a spec and a config: the adapter's, or those of the vendored file; with the target's convention by default."""
    found = {}

    def make(way, spec, config=None, convention=""):
        if way == "adapter":
            name = lookup.class_name(FOUND[spec]["references"][0])
            return verl_omni.DiffusionFlops({"_class_name": name, **(config or {})}, convention=convention or "verl-omni")
        if (spec, convention) not in found:
            one = plan(spec, TARGETS["verl-omni"], Order(convention=convention))
            found[spec, convention] = names_of(one)[f"{one.title}Flops"]
        return found[spec, convention](config or {})

    return make


LAYOUTS = [
    # VeRL-Omni's own tests: packed, stacked over denoising steps, DiffusionNFT's latents of 64 channels
    ("qwen_image", {"image_latents": (4, 1024, 64)}, [1024] * 4),
    ("qwen_image", {"all_latents": (4, 2, 1024, 64)}, [1024] * 4),
    ("qwen_image", {"latents_clean": (4, 64, 64, 64)}, [4096] * 4),
    # 64 x 64 places of 16 channels are 32 x 32 tokens of 64
    ("qwen_image", {"latents_clean": (2, 16, 64, 64)}, [1024] * 2),
    ("qwen_image", {"image_latents": (2, 16, 64, 64)}, [1024] * 2),
    ("qwen_image", {"all_latents": (2, 11, 16, 64, 64)}, [1024] * 2),
    ("qwen_image", {"image_latents": (2, 1, 16, 64, 64)}, [1024] * 2),  # the autoencoder's axis of one frame
    ("qwen_image", {"audio_latents": (2, 16, 64)}, [16] * 2),
    ("qwen_image", {"image_latents": (2, 1024, 64), "all_latents": (2, 3, 16, 128, 128)}, [1024] * 2),  # the first key counts
    ("qwen_image", {"image_latents": (2,)}, [0] * 2),
    ("qwen_image", {"all_latents": (2, 3, 4)}, [0] * 2),
    ("qwen_image", {"image_latents": ()}, []),
    ("qwen_image", {"image_latents": None}, []),
    ("qwen_image", {}, []),
    # an image to edit is behind the latents, under the key of QwenImageEditPlusPipeline; a subclass may add others
    ("qwen_image", {"image_latents": (2, 1024, 64), "condition_image_latents": (2, 256, 64)}, [1280] * 2),
    ("qwen_image", {"all_latents": (2, 11, 1024, 64), "condition_image_latents": (2, 16, 32, 32)}, [1280] * 2),
    ("qwen_image", {"image_latents": (2, 1024, 64), "reference_image_latents": (2, 256, 64)}, [1024] * 2),
    # channels of a condition beside those of the latents, as the control and fill pipelines have them
    ("flux", {"image_latents": (1, 4096, 64)}, [4096]),
    ("wan", {"image_latents": (1, 16, 21, 60, 104)}, [21, 60, 104]),
    ("wan", {"all_latents": (1, 10, 16, 21, 60, 104)}, [21, 60, 104]),
    ("wan", {"latents_clean": (2, 16, 5, 8, 12)}, [5, 8, 12] * 2),
    ("wan", {"image_latents": (2, 16, 64, 32)}, [1, 64, 32] * 2),  # an image is one frame
    ("sd3", {"image_latents": (2, 16, 64, 32)}, [64, 32] * 2),
    ("sd3", {"all_latents": (2, 11, 16, 64, 32)}, [64, 32] * 2),
    ("sd3", {"latents_clean": (3, 16, 128, 128)}, [128, 128] * 3),
    ("cogvideox", {"image_latents": (1, 13, 16, 60, 90)}, [13, 60, 90]),  # the model has frames before channels
    ("cogvideox", {"image_latents": (1, 16, 13, 60, 90)}, [13, 60, 90]),  # as VeRL-Omni has them
    ("z_image", {"image_latents": (2, 16, 64, 32)}, [1, 64, 32] * 2),
    ("z_image", {"image_latents": (2, 16, 4, 64, 32)}, [4, 64, 32] * 2),
    ("ltx_video", {"image_latents": (2, 128, 4, 16, 22)}, [4 * 16 * 22] * 2),
    ("stable_audio", {"audio_latents": (2, 64, 200)}, [200] * 2),
    # no model takes more channels than its width: these are last, or behind the frames
    ("stable_audio", {"audio_latents": (2, 200, 64)}, [200] * 2),
    ("sd3", {"image_latents": (2, 64, 32, 16)}, [64, 32] * 2),
    ("wan", {"image_latents": (2, 64, 32, 16)}, [1, 64, 32] * 2),
    ("wan", {"all_latents": (2, 11, 21, 60, 104, 16)}, [21, 60, 104] * 2),
    ("wan", {"image_latents": (2, 21, 16, 60, 104)}, [21, 60, 104] * 2),
    ("sd3", {"image_latents": (2, 32, 64, 48)}, [64, 48] * 2),  # of another autoencoder: its sides are where they are
]  # fmt: skip


@pytest.mark.parametrize("way", BOTH)
def test_layouts(way, made):
    for spec, shapes, expected in LAYOUTS:
        config = {"in_channels": 384} if spec == "flux" else {}
        data = {key: shape if shape is None else tensor(*shape) for key, shape in shapes.items()}
        assert made(way, spec, config).get_latent_seqlens(data) == expected, (spec, shapes)


LISTS = [  # a tensor per sample, with a batch axis of one or without, behind an axis of denoising steps
    ("qwen_image", "image_latents", [(16, 64), (9, 64)], [16, 9]),
    ("qwen_image", "image_latents", [(1, 16, 64), (1, 9, 64)], [16, 9]),
    ("qwen_image", "image_latents", [(16, 64, 64), (16, 32, 16)], [1024, 128]),
    ("qwen_image", "image_latents", [(1, 16, 64, 64), (1, 16, 32, 16)], [1024, 128]),
    ("qwen_image", "all_latents", [(11, 16, 64, 64), (11, 9, 64)], [1024, 9]),
    ("wan", "image_latents", [(16, 5, 64, 32), (1, 16, 3, 32, 32), (16, 64, 32), (1, 16, 64, 32)], [5, 64, 32, 3, 32, 32, 1, 64, 32, 1, 64, 32]),
    ("wan", "all_latents", [(11, 16, 64, 32), (11, 16, 5, 64, 32)], [1, 64, 32, 5, 64, 32]),
    ("sd3", "image_latents", [(16, 64, 32), (1, 16, 32, 32)], [64, 32, 32, 32]),
    ("stable_audio", "image_latents", [(64, 200), (1, 64, 100)], [200, 100]),
]  # fmt: skip


@pytest.mark.parametrize("way", BOTH)
def test_latents_of_unequal_samples(way, made):
    """A nested tensor has a length per sample; a list has a tensor per sample."""
    assert made(way, "qwen_image").get_latent_seqlens({"image_latents": tensor(2, 0, 64, lengths=[16, 64])}) == [16, 64]
    assert made(way, "z_image").get_latent_seqlens({"image_latents": [tensor(16, 1, 8, 8), tensor(16, 1, 16, 4)]}) == [1, 8, 8, 1, 16, 4]
    for spec, key, shapes, expected in LISTS:
        assert made(way, spec).get_latent_seqlens({key: [tensor(*shape) for shape in shapes]}) == expected, (spec, shapes)
    with pytest.raises(ValueError, match="a list with a tensor per sample, which 3 is not"):
        made(way, "wan").get_latent_seqlens({"image_latents": [3, 4]})
    with pytest.raises(ValueError, match="has 5 dimensions"):
        made(way, "sd3").get_latent_seqlens({"image_latents": [tensor(16, 5, 64, 64)]})
    with pytest.raises(ValueError, match="nested"):
        made(way, "wan").get_latent_seqlens({"image_latents": tensor(2, 0, 64, lengths=[16, 64])})


def test_a_meter_reads_lists_of_latents_alike(made):
    for spec, key, shapes, expected in LISTS:
        one = made("adapter", spec)
        batch = {key: [tensor(*shape) for shape in shapes], "prompt_embeds": tensor(len(shapes), 9, 64)}
        found = streams_of(one.estimator, batch)[one.inputs.stream]
        assert [int(length) for row in zip(*found.axes, strict=True) for length in row] == expected, (spec, shapes)


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize(
    ("spec", "shape", "told"),
    [
        ("qwen_image", (2, 3, 5, 5), "does not pack into tokens of 64 channels"),
        ("qwen_image", (2, 8, 64, 64), "does not pack into tokens of 64 channels"),  # 64 is no square of 8 channels
        ("sd3", (2, 1024, 64), "has 3 dimensions, its layout 'b c h w' has 4"),
    ],
)
def test_latents_that_do_not_fit(way, spec, shape, told, made):
    with pytest.raises(ValueError, match=told):
        made(way, spec).get_latent_seqlens({"image_latents": tensor(*shape)})


@pytest.mark.parametrize("spec", sampled(sorted(FOUND), 9))
def test_adapter_and_file_read_every_layout_alike(spec, made):
    """Each key, with the layouts of the model and of the autoencoder, unequal sides, and too few or too many dimensions."""
    try:
        adapter, vendored = made("adapter", spec), made("vendored", spec)
    except SymflopsError as error:
        assert any(word in str(error) for word in ("verl-omni hands over", "give --config", "the config has no")), error
        return
    width, layout = adapter.width, adapter.inputs.layout.split()
    own = dict(zip(adapter.inputs.axes, (4, 8, 16), strict=False))
    model = tuple(own.get(word, width) for word in layout if word != "b")
    for key in KEYS:
        for inner in (model, (width, *own.values()), (width // 4, 8, 16), (16, 8), (), (7, 5, 3, 2, 1)):
            data = {key: tensor(2, *((3,) * (key == "all_latents")), *inner)}
            answers = []
            for one in (adapter, vendored):
                try:
                    answers.append(one.get_latent_seqlens(data))
                except ValueError as error:
                    answers.append(str(error))
            assert answers[0] == answers[1], (key, inner)


def test_images_beside_the_prompt(made):
    """Wan's image branch by arithmetic: two linears of the embedder, keys and values of each block, and their attention."""
    latents, prompts, images = [5, 8, 12] * 2, [7, 9], (2, 257, 20)
    data = {"image_latents": tensor(2, 16, 5, 8, 12), "prompt_embeds": tensor(2, 9, 24), "image_embeds": tensor(*images)}
    layers, width, context = I2V["num_layers"], 32, I2V["image_dim"]
    rows, video = 2 * 257, 5 * 4 * 6
    forward = 2 * rows * (context * context + context * width) + layers * 2 * (2 * rows * width * width) + layers * 4 * width * rows * video
    for way in BOTH:
        one = made(way, "wan", I2V)
        lengths = one.get_latent_seqlens(data)
        assert lengths == [5, 8, 12, 1, 257] * 2
        rest = one.get_latent_seqlens({"image_latents": data["image_latents"]})
        assert rest == [5, 8, 12, 0, 0] * 2
        passes = {"num_timesteps": 1, "num_forward_passes": 1}
        with_images, without = (one.estimate_flops(given, prompts, 1.0, **passes) * 1e12 for given in (lengths, rest))
        assert with_images - without == pytest.approx(3 * forward, rel=1e-9), way
        assert without == pytest.approx(made(way, "wan", {**I2V, "image_dim": None}).estimate_flops(latents, prompts, 1.0, **passes) * 1e12)
        with pytest.raises(ValueError, match="since the config has 'image_dim', latent_seqlens has 5 numbers per sample"):
            one.estimate_flops(latents, prompts, 1.0, **passes)
    two = tensor(4, 257, 20)  # first and last frame
    assert one.get_latent_seqlens({**data, "image_embeds": two}) == [5, 8, 12, 2, 257] * 2
    with pytest.raises(ValueError, match=r"no 'b\*k x c' of 2 samples"):
        one.get_latent_seqlens({**data, "image_embeds": tensor(3, 257, 20)})


@pytest.mark.parametrize("way", BOTH)
def test_image_to_video_of_14_billion(way, made):
    """480p: 5,059.06 T as PyTorch counts it, 5,035.12 T without the image."""
    one = made(way, "wan", FOURTEEN, "symflops")
    data = {"image_latents": tensor(1, 16, 21, 60, 104), "prompt_embeds": tensor(1, 512, 4096), "image_embeds": tensor(1, 257, 1280)}
    found = [one.estimate_flops(one.get_latent_seqlens({**data, **less}), [512], 1.0, num_timesteps=1, num_forward_passes=1) for less in ({}, {"image_embeds": None})]
    assert [round(flops, 2) for flops in found] == [5059.06, 5035.12]


def test_a_meter_counts_the_images_of_a_batch():
    config = {"_class_name": "WanTransformer3DModel", **I2V}
    data = {"image_latents": tensor(2, 16, 5, 8, 12), "prompt_embeds": tensor(2, 9, 24), "image_embeds": tensor(2, 257, 20)}
    counted = []
    for batch in (data, {**data, "image_embeds": None}):
        meter = verl_omni.meter(config, devices=1, peak_tflops=10**6, regimes="full", convention="verl-omni")
        with pytest.warns(UserWarning, match="no 'image_context'") if batch["image_embeds"] is None else nullcontext():
            verl_omni.count_batch(meter, batch)
        meter.step(seconds=1.0)
        counted.append(meter.flops)
    one = verl_omni.DiffusionFlops(config, convention="verl-omni")
    assert [found / 1e12 for found in counted] == pytest.approx([one.estimate_flops(one.get_latent_seqlens(batch), [9, 9], 1.0) for batch in (data, {**data, "image_embeds": None})])


def test_a_meter_counts_an_image_to_edit():
    config = {"_class_name": "QwenImageTransformer2DModel", "num_layers": 2}
    meter = verl_omni.meter(config, devices=1, peak_tflops=10**6, regimes="full", convention="verl-omni")
    verl_omni.count_batch(meter, {"image_latents": tensor(2, 1024, 64), "prompt_embeds": tensor(2, 9, 3584), "condition_image_latents": tensor(2, 256, 64)})
    meter.step(seconds=1.0)
    assert meter.flops / 1e12 == pytest.approx(verl_omni.DiffusionFlops(config, convention="verl-omni").estimate_flops([1280] * 2, [9] * 2, 1.0))


@pytest.mark.parametrize("way", BOTH)
def test_one_number_of_patches_per_sample(way, made):
    """As in the example of VeRL-Omni's page, where 512 is the number of tokens that a block sees."""
    one = made(way, "wan", {"num_attention_heads": 16, "num_layers": 30, "ffn_dim": 8192})

    def flops(latents, prompts=(64,), steps=1):
        return one.estimate_flops(list(latents), list(prompts), 1.0, num_timesteps=steps, num_forward_passes=1)

    assert flops([512] * 2, [64] * 2, 30) == pytest.approx(3 * flops([512] * 2, [64] * 2, 10), rel=1e-9)
    assert flops([512]) + flops([256]) < flops([768])
    assert flops([512] * 2, [64] * 2) == flops([8, 16, 16] * 2, [64] * 2)  # patches of (1, 2, 2): 8 x 8 x 8
    with pytest.raises(ValueError, match=r"3 numbers per sample \(f, h, w\)"):
        flops([512], [64] * 2)


@pytest.mark.parametrize("way", BOTH)
def test_lists_of_the_wrong_form(way, made):
    one = made(way, "qwen_image")
    passes = {"num_timesteps": 1, "num_forward_passes": 1}
    with pytest.raises(ValueError, match="latent_seqlens and prompt_seqlens must have the same length, got 2 and 1"):
        one.estimate_flops([1024, 1024], [256], 1.0, **passes)
    with pytest.raises(ValueError, match="prompt_seqlens must be a list of lengths"):
        one.estimate_flops([1024], [[256]], 1.0, **passes)
    for wrong in ([-4], [1.5], "8", [float("inf")]):
        with pytest.raises(ValueError, match="latent_seqlens must be a list of lengths"):
            one.estimate_flops(wrong, [256], 1.0, **passes)
    for seconds in (0.0, -1.0, float("nan")):
        assert one.estimate_flops([1024], [256], seconds, **passes) == 0.0  # as VeRL-Omni's counter answers for 0
    assert one.estimate_flops([1024], None, 1.0, **passes) == one.estimate_flops([1024], [0], 1.0, **passes) > 0


def test_the_default_convention_is_verl_omni_s(made):
    """The figures of its own class, to the last FLOP."""
    for record in json.loads((PEERS / "verl_omni.json").read_text()):
        config, given = dict(record["config"]), record["seqlens"]
        config["out_channels"] = config.get("out_channels") or config["in_channels"]
        times = record["other_args"]["num_timesteps"] * record["other_args"]["num_forward_passes"]
        latents, prompts = given["latent"], given["prompt"]
        if latents and prompts and len(latents) == len(prompts):
            assert made("vendored", "qwen_image", config).flops(latents, prompts) * times == float(record["flops"]), record["id"]
