"""verl's own counter with symflops in its table: every model type, in this process and in Ray workers."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import ray
import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from verl.utils import flops_counter

from symflops.library import lookup
from symflops.training.frameworks import verl

UNKNOWN = flops_counter._estimate_unknown_flops
OWN = {kind: getattr(function, "otherwise", function) for kind, function in flops_counter.ESTIMATE_FUNC.items()}
OWN = {kind: function for kind, function in OWN.items() if function is not UNKNOWN}  # the entry point may have registered already
LENGTHS, SECONDS, IMAGES = [100, 50, 7], 2.0, [64, 256]
OURS = {
    "qwen2", "llama", "qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen3", "qwen3_moe", "qwen3_vl", "deepseek_v3", "mistral", "gemma3_text", "seed_oss", "apertus", "gpt_oss",
}  # fmt: skip
WITH_IMAGES = {"qwen2_vl", "qwen3_vl"}
"""Windows of Qwen2.5-VL's encoder depend on the shape of an image, and verl gives its patches alone."""
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **SIZES}
PLUGIN = "symflops.training.frameworks.verl_plugin"


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """verl's table as verl ships it; its peak is that of its row CPU, for which verl asks only where a platform is ``torch.cpu``."""
    monkeypatch.setattr(flops_counter, "get_torch_device", lambda: torch.cpu)
    monkeypatch.setattr(flops_counter, "ESTIMATE_FUNC", dict(OWN))
    return flops_counter


def config_of(kind):
    """A config of a type as its library makes it; three types have remote code, of which verl reads the fields of Qwen2."""
    return CONFIG_MAPPING[kind]() if kind in CONFIG_MAPPING else SimpleNamespace(model_type=kind, **SIZES)


def total(config, regime="full", **batch):
    one = verl.estimator_of(config, regime, "symflops")
    return one.total(one.moments(**batch)) / SECONDS / 1e12


def counted(config, images):
    """What verl's counter returns; NaN where its own functions read fields that the library's config has not."""
    try:
        return flops_counter.FlopsCounter(config).estimate_flops(LENGTHS, SECONDS, images_seqlens=images)
    except AttributeError:
        return math.nan, flops_counter.get_device_flops()


def test_the_table_is_the_one_that_these_tests_know():
    assert len(OWN) == 22 and set(OWN) >= OURS


@pytest.mark.parametrize("images", [None, [], IMAGES], ids=["no images", "empty", "images"])
@pytest.mark.parametrize("kind", sorted(OWN))
def test_every_type_of_the_table(kind, images, table):
    """Our count where we have one; else verl's own, to the last digit, with one warning for any number of batches."""
    config = config_of(kind)
    theirs = counted(config, images)
    verl.register()
    ours = kind in OURS and (not images or kind in WITH_IMAGES)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        counter = flops_counter.FlopsCounter(config)
        found = [counter.estimate_flops(LENGTHS, SECONDS, images_seqlens=images) for _ in range(3)]
    said = [str(one.message) for one in seen if "verl's own function" in str(one.message)]
    if ours:
        batch = {"text": LENGTHS, **({"images": [[1, 8, 8], [1, 16, 16]]} if images else {})}
        assert not said and found == [(pytest.approx(total(config, **batch)), theirs[1])] * 3
    else:
        assert found == [(pytest.approx(theirs[0], rel=0, nan_ok=True), theirs[1])] * 3
        assert len(said) == 1 and f"'{kind}'" in said[0]
        assert math.isnan(theirs[0]) == (kind == "glm4v")


def test_an_unknown_type_is_as_without_us(table):
    config = SimpleNamespace(model_type="nothing", **SIZES)
    theirs = flops_counter.FlopsCounter(config).estimate_flops(LENGTHS, SECONDS)
    with pytest.warns(UserWarning, match="verl's own function answers for 'nothing'"):
        verl.register("nothing")
        assert flops_counter.FlopsCounter(config).estimate_flops(LENGTHS, SECONDS) == theirs == (0, theirs[1])


def test_a_mixed_run_counts_each_batch(table):
    """A batch without images between batches with them: both are counted, whoever can."""
    config = config_of("qwen2_5_vl")
    verl.register()
    counter = flops_counter.FlopsCounter(config)
    with pytest.warns(UserWarning, match="some batches of 'qwen2_5_vl'.*shape of images"):
        found = [counter.estimate_flops(LENGTHS, SECONDS, images_seqlens=images)[0] for images in (IMAGES, None)]
    assert found[0] == OWN["qwen2_5_vl"](config, sum(LENGTHS), LENGTHS, SECONDS, images_seqlens=IMAGES)
    assert found[1] == pytest.approx(total(config, text=LENGTHS))


def test_registering_twice_keeps_verl_s_own_function(table):
    for _ in range(2):
        verl.register()
    assert table.ESTIMATE_FUNC["hy_v3"].otherwise is OWN["hy_v3"]
    assert "olmo2" in table.ESTIMATE_FUNC and "olmo2" not in OWN


def worker():
    """What a Ray worker finds in verl's table, and what its counter says."""
    from verl.utils import flops_counter as there

    there.get_torch_device = lambda: torch.cpu
    function = there.ESTIMATE_FUNC["llama"]
    return function.__module__, there.FlopsCounter(SimpleNamespace(**LLAMA)).estimate_flops(LENGTHS, SECONDS)[0]


WAYS = {
    "none": {"VERL_USE_EXTERNAL_PLUGINS": "none"},
    "entry point": {},
    "variable": {"VERL_USE_EXTERNAL_PLUGINS": "none", "VERL_USE_EXTERNAL_MODULES": PLUGIN},
    "regime": {"VERL_USE_EXTERNAL_PLUGINS": "none", "VERL_USE_EXTERNAL_MODULES": PLUGIN, "SYMFLOPS_VERL_REGIME": "forward"},
    "external_lib": {"VERL_USE_EXTERNAL_PLUGINS": "none"},
}


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=1, include_dashboard=False, logging_level="error", object_store_memory=100 * 2**20)
    yield
    ray.shutdown()


