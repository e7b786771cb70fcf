"""A meter that watches a model counts what ran: each step beside PyTorch's counter, and faults in a loop beside none."""

from __future__ import annotations

import copy
import gc
import io
import re
import time
import warnings
import weakref

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from transformers import (
    BertConfig,
    BertForMultipleChoice,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

from symflops.training.introspect.fingerprint import Fingerprint
from symflops.training.introspect.model import LiveModule
from symflops.training.meter.mfu import MFUMeter
from symflops.training.meter.observe import Observer
from symflops.verify.running import counter

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}
BERT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64, "attn_implementation": "eager"}
IDS = torch.ones(2, 8, dtype=torch.long)
PROVEN = "proven on the first step: "


def llama(kind="eager", **fields):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**{**SIZES, "use_cache": False, **fields}, attn_implementation=kind)).train()


def lora(model=None, **fields):
    return get_peft_model(model or llama(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], **fields))


def dora():
    """Parts of an adapter run for each other: its magnitude calls its projections, and dropout leaves out its base layer."""
    return lora(use_dora=True, lora_dropout=0.1)


def checkpointed(model, reentrant=False):
    model.activation_checkpointing_enable({"use_reentrant": reentrant})
    return model


def mixtral():
    return MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, attn_implementation="eager", experts_implementation="eager")).train()


def loss(model):
    model(input_ids=IDS, labels=IDS).loss.backward()


