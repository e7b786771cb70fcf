"""verl's own training worker with its FSDP2 engine on gloo: what it logs beside PyTorch's counter of the same step."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForTokenClassification, LlamaConfig, Qwen3Config

import symflops
from symflops.training.frameworks import verl
from symflops.verify.running import counter
from tests.clients import verl_cpu

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}
CONFIGS = {"llama": LlamaConfig, "qwen3": Qwen3Config}
LENGTHS = [7, 12, 5, 16]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """verl's parts, imported once its platform is the CPU; symflops is registered under PyTorch's convention."""
    folder = tmp_path_factory.mktemp("verl")
    verl_cpu.start(str(folder))
    from verl.trainer.config import CheckpointConfig
    from verl.utils import flops_counter, tensordict_utils
    from verl.workers import config
    from verl.workers.engine_workers import TrainingWorker
    from verl.workers.utils.losses import sft_loss

    verl.register(convention="torch")
    for name, kind in CONFIGS.items():
        AutoModelForCausalLM.from_config(kind(**SIZES)).save_pretrained(folder / name)
    yield SimpleNamespace(folder=folder, config=config, worker=TrainingWorker, loss=sft_loss, data=tensordict_utils, checkpoint=CheckpointConfig, peak=flops_counter.get_device_flops())
    torch.distributed.destroy_process_group()


def worker(engine, kind="llama", role="language_model", packed=False, micro=1, **model):
    """A worker as verl's trainers make it, whose engine holds the sharded model."""
    config = engine.config
    named = {"load_tokenizer": False, "use_remove_padding": packed, "enable_gradient_checkpointing": False, "override_config": {"attn_implementation": "eager"}}
    made = engine.worker(config.TrainingWorkerConfig(
        model_type=role, model_config=config.HFModelConfig(path=str(engine.folder / kind), **{**named, **model}), checkpoint_config=engine.checkpoint(),
        engine_config=config.FSDPEngineConfig(
            strategy="fsdp2", mixed_precision={"param_dtype": "fp32", "reduce_dtype": "fp32"}, use_dynamic_bsz=False, use_torch_compile=False,
            micro_batch_size_per_gpu=micro, infer_micro_batch_size_per_gpu=micro,
        ),
        optimizer_config=config.FSDPOptimizerConfig(lr=1e-3, total_training_steps=9, lr_warmup_steps=0),
    ))  # fmt: skip
    made.set_loss_fn(partial(engine.loss, config=None) if role == "language_model" else values)
    made.reset()
    return made


def values(model_output, data, dp_group):
    """A loss of a critic."""
    return model_output["values"].values().square().mean(), {}


def batch(engine, lengths=LENGTHS, **more):
    rows = {"input_ids": [torch.arange(n) % 60 + 1 for n in lengths], "position_ids": [torch.arange(n) for n in lengths], "loss_mask": [torch.ones(n) for n in lengths]}
    tensors = {name: torch.nested.nested_tensor(row, layout=torch.jagged) for name, row in rows.items()}
    return engine.data.get_tensordict(tensors, {"global_token_num": list(lengths), "temperature": 1.0, **more})


def measured(engine, made, phase="train_batch", **more):
    """What the worker logged as FLOPs, what PyTorch's counter saw, and the estimator of the sharded model."""
    with counter(False) as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_timer(), "Timer", Timer)
        output = getattr(made, phase)(batch(engine, **more))
    logged = engine.data.get(output, "metrics")["mfu"]
    return round((sum(logged) if isinstance(logged, list) else logged) * engine.peak * 1e12), seen.get_total_flops(), symflops.of_model(made.engine.module, convention="torch")


def engine_timer():
    from verl.workers import engine_workers

    return engine_workers


class Timer:
    """A timer of one second: the rate that is logged is the FLOPs."""

    last = 1.0

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("kind", CONFIGS)
def test_an_update(engine, kind, packed):
    """Four micro-batches of ragged lengths, as one sample each; then log probabilities without a backward pass."""
    made = worker(engine, kind, packed=packed)
    logged, seen, live = measured(engine, made)
    assert logged == seen == live.total(live.moments(text=LENGTHS))
    logged, seen, _ = measured(engine, made, "infer_batch")
    assert logged == seen == live.forward(live.moments(text=LENGTHS))


def test_mini_batches_as_the_actor_s_update(engine):
    """Two mini-batches, two epochs, two samples of equal lengths in a micro-batch."""
    made = worker(engine, micro=2)
    logged, seen, live = measured(engine, made, "train_mini_batch", lengths=[8, 8, 8, 8], num_mini_batch=2, epochs=2)
    assert logged == seen == 2 * live.total(live.moments(text=[8, 8, 8, 8]))


def test_a_checkpointed_update(engine):
    """verl divides useful work alone; what is recomputed is the live module's."""
    logged, seen, live = measured(engine, worker(engine, enable_gradient_checkpointing=True))
    moments = live.moments(text=LENGTHS)
    assert logged == live.total(moments) and seen == logged + live.recomputed(moments)


@pytest.mark.parametrize("targets", ["all-linear", ["q_proj", "v_proj"]], ids=str)
def test_lora(engine, targets):
    """The adapters that the engine makes; inputs of the first layer need gradients, as verl asks of each module with LoRA."""
    made = worker(engine, lora_rank=4, target_modules=targets)
    logged, seen, live = measured(engine, made)
    assert logged == seen == live.total(live.moments(text=LENGTHS))
    logged, seen, _ = measured(engine, made, "infer_batch")
    assert logged == seen == live.forward(live.moments(text=LENGTHS))


def test_a_critic(engine, monkeypatch):
    """verl's worker of a value model, with a head of one label per token; verl loads it with flash attention, whatever its config says."""
    load = AutoModelForTokenClassification.from_pretrained
    monkeypatch.setattr(AutoModelForTokenClassification, "from_pretrained", lambda *given, **named: load(*given, **{**named, "attn_implementation": "eager"}))
    logged, seen, live = measured(engine, worker(engine, role="value_model"))
    assert logged == seen == live.total(live.moments(text=LENGTHS))
