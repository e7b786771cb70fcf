"""The page about pipelines says what is true: its lengths are those of measured records, of real classes, of diffusers' own pipelines."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from symflops.api import Model
from symflops.cli.main import main
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.layouts import batch_of
from symflops.ir.regime import Regime
from symflops.library.pipelines import lengths_of as lengths, rules
from symflops.verify.cases import LiveCase
from symflops.verify.live import verify_live
from symflops.verify.records import arguments_of, verify_record
from tests.oracle.expressions import evaluate
from tests.sampling import sampled
from tests.shipped import load

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "PIPELINES.md").read_text("utf-8")
PATTERNS: dict[str, dict[str, Any]] = {
    block["pattern"]: block for block in (YAML(typ="safe").load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
}
MEASURED = [name for name, pattern in PATTERNS.items() if "measured" in pattern]

FLUX = {"in_channels": 20, "num_layers": 2, "num_single_layers": 2, "attention_head_dim": 24, "num_attention_heads": 4,
        "joint_attention_dim": 72, "pooled_projection_dim": 36, "axes_dims_rope": [8, 8, 8]}  # fmt: skip
QWEN = {"in_channels": 20, "out_channels": 5, "num_layers": 2, "attention_head_dim": 24, "num_attention_heads": 4,
        "joint_attention_dim": 72, "axes_dims_rope": [8, 8, 8]}  # fmt: skip
WAN = {"num_attention_heads": 4, "attention_head_dim": 24, "in_channels": 6, "out_channels": 6, "text_dim": 40, "freq_dim": 32,
       "ffn_dim": 208, "num_layers": 2}  # fmt: skip
HUNYUAN = {"in_channels": 6, "out_channels": 6, "num_attention_heads": 4, "attention_head_dim": 24, "num_layers": 2, "num_single_layers": 2,
           "num_refiner_layers": 2, "guidance_embeds": True, "text_embed_dim": 72, "pooled_projection_dim": 36, "rope_axes_dim": [8, 8, 8]}  # fmt: skip
SD3 = {"sample_size": 16, "in_channels": 5, "num_layers": 2, "attention_head_dim": 24, "num_attention_heads": 4, "joint_attention_dim": 72,
       "caption_projection_dim": 96, "pooled_projection_dim": 36, "out_channels": 5, "pos_embed_max_size": 16}  # fmt: skip
UNET = {"block_out_channels": [32, 64], "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"], "cross_attention_dim": 72, "attention_head_dim": 4}  # fmt: skip
SIDE = {"block_out_channels": [32, 64], "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "cross_attention_dim": 72,
        "attention_head_dim": 4, "conditioning_embedding_out_channels": [8, 16, 24, 32]}  # fmt: skip
AUDIO = {"sample_size": 64, "in_channels": 6, "num_layers": 2, "attention_head_dim": 24, "num_attention_heads": 4, "num_key_value_attention_heads": 2,
         "out_channels": 6, "cross_attention_dim": 48, "time_proj_dim": 20, "global_states_input_dim": 36, "cross_attention_input_dim": 44}  # fmt: skip
PIXELS = {"block_out_channels": [32, 64], "down_block_types": ["DownBlock2D", "AttnDownBlock2D"], "up_block_types": ["AttnUpBlock2D", "UpBlock2D"]}

# pattern -> a small config, small numbers for what is given, and arguments that carry no lengths
SMALL: dict[str, tuple[dict[str, Any], dict[str, int], dict[str, Any]]] = {
    "sd3": (SD3, {"height": 64, "width": 96, "tokens": 7}, {}),
    "stable-audio": (AUDIO, {"latents": 24, "tokens": 5}, {}),
    "image-to-image": (FLUX, {"height": 64, "width": 96, "tokens": 7}, {"img_ids": [24, 3], "txt_ids": [7, 3]}),
    "fill": ({**FLUX, "in_channels": 52, "out_channels": 20, "guidance_embeds": True}, {"height": 64, "width": 96, "tokens": 7},
             {"img_ids": [24, 3], "txt_ids": [7, 3]}),
    "kontext": (FLUX, {"height": 64, "width": 96, "reference_height": 48, "reference_width": 80, "tokens": 7},
                {"img_ids": [39, 3], "txt_ids": [7, 3]}),
    "qwen-image-edit": (
        QWEN, {"height": 64, "width": 96, "reference_height": 48, "reference_width": 80, "seen_height": 56, "seen_width": 84, "tokens": 5},
        {"img_shapes": [[[1, 4, 6], [1, 3, 5]]]}),
    "control-sd": (SIDE, {"height": 64, "width": 96}, {}),
    "wan-image-as-prompt": (WAN, {"frames": 5, "height": 32, "width": 64, "images": 1}, {}),
    "hunyuan-image": ({**HUNYUAN, "image_condition_type": "token_replace"},
                      {"frames": 5, "height": 32, "width": 64, "tokens": 7, "seen": 16, "every": 4}, {"encoder_attention_mask": [1, 11]}),
    "class": ({**PIXELS, "num_class_embeds": 10}, {"height": 12, "width": 10}, {"class_labels": "int64"}),
    "no-prompt": (FLUX, {"height": 64, "width": 96}, {"img_ids": [24, 3], "txt_ids": [0, 3]}),
}  # fmt: skip


@cache
def model(name: str) -> Model:
    return load(name)


def lengths_of(pattern: dict[str, Any], given: dict[str, int], samples: int = 1) -> dict[str, list[Any]]:
    """The batch that a pattern says, of so many equal samples."""
    return {stream: [evaluate(length, given)] * samples for stream, length in pattern["lengths"].items()}


def regime_of(pattern: dict[str, Any]) -> Regime:
    given = pattern.get("regime", {"name": "full"})
    return Regime(given["name"], train=tuple(given.get("train", ("*",))), force_grad=tuple(given.get("force_grad", ())))


def record_of(pattern: dict[str, Any]) -> dict[str, Any]:
    reference = model(pattern["spec"]).spec.references[0].rpartition(".")[2]
    records = json.loads((ROOT / f"tests/data/truth/{reference}.json").read_text("utf-8"))
    return next(record for record in records if record["tag"] == pattern["measured"])


def passes(name: str, config: dict[str, Any], regime: Regime, batch: dict[str, list[Any]], convention: str = "torch") -> tuple[int, int]:
    estimator = InterpretedEstimator(model(name).program([regime], [convention], config), config, regime=regime.name, convention=convention)
    moments = estimator.moments(**batch)
    return estimator.forward(moments), estimator.backward(moments)


def test_every_pattern_is_checked() -> None:
    """By a record, by the real class, or, of what is frozen beside a ControlNet, together with it."""
    assert len(PATTERNS) == PAGE.count("```yaml") and PATTERNS.keys() == {*MEASURED, *SMALL, "control-flux-base", "control-sd-base"}
    known = {pipeline for name in {pattern["spec"] for pattern in PATTERNS.values()} for pipeline in model(name).spec.pipelines}
    import diffusers

    for pattern in PATTERNS.values():
        for pipeline in pattern.get("pipelines", ()):
            assert hasattr(diffusers, pipeline), pipeline
            assert pipeline in known, pipeline


def test_commands_know_the_rules_of_the_page() -> None:
    kept = ("spec", "pipelines", "given", "lengths", "measured")
    page = {name: {"pipelines": [], **{key: pattern[key] for key in kept if key in pattern}} for name, pattern in PATTERNS.items()}
    assert rules() == page


@pytest.mark.parametrize("name", PATTERNS)
def test_commands_compute_the_lengths_of_the_page(name: str) -> None:
    given = {key: number + 32 for key, number in PATTERNS[name]["given"].items()}
    assert {stream: [length] for stream, length in lengths(rules()[name], given).items()} == lengths_of(PATTERNS[name], given)


@pytest.mark.parametrize("name", sampled(list(MEASURED), 4, 1))
def test_lengths_are_those_of_the_record(name: str) -> None:
    pattern = PATTERNS[name]
    record = record_of(pattern)
    one = model(pattern["spec"])
    program = one.program(["full"], ["torch"], record["config_json"])
    found = batch_of(program, arguments_of(one, record))
    given = {stream: entries for stream, entries in found.items() if stream in pattern["lengths"]}
    samples = len(next(iter(given.values())))
    assert given == lengths_of(pattern, pattern["given"], samples)
    assert verify_record(one, record).status == "exact"


@pytest.mark.parametrize("name", sampled(list(SMALL), 4, 1))
def test_lengths_are_those_of_the_real_class(name: str) -> None:
    """Built small, on the meta device: parameters, both passes and every module are exact for the lengths that the page says."""
    config, given, arguments = SMALL[name]
    pattern = PATTERNS[name]
    assert given.keys() == pattern["given"].keys()
    further = {
        key: value if key == "img_shapes" else {"shape": value} if isinstance(value, list) else {"shape": [1], "dtype": value}
        for key, value in arguments.items()
    }
    report = verify_live(model(pattern["spec"]), LiveCase(config, lengths_of(pattern, given), further))
    assert report.exact, report


@pytest.mark.parametrize("name", sampled(list(PATTERNS), 8, 1))
def test_figures_are_those_of_one_sample(name: str) -> None:
    pattern = PATTERNS[name]
    config = record_of(pattern)["config_json"] if "measured" in pattern else pattern.get("config", {})
    found = passes(pattern["spec"], config, regime_of(pattern), lengths_of(pattern, pattern["given"]), "symflops")
    told = {"forward": found[0], **({"backward": found[1]} if "backward" in pattern else {})}
    assert {key: pattern[key] for key in told} == {key: rounded(value) for key, value in told.items()}


def rounded(flops: int) -> str:
    """TFLOPs with four digits."""
    return f"{float(f'{flops / 1e12:.4g}'):,.10g} T"


def test_the_command_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"```bash\nsymflops (.*?)(?: +#.*)?\n```", PAGE)
    assert main(shlex.split(line)) == 0
    assert "forward" in capsys.readouterr().out


def prepared(name: str, **further: Any) -> list[tuple[int, ...]]:
    """The shapes of what a real pipeline prepares."""
    import inspect

    import diffusers
    import torch

    kind = getattr(diffusers, name)
    parts = [key for key, value in inspect.signature(kind.__init__).parameters.items() if key != "self" and value.default is inspect.Parameter.empty]
    modules = {**dict.fromkeys(parts), "scheduler": diffusers.DDPMScheduler()}
    made = kind(**modules).prepare_latents(**further, dtype=torch.float32, device=torch.device("cpu"), generator=None)
    return [tuple(tensor.shape) for tensor in (made if isinstance(made, tuple) else (made,)) if tensor is not None]


LATENTS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "flux": ("FluxPipeline", {"num_channels_latents": 16}, (64,)),
    "qwen-image": ("QwenImagePipeline", {"num_channels_latents": 16}, (64,)),
    "sdxl": ("StableDiffusionXLPipeline", {"num_channels_latents": 4}, (4,)),
    "sd3": ("StableDiffusion3Pipeline", {"num_channels_latents": 16}, (16,)),
    "wan": ("WanPipeline", {"num_channels_latents": 16}, (16,)),
    "hunyuan-video": ("HunyuanVideoPipeline", {"num_channels_latents": 16}, (16,)),
    "pixart": ("PixArtSigmaPipeline", {"num_channels_latents": 4}, (4,)),
    "lumina2": ("Lumina2Pipeline", {"num_channels_latents": 16}, (16,)),
    "cogview4": ("CogView4Pipeline", {"num_channels_latents": 16}, (16,)),
    "sana": ("SanaPipeline", {"num_channels_latents": 32}, (32,)),
    "hunyuan-dit": ("HunyuanDiTPipeline", {"num_channels_latents": 4}, (4,)),
    "chroma": ("ChromaPipeline", {"num_channels_latents": 16}, (64,)),
    "mochi": ("MochiPipeline", {"num_channels_latents": 12}, (12,)),
    "ltx": ("LTXPipeline", {"num_channels_latents": 128}, (128,)),
}


@pytest.mark.parametrize("name", LATENTS)
def test_lengths_are_those_that_the_pipeline_prepares(name: str) -> None:
    pipeline, further, channels = LATENTS[name]
    pattern = PATTERNS[name]
    assert pipeline in pattern["pipelines"]
    given = {**pattern["given"], "height": 320, "width": 448}
    if "frames" in given:
        further = {**further, "num_frames": given["frames"]}
    shape, *_ = prepared(pipeline, batch_size=2, height=320, width=448, **further)
    (latent, _) = lengths_of(pattern, given, 2)["latent"]
    lengths = tuple(latent) if isinstance(latent, list) else (latent,)
    assert shape in ((2, *lengths, *channels), (2, *channels, *lengths))


@pytest.mark.parametrize(("name", "pipeline"), [("kontext", "FluxKontextPipeline"), ("qwen-image-edit", "QwenImageEditPipeline")])
def test_references_are_appended(name: str, pipeline: str) -> None:
    """Latents of an image are handed in, so that no autoencoder is needed."""
    import torch

    given = {**PATTERNS[name]["given"], "height": 320, "width": 448, "reference_height": 256, "reference_width": 192}
    image = torch.zeros(1, 16, *([1] if "Qwen" in pipeline else []), 256 // 8, 192 // 8)
    shapes = prepared(pipeline, image=image, batch_size=1, num_channels_latents=16, height=320, width=448)
    (latent,) = lengths_of(PATTERNS[name], given)["latent"]
    assert sum(shape[1] for shape in shapes if len(shape) == 3) == latent


def test_vision_tokens_of_an_edit_are_patches_of_28_pixels() -> None:
    from transformers import Qwen2_5_VLConfig

    config = Qwen2_5_VLConfig().vision_config
    assert config.patch_size * config.spatial_merge_size == 28
    assert [seen for seen in PATTERNS["qwen-image-edit"]["given"].values() if seen % 28 == 0] == [1036, 1036]


def test_tokens_of_the_image_contexts() -> None:
    """257 are the patches of CLIP's image and its class token; 576 those of the image that HunyuanVideo's encoder reads."""
    assert PATTERNS["wan-image"]["lengths"]["image_context"][1] == (224 // 14) ** 2 + 1
    assert PATTERNS["hunyuan-image"]["given"]["seen"] == (336 // 14) ** 2


def test_the_other_reading_of_an_image_context_differs_as_the_page_says() -> None:
    config = {**record_of(PATTERNS["wan-image"])["config_json"]}
    width, heads, text, image, layers = 5120, 40, config["text_dim"], config["image_dim"], config["num_layers"]
    other = {**config, "image_dim": None, "added_kv_proj_dim": None}
    full = Regime("full")
    batches = [lengths_of(PATTERNS[name], PATTERNS[name]["given"]) for name in ("wan-image", "wan-image-as-prompt")]
    own, prompt = passes("wan", config, full, batches[0])[0], passes("wan", other, full, batches[1])[0]
    assert own - prompt == 2 * 257 * (image * image + image * width - text * width - width * width)
    sizes = [model("wan").estimator(given, "full", "torch").parameters for given in (config, other)]
    embedder = 2 * image + image * (image + 1) + width * (image + 1) + 2 * width
    assert sizes[0] - sizes[1] == layers * (2 * width * (width + 1) + width) + embedder
    assert heads * config["attention_head_dim"] == width
    assert f"({(sizes[0] - sizes[1]) / 1e9:.1f} of {sizes[0] / 1e9:.1f} billion)" in " ".join(PAGE.split())


def counted(run: Any) -> tuple[int, int]:
    """FLOPs of both passes of a step that returns what its loss sums."""
    from symflops.verify.running import counter, plain_attention

    with plain_attention(), counter(False) as forward:
        loss = run().sum()
    with plain_attention(), counter(False) as backward:
        loss.backward()
    return forward.get_total_flops(), backward.get_total_flops()


def meta(*shape: int) -> Any:
    import torch

    return torch.zeros(*shape, device="meta")


@pytest.mark.parametrize("layers", [(1, 2), (2, 1), (2, 0)])
def test_a_controlnet_of_flux_trains_beside_a_frozen_model(layers: tuple[int, int]) -> None:
    import diffusers
    import torch

    side_config = {**FLUX, "num_layers": layers[0], "num_single_layers": layers[1]}
    with torch.device("meta"):
        base = diffusers.FluxTransformer2DModel(**FLUX).requires_grad_(False)
        side = diffusers.FluxControlNetModel(**side_config)
    pixels = {"height": 64, "width": 96, "tokens": 7}
    given = {"hidden_states": meta(2, 24, 20), "encoder_hidden_states": meta(2, 7, 72), "pooled_projections": meta(2, 36),
             "timestep": meta(2), "img_ids": meta(24, 3), "txt_ids": meta(7, 3)}  # fmt: skip

    def step() -> Any:
        blocks, singles = side(controlnet_cond=meta(2, 24, 20), **given, return_dict=False)
        return base(controlnet_block_samples=blocks, controlnet_single_block_samples=singles, **given, return_dict=False)[0]

    beside, trained = PATTERNS["control-flux-base"], PATTERNS["control-flux"]
    one = passes("flux_controlnet", dict(side.config), Regime("full"), lengths_of(trained, pixels, 2))
    two = passes("flux", dict(base.config), regime_of(beside), lengths_of(beside, pixels, 2))
    assert counted(step) == (one[0] + two[0], one[1] + two[1])


def test_a_controlnet_of_a_unet_trains_beside_a_frozen_model() -> None:
    import diffusers
    import torch

    with torch.device("meta"):
        base = diffusers.UNet2DConditionModel(**UNET).requires_grad_(False)
        side = diffusers.ControlNetModel(**SIDE)
    height, width = 64, 96
    given = meta(1, 4, ceil(height / 8), ceil(width / 8)), meta(1), meta(1, 77, 72)

    def step() -> Any:
        down, middle = side(*given, meta(1, 3, height, width), return_dict=False)
        return base(*given, down_block_additional_residuals=down, mid_block_additional_residual=middle, return_dict=False)[0]

    beside, trained, pixels = PATTERNS["control-sd-base"], PATTERNS["control-sd"], {"height": height, "width": width}
    one = passes("controlnet", dict(side.config), Regime("full"), lengths_of(trained, pixels))
    two = passes("unet_2d_condition", dict(base.config), regime_of(beside), lengths_of(beside, pixels))
    assert counted(step) == (one[0] + two[0], one[1] + two[1])
