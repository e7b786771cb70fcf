"""Adapters against the signatures that the frameworks document, and by hand through what they do with the results."""

from __future__ import annotations

import importlib
import inspect
import math
from types import SimpleNamespace

import pytest
import torch

from symflops.evaluate.lengths import LengthError
from symflops.library import lookup
from symflops.support.errors import SymflopsError
from symflops.training.frameworks import lightning, megatron, parallel, torchtitan, trl, verl, verl_omni
from symflops.training.frameworks.megatron import by_sums, images_by_sums

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
IMAGE = {"_class_name": "QwenImageTransformer2DModel", "num_layers": 2}
WAN = {"_class_name": "WanTransformer3DModel", "num_layers": 1}


def estimator(config, **options):
    return lookup.estimator(*lookup.by_config(config), config, **options)[1]


def total(config, **batch):
    one = estimator(config)
    return one.total(one.moments(**batch))


class Config(SimpleNamespace):
    def to_dict(self):
        return dict(vars(self))


def test_verl():
    """``f(config, tokens_sum, batch_seqlens, delta_time, **kargs)``; verl looks for a keyword argument before it hands images over."""
    function = verl.estimate_function()
    assert any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in inspect.signature(function).parameters.values())
    for config in (Config(**CONFIG), CONFIG, SimpleNamespace(**CONFIG)):
        assert function(config, 150, [100, 50], 2.0) == pytest.approx(total(CONFIG, text=[100, 50]) / 2 / 1e12)
    with pytest.warns(UserWarning, match="the answer is NaN for 'nothing'"):
        assert math.isnan(function({"model_type": "nothing"}, 1, [1], 1.0))
    with pytest.warns(UserWarning, match="NaN for some batches of 'llama'.*no images"):
        assert math.isnan(function(CONFIG, 1, [1], 1.0, images_seqlens=[16]))
    vision = {"architectures": ["Qwen2VLForConditionalGeneration"]}
    one = estimator(vision)
    assert verl.batch_of(one, [100], [64, 128]) == {"text": [100], "images": [[1, 2, 32], [1, 2, 64]]}
    assert function(vision, 100, [100], 1.0, images_seqlens=[64]) == pytest.approx(total(vision, text=[100], images=[[1, 8, 8]]) / 1e12)


def test_what_symflops_cannot_do_is_what_verl_answers():
    """An unknown model, and a batch that the model's work does not follow from; each is said once."""
    asked = []

    def own(config, tokens_sum, batch_seqlens, delta_time, **kargs):
        asked.append((tokens_sum, batch_seqlens, delta_time, kargs))
        return 7.0

    function = verl.estimate_function(otherwise=own)
    windowed = {"model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"]}
    with pytest.warns(UserWarning, match="verl's own function answers") as said:
        for _ in range(2):
            assert function({"model_type": "nothing"}, 2, [2], 1.0) == function(windowed, 2, [2], 1.0, images_seqlens=[64]) == 7
        assert function(windowed, 2, [2], 1.0) == pytest.approx(total(windowed, text=[2]) / 1e12)
    assert asked[0] == (2, [2], 1.0, {}) and asked[1] == (2, [2], 1.0, {"images_seqlens": [64]})
    assert len([one for one in said if "symflops: verl" in str(one.message)]) == 2
    plain = verl.estimate_function(otherwise=lambda config, tokens_sum, batch_seqlens, delta_time: tokens_sum)
    broken = verl.estimate_function(otherwise=lambda config, *batch: config["no such field"])
    with pytest.warns(UserWarning, match="verl's own function"):
        assert plain({"model_type": "nothing"}, 5, [5], 1.0, images_seqlens=None) == 5
        assert math.isnan(broken({"model_type": "nothing"}, 5, [5], 1.0))


def test_verl_plugin_where_verl_is_missing():
    """Its import must never end a worker."""
    with pytest.warns(UserWarning, match="verl counts FLOPs by itself"):
        importlib.import_module("symflops.training.frameworks.verl_plugin").install()


