"""VeRL-Omni's own counter and extractors with symflops in its registry."""

from __future__ import annotations

import json
import math
import sys
import types
import warnings

import pytest
import torch
from diffusers import QwenImageTransformer2DModel
from peft import LoraConfig, get_peft_model
from torch.utils.flop_counter import FlopCounterMode

from symflops.training.frameworks import verl_omni
from tests.clients.hollow import bare

bare("verl_omni")  # the package's own __init__ imports vLLM-Omni, which runs on no CPU; the rest is real

from verl_omni.utils import mfu  # noqa: E402
from verl_omni.utils.mfu import diffusion_flops_counter  # noqa: E402

SIZES = {"num_layers": 2, "attention_head_dim": 16, "num_attention_heads": 2, "in_channels": 16, "out_channels": 4, "joint_attention_dim": 32, "axes_dims_rope": (4, 6, 6)}
QWEN = {"_class_name": "QwenImageTransformer2DModel", **SIZES}
WAN = {"_class_name": "WanTransformer3DModel", "num_layers": 1}
TARGETS = ["to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "img_mlp.net.2", "proj_out"]
OWN = dict(diffusion_flops_counter._REGISTRY)
PEAK = 100.0


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """VeRL-Omni's registry as it ships it, and a peak: a CPU has none that says anything."""
    monkeypatch.setattr(diffusion_flops_counter, "_REGISTRY", dict(OWN))
    monkeypatch.setenv("VERL_OMNI_DEVICE_FLOPS_TFLOPS", str(PEAK))
    return diffusion_flops_counter._REGISTRY


def counter(pipeline="QwenImagePipeline", config=QWEN, **options):
    verl_omni.register(pipeline, **options)
    return mfu.DiffusionFlopsCounter(pipeline, config)


def model():
    torch.manual_seed(0)
    return QwenImageTransformer2DModel(**SIZES)


def inputs(latents, prompts):
    """A batch as the denoising model takes it: packed latents, and prompts without padding."""
    side = math.isqrt(latents)
    ids = {"img_shapes": [[(1, side, side)]] * 2, "encoder_hidden_states_mask": torch.ones(2, prompts, dtype=torch.int64)}
    return {"hidden_states": torch.randn(2, latents, 16), "encoder_hidden_states": torch.randn(2, prompts, 32), "timestep": torch.rand(2), **ids}


def counted(module, latents=16, prompts=7, passes=1):
    """What PyTorch's counter sees in ``passes`` forward and backward passes, with math attention."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), FlopCounterMode(display=False) as seen:
        for _ in range(passes):
            module(**inputs(latents, prompts)).sample.square().sum().backward()
    return seen.get_total_flops()


def batch(latents=16, prompts=7, steps=None):
    found = {"image_latents": torch.zeros(2, latents, 16), "prompt_embeds": torch.zeros(2, prompts, 32)}
    return found if steps is None else {**found, "all_timesteps": torch.zeros(2, steps)}


def test_a_step_of_the_model_equals_pytorch_s_counter():
    """VeRL-Omni's collect_meta and estimate_flops around a real step: full, with LoRA, with guidance and several timesteps."""
    found = counter(convention="torch")
    meta = mfu.collect_diffusion_flops_meta(found, batch(steps=3), pipeline_config=types.SimpleNamespace(true_cfg_scale=4.0))
    assert (meta["num_timesteps"], meta["num_forward_passes"]) == (3, 2)
    estimated, promised = found.estimate_flops(delta_time=2.0, **meta)
    assert promised == PEAK and estimated == pytest.approx(counted(model(), passes=6) / 2 / 1e12, rel=1e-12)


@pytest.mark.parametrize("way", ["regime", "module"])
def test_lora_is_an_option_and_is_read_off_the_module(way):
    module = get_peft_model(model(), LoraConfig(r=4, target_modules=TARGETS))
    option = {"regime": verl_omni.lora_regime(QWEN, 4, TARGETS)} if way == "regime" else {"module": module}
    found = counter(convention="torch", **option)
    meta = mfu.collect_diffusion_flops_meta(found, batch())
    assert found.estimate_flops(delta_time=1.0, **meta)[0] == pytest.approx(counted(module) / 1e12, rel=1e-12)


@pytest.mark.parametrize("config", [None, {}, {"_class_name": "Nothing"}, {**QWEN, "num_layers": "many"}], ids=["none", "empty", "unknown", "wrong"])
@pytest.mark.parametrize("pipeline", ["QwenImagePipeline", "WanPipeline"])
def test_a_missing_config_degrades(pipeline, config):
    """The constructor runs in a worker: it warns, and the counter has what VeRL-Omni's own class has, or 0."""
    with pytest.warns(UserWarning, match="VeRL-Omni's own class answers|MFU will be 0"):
        found = counter(pipeline, config)
    meta = mfu.collect_diffusion_flops_meta(found, batch())
    assert meta["latent_seqlens"] and found.estimate_flops(delta_time=1.0, **meta) == (0.0, PEAK)


BATCHES = {
    "image": {"image_latents": torch.zeros(2, 16, 16)}, "audio": {"audio_latents": torch.zeros(2, 16, 16)},
    "clean": {"latents_clean": torch.zeros(2, 16, 16)}, "stacked": {"all_latents": torch.zeros(2, 5, 16, 16)},
    "none": {}, "scalar": {"image_latents": torch.tensor(1.0)}, "vector": {"image_latents": torch.zeros(2)},
    "matrix": {"image_latents": torch.zeros(2, 3)}, "text": {"image_latents": "latents"},
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_lengths_are_those_of_verl_omni(name):
    """``audio_latents``, scalar latents and a batch without latents; what runs on them is finite."""
    data = {**BATCHES[name], "prompt_embeds": torch.zeros(2, 7, 32)}
    own = mfu.DiffusionFlopsCounter("QwenImagePipeline", QWEN)
    if name == "scalar":  # Qwen-Image's own class fails on it with an IndexError; what it extends does not
        own._arch = mfu.DiffusionModelFlops(QWEN)
    theirs = own.collect_meta(data)
    found = counter()
    assert found.collect_meta(data) == theirs
    estimated, promised = found.estimate_flops(theirs["latent_seqlens"], theirs["prompt_seqlens"], 1.0)
    assert estimated > 0 and promised == PEAK


def test_unpacked_latents_are_packed_before_they_are_counted():
    """4,096 tokens there; the model packs 2 x 2 of them into a token: 1,024 here."""
    data = {"image_latents": torch.zeros(1, 4, 64, 64), "prompt_embeds": torch.zeros(1, 7, 32)}
    assert mfu.DiffusionFlopsCounter("QwenImagePipeline", QWEN).collect_meta(data)["latent_seqlens"] == [4096]
    assert counter().collect_meta(data)["latent_seqlens"] == [1024]


def test_video_counts_axis_by_axis():
    found = counter("WanPipeline", WAN)
    data = {"image_latents": torch.zeros(2, 16, 5, 16, 16), "prompt_embeds": torch.zeros(2, 7, 4096)}
    meta = found.collect_meta(data)
    assert meta["latent_seqlens"] == [5, 16, 16] * 2
    assert found.estimate_flops(**meta, delta_time=1.0)[0] > 0
    with pytest.warns(UserWarning, match="MFU will be 0"):
        assert found.estimate_flops([5, 16], [7], 1.0)[0] == 0


def test_every_pipeline_is_registered_and_the_example_of_its_page_runs(registry):
    verl_omni.register()
    assert set(registry) > {*OWN, "WanPipeline", "FluxPipeline"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for pipeline in OWN:
            assert registry[pipeline].own is OWN[pipeline] and registry[pipeline](QWEN).ours is not None
    verl_omni.register()
    assert registry["QwenImagePipeline"].own is OWN["QwenImagePipeline"]


def test_the_plugin_is_a_module_that_external_lib_imports(registry, monkeypatch):
    from verl.utils.import_utils import import_external_libs

    monkeypatch.setenv("SYMFLOPS_VERL_OMNI_REGIME", "forward")
    monkeypatch.delitem(sys.modules, "symflops.training.frameworks.verl_omni_plugin", raising=False)
    import_external_libs("symflops.training.frameworks.verl_omni_plugin")  # as DiffusionModelConfig does with model.external_lib
    found = mfu.DiffusionFlopsCounter("QwenImagePipeline", json.loads(json.dumps(QWEN)))
    forward, _ = found.estimate_flops([16], [7], 1.0)
    assert forward == verl_omni.DiffusionFlops(QWEN, regime="forward").estimate_flops([16], [7], 1.0)