@pytest.mark.parametrize("way", WAYS)
def test_a_ray_worker(way, cluster):
    """The driver registers nothing; each way brings the plugin into a real worker, and without any verl's own function is there."""

    @ray.remote
    def counted():
        if way == "external_lib":
            from verl.utils.import_utils import import_external_libs

            import_external_libs(PLUGIN)  # as HFModelConfig does with model.external_lib
        return worker()

    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), **WAYS[way]}
    module, flops = ray.get(counted.options(runtime_env={"env_vars": environment}).remote())
    if way == "none":
        assert module == "verl.utils.flops_counter" and flops == OWN["llama"](SimpleNamespace(**LLAMA), sum(LENGTHS), LENGTHS, SECONDS)
    else:
        assert module == "symflops.training.frameworks.verl"
        assert flops == pytest.approx(total(LLAMA, "forward" if way == "regime" else "full", text=LENGTHS))


class Worker:
    """The two places of verl's ``TrainingWorker`` that make and ask the counter; the worker itself needs an engine on a device."""

    def __init__(self, model_config):
        self.model_config = model_config
        self.flops_counter = flops_counter.FlopsCounter(self.model_config.hf_config)

    def _postprocess_output(self, forward_only):
        found, _ = self.flops_counter.estimate_flops(LENGTHS, SECONDS, images_seqlens=None)
        return found / 3 if forward_only else found


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "v_proj"]], ids=str)
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_a_worker_s_lora_is_counted(kind, targets, table):
    """As the live PEFT module that verl's engine makes of the same fields; each phase, and full workers beside."""
    from peft import LoraConfig, TaskType, get_peft_model
    from transformers import AutoModelForCausalLM

    import symflops

    config = CONFIG_MAPPING[kind](**SIZES)
    verl.register()
    fields = {"lora_rank": 4, "target_modules": targets, "exclude_modules": None, "target_parameters": None, "lora_adapter_path": None, "lora": {"rank": 0}}
    worker = Worker(SimpleNamespace(hf_config=config, **fields))
    with torch.device("meta"):
        made = LoraConfig(task_type=TaskType.CAUSAL_LM, r=4, target_modules=targets, bias="none")
        module = AutoModelForCausalLM.from_config(config)
        module.enable_input_require_grads()
        live = symflops.of_model(get_peft_model(module, made))
    moments = live.moments(text=LENGTHS)
    assert worker._postprocess_output(False) == pytest.approx(live.total(moments) / SECONDS / 1e12, rel=1e-12)
    assert worker._postprocess_output(True) == pytest.approx(live.forward(moments) / SECONDS / 1e12, rel=1e-12)
    other = CONFIG_MAPPING[kind](**SIZES)
    assert Worker(SimpleNamespace(hf_config=other, **{**fields, "lora_rank": 0}))._postprocess_output(False) == pytest.approx(total(other, text=LENGTHS))


@pytest.mark.parametrize("more", [{"lora_adapter_path": "adapter"}, {"exclude_modules": ".*up.*"}, {"lora_rank": 0, "lora": {"rank": 8}}, {"target_modules": ".*_proj"}], ids=str)
def test_a_lora_that_the_config_does_not_tell_is_verl_s(more, table):
    config = CONFIG_MAPPING["llama"](**SIZES)
    theirs = OWN["llama"](config, sum(LENGTHS), LENGTHS, SECONDS)
    verl.register()
    fields = {"lora_rank": 4, "target_modules": "all-linear", "lora": {}, **more}
    with pytest.warns(UserWarning, match="verl's own function answers for 'llama'"):
        assert Worker(SimpleNamespace(hf_config=config, **fields))._postprocess_output(False) == theirs


def test_the_worker_is_verl_s():
    """What :class:`Worker` has of it stands in verl's source."""
    source = (Path(flops_counter.__file__).parents[1] / "workers/engine_workers.py").read_text()
    assert "self.flops_counter = FlopsCounter(self.model_config.hf_config)" in source
    assert "def _postprocess_output(self, output, *, global_token_num, delta_time, forward_only, images_seqlens)" in source


def test_the_meter_logs_verl_s_keys():
    """``perf/mfu/actor``, ``perf/mfu/actor_infer``, ``perf/mfu/critic``; in supervised training ``train/mfu``."""
    meter = verl.meter(LLAMA, devices=1, peak_tflops=1e-3, critic=True)
    for phase in ("actor", "actor_infer", "critic", "ref"):
        meter.add(text=LENGTHS, phase=phase)
    logged = meter.step(seconds=SECONDS)
    assert {name for name in logged if "/mfu/" in name} == {"perf/mfu/actor", "perf/mfu/actor_infer", "perf/mfu/critic"}
    assert logged["perf/mfu/actor"] == pytest.approx(total(LLAMA, text=LENGTHS) * 1e3)
    head = {**LLAMA, "architectures": ["LlamaForTokenClassification"], "num_labels": 1}
    assert logged["perf/mfu/critic"] == pytest.approx(total(head, text=LENGTHS) * 1e3)
    meter = verl.meter(LLAMA, devices=1, peak_tflops=1e-3, keys="verl-sft")
    meter.add(text=LENGTHS)
    assert meter.step(seconds=SECONDS)["train/mfu"] == pytest.approx(total(LLAMA, text=LENGTHS) * 1e3)
    assert lookup.by_config(verl.value_model(LLAMA))[1] == "llama"