def test_verl_meter():
    one = verl.meter(CONFIG, devices=2, peak_tflops=1e-3)
    one.add(text=[100], phase="actor")
    one.add(text=[100], phase="ref")
    assert set(one.phases) == {"actor", "actor_infer", "ref"} and one.step(seconds=1)["perf/mfu/actor"] == pytest.approx(total(CONFIG, text=[100]) / 2e9)
    one = verl.meter(CONFIG, devices=1, peak_tflops=1e-3, critic=True)
    head = {**CONFIG, "architectures": ["LlamaForTokenClassification"], "num_labels": 1}
    one.add(text=[100], phase="critic")
    assert one.step(seconds=1)["perf/mfu/critic"] == pytest.approx(total(head, text=[100]) / 1e9)
    one = verl.meter(CONFIG, devices=1, peak_tflops=1e-3, keys="verl-sft")
    one.add(text=[100])
    assert one.step(seconds=1)["train/mfu"] == pytest.approx(total(CONFIG, text=[100]) / 1e9)
    with pytest.warns(UserWarning, match="no MFU of critic: UnknownModelError"):
        assert "actor" in verl.meter({"model_type": "mamba"}, devices=1, critic=True).phases
    with pytest.warns(UserWarning, match="no MFU: no MFU of actor, actor_infer, ref: UnknownModelError"):
        assert not verl.meter({"model_type": "nothing"}, devices=1, critic=True).phases


def test_verl_omni():
    one = verl_omni.DiffusionFlops(IMAGE)
    data = {"all_latents": torch.zeros(2, 3, 64, 64), "prompt_embeds_mask": torch.tensor([[1, 1, 0], [1, 0, 0]])}
    latents, prompts = one.get_latent_seqlens(data), one.get_prompt_seqlens(data)
    assert (latents, prompts) == ([64, 64], [2, 1])
    found = one.estimate_flops(latents * 2, prompts * 2, 2.0, num_timesteps=10, num_forward_passes=2)  # as gathered over two ranks
    assert found == pytest.approx(20 * total(IMAGE, latent=[64] * 4, prompt=[2, 1] * 2, sample=4) / 2 / 1e12 if "sample" in one.estimator.streams else 20 * total(IMAGE, latent=[64] * 4, prompt=[2, 1] * 2) / 2 / 1e12)
    video = verl_omni.DiffusionFlops(WAN)
    data = {"image_latents": torch.zeros(1, 16, 21, 60, 104)}
    assert video.get_latent_seqlens(data) == [21, 60, 104] and video.get_prompt_seqlens(data) == [0]
    assert video.estimate_flops([21, 60, 104], [512], 1.0) == pytest.approx(total(WAN, latent=[[21, 60, 104]], prompt=[512]) / 1e12)


class Theirs:
    """What VeRL-Omni's registry holds for a pipeline; tests/clients has its own classes."""

    def __init__(self, config):
        self.config = config

    def get_latent_seqlens(self, data):
        return [1]

    def get_prompt_seqlens(self, data):
        return [2]

    def estimate_flops(self, *lengths, **passes):
        return 7.0


