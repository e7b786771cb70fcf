"""Layouts of real tensors: the dimensions that words stand for, made and read back, and words that cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from symflops.api import Model
from symflops.evaluate.batch import BatchError
from symflops.evaluate.boundaries import LengthError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.layouts import batch_of
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SymflopsError
from symflops.training.meter.batches import read as lengths_of
from symflops.verify.running import arguments_of

HEAD = """language: 2
name: laid
sizes: {D: width, K: {key: copies, default: 3}}
derived: {E: K + 1}
"""
TAIL = """
graph:
  - f: {op: linear, from: x, width: 5, to: y}
outputs: [y]
"""
SQUARE = "streams: {pair: {i: r, j: r}}\ninputs: {x: {stream: pair, width: D, layout: LAYOUT}}"
LINE = "streams: {line: [x]}\ninputs: {x: {stream: line, width: D, layout: LAYOUT}}"
HALVES = "streams: {line: {h: x//2}}\ninputs: {x: {stream: line, width: D, layout: LAYOUT}}"
PATCHES = "streams: {image: {m: m, v: K}}\ninputs: {x: {stream: image, width: D, layout: LAYOUT}}"
SIZES = "streams: {image: {m: m, v: K, u: K}}\ninputs: {x: {stream: image, width: D, layout: LAYOUT}}"
GRID = "streams: {grid: {h: a, w: b2}}\ninputs: {x: {stream: grid, width: D, layout: LAYOUT}}"


def model(body: str, layout: str) -> Model:
    text = HEAD + body.replace("LAYOUT", layout) + TAIL
    return Model(SpecFile(Path("."), Path("laid.yaml"), "laid.yaml"), read(Source("laid.yaml", text), lambda name: None))


CASES = [
    (SQUARE, "b i j w", {"pair": [4, 4]}, (2, 4, 4, 6)), (SQUARE, "b r r w", {"pair": [4]}, (1, 4, 4, 6)),
    (SQUARE, "b r 1*r w", {"pair": [4]}, (1, 4, 4, 6)), (SQUARE, "w b j i", {"pair": [4]}, (6, 1, 4, 4)),
    (LINE, "b x c", {"line": [7, 7]}, (2, 7, 6)), (LINE, "x b c", {"line": [7, 7]}, (7, 2, 6)), (LINE, "b*x c", {"line": [7, 7]}, (14, 6)),
    (LINE, "b x//2 c", {"line": [8]}, (1, 4, 6)), (LINE, "b 1*K x c", {"line": [7]}, (1, 3, 7, 6)), (LINE, "b E*1 x 2 c", {"line": [7]}, (1, 4, 7, 2, 6)),
    (LINE, "b x+1 c", {"line": [7]}, (1, 8, 6)), (HALVES, "b h c", {"line": [9]}, (1, 4, 6)), (GRID, "b h w c", {"grid": [[2, 3]]}, (1, 2, 3, 6)),
    (LINE, "b 1*K x 1*K c", {"line": [7]}, (1, 3, 7, 3, 6)), (LINE, "b x//2 x//2 c", {"line": [8]}, (1, 4, 4, 6)),
    (PATCHES, "b m v w", {"image": [5]}, (1, 5, 3, 6)), (SIZES, "b m v u w", {"image": [5]}, (1, 5, 3, 3, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("body", "layout", "batch", "shape"), CASES)
def test_a_word_is_a_dimension(body: str, layout: str, batch: dict[str, list[object]], shape: tuple[int, ...]) -> None:
    program = model(body, layout).program(["full"], ["torch"])
    sizes = InterpretedEstimator(program, {"width": 6}, convention="torch").sizes
    assert tuple(arguments_of(program, batch, sizes, {})["x"].shape) == shape


@settings(max_examples=25)
@given(st.integers(1, 9), st.integers(1, 4), st.sampled_from(["b i j w", "b r r w", "w b j i", "b r w j"]))
def test_what_is_made_of_lengths_is_read_back(side: int, count: int, layout: str) -> None:
    program = model(SQUARE, layout).program(["full"], ["torch"])
    estimator = InterpretedEstimator(program, {"width": 6}, convention="torch")
    made = arguments_of(program, {"pair": [side] * count}, estimator.sizes, {})
    assert batch_of(program, made)["pair"] == [side] * count
    found = lengths_of("x", estimator.inputs()["x"], ["r"], made["x"])
    assert (found.count, found.axes) == (count, (side,))


def test_sides_that_differ_are_refused() -> None:
    program = model(SQUARE, "b i j w").program(["full"], ["torch"])
    row = InterpretedEstimator(program, {"width": 6}, convention="torch").inputs()["x"]
    with pytest.raises(LengthError, match="two lengths for 'r', 4 and 5"):
        lengths_of("x", row, ["r"], torch.zeros(1, 4, 5, 6))
    with pytest.raises(BatchError, match="two lengths for 'r'"):
        batch_of(program, {"x": torch.zeros(1, 4, 5, 6)})


@pytest.mark.parametrize(
    ("body", "layout", "words"),
    [
        (SQUARE, "b k r w", "has two widths, 'k' and 'w'"), (LINE, "b x c c", "has two widths, 'c' and 'c'"), (LINE, "b b x c", "names two dimensions 'b'"),
        (LINE, "b y//2 c", "'y' in the layout 'y//2' is no length"), (LINE, "b 1*Q x", "'Q' in the layout '1*Q' is no length"),
        (LINE, "b x//", "is not an expression"), (LINE, "b open('x') c", "'open'"),
    ],
)  # fmt: skip
def test_what_is_no_dimension_is_told(body: str, layout: str, words: str) -> None:
    with pytest.raises(SymflopsError) as error:
        model(body, f'"{layout}"').program(["full"], ["torch"])
    assert words in str(error.value)
