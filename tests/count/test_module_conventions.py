"""Conventions that count module by module, against the functions that profilers use, written out here."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import pytest

from symflops.api import convention_of, load
from symflops.ir.convention import Convention
from tests import shipped


def modules(spec: str, config: dict, batch: dict, convention: str | Convention, regime: str = "forward") -> dict:
    estimator = load(spec).estimator(config, regime, convention)
    return estimator.by_module(estimator.moments(**batch))


def forward(spec: str, config: dict, batch: dict, convention: str) -> int:
    return sum(flops.forward for flops in modules(spec, config, batch, convention).values())


# the guide's own functions


def linear_flops(inputs: tuple, outputs: int) -> int:
    return 2 * prod(inputs) * outputs


def conv_flops(batch: int, channels: int, out: int, kernel: list, sides: list, stride: int, padding: int, groups: int, bias: bool) -> int:
    outputs = [(side + 2 * padding - k) // stride + 1 for side, k in zip(sides, kernel, strict=True)]
    active = batch * prod(outputs)
    return 2 * prod(kernel) * channels * (out // groups) * active + (out * active if bias else 0)


def rnn_flops(kind: str, inputs: int, hidden: int, layers: int, both: bool, bias: bool, batch: int, length: int) -> int:
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind] * hidden
    total = 0
    for layer in range(layers):
        width = inputs if layer == 0 else hidden * (2 if both else 1)
        total += 2 * gates * width - gates
        total += 2 * gates * hidden - gates
        if kind == "rnn":
            total += hidden
        elif kind == "gru":
            total += hidden + 3 * hidden + 3 * hidden
        else:
            total += 4 * hidden + 3 * hidden + 3 * hidden
        total += 2 * gates if bias else 0
    return total * batch * length * (2 if both else 1)


GUIDE = ["ascend-guide", "ascend-profiler"]


@pytest.mark.parametrize("convention", [*GUIDE, "deepspeed", "calflops"])
def test_linear(convention):
    assert forward("linear", {"in_features": 7, "out_features": 5, "bias": True}, {"source": [3, 4]}, convention) == linear_flops((7, 7), 5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("convention", [*GUIDE, "deepspeed"])
def test_conv(convention, bias):
    config = {"in_channels": 6, "out_channels": 4, "kernel_size": [3, 5], "stride": [2, 2], "padding": [1, 1], "groups": 2, "bias": bias}
    found = forward("conv2d", config, {"source": [[9, 11], [9, 11]]}, convention)
    assert found == conv_flops(2, 6, 4, [3, 5], [9, 11], 2, 1, 2, bias)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize(("layers", "both", "bias"), [(1, False, True), (2, False, False), (2, True, True)])
@pytest.mark.parametrize("convention", GUIDE)
def test_recurrent(convention, kind, layers, both, bias):
    config = {"input_size": 5, "hidden_size": 7, "num_layers": layers, "bidirectional": both, "bias": bias}
    assert forward(kind, config, {"source": [6, 6]}, convention) == rnn_flops(kind, 5, 7, layers, both, bias, 2, 6)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("convention", GUIDE)
def test_recurrent_cell(convention, kind):
    config = {"input_size": 5, "hidden_size": 7, "bias": True}
    assert forward(f"{kind}_cell", config, {"sample": 4}, convention) == rnn_flops(kind, 5, 7, 1, False, True, 4, 1)


def guide_attention(layers: int, length: int, batch: int, width: int, keys: int) -> Fraction:
    """12 L S B H^2 (1 + G/H + S/(2H)), with the width of the keys for G: both passes, projections and half of all pairs."""
    return 12 * layers * length * batch * width**2 * (1 + Fraction(keys, width) + Fraction(length, 2 * width))


def guide_gate(layers: int, length: int, batch: int, width: int, experts: int) -> int:
    """6 L S B H E."""
    return 6 * layers * length * batch * width * experts


def guide_fusion(layers: int, length: int, batch: int, width: int, chosen: int) -> int:
    """6 k L S B H."""
    return 6 * chosen * layers * length * batch * width


def guide_linears(tokens: int, *shapes: tuple[int, int]) -> int:
    """Both passes of linears, three times their forward pass."""
    return 3 * sum(linear_flops((tokens, inner), outer) for inner, outer in shapes)


def guide_total(spec: str, config: dict, batch: dict) -> int:
    return sum(flops.total for flops in modules(spec, config, batch, "ascend-guide", "full").values())


@pytest.mark.parametrize(("heads", "groups", "length", "batch"), [(8, 8, 64, 3), (8, 2, 7, 1), (4, 1, 33, 5)])
def test_the_guides_total_of_a_decoder(heads, groups, length, batch):
    layers, width, hidden, words = 3, 64, 88, 101
    config = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads, "num_key_value_heads": groups,
              "intermediate_size": hidden, "vocab_size": words}
    tokens = batch * length
    expected = guide_attention(layers, length, batch, width, width * groups // heads)
    expected += layers * guide_linears(tokens, (width, hidden), (width, hidden), (hidden, width)) + guide_linears(tokens, (width, words))
    assert guide_total("llama", config, {"text": [length] * batch}) == expected


@pytest.mark.parametrize(("experts", "chosen"), [(8, 2), (16, 3)])
@pytest.mark.parametrize("spec", ["qwen3_moe", "mixtral"])
def test_the_guides_total_of_routed_experts(spec, experts, chosen):
    layers, width, hidden, words, length, batch = 3, 16, 6, 33, 10, 2
    config = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
              "num_experts_per_tok": chosen, "vocab_size": words}
    names = {"qwen3_moe": ("moe_intermediate_size", "num_experts"), "mixtral": ("intermediate_size", "num_local_experts")}[spec]
    config |= dict(zip(names, (hidden, experts), strict=True))
    tokens = batch * length
    expected = guide_attention(layers, length, batch, width, width // 2) + guide_linears(tokens, (width, words))
    expected += guide_gate(layers, length, batch, width, experts) + guide_fusion(layers, length, batch, width, chosen)
    expected += layers * chosen * guide_linears(tokens, (width, hidden), (width, hidden), (hidden, width))
    assert guide_total(spec, config, {"text": [length] * batch}) == expected


VISION = {
    "llava": ("multi_modal_projector", "vision_tower"), "llava_next": ("multi_modal_projector", "vision_tower"),
    "qwen2_vl": ("merger", "visual"), "qwen2_5_vl": ("merger", "visual"), "qwen3_vl": ("merger", "visual"),
}  # fmt: skip


@pytest.mark.parametrize("spec", VISION)
def test_a_frozen_tower_counts_forward_only(spec):
    connector, tower = VISION[spec]
    case = shipped.cases_of(shipped.FILES[spec])[0]

    def backward(regime: str) -> dict[str, set[Fraction]]:
        """By part, its backward pass in multiples of the forward pass."""
        found: dict[str, set[Fraction]] = {"connector": set(), "tower": set(), "rest": set()}
        for name, flops in modules(spec, case.config, case.batch, "ascend-guide", regime).items():
            part = "connector" if connector in name else "tower" if tower in name else "rest"
            found[part].add(Fraction(flops.backward, flops.forward))
        return found

    assert backward("full") == {"connector": {2}, "tower": {2}, "rest": {2}}
    assert backward("frozen-tower") == {"connector": {2}, "tower": {0}, "rest": {2}}
    assert backward("frozen-vision") == {"connector": {0}, "tower": {0}, "rest": {2}}


BERT_LARGE = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}


def test_the_guides_total_of_bert_large():
    """Its attention has no mask: the other half of the pairs counts as well, and the pooler, a linear of one token."""
    layers, width, hidden, length, batch = 24, 1024, 4096, 128, 80
    expected = guide_attention(layers, length, batch, width, width)
    expected += layers * guide_linears(batch * length, (width, hidden), (hidden, width))
    other_half, pooler = 6 * layers * batch * length**2 * width, guide_linears(batch, (width, width))
    assert guide_total("bert", BERT_LARGE, {"text": [length] * batch}) == expected + other_half + pooler


def test_the_sample_of_bert_large():
    """80 sequences of 128 tokens: 10.74 GMACs per projection, 128.87 a layer, without the products of attention.

    What exceeds the six linears of a layer (128.849) is one multiply-add for each score: the softmax. Norms and activations are
    FLOPs without multiply-adds: 5 and 1 for each element.
    """
    batch, length, width, hidden = 80, 128, 1024, 4096
    macs = modules("bert", BERT_LARGE, {"text": [length] * batch}, convention_of("ascend-profiler").in_macs)
    flops = modules("bert", BERT_LARGE, {"text": [length] * batch}, "ascend-profiler")
    layer = {name.removeprefix("encoder.layer.*."): found.forward / 24 for name, found in macs.items() if name.startswith("encoder.layer.")}
    projections = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    assert {layer[name] for name in projections} == {linear_flops((batch, length, width), width) / 2}
    assert layer["intermediate.dense"] == layer["output.dense"] == linear_flops((batch, length, width), hidden) / 2
    assert layer["attention.self"] == batch * 16 * length**2
    assert set(layer) == {*projections, "attention.self", "intermediate.dense", "output.dense"}
    attention = sum(layer[name] for name in layer if name.startswith("attention."))
    assert [round(part / 1e9, 2) for part in (layer[projections[0]], attention, sum(layer.values()))] == [10.74, 42.97, 128.87]
    more = {name: found.forward - 2 * (macs[name].forward if name in macs else 0) for name, found in flops.items()}
    elements = batch * length * 24
    assert more["encoder.layer.*.output.LayerNorm"] == 5 * elements * width
    assert more["encoder.layer.*.intermediate.intermediate_act_fn"] == elements * hidden
    assert all(more[name] == 0 for name in more if name.endswith((".query", ".key", ".value", ".dense", ".self")))


LLAMA_7B = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000}


@pytest.mark.parametrize(("convention", "measured"), [("torch", "2.92616e+13"), ("deepspeed", "2.92623e+13"), ("calflops", "2.70633e+13")])
def test_what_profilers_print_for_a_7b_model(convention, measured):
    assert f"{forward('llama', LLAMA_7B, {'text': [2048]}, convention):.5e}" == measured


@pytest.mark.parametrize(("length", "missed"), [(2048, 7.5), (8192, 24.5), (32768, 56.5)])
def test_what_a_profiler_misses_without_attention_grows_with_the_length(length, missed):
    config = {**LLAMA_7B}
    seen, whole = (forward("llama", config, {"text": [length]}, name) for name in ("calflops", "torch"))
    assert round(100 * (whole - seen) / whole, 1) == missed