def test_verl_omni_falls_back_and_never_raises():
    data = {"image_latents": torch.zeros(1, 16, 64), "prompt_embeds": torch.zeros(1, 3, 3584)}
    ours = verl_omni.safe(Theirs, None, {})(IMAGE)
    lengths = ours.get_latent_seqlens(data), ours.get_prompt_seqlens(data)
    assert lengths == ([16], [3])
    assert ours.estimate_flops(*lengths, 1.0, num_timesteps=2) == verl_omni.DiffusionFlops(IMAGE).estimate_flops([16], [3], 1.0, num_timesteps=2)
    for other in (None, Theirs):
        with pytest.warns(UserWarning, match="own class answers" if other else "MFU will be 0"):
            found = verl_omni.safe(Theirs, other, {})({})
        assert (found.get_latent_seqlens(data), found.get_prompt_seqlens(data), found.estimate_flops([1], [2], 1.0)) == ([1], [2], 7.0)
    with pytest.warns(UserWarning, match="own class answers"):
        assert ours.__class__(IMAGE).get_latent_seqlens(data) == [16] and verl_omni.safe(Theirs, Theirs, {})(IMAGE).estimate_flops([16], [3, 4], 1.0) == 7
    with pytest.warns(UserWarning, match="MFU will be 0"):  # lengths of several axes are no tokens
        assert verl_omni.safe(Theirs, None, {})(WAN).estimate_flops([1, 16], [7], 1.0) == 0


def test_verl_omni_latents_of_any_form():
    one = verl_omni.DiffusionFlops(IMAGE)
    assert one.get_latent_seqlens({"audio_latents": torch.zeros(2, 16, 64)}) == [16, 16]
    assert one.get_latent_seqlens({}) == one.get_latent_seqlens({"image_latents": torch.tensor(1.0)}) == []
    assert one.get_latent_seqlens({"image_latents": torch.zeros(2)}) == one.get_latent_seqlens({"all_latents": torch.zeros(2, 3, 4)}) == [0, 0]
    for latents, prompts in (([0, 0], [5, 6]), ([16], [0])):  # VeRL-Omni counts these; the class fails
        with pytest.raises(SymflopsError, match="the class takes at least 1 token of a"):
            total(IMAGE, latent=latents, prompt=prompts)
        counted = one.estimator.total(one.estimator.moments(latent=latents, prompt=prompts))
        given = [length for length in latents if length], [length for length in prompts if length]
        assert counted > 0 and one.estimate_flops(*given, 1.0) == pytest.approx(counted / 1e12)


def test_verl_omni_lora_is_a_regime():
    regime = verl_omni.lora_regime(IMAGE, 64, ["to_q", "to_out.0", "proj_out"])
    assert regime == "lora:r=64,targets=*.to_q|*.to_out.0|proj_out"
    assert verl_omni.DiffusionFlops(IMAGE, regime=regime).estimator.parameters > verl_omni.DiffusionFlops(IMAGE).estimator.parameters
    for targets in ("all-linear", ["to_q", "nothing"]):
        with pytest.raises(SymflopsError, match="all-linear|nothing"):
            verl_omni.lora_regime(IMAGE, 64, targets)


def test_verl_omni_passes_and_timesteps_of_a_batch():
    meter = verl_omni.meter(IMAGE, devices=1, peak_tflops=354)
    data = {"image_latents": torch.zeros(2, 16, 64), "prompt_embeds": torch.zeros(2, 3, 3584), "all_timesteps": torch.zeros(2, 5)}
    verl_omni.count_batch(meter, data, pipeline={"true_cfg_scale": 4.0}, phase="actor")
    meter.step(seconds=1.0)
    assert meter.flops == 10 * total(IMAGE, latent=[16, 16], prompt=[3, 3])
    verl_omni.count_batch(meter, data, pipeline=SimpleNamespace(guidance_scale=4.0), transformer={"guidance_embeds": True})
    meter.step(seconds=1.0)
    assert meter.flops == 15 * total(IMAGE, latent=[16, 16], prompt=[3, 3])
    with pytest.warns(UserWarning, match="could not be read"):
        verl_omni.count_batch(meter, {"image_latents": torch.zeros(3)})


