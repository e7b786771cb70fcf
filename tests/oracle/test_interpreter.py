"""The oracle itself, on cases that were counted by hand or measured."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from .interpreter import Result, run

QWEN = """
language: 2
name: qwen_image
sizes:
  L: {key: num_layers, default: 60}
  H: num_attention_heads
  d: {key: attention_head_dim}
  c: {key: in_channels}
  o: {key: out_channels, default: c}
  p: {key: patch_size, default: 2}
  J: {key: joint_attention_dim}
derived: {D: H*d}
streams: {latent: [x], prompt: [y], sample: []}
inputs:
  hidden_states: {stream: latent, width: c}
  encoder_hidden_states: {stream: prompt, width: J}
  timestep: {stream: sample, width: 256}
blocks:
  timestep_mlp:
    params: {width: null}
    inputs: [t]
    outputs: [u]
    graph:
      - linear_1: {op: linear, from: t, width: width, to: u}
      - linear_2: {op: linear, from: u, width: width(u), to: u}
  feed_forward:
    params: {hidden: null, width: null}
    inputs: [x]
    outputs: [y]
    graph:
      - net.0.proj: {op: linear, from: x, width: hidden, to: g}
      - act: {op: map, from: g, to: h}
      - net.2: {op: linear, from: h, width: width, to: y}
graph:
  - img_in: {op: linear, from: hidden_states, width: D, to: img}
  - txt_norm: {op: rms_norm, from: encoder_hidden_states}
  - txt_in: {op: linear, from: txt_norm, width: D, to: txt}
  - time_text_embed.timestep_embedder: {block: timestep_mlp, from: timestep, width: D, to: temb}
  - transformer_blocks:
      repeat: L
      graph:
        - img_mod.1: {op: linear, from: temb, width: 6*D, to: img_mod}
        - txt_mod.1: {op: linear, from: temb, width: 6*D, to: txt_mod}
        - img_norm1: {op: layer_norm, from: img, with: img_mod, affine: false, to: img_n}
        - txt_norm1: {op: layer_norm, from: txt, with: txt_mod, affine: false, to: txt_n}
        - attn.to_q: {op: linear, from: img_n, width: D, to: q}
        - attn.to_k: {op: linear, from: img_n, width: D, to: k}
        - attn.to_v: {op: linear, from: img_n, width: D, to: v}
        - attn.add_q_proj: {op: linear, from: txt_n, width: D, to: tq}
        - attn.add_k_proj: {op: linear, from: txt_n, width: D, to: tk}
        - attn.add_v_proj: {op: linear, from: txt_n, width: D, to: tv}
        - attn.norm_q: {op: rms_norm, from: q, dim: d, to: q}
        - attn.norm_k: {op: rms_norm, from: k, dim: d, to: k}
        - attn.norm_added_q: {op: rms_norm, from: tq, dim: d, to: tq}
        - attn.norm_added_k: {op: rms_norm, from: tk, dim: d, to: tk}
        - attn: {op: attention, heads: H, query: [tq, q], key: [tk, k], value: [tv, v], to: [txt_a, img_a]}
        - attn.to_out.0: {op: linear, from: img_a, width: D, gate: img_mod, add_to: img}
        - attn.to_add_out: {op: linear, from: txt_a, width: D, gate: txt_mod, add_to: txt}
        - img_norm2: {op: layer_norm, from: img, with: img_mod, affine: false, to: img_n}
        - img_mlp: {block: feed_forward, from: img_n, hidden: 4*D, width: D, gate: img_mod, add_to: img}
        - txt_norm2: {op: layer_norm, from: txt, with: txt_mod, affine: false, to: txt_n}
        - txt_mlp: {block: feed_forward, from: txt_n, hidden: 4*D, width: D, gate: txt_mod, add_to: txt}
  - norm_out.linear: {op: linear, from: temb, width: 2*D, to: shift}
  - proj_out: {op: linear, from: img, with: shift, width: p**2*o, to: sample_out}
