"""``conv`` against torch: shapes, parameters and counted work of convolutions on the meta device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symflops.api import load
from symflops.evaluate.parameters import instances_of
from symflops.ir.nodes import Operator, walk
from symflops.ir.regime import Regime
from symflops.support.findings import SpecError

CASES = (
    {"kernel": [3], "n": [11]},
    {"kernel": [3], "n": [11], "stride": 2, "padding": 1, "bias": False},
    {"kernel": [2, 2], "n": [9, 8], "stride": 2},
    {"kernel": [4, 3], "n": [9, 8], "stride": [3, 2], "padding": [2, 1], "dilation": [1, 2]},
    {"kernel": [3, 3], "n": [6, 7], "padding": "same", "dilation": 2},
    {"kernel": [3, 3], "n": [6, 7], "padding": "valid"},
    {"kernel": [3, 3], "n": [6, 7], "padding": 1, "groups": 4},
    {"kernel": [3, 3], "n": [6, 7], "padding": 1, "groups": 8, "width": 8},
    {"kernel": [1, 2, 2], "n": [3, 6, 8], "stride": [1, 2, 2]},
    {"kernel": [3, 3, 3], "n": [5, 6, 4], "stride": 2, "padding": 1},
    {"kernel": [4], "n": [5], "stride": 2, "padding": 1, "transposed": True},
    {"kernel": [3, 3], "n": [5, 4], "stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "transposed": True},
    {"kernel": [2, 3, 3], "n": [3, 4, 2], "stride": [2, 1, 3], "dilation": [1, 2, 1], "transposed": True},
)


def document(case: dict[str, Any], lead: str = "") -> str:
    """A spec of one convolution between two linears: the second sees the rows that come out."""
    names = [lead] * bool(lead) + ["x", "y", "z"][: len(case["n"])]
    given = {key: value for key, value in case.items() if key not in ("n", "width")}
    fields = ", ".join(f"{key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in given.items())
    return "\n".join(
        [
            "language: 2",
            "name: one",
            "sizes: {C: c, O: o}",
            f"streams: {{latent: [{', '.join(names)}]}}",
            "inputs: {pixels: {stream: latent, width: C}}",
            "graph:",
            "  - conv: {op: conv, from: pixels, width: O, " + fields + ", to: v}",
            "  - out: {op: linear, from: v, width: 1, bias: false, to: result}",
            "outputs: [result]",
        ]
    )


def estimator(text: str, folder: Path, width: int) -> Any:
    path = folder / "one.yaml"
    path.write_text(text, "utf-8")
    return load(path).estimator({"c": 8, "o": width}, "full", "torch")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_convolution_is_torchs(case: dict[str, Any], tmp_path: Path) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    width = case.get("width", 12)
    kind = f"Conv{'Transpose' if case.get('transposed') else ''}{len(case['n'])}d"
    options = {key: value for key, value in case.items() if key not in ("n", "width", "kernel", "transposed")}
    real = getattr(torch.nn, kind)(8, width, kernel_size=case["kernel"], device="meta", **options)
    with FlopCounterMode(display=False) as counter:
        result = real(torch.zeros(2, 8, *case["n"], device="meta"))
    derived = estimator(document(case), tmp_path, width)
    moments = derived.moments(latent=[case["n"] if len(case["n"]) > 1 else case["n"][0]] * 2)
    work = derived.by_module(moments)
    rows = result.numel() // width
    assert work["conv"].forward == counter.get_total_flops()
    assert work["conv"].backward == counter.get_total_flops()  # of the weight: the input needs no gradient
    assert work["out"].forward == 2 * rows * width
    known = {name: tensor.numel() for name, tensor in real.named_parameters()}
    assert {name.removeprefix("conv."): count for name, count in derived.tensors().items() if name != "out.weight"} == known
    shapes = {tensor.name: tensor.shape for tensor in derived.program.tensors}
    assert len(shapes["conv.weight"]) == real.weight.dim()


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("trained", ["original0", "original1", "bias"])
def test_the_weight_may_be_a_norm_and_a_direction(dim: int, trained: str, tmp_path: Path) -> None:
    """As ``torch.nn.utils.parametrizations.weight_norm`` makes it: what trains either of them needs the weight's gradient."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    real = torch.nn.Conv1d(8, 12, kernel_size=3, groups=2, device="meta")
    real = torch.nn.utils.parametrizations.weight_norm(real, dim=dim)
    for name, tensor in real.named_parameters():
        tensor.requires_grad_(name.endswith(trained))
    result = real(torch.zeros(2, 8, 11, device="meta"))
    with FlopCounterMode(display=False) as counter:
        result.sum().backward()
    path = tmp_path / "one.yaml"
    path.write_text(document({"kernel": [3], "n": [11], "groups": 2, "weight_norm": dim}), "utf-8")
    derived = load(path).estimator({"c": 8, "o": 12}, Regime("drawn", train=(f"conv.*{trained}",)), "torch")
    shapes = instances_of(derived.program, derived.sizes)
    known = {f"conv.{name}": tuple(tensor.shape) for name, tensor in real.named_parameters()}
    assert {name: shape for name, shape in shapes.items() if name != "out.weight"} == known
    work = derived.by_module(derived.moments(latent=[11, 11]))["conv"]
    assert work.backward == counter.get_total_flops() // 2  # torch counts the weight's gradient of every group for each of them


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fixed_filter_has_no_parameter_and_no_gradient(case: dict[str, Any], tmp_path: Path) -> None:
    """A convolution of what a linear made, whose weight torch is given as a constant: two passes of it, not three."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    kind = f"Conv{'Transpose' if case.get('transposed') else ''}{len(case['n'])}d"
    options = {key: value for key, value in case.items() if key not in ("n", "width", "kernel", "transposed", "bias")}
    real = getattr(torch.nn, kind)(8, case.get("width", 12), kernel_size=case["kernel"], bias=False, device="meta", **options)
    real.requires_grad_(False)
    with FlopCounterMode(display=False) as counter:
        real(torch.zeros(2, 8, *case["n"], device="meta", requires_grad=True)).sum().backward()
    text = document({**case, "bias": False, "fixed": True}).replace("graph:", "graph:\n  - pre: {op: linear, from: pixels, width: C, to: pixels}")
    derived = estimator(text, tmp_path, case.get("width", 12))
    work = derived.by_module(derived.moments(latent=[case["n"] if len(case["n"]) > 1 else case["n"][0]] * 2))["conv"]
    assert work.forward + work.backward == counter.get_total_flops()
    assert set(derived.tensors()) == {"pre.weight", "pre.bias", "out.weight"}


def test_axes_before_the_kernel_are_rows(tmp_path: Path) -> None:
    derived = estimator(document({"kernel": [3, 3], "n": [6, 4], "padding": 1}, lead="f"), tmp_path, 12)
    assert derived.by_module(derived.moments(latent=[[5, 6, 4]]))["conv"].forward == 2 * 5 * 6 * 4 * 9 * 8 * 12


@pytest.mark.parametrize(
    ("stride", "padding", "rows"),
    [("k", "0", "x//k"), ("1", "same", "x"), ("1", "0", "-k + x + 1"), ("2", "1", "(-k + x + 4)//2")],
)
def test_lengths_are_said_simply(stride: str, padding: str, rows: str, tmp_path: Path) -> None:
    text = document({"kernel": "k", "n": [0], "stride": stride, "padding": padding}).replace("O: o", "O: o, k: k")
    path = tmp_path / "one.yaml"
    path.write_text(text, "utf-8")
    graph = load(path).graph({})
    (result,) = (node.results[0] for node in walk(graph.body, Operator) if node.kind == "conv")
    found = str(graph.values[result].stream.rows)
    assert found == rows


def test_sides_and_steps_may_be_items_of_lists(tmp_path: Path) -> None:
    text = document({"kernel": '"ks[1]"', "n": [0], "stride": '"ks[0]"'}).replace("O: o", "O: o, ks: {key: ks, type: list}")
    path = tmp_path / "one.yaml"
    path.write_text(text, "utf-8")
    derived = load(path).estimator({"c": 8, "o": 12, "ks": [2, 5]}, "full", "torch")
    assert derived.by_module(derived.moments(latent=[11]))["conv"].forward == 2 * 8 * 12 * 5 * ((11 - 5) // 2 + 1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("kernel: [3, 3]", "axis-mismatch"),
        ("kernel: 3, stride: [1, 2]", "bad-field"),
        ("kernel: 3, stride: 2, padding: same", "bad-field"),
        ("kernel: 3, padding: full", "unknown-size"),
        ("kernel: 3, weight_norm: 3", "bad-field"),
        ("width: 12, kernel: 3, groups: 5", "group-mismatch"),
        ("width: C + O, kernel: 3, groups: C", "group-mismatch"),
    ],
)
def test_what_does_not_fit_is_refused(fields: str, code: str, tmp_path: Path) -> None:
    given = fields if "width" in fields else f"width: O, {fields}"
    text = document({"kernel": 3, "n": [4]}).replace("width: O, kernel: 3", given)
    path = tmp_path / "one.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(SpecError) as caught:
        load(path).graph({})
    assert [found.code for found in caught.value.diagnostics] == [code]