def test_verl_omni_promises_its_variable(monkeypatch):
    monkeypatch.delenv("SYMFLOPS_PEAK_TFLOPS", raising=False)
    monkeypatch.setenv("VERL_OMNI_DEVICE_FLOPS_TFLOPS", "123")
    found = verl_omni.meter(IMAGE, devices=1, device_name="NVIDIA H200")
    assert found.peak.tflops == 123 and "VERL_OMNI" in found.peak.source
    achieved, promised = verl_omni.DiffusionFlops(IMAGE).rates([16], [3], 1.0)
    assert promised == 123 and achieved == verl_omni.DiffusionFlops(IMAGE).estimate_flops([16], [3], 1.0)
    monkeypatch.setenv("SYMFLOPS_PEAK_TFLOPS", "456")
    assert verl_omni.meter(IMAGE, devices=1).peak.tflops == 456
    monkeypatch.delenv("SYMFLOPS_PEAK_TFLOPS")
    monkeypatch.delenv("VERL_OMNI_DEVICE_FLOPS_TFLOPS")
    assert verl_omni.DiffusionFlops(IMAGE).rates([16], [3], 1.0, device_name="nothing")[1] == math.inf


def test_verl_omni_plugin_where_it_is_missing():
    with pytest.warns(UserWarning, match="VeRL-Omni counts FLOPs by itself"):
        importlib.import_module("symflops.training.frameworks.verl_omni_plugin").install()


def test_megatron_bridge():
    class Provider(megatron.RuntimeStatsMixin):
        symflops_estimator = estimator(CONFIG)

    lengths = [100, 50, 8]
    count = Provider()._get_num_floating_point_operations_with_runtime_stats
    found = count(batch_size=3, seqlen_sum=sum(lengths), seqlen_squared_sum=sum(x * x for x in lengths), cross_seqlen_sum=None, cross_seqlen_product_sum=None)
    assert found == total(CONFIG, text=lengths) and type(found) is int
    with pytest.raises(ValueError, match="xx"):
        count(batch_size=3, seqlen_sum=10)
    windowed = {"architectures": ["MistralForCausalLM"]}
    with pytest.raises(ValueError, match="needs the sum"):
        by_sums(estimator(windowed)).flops({"n": 1, "x": 10, "xx": 100})
    with pytest.raises(ValueError, match="needs the sum 'y'"):
        by_sums(estimator(WAN)).flops({"n": 1, "x": 10, "xx": 100})
    with pytest.raises(ValueError, match="needs the sum|give the lengths"):
        by_sums(estimator({"_class_name": "UNet2DConditionModel"})).flops(dict.fromkeys(("n", "x", "xx", "y", "yy", "xy"), 1))


def test_sums_of_padded_and_of_real_lengths():
    """Linears run on padded tokens, attention on real ones: Bridge sums the first padded, and the squares of the second."""
    batch = {"lengths": [100, 50, 8], "padded": [128, 64, 64]}
    one = estimator(CONFIG, convention="megatron-bridge")
    expected = one.total(one.moments(text=batch))

    class Provider(megatron.RuntimeStatsMixin):
        symflops_estimator = one

    squares = sum(x * x for x in batch["lengths"])
    count = Provider()._get_num_floating_point_operations_with_runtime_stats
    assert count(batch_size=3, seqlen_sum=sum(batch["padded"]), seqlen_squared_sum=squares) == expected
    args = SimpleNamespace(seq_length=64)
    rows = {"lengths": [40, 24, 50], "padded": [64, 64, 64]}
    squares = sum(x * x for x in rows["lengths"])
    assert megatron.num_floating_point_operations(one)(args, 3, float(squares), 114.0) == one.total(one.moments(text=rows))


def test_megatron_lm():
    training = SimpleNamespace(num_floating_point_operations=None)
    megatron.patch(training, estimator(CONFIG))
    count = training.num_floating_point_operations
    names = list(inspect.signature(count).parameters)
    assert names == ["args", "batch_size", "seqlen_squared_sum_in_batch", "total_real_tokens_in_batch"]
    args = SimpleNamespace(seq_length=64)
    assert count(args, 4) == total(CONFIG, text=[64] * 4)
    assert count(args, 4, float(10**2 + 20**2), 30.0) == total(CONFIG, text=[10, 20])
    with pytest.raises(AttributeError):
        megatron.patch(SimpleNamespace(), estimator(CONFIG))


