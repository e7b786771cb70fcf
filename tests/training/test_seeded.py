"""Faults seeded into watched loops: each is counted as it ran, or costs the grade or the MFU, and none passes in silence."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.nn.modules import module as modules
from torch.utils._python_dispatch import TorchDispatchMode

from symflops.training.meter.mfu import MFUMeter
from tests.training.test_watch import IDS, Loop, llama, loss, mixtral, patched, swapped

READS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero", "aten::item", "aten::equal")


def with_teacher(model):
    teacher = llama(num_hidden_layers=1).eval()
    with torch.no_grad():
        teacher(input_ids=IDS)
    loss(model)


def with_head(model):
    torch.nn.Linear(64, 64)(model(input_ids=IDS).logits).sum().backward()


def in_a_product(model):
    weight = torch.ones(64, 64, requires_grad=True)
    (model(input_ids=IDS).logits @ weight).sum().backward()


@pytest.mark.parametrize(("step", "words", "whole"), [
    (with_teacher, "LlamaForCausalLM ran too, and its 376,832 FLOPs forward are not counted: watch it as well", True),
    (with_head, "Linear ran too, and its 131,072 FLOPs forward are not counted: watch it as well", True),
    (in_a_product, "262,144 FLOPs of backward passes outside of the watched calls are not counted", False),
])  # fmt: skip
def test_what_is_not_watched_lowers_the_grade(step, words, whole):
    """The share is that of PyTorch's own counter, but for products of no module, which are seen in the backward pass alone."""
    loop = Loop(llama())
    assert "mfu" in loop.step(step)
    assert not loop.proofs() and not loop.told and words in loop.lines[-1], loop.lines
    share = 100 * loop.meter.executed / (loop.seen if whole else loop.seen - 131072)
    assert f"compared on the first step ({share:.1f} % of its FLOPs" in loop.lines[-1]


def test_what_runs_in_a_pause_is_no_part_of_the_step():
    loop, other = Loop(llama()), llama()

    def step(model):
        with loop.meter.paused():
            loss(other)
        loss(model)

    assert "mfu" in loop.step(step) and len(loop.proofs()) == 1, loop.lines


def test_what_another_meter_watches_counts_there():
    loop, other = Loop(llama()), Loop(llama(num_hidden_layers=1))
    assert "mfu" in other.step() and "mfu" in loop.step()
    assert len(loop.proofs()) == len(other.proofs()) == 1, loop.lines


def by_itself(model):
    model.model.layers[1].mlp(torch.ones(1, 8, 32)).sum().backward()
    loss(model)


@pytest.mark.parametrize(("fault", "words"), [
    (by_itself, "model.layers.1.mlp ran outside of a call of LlamaForCausalLM: 98,304 FLOPs"),
    (patched, "ran 2 times as often as counted"), (swapped, "is not what 'llama' describes"),
])  # fmt: skip
def test_a_module_that_runs_more_or_other_work_takes_the_mfu(fault, words):
    loop = Loop(llama())
    assert "mfu" not in loop.step(fault) and words in loop.told[0], loop.told


def test_a_module_of_the_model_in_evaluation_is_no_fault():
    loop = Loop(llama())

    def step(model):
        with torch.no_grad():
            model.eval().model.layers[1].mlp(torch.ones(1, 8, 32))
        loss(model.train())

    assert "mfu" in loop.step(step) and len(loop.proofs()) == 1


@pytest.mark.parametrize("first", [True, False], ids=["at first", "later"])
def test_a_part_that_is_unfrozen_after_the_meter_was_built(first):
    model = llama()
    model.model.layers.requires_grad_(False)
    loop = Loop(model)
    if not first:
        loop.step()
    model.model.layers[1].requires_grad_(True)
    loop.step()
    assert loop.settled().executed == loop.seen and not loop.told and len(loop.proofs()) == 1


@pytest.mark.parametrize("first", [True, False], ids=["at first", "later"])
def test_the_number_of_experts_that_a_config_says_anew(first):
    """The routers keep the number with which they were made, and run by it."""
    loop = Loop(mixtral())
    if not first:
        assert "mfu" in loop.step()
    loop.model.config.num_experts_per_tok = 1
    loop.step()
    assert loop.settled().executed == loop.seen and not loop.told
    assert first or any("was read anew" in line for line in loop.lines)


@pytest.mark.filterwarnings("ignore:Using `torch.compile")
def test_a_compiled_function_is_not_disturbed():
    """It compiles whole while all modules have hooks, and what compiled modules do is not seen."""
    head, other = torch.nn.Linear(64, 4), torch.compile(torch.nn.Linear(64, 4), backend="eager", fullgraph=True)
    whole = torch.compile(lambda hidden: head(hidden).sum(), backend="eager", fullgraph=True)

    def step(model):
        logits = model(input_ids=IDS).logits
        (whole(logits) + other(logits).sum()).backward()

    loop = Loop(llama())
    step(loop.model)
    assert "mfu" in loop.meter.step(seconds=1.0)
    assert "compared on the first step" in loop.lines[-1] and "OptimizedModule ran too, and its operators cannot be seen" in loop.lines[-1]


def test_no_hook_on_all_modules_is_left():
    gc.collect()
    before = len(modules._global_forward_hooks)
    loop = Loop(llama())
    assert len(modules._global_forward_hooks) == before + 1
    loop.step()
    assert len(modules._global_forward_hooks) == before
    lost = MFUMeter.of_model(llama(), peak_tflops=1.0, log=None).watch()
    del lost
    gc.collect()
    assert len(modules._global_forward_hooks) == before


class Reads(TorchDispatchMode):
    """Counts operators that wait for a device, and copies from it to the host."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = {one.device.type for one in args if isinstance(one, torch.Tensor)}
        if func.name().startswith(READS) or (isinstance(result, torch.Tensor) and result.device.type == "cpu" and given - {"cpu"}):
            self.found.append(func.name())
        return result


def test_steady_calls_do_not_wait_for_a_device():
    """Tensors of the meta device have no values, so reading one would also fail; the model is read anew by its flags alone."""
    loop = Loop(llama().to("meta"), prove=False)
    ids, mask = IDS.to("meta"), torch.ones(2, 8, dtype=torch.long, device="meta")
    watching = loop.meter.watching
    with Reads() as reads:
        for _ in range(10):
            loop.model(input_ids=ids, attention_mask=mask).logits.sum().backward()
            for one in watching.models:
                one.fresh = True
    assert not reads.found and len(watching.calls) == 10 and all(call.ran for call in watching.calls)
    with Reads() as reads, pytest.raises(RuntimeError):
        mask.sum().item()