class Loop:
    """A loop of steps that are watched, each under PyTorch's counter."""

    def __init__(self, model, *others, prove=True, **options):
        self.lines, self.told, self.seen = [], [], 0
        self.model = model
        self.meter = MFUMeter.of_model(model, convention="torch", log=self.lines.append, **{"peak_tflops": 1.0, **options}).watch(*others, prove=prove)

    def step(self, function=loss, outside=0):
        """Run a step, and return what the meter logs; ``outside`` are FLOPs that are not the model's."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with sdpa_kernel(SDPBackend.MATH), counter(False) as seen:
                function(self.model)
            found = self.meter.step(seconds=1.0)
        self.seen += seen.get_total_flops() - outside
        self.told += [str(one.message) for one in told if "symflops" in str(one.message)]
        return found

    def settled(self):
        """Wait for programs that are being derived."""
        begun = time.monotonic()
        while (any(phase.waits for phase in self.meter.phases.values()) or self.meter.watching.proofs.pending) and time.monotonic() - begun < 120:
            time.sleep(0.1)
            self.meter.step(seconds=1.0)
        return self.meter

    def proofs(self):
        return [line for line in self.lines if PROVEN in line]


def twice(model):
    (model(input_ids=IDS).logits.sum() + model(input_ids=IDS).logits.sum()).backward()


def accumulated(model):
    for length in (3, 8, 5):
        model(input_ids=IDS[:, :length], labels=IDS[:, :length]).loss.backward()


def positional(model):
    model(IDS, torch.ones_like(IDS), labels=IDS, return_dict=False)[0].backward()


def again(model):
    found = model(input_ids=IDS).logits.sum()
    found.backward(retain_graph=True)
    found.backward()


def preference(model):
    """DPO with PEFT: the reference is the model without its adapters."""
    with torch.no_grad(), model.disable_adapter():
        model(input_ids=IDS)
    loss(model)


def evaluated(model):
    loss(model)
    model.eval()
    with torch.no_grad():
        model(input_ids=IDS[:, :5])
    model.train()


def padded(model):
    mask = (torch.arange(8) < torch.tensor([[3], [8]])).long()
    model(input_ids=IDS, attention_mask=mask, labels=IDS).loss.backward()


def alone(model):
    model.lm_head(model.model(input_ids=IDS).last_hidden_state).sum().backward()


@pytest.mark.parametrize(("model", "step"), [
    (llama, loss), (lambda: llama("sdpa"), loss), (llama, twice), (llama, accumulated), (llama, positional), (llama, again), (llama, evaluated), (llama, padded), (llama, alone), (lora, loss), (dora, loss), (lora, preference),
    (lambda: checkpointed(llama()), loss), (lambda: checkpointed(llama(), True), loss), (mixtral, loss),
], ids=["full", "fused", "two calls", "accumulated", "positional", "backward twice", "evaluation", "padded", "parts", "lora", "dora", "dpo", "checkpointed", "reentrant", "experts"])  # fmt: skip
def test_a_loop_is_exact_and_proves_itself(model, step):
    loop = Loop(model())
    loop.step(step)
    loop.settled()
    assert "mfu" in loop.step(step)
    assert loop.meter.executed == loop.seen > 0 and len(loop.proofs()) == 1 and not loop.told
    assert loop.proofs()[0].endswith("modules, 0 FLOPs apart")


@pytest.mark.parametrize("adapted", [lambda model: model, lora], ids=["full", "lora"])
def test_fused_attention_is_proven_as_two_products(adapted):
    """PyTorch's counter knows no formula of the CPU's kernel: the witness is the same step with eager attention."""
    loop, eager = Loop(adapted(llama("sdpa"))), Loop(adapted(llama()))
    eager.step()
    loss(loop.model)
    loop.meter.step(seconds=1.0)
    assert loop.settled().executed == eager.seen and len(loop.proofs()) == 1


def test_calls_without_a_loss_run_forward_only():
    loop = Loop(llama(), regimes="forward")
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            assert "mfu" in loop.step(lambda model: model(input_ids=IDS))
    assert loop.meter.flops == loop.meter.executed == loop.seen


def test_evaluation_and_pauses_count_as_executed_work_alone():
    loop = Loop(llama())
    trained = loop.step()["flops_total"]
    loop.step(evaluated)

    def paused(model):
        with loop.meter.paused():
            loss(model)

    assert "mfu" not in loop.step(paused)
    assert loop.meter.flops == 2 * trained and loop.meter.executed == loop.seen > 3 * trained


def test_a_teacher_is_watched_too():
    teacher = llama(num_hidden_layers=1).eval()

    def distilled(model):
        with torch.no_grad():
            teacher(input_ids=IDS)
        loss(model)

    loop = Loop(llama(), teacher)
    assert "mfu" in loop.step(distilled)
    assert loop.meter.flops == loop.meter.executed == loop.seen and len(loop.proofs()) == 1


def test_gradients_through_a_frozen_model_are_read_off_its_inputs():
    model, projector = llama().requires_grad_(False), torch.nn.Linear(32, 32)

    def projected(model):
        model(inputs_embeds=projector(model.get_input_embeddings()(IDS).detach())).logits.sum().backward()

    loop = Loop(model)
    loop.step(projected, outside=2 * 2 * 16 * 32 * 32)
    assert loop.settled().executed == loop.seen and any("proven on the first step (" in line and "Linear ran too" in line for line in loop.lines)
    loop.step(lambda model: model(input_ids=IDS).logits.sum())
    assert loop.meter.executed == loop.seen


def test_a_loss_of_one_output():
    loop = Loop(BertModel(BertConfig(**BERT)).train())
    loop.step(lambda model: model(IDS).last_hidden_state.sum().backward())
    loop.step(lambda model: model(IDS).pooler_output.sum().backward())
    assert loop.settled().executed == loop.seen and len(loop.proofs()) == 1 and not loop.told


def test_ids_of_three_dimensions():
    loop = Loop(BertForMultipleChoice(BertConfig(**BERT)).train())
    ids = torch.ones(2, 4, 8, dtype=torch.long)
    loop.step(lambda model: model(input_ids=ids, attention_mask=ids, labels=torch.zeros(2, dtype=torch.long)).loss.backward())
    assert loop.settled().executed == loop.seen and len(loop.proofs()) == 1 and not loop.told


def test_two_streams():
    loop = Loop(T5ForConditionalGeneration(T5Config(d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4, vocab_size=64, decoder_start_token_id=0)).train())
    loop.step(lambda model: model(input_ids=IDS, labels=IDS[:, :5].clone()).loss.backward())
    assert loop.settled().executed == loop.seen and len(loop.proofs()) == 1


def test_a_text_alone_trains_nothing_of_a_vision_model():
    """Only the merger of images trains: a batch with images has a backward pass, and one of text has none."""
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "patch_size": 4, "mlp_ratio": 2}
    words = {"image_token_id": 60, "vision_start_token_id": 61, "vision_end_token_id": 62, "video_token_id": 63}
    text = {**SIZES, "use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}}
    model = Qwen2VLForConditionalGeneration(Qwen2VLConfig(text_config=text, vision_config=vision, attn_implementation="eager", **words)).train()
    model.requires_grad_(False).model.visual.merger.requires_grad_(True)
    ids = torch.tensor([[61, 60, 60, 60, 60, 62, 1, 1]])
    images = {"pixel_values": torch.randn(16, 96), "image_grid_thw": torch.tensor([[1, 4, 4]]), "mm_token_type_ids": (ids == 60).long()}

    def mixed(model):
        model(input_ids=ids, labels=ids, **images).loss.backward()
        assert not model(input_ids=IDS, labels=IDS).loss.requires_grad

    loop = Loop(model)
    loop.step(mixed)
    assert loop.settled().executed == loop.seen and len(loop.proofs()) == 1 and not loop.told


def thawed(model):
    model.model.layers[2].requires_grad_(True)
    loss(model)


def switched(model):
    loss(checkpointed(model))


@pytest.mark.parametrize(("step", "words", "proofs"), [(thawed, "what trains has changed", 1), (switched, "was read anew", 2)])
def test_a_change_is_noticed_and_told_in_a_line(step, words, proofs):
    model = llama()
    model.model.layers.requires_grad_(False)
    loop = Loop(model)
    loop.step()
    loop.settled()
    before = len(loop.lines)
    loop.step(step)
    loop.step()
    assert loop.settled().executed == loop.seen and len(loop.proofs()) == proofs and not loop.told
    assert sum(words in line for line in loop.lines[before:]) == 1


def patched(model):
    part = model.model.layers[1].mlp
    part.forward = lambda x, forward=part.forward: forward(forward(x))
    loss(model)


def swapped(model):
    model.model.layers[1].mlp = torch.nn.Linear(32, 32)
    loss(model)


def rerouted(model):
    for module in model.modules():
        if hasattr(module, "top_k"):
            module.top_k = 1
    loss(model)


def masked(model):
    model(input_ids=IDS, attention_mask=torch.zeros(2, 1, 8, 8)).logits.sum().backward()


def fused(model):
    """A loss that uses the weight of the head, and only tokens that have a label."""

    def forward(input_ids):
        hidden = model.model(input_ids=input_ids).last_hidden_state[:, 4:]
        return torch.nn.functional.linear(hidden, model.lm_head.weight)

    model.forward = forward
    model(input_ids=IDS).sum().backward()


def outer(model):
    checkpoint(lambda ids: model(input_ids=ids).logits, IDS, use_reentrant=False).sum().backward()


@pytest.mark.parametrize(("fault", "words"), [
    (patched, r"model\.layers\.1\.mlp\.down_proj ran 2 times as often as counted"), (swapped, "is not what 'llama' describes"),
    (masked, r"a mask of four dimensions tells no lengths.*attention_mask \(Tensor of shape \[2, 1, 8, 8\]\)"),
])  # fmt: skip
@pytest.mark.parametrize("first", [True, False], ids=["at first", "later"])
def test_a_fault_takes_the_mfu(fault, words, first):
    loop = Loop(llama())
    if not first:
        assert "mfu" in loop.step()
    assert "mfu" not in loop.step(fault)
    assert any(re.search(words, text) for text in loop.told), loop.told
    assert len(loop.told) == 1


def test_a_change_in_the_step_after_a_fault_is_proven_at_once():
    loop = Loop(llama())
    assert "mfu" not in loop.step(patched)
    del loop.model.model.layers[1].mlp.forward
    assert "mfu" in loop.step() and len(loop.proofs()) == 1


def test_a_part_that_runs_alone_in_evaluation_is_executed_work():
    loop = Loop(llama())

    def evaluated(model):
        loss(model)
        model.eval()
        with torch.no_grad():
            model.model(input_ids=IDS)
        model.train()

    assert "mfu" in loop.step(evaluated) and loop.meter.executed == loop.seen > loop.meter.flops and not loop.told


def rerouted_in_one_layer(model):
    model.model.layers[0].mlp.gate.top_k = 2
    loss(model)


@pytest.mark.parametrize("first", [True, False], ids=["at first", "later"])
def test_other_routing_is_read_anew(first):
    loop = Loop(mixtral())
    if not first:
        loop.step()
    loop.step(rerouted)
    assert loop.settled().executed == loop.seen and len(loop.proofs()) == 1 + (not first) and not loop.told
    assert "mfu" not in loop.step(rerouted_in_one_layer)
    assert any("layers.0.mlp.experts ran 2 times as often as counted" in text for text in loop.told), loop.told


def test_recomputation_of_the_whole_model_is_no_call():
    loop = Loop(llama())
    assert "mfu" not in loop.step(outer)
    assert any("recomputed" in text for text in loop.told), loop.told


def test_an_attribute_without_effect_is_told_once():
    loop = Loop(llama())
    loop.step()

    def count(model):
        model.model.layers[0].self_attn.layer_idx += 1
        loss(model)

    loop.model.model.layers[0].self_attn.layer_idx = 0
    for _ in range(4):
        assert "mfu" in loop.step(count)
    assert sum("layer_idx" in line for line in loop.lines) == 1 and len(loop.proofs()) == 2 and loop.meter.executed == loop.seen


def test_packs_that_a_kernel_masks():
    """The useful work is that of the sub-sequences; what eager attention executes is that of rows."""
    positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 4]])
    loop = Loop(llama())
    assert "mfu" in loop.step(lambda model: model(input_ids=IDS[:1], position_ids=positions, labels=IDS[:1]).loss.backward())
    assert "(packs ran as whole rows)" in loop.proofs()[0] if loop.proofs() else "packs ran as whole rows" in loop.lines[-1]
    one = loop.meter.phases[""].estimator
    assert loop.meter.flops == one.total(one.moments(text=[3, 5])) < loop.seen


def test_a_head_that_is_fused_with_the_loss_lowers_the_grade():
    loop = Loop(llama())
    assert "mfu" in loop.step(fused)
    assert any("compared on the first step (93.4 % of its FLOPs; the loss is fused with lm_head)" in line for line in loop.lines), loop.lines


def test_outer_products_are_told():
    """As transformers 4 multiplies positions by frequencies."""
    model = llama()
    rotary = model.model.rotary_emb

    def forward(x, position_ids, forward=rotary.forward):
        assert torch.equal(torch.ones(1, 4, 1) @ position_ids[:, None].float(), position_ids.expand(4, -1)[None].float())
        return forward(x, position_ids)

    rotary.forward = forward
    loop = Loop(model)
    assert "mfu" in loop.step(outside=2 * 4 * 8) and loop.meter.executed == loop.seen and not loop.told
    assert "proven on the first step (100.0 % of its FLOPs; 64 FLOPs of model.rotary_emb are outer products, which are not counted)" in loop.lines[-1]


def test_without_a_proof():
    loop = Loop(llama(), prove=False)
    assert "mfu" in loop.step(lambda model: patched(model)) and not loop.proofs()


def test_nothing_is_left_behind():
    model = llama()
    backward = torch.autograd.backward
    loop = Loop(model)
    loop.model(input_ids=IDS)  # a step that does not end
    loop.meter.unwatch()
    assert torch.autograd.backward is backward
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    loss(model)
    assert loop.meter.step(seconds=1.0)["mfu"] > 0  # the call before
    assert "mfu" not in loop.meter.step(seconds=1.0)


def test_recomputed_modules_that_do_not_run_tell_nothing():
    """Hooks inside of a compiled model may not run."""
    assert not Observer({"block": torch.nn.Linear(2, 2)}, ["block"]).whole


class Hook:
    def __call__(self, gradient):
        pass


def test_a_copy_of_a_model_is_not_watched():
    """A loop deep-copies its model for a moving average, also in the middle of the first step, and saves it whole."""
    loop = Loop(llama())

    def averaged(model):
        loss(model)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        loop.copies = [copy.deepcopy(model), torch.load(saved, weights_only=False)]

    assert "mfu" in loop.step(averaged)
    before = loop.meter.executed
    for one in loop.copies:
        loss(one)
        one.lm_head(torch.ones(1, 32))
    assert "mfu" not in loop.meter.step(seconds=1.0) and loop.meter.executed == before


def test_a_call_finds_its_program_at_once(monkeypatch):
    loop, calls = Loop(llama()), []
    read = LiveModule.regime
    monkeypatch.setattr(LiveModule, "regime", lambda self, **more: calls.append(1) or read(self, **more))
    for _ in range(3):
        loop.step(accumulated)
    assert len(calls) <= 2  # under the meter's convention and the witness's


def test_products_in_fp32_beside_a_peak_in_bf16():
    loop = Loop(llama(), peak_tflops=None, device_name="NVIDIA H100 80GB HBM3")
    loop.step()
    assert any("products ran in fp32, and the peak is that of bf16" in text for text in loop.told)


def test_a_difference_is_only_told_if_differences_are():
    loop = Loop(llama(), check="warn")
    assert "mfu" in loop.step(patched) and any("ran 2 times" in text for text in loop.told)


def test_no_graph_is_kept_alive():
    loop = Loop(llama())
    loop.step()
    gc.disable()
    try:
        found, hook = loop.model(input_ids=IDS), Hook()
        found.logits.register_hook(hook)
        alive = weakref.ref(hook)
        del found, hook
        assert alive() is None
    finally:
        gc.enable()


def test_a_backward_pass_after_its_step_counts_in_a_later_one():
    loop, kept = Loop(llama(), prove=False), []
    loop.step(lambda model: kept.append(model(input_ids=IDS).logits.sum()))
    forward = loop.meter.flops
    loop.step(lambda model: kept.pop().backward())
    assert loop.meter.flops == loop.seen > forward > 0


def test_a_call_over_a_cache_is_decoding():
    loop = Loop(llama(use_cache=True))
    loop.step()
    trained = loop.meter.executed

    def decoded(model):
        model.eval()
        with torch.no_grad():
            cache = model(input_ids=IDS).past_key_values
            for _ in range(2):
                model(input_ids=IDS[:, :1], past_key_values=cache)

    loop.step(decoded)
    assert loop.settled().executed == loop.seen and loop.meter.flops == trained


def test_a_fingerprint_names_what_has_changed():
    model = llama()
    one = Fingerprint(model)
    assert one.changes() == []
    model.model.embed_tokens.weight.requires_grad_(False)
    model.config.num_hidden_layers = 2
    model.model.layers[0].mlp.forward = lambda x: x
    del model.model.layers[2]
    assert set(one.changes()) == {"model.embed_tokens.weight: requires_grad", "config.num_hidden_layers", "model.layers.0.mlp: forward", "model.layers: _modules"}
    assert one.state() != Fingerprint(llama()).state()


def in_place(model):
    model.compile(backend="eager")
    return model


@pytest.mark.parametrize("compiled", [lambda model: torch.compile(model, backend="eager"), in_place], ids=["wrapped", "in place"])
def test_a_compiled_model_is_counted_and_not_proven(compiled):
    loop = Loop(compiled(llama()))
    assert "mfu" in loop.step() and loop.meter.executed == loop.seen
    assert any("not proven" in line for line in loop.lines)


def test_a_meter_without_a_model_watches_nothing():
    with pytest.warns(UserWarning, match="no MFU"):
        one = MFUMeter.of_model(torch.nn.Linear(2, 2))
    assert one.watch().step(seconds=1.0) == {}
    one.unwatch()