def sums_of(tokens, others=None):
    found = {"n": len(tokens), "x": sum(tokens), "xx": sum(x * x for x in tokens)}
    return found if others is None else {**found, "y": sum(others), "xy": sum(x * y for x, y in zip(tokens, others, strict=True))}


def test_wan_by_five_sums():
    """Its tokens are what its attention squares: patches of video."""
    latents, prompts = [[1, 8, 8], [3, 4, 8]], [7, 9]
    assert by_sums(estimator(WAN)).flops(sums_of([16, 24], prompts)) == total(WAN, latent=latents, prompt=prompts)
    with pytest.raises(ValueError, match="not a function of sums"):
        by_sums(estimator({**WAN, "image_dim": 1280, "added_kv_proj_dim": 5120}))


def test_images_by_patches_and_their_squares():
    vision = {"architectures": ["Qwen2VLForConditionalGeneration"]}
    found = images_by_sums(estimator(vision)).flops({"p": 64 + 2 * 128, "pp": 64**2 + 2 * 128**2})
    assert by_sums(estimator(vision)).flops(sums_of([30, 50])) + found == total(vision, text=[30, 50], images=[[1, 8, 8], [2, 16, 8]])
    windowed = images_by_sums(estimator({"architectures": ["Qwen2_5_VLForConditionalGeneration"]}))
    with pytest.raises(ValueError, match="needs the sum"):
        windowed.check(("p", "pp"))
    with pytest.raises(ValueError, match="no images"):
        images_by_sums(estimator(CONFIG))


def test_megatron_refuses_when_a_model_is_registered():
    windowed = estimator({"architectures": ["MistralForCausalLM"]})
    training, provider = SimpleNamespace(num_floating_point_operations=7), SimpleNamespace()
    for register in (lambda: megatron.patch(training, windowed), lambda: megatron.patch_bridge(training, windowed), lambda: megatron.provide(provider, windowed)):
        with pytest.raises(ValueError, match="needs the sum 'min_x_W'"):
            register()
    with pytest.raises(ValueError, match="needs the sum 'min_x_W'"):
        type("Provider", (megatron.RuntimeStatsMixin,), {"symflops_estimator": windowed})
    assert training.num_floating_point_operations == 7 and not vars(provider)


def test_megatron_bridge_falls_back_to_full_sequences():
    class Provider(megatron.RuntimeStatsMixin):
        symflops_estimator = estimator(CONFIG)
        seq_length = 32

    bare = SimpleNamespace(seq_length=32)
    megatron.provide(bare, estimator(CONFIG))
    for one in (Provider(), bare):
        count = one._get_num_floating_point_operations_with_runtime_stats
        assert count(batch_size=3, seqlen_sum=None, seqlen_squared_sum=None) == total(CONFIG, text=[32] * 3)
        assert count(batch_size=0) == 0
        assert count(batch_size=2, seqlen_sum=torch.tensor(30), seqlen_squared_sum=torch.tensor(500.0)) == total(CONFIG, text=[10, 20])


def test_lengths_under_parallelism():
    assert parallel.padded([100, 77], 8) == {"lengths": [100, 77], "padded": [104, 104]}
    assert parallel.padded([100, 77], 8, longest=False)["padded"] == [104, 80] and parallel.padded([]) == {"lengths": [], "padded": []}
    with pytest.raises(ValueError):
        parallel.aligned(7, 0)
    assert parallel.counts() and parallel.counts(vp_stage=0) and not parallel.counts(vp_stage=1) and not parallel.counts(cp_rank=1)


def test_trl_s_trainers_that_generate():
    """They are in tests/clients; here is a trainer that generates nothing."""
    with pytest.raises(AttributeError, match="generates no texts"):
        trl.attach(SimpleNamespace())


