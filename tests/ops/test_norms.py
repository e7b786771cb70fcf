"""Norms: the parameters they store."""

from __future__ import annotations

from symflops.build.build import build
from symflops.derive.derive import derive
from symflops.ir.convention import Convention
from symflops.ir.regime import Regime
from symflops.lower.lower import lower
from symflops.read.read import read
from symflops.support.findings import Source

SPEC = """
language: 2
name: small
sizes: {{H: heads, d: head_dim}}
streams: {{text: [x]}}
inputs: {{q: {{stream: text, width: H*d}}}}
outputs: [n]
graph:
  - norm: {{op: layer_norm, from: q, {fields}, to: n}}
"""


def dimensions(fields: str) -> dict[str, int]:
    """How many dimensions each parameter of a norm with ``fields`` has."""
    graph = build(read(Source("small.yaml", SPEC.format(fields=fields)), lambda name: None))
    program = lower([derive(graph, Regime("full"))], [Convention("symflops")])
    return {tensor.name: len(tensor.shape) for tensor in program.tensors}


def test_a_stored_shape() -> None:
    """Weight and bias are stored as ``shape`` says: for each head, where there are as many elements as the width."""
    assert dimensions("bias: true") == {"norm.weight": 1, "norm.bias": 1}
    assert dimensions('shape: "[H, d]"') == {"norm.weight": 2, "norm.bias": 2}
    assert dimensions('dim: d, shape: "[1, d]", bias: false') == {"norm.weight": 2}