outputs: [sample_out]
"""
TINY = {"num_layers": 3, "num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 16, "out_channels": 4,
        "joint_attention_dim": 32}  # fmt: skip
BATCH = {"latent": [16, 16], "prompt": [7, 7]}


def load(text: str) -> dict[str, Any]:
    """YAML text as plain data."""
    return YAML(typ="safe").load(text)


def small(graph: str, outputs: str = "[h]", blocks: str = "{}") -> dict[str, Any]:
    """A spec with one stream of width D = 3."""
    head = "sizes: {L: L, D: D}\nstreams: {text: [x], sample: []}\ninputs: {h: {stream: text, width: D}}\n"
    return load(f"{head}blocks: {blocks}\ngraph:\n{graph}\noutputs: {outputs}\n")


def go(document: dict[str, Any], layers: int = 3, **regime: Any) -> Result:
    """D = 3, five and two tokens: one D->D linear is 2*7*9 = 126."""
    return run(document, {"L": layers, "D": 3}, {"text": [5, 2]}, **regime)


UNIT = 2 * 7 * 9


@pytest.mark.parametrize(
    ("train", "trainable", "backward"),
    [(("*",), 127216, 7587328), (("proj_out.*",), 33 * 16, 32768), ((), 0, 0)],
)
def test_tiny_qwen_image(train: tuple[str, ...], trainable: int, backward: int) -> None:
    """The measured record of DESIGN.md."""
    assert run(load(QWEN), TINY, BATCH, train=train) == Result(127216, trainable, 4084480, backward)


def test_ragged_batches_add() -> None:
    """A batch costs the sum of its samples (everything here is per sample)."""
    one = run(load(QWEN), TINY, {"latent": [16], "prompt": [7]})
    two = run(load(QWEN), TINY, {"latent": [9], "prompt": [0]})
    both = run(load(QWEN), TINY, {"latent": [16, 9], "prompt": [7, 0]})
    assert (both.forward, both.backward) == (one.forward + two.forward, one.backward + two.backward)


@pytest.mark.parametrize("layers", range(5))
def test_plain_repeat(layers: int) -> None:
    """The first layer has no input gradient: backward (L - 1) + L."""
    spec = small("  - b: {repeat: L, graph: [{a: {op: linear, from: h, width: D, to: h}}]}")
    expected = Result(12 * layers, 12 * layers, UNIT * layers, UNIT * max(0, 2 * layers - 1))
    assert go(spec, layers) == expected


@pytest.mark.parametrize("layers", range(4))
def test_shared_repeat(layers: int) -> None:
    """One set of parameters, even without a use; work of every use."""
    spec = small("  - b: {repeat: L, shared: true, graph: [{a: {op: linear, from: h, width: D, to: h}}]}")
    assert go(spec, layers) == Result(12, 12, UNIT * layers, UNIT * max(0, 2 * layers - 1))


def test_second_use_of_a_weight() -> None:
    """A tie counts once and each use does its own work."""
    spec = small("""
  - a: {op: linear, from: h, width: D, bias: false, to: u}
  - b: {op: linear, from: u, width: D, bias: false, tie: {to: a.weight, when: D > 2}, to: h}""")
    assert go(spec) == Result(9, 9, 2 * UNIT, 3 * UNIT)


@pytest.mark.parametrize("layers", range(6))
def test_swap_alternates(layers: int) -> None:
    """Only `m` trains; every step swaps u and v, then adds a(u) to the output with a frozen.

    u starts without and v with a gradient, so u carries one in steps 0, 2, 4, ...: one input gradient of `a` each.
    """
    spec = small("""
  - m: {op: linear, from: h, width: D, to: v}
  - c: {op: map, from: h, to: u}
  - z: {op: zeros, stream: text, width: D, to: h}
  - b:
      repeat: L
      graph:
        - s1: {op: map, from: u, to: t}
        - s2: {op: map, from: v, to: u}
        - s3: {op: map, from: t, to: v}
        - a: {op: linear, from: u, width: D, add_to: h, to: r}""")
    got = go(spec, layers, train=("m.*",))
    steps = (layers + 1) // 2
    weight = 1 if layers else 0
    assert got == Result(12 * (layers + 1), 12, UNIT * (1 + layers), UNIT * (weight + steps))


def test_index_conditions() -> None:
    """Dead end in the last iteration; a condition picks the even ones."""
    spec = small("""
  - b:
      repeat: L
      index: i
      graph:
        - a{i}: {op: linear, from: h, width: D, to: h, when: i % 2 == 0}
        - d: {op: linear, from: h, width: D, to: dead, when: i < L-1}""")
    assert go(spec, 4) == Result(12 * 5, 12 * 5, 5 * UNIT, 3 * UNIT)


@pytest.mark.parametrize(
    "middle",
    [
        "{g: {no_grad: true, graph: [{n: {op: linear, from: u, width: D, to: v}}]}}",
        "{n: {op: linear, from: u, width: D, to: w}}\n  - {c: {op: detach, from: w, to: v}}",
    ],
)
def test_no_grad_and_detach(middle: str) -> None:
    """No gradient inside or before; what follows has no input gradient."""
    spec = small(f"""
  - a: {{op: linear, from: h, width: D, to: u}}
  - {middle}
  - e: {{op: linear, from: v, width: D, to: w}}
  - f: {{op: linear, from: w, width: D, to: h}}""")
    assert (go(spec).forward, go(spec).backward) == (4 * UNIT, 3 * UNIT)


def test_attention_masks_and_groups() -> None:
    """Two heads share one key head; causal counts useful pairs only, `torch` all of them."""
    spec = small("""
  - p: {op: linear, from: h, width: 2*D + 2*D, bias: false, split: "[2*D, D, D]", to: [q, k, v]}
  - a: {op: attention, heads: 2, kv_heads: 1, mask: causal, query: q, key: k, value: v, to: o}""", "[o]")
    linear = 2 * 7 * 3 * 12
    useful, every = 2 * 2 * 6 * (15 + 3), 2 * 2 * 6 * (25 + 4)
    assert go(spec) == Result(36, 36, linear + useful, linear + 2 * useful)
    assert go(spec, convention="torch") == Result(36, 36, linear + every, linear + 2 * every)
    assert go(spec, train=("x",)).backward == 0


def test_only_the_query_trains() -> None:
    """p needs a gradient, v does not: mix has one gradient, scores has one."""
    spec = small("""
  - q: {op: linear, from: h, width: D, to: q}
  - k: {op: linear, from: h, width: D, to: k}
  - a: {op: attention, heads: 1, query: q, key: k, value: k, to: h}""")
    half = 2 * 3 * 29
    assert go(spec, train=("q.*",)).backward == UNIT + 2 * half


def test_absent_and_conditions() -> None:
    """`when` false keeps a name that exists; an absent value is dropped by `with` and `gate`."""
    spec = small("""
  - a: {op: linear, from: h, width: D, to: h, when: L > 5}
  - m: {op: linear, from: h, width: D, to: m, when: L > 5}
  - b: {op: linear, from: h, with: m, gate: [m], width: D, to: h}""")
    assert (go(spec).forward, go(spec).backward) == (UNIT, UNIT)
    assert (go(spec, 6).forward, go(spec, 6).backward) == (3 * UNIT, UNIT * (1 + 2 + 2))


def test_once_and_images() -> None:
    """Work of `once` counts per batch, images have their own number of items."""
    spec = load("""