def test_torchtitan():
    class ModelConfig(torchtitan.FlopsMixin):
        symflops_estimator = estimator(CONFIG)

    parameters, per_token = ModelConfig().get_nparams_and_flops(None, 128)
    assert parameters == estimator(CONFIG).parameters and per_token == total(CONFIG, text=[128]) // 128
    assert set(torchtitan.meter(CONFIG, devices=1, peak_tflops=1).phases) == {""}
    with pytest.raises(ValueError):
        torchtitan.nparams_and_flops(estimator(CONFIG), 0)


def test_torchtitan_reads_equal_layers_alone():
    """tests/clients reads torchtitan's own configs; here is what is refused, and what answers then."""
    linear = SimpleNamespace(out_features=128, bias=False)
    attention = SimpleNamespace(n_heads=4, n_kv_heads=None, head_dim=None, qk_norm=None, wo=linear, qkv_linear=SimpleNamespace(), inner_attention=None)
    layer = SimpleNamespace(attention=attention, feed_forward=SimpleNamespace(w1=linear, w2=linear, w3=linear))
    config = SimpleNamespace(layers=[layer, layer], dim=64, vocab_size=100, enable_weight_tying=False)
    assert torchtitan.estimator_of(config).parameters == estimator(CONFIG).parameters
    assert torchtitan.meter(config, devices=1, peak_tflops=1).phases
    other = SimpleNamespace(**{**vars(layer), "attention": SimpleNamespace(**{**vars(attention), "qk_norm": object()})})
    biased = SimpleNamespace(**{**vars(layer), "feed_forward": SimpleNamespace(w1=SimpleNamespace(out_features=128, bias=True), w2=linear, w3=linear)})
    for layers in ([layer, other], [biased], [SimpleNamespace()], [], None):
        with pytest.raises(SymflopsError, match="give symflops_estimator"):
            torchtitan.config_of(SimpleNamespace(**{**vars(config), "layers": layers}))
    with pytest.warns(UserWarning, match="no MFU.*give symflops_estimator"):
        assert not torchtitan.meter(SimpleNamespace(layers=[]), devices=1).phases
    model = torch.nn.Linear(2, 2)
    with pytest.raises(SymflopsError, match="6 parameters"):
        torchtitan.estimator_of(config, model)

    class Config(SimpleNamespace):
        def get_nparams_and_flops(self, model, seq_len):
            return 6, 36

    torchtitan.patch(Config)
    with pytest.warns(UserWarning, match="torchtitan's own count answers"):
        assert Config(**vars(config)).get_nparams_and_flops(model, 16) == (6, 36)


def test_lightning():
    class Module(lightning.FlopsMixin):
        symflops_estimator = estimator(CONFIG)

    module = Module()
    batch = {"input_ids": torch.zeros(2, 6, dtype=torch.int64), "attention_mask": torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])}
    assert module.count_batch(batch) == module.flops_per_batch == total(CONFIG, text=[3, 6])
    assert module.count_batch(batch, devices_per_batch=2) == total(CONFIG, text=[3, 6]) // 2
    packed = {"input_ids": torch.zeros(1, 5, dtype=torch.int64), "position_ids": torch.tensor([[0, 1, 0, 1, 2]])}
    assert module.count_batch(packed) == total(CONFIG, text=[2, 3])
    with pytest.raises(LengthError):
        module.count_batch({"labels": 1})


def test_lightning_itself():
    """Fabric's Throughput takes the FLOPs of one device, and multiplies by the world size itself."""
    throughput = importlib.import_module("lightning_fabric.utilities.throughput")
    measured = throughput.Throughput(available_flops=1e9, world_size=2, window_size=2)
    flops = lightning.flops_of_batch(estimator(CONFIG), {"input_ids": torch.zeros(2, 6)})
    for step in range(3):
        measured.update(time=float(step), batches=step, samples=2 * step, flops=flops)
    assert measured.compute()["device/mfu"] == pytest.approx(flops / 1e9)
