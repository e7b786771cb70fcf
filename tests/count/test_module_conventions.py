"""Conventions that count module by module, against the functions that profilers use, written out here."""

from __future__ import annotations

from math import prod

import pytest

from symflops.api import load


def modules(spec: str, config: dict, batch: dict, convention: str, regime: str = "forward") -> dict:
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


@pytest.mark.parametrize("convention", ["ascend-guide", "deepspeed", "calflops"])
def test_linear(convention):
    assert forward("linear", {"in_features": 7, "out_features": 5, "bias": True}, {"source": [3, 4]}, convention) == linear_flops((7, 7), 5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("convention", ["ascend-guide", "deepspeed"])
def test_conv(convention, bias):
    config = {"in_channels": 6, "out_channels": 4, "kernel_size": [3, 5], "stride": [2, 2], "padding": [1, 1], "groups": 2, "bias": bias}
    found = forward("conv2d", config, {"source": [[9, 11], [9, 11]]}, convention)
    assert found == conv_flops(2, 6, 4, [3, 5], [9, 11], 2, 1, 2, bias)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize(("layers", "both", "bias"), [(1, False, True), (2, False, False), (2, True, True)])
def test_recurrent(kind, layers, both, bias):
    config = {"input_size": 5, "hidden_size": 7, "num_layers": layers, "bidirectional": both, "bias": bias}
    assert forward(kind, config, {"source": [6, 6]}, "ascend-guide") == rnn_flops(kind, 5, 7, layers, both, bias, 2, 6)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_recurrent_cell(kind):
    config = {"input_size": 5, "hidden_size": 7, "bias": True}
    assert forward(f"{kind}_cell", config, {"sample": 4}, "ascend-guide") == rnn_flops(kind, 5, 7, 1, False, True, 4, 1)


def test_routed_experts():
    """6 L S B H E for the gate and 6 k L S B H for the weighted sum, both passes."""
    config = {"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "moe_intermediate_size": 6,
              "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 33, "head_dim": 4}
    found = modules("qwen3_moe", config, {"text": [10, 10]}, "ascend-guide", "full")
    tokens, layers, width, experts, chosen = 20, 3, 16, 8, 2
    assert found["model.layers.*.mlp.gate"].total == 6 * layers * tokens * width * experts
    products = 6 * chosen * layers * tokens * 3 * width * 6
    activations = 3 * chosen * layers * tokens * 6
    experts = sum(flops.total for module, flops in found.items() if module.startswith("model.layers.*.mlp.experts"))
    assert experts == products + activations + 6 * chosen * layers * tokens * width


BERT_LARGE = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}


def test_the_sample_of_bert_large():
    """80 sequences of 128 tokens: 10.74 GMACs per projection, 128.87 a layer, without the products of attention.

    What exceeds the six linears of a layer (128.849) is one multiply-add for each score: the softmax. The normalisations and
    activations of that model are kernels of their own, which the profiler does not see.
    """
    found = modules("bert", BERT_LARGE, {"text": [128] * 80}, "ascend-guide")
    layer = "encoder.layer.*."

    def gmacs(name: str) -> float:
        return found[layer + name].forward / 2 / 24 / 1e9

    projections = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    for name in projections:
        assert round(gmacs(name), 2) == 10.74
    assert round(gmacs("attention.self"), 5) == round(80 * 16 * 128 * 128 / 1e9, 5)
    inside = sum(gmacs(name) for name in projections[:3]) + gmacs("attention.self")
    assert round(inside, 2) == 32.23
    linears = ["intermediate.dense", "output.dense"]
    assert round(inside + gmacs(projections[3]), 2) == 42.97
    assert round(inside + gmacs(projections[3]) + sum(gmacs(name) for name in linears), 2) == 128.87


LLAMA_7B = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000}


@pytest.mark.parametrize(("convention", "measured"), [("torch", "2.92616e+13"), ("deepspeed", "2.92623e+13"), ("calflops", "2.70633e+13")])
def test_what_profilers_print_for_a_7b_model(convention, measured):
    assert f"{forward('llama', LLAMA_7B, {'text': [2048]}, convention):.5e}" == measured


@pytest.mark.parametrize(("length", "missed"), [(2048, 7.5), (8192, 24.5), (32768, 56.5)])
def test_what_a_profiler_misses_without_attention_grows_with_the_length(length, missed):
    config = {**LLAMA_7B}
    seen, whole = (forward("llama", config, {"text": [length]}, name) for name in ("calflops", "torch"))
    assert round(100 * (whole - seen) / whole, 1) == missed