sizes: {D: D}
streams: {text: [x], image: {over: images, axes: [g, w]}, table: {over: once, axes: {}}}
inputs: {i: {stream: image, width: D}, h: {stream: text, width: D}}
graph:
  - pos: {op: parameter, shape: "[1, D]", to: pos}
  - a: {op: linear, from: pos, width: D, bias: false, to: pos}
  - b: {op: linear, from: i, with: pos, width: 2, bias: false, to: i}
  - m: {op: reshape, from: i, axes: {g: g/2}, width: 2*2, to: i}
  - c: {op: linear, from: h, gate: pos, width: D, bias: false, to: h}
outputs: [i, h]
""")
    got = run(spec, {"D": 3}, {"text": [5, 2], "image": [[2, 3], [4, 1], [2, 2]]})
    once, images, text = 2 * 9, 2 * (6 + 4 + 4) * 6, UNIT
    assert got == Result(3 + 9 + 6 + 9, 27, once + images + text, 2 * once + 2 * images + text)


def test_concat_and_split() -> None:
    """A token split keeps everything before it live."""
    spec = small("""
  - a: {op: linear, from: h, width: D, to: a}
  - b: {op: linear, from: h, width: D, to: b}
  - j: {op: concat, along: tokens, from: [a, b], to: j}
  - m: {op: linear, from: j, width: D, to: j}
  - s: {op: split, along: tokens, from: j, to: [_, b]}
  - w: {op: concat, from: [b, b], to: w}
  - t: {op: split, from: w, sizes: "[2*D - 1, 1]", to: [h, _]}""")
    assert (go(spec).forward, go(spec).backward) == (4 * UNIT, 6 * UNIT)
