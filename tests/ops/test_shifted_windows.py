"""Attention within windows that are moved over the end of an axis, beside a mask that is drawn pair by pair."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

SPEC = """
language: 2
name: shifted
sizes: {{D: D, M: window, L: layers}}
streams: {{images: [h, w]}}
inputs: {{x: {{stream: images, width: D}}}}
outputs: [y]
graph:
  - {{op: pad, from: x, axes: {{h: "round_up(h, M)", w: "round_up(w, M)"}}, to: y}}
  - layers:
      repeat: L
      index: i
      graph:
        - attend: {{op: attention, heads: 1, query: y, key: y, value: y, window: {{h: M, w: M}}, shift: {{{shift}}}, to: y}}
"""
BOTH = "h: M//2 if i % 2 == 1 else 0, w: M//3 if i % 2 == 1 else 0"


def model(text: str) -> Model:
    source = Source("shifted.yaml", text)
    return Model(SpecFile(Path("."), Path("shifted.yaml"), "shifted.yaml"), read(source, lambda name: None))


def seen(sides: tuple[int, int], size: int, shifts: tuple[int, int]) -> tuple[int, int]:
    """Pairs of one window, and those of them whose places in the image lie as far apart as their places in the window."""
    places = list(product(*map(range, sides)))
    windows: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for place in places:
        windows.setdefault(tuple(at // size for at in place), []).append(place)
    pairs = [pair for inside in windows.values() for pair in product(inside, repeat=2)]
    before = {place: tuple((at + by) % side for at, by, side in zip(place, shifts, sides, strict=True)) for place in places}
    kept = [
        (one, two)
        for one, two in pairs
        if all(a - b == c - d for a, b, c, d in zip(one, two, before[one], before[two], strict=True))
    ]
    return len(pairs), len(kept)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3))
def test_pairs_of_shifted_windows_are_those_that_lie_together(h: int, w: int, size: int, layers: int) -> None:
    config = {"D": 2, "window": size, "layers": layers}
    shifted = model(SPEC.format(shift=BOTH))
    sides = -(-h // size) * size, -(-w // size) * size
    work = {"symflops": 0, "torch": 0}
    for layer in range(layers):
        whole, kept = seen(sides, size, (size // 2, size // 3) if layer % 2 else (0, 0))
        work["torch"] += 8 * whole
        work["symflops"] += 8 * kept
    for convention, expected in work.items():
        program = shifted.program(["full"], [convention], config)
        estimator = InterpretedEstimator(program, config, regime="full", convention=convention)
        assert estimator.forward(estimator.moments(images=[(h, w)])) == expected


def test_windows_that_do_not_divide_an_axis_cannot_be_shifted() -> None:
    text = SPEC.format(shift=BOTH).replace("round_up(h, M)", "h + 1")
    with pytest.raises(SpecError) as caught:
        model(text).program(["full"], ["symflops"], {"D": 2, "window": 3, "layers": 2})
    assert [item.code for item in caught.value.diagnostics] == ["mask-unsupported"]
