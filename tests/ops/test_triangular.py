"""Triangular systems against torch, and against multiply-adds counted one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.ir.regime import Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

TEXT = """language: 2
name: systems
sizes: {D: width, H: heads, n: columns, Q: order}
streams: {text: [x]}
inputs:
  h: {stream: text, width: D}
graph:
  - left: {op: linear, from: h, width: H*Q, bias: false, to: a}
  - right: {op: linear, from: h, width: H*n, bias: false, to: b}
  - systems: {op: pad, from: a, stream: {c: "ceil(tokens, Q)", t: Q}, to: a}
  - systems: {op: pad, from: b, like: a, to: b}
  - systems: ENTRY
  - systems: {op: slice, from: y, like: h, to: y}
  - last: {op: linear, from: y, width: 1, bias: false, to: o}
outputs: [o]
"""
SOLVE = TEXT.replace("ENTRY", "{op: triangular_solve, from: a, order: Q, right: b, to: y}")
INVERSE = TEXT.replace("ENTRY", "{op: triangular_inverse, from: a, order: Q, to: y}")
SIZES = {"width": 3, "heads": 2, "columns": 5, "order": 4}
LENGTHS = [9, 4, 1]
SYSTEMS = 2 * (3 + 1 + 1)


def work(text: str, train: tuple[str, ...], convention: str) -> tuple[int, int]:
    """FLOPs of the operator alone: forward and backward."""
    model = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))
    estimator = model.estimator(SIZES, Regime("drawn", train=train), convention)
    found = estimator.by_module(estimator.moments(text=LENGTHS))["systems"]
    return found.forward, found.backward


@pytest.mark.parametrize("trained", [("left",), ("right",), ("left", "right"), ("last",), ()])
def test_a_solve_is_torchs(trained: tuple[str, ...]) -> None:
    """The counter sees the gradient of the matrices and nothing else of a solve."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    a = torch.zeros(SYSTEMS, 4, 4, device="meta", requires_grad="left" in trained)
    b = torch.zeros(SYSTEMS, 4, 5, device="meta", requires_grad="right" in trained)
    with FlopCounterMode(display=False) as forward:
        y = torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)
    with FlopCounterMode(display=False) as backward:
        if y.requires_grad:
            y.sum().backward()
    found = work(SOLVE, tuple(f"{name}.weight" for name in trained), "torch")
    assert found == (forward.get_total_flops(), backward.get_total_flops())


@pytest.mark.parametrize(("trained", "times"), [(("left",), 2), (("right",), 1), (("left", "right"), 2), (("last",), 0)])
def test_all_work_of_a_solve(trained: tuple[str, ...], times: int) -> None:
    """Substitution row by row; backwards it runs once more, and below the diagonal one product stays for the matrices."""
    once = 2 * sum(5 for _ in range(SYSTEMS) for row in range(4) for _ in range(row))
    assert work(SOLVE, tuple(f"{name}.weight" for name in trained), "symflops") == (once, times * once)


def test_an_inverse() -> None:
    """Row ``i`` is a product of ``i`` entries with ``i`` rows of as many, of which what is above the diagonal is zero."""
    useful = 2 * sum(SYSTEMS for row in range(4) for below in range(row) for _ in range(below))
    assert work(INVERSE.replace("H*n", "H*Q"), ("*",), "symflops") == (useful, 2 * useful)
    assert work(INVERSE.replace("H*n", "H*Q"), ("right.weight",), "symflops") == (useful, 0)
    assert work(INVERSE, ("*",), "torch") == (0, 0)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("order: Q", "order: Q + 1", "width-mismatch"),
        ("width: H*n", "width: n", "width-mismatch"),
        ("like: a, to: b", "stream: {s: 7}, to: b", "row-mismatch"),
        (", right: b", "", "missing-field"),
    ],
)
def test_mistakes(old: str, new: str, code: str) -> None:
    assert old in SOLVE
    with pytest.raises(SpecError) as found:
        work(SOLVE.replace(old, new), ("*",), "torch")
    assert code in {diagnostic.code for diagnostic in found.value.diagnostics}
