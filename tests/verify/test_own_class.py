"""A class of the user's own, in a file beside its spec: found, held against the spec, and refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.api import load, regime_of
from symflops.cli.main import main
from symflops.library.lookup import class_name
from symflops.support.findings import SpecError, SymflopsError
from symflops.verify.bench import render_regime, verify_regime
from symflops.verify.cases import cases_of
from symflops.verify.classes import class_of

SPEC = """language: 2
name: small
reference: networks:Small
sizes: {c: {key: channels}, D: {key: width, default: 8}, L: {key: layers, default: 2}}
streams: {latent: [x]}
inputs: {latents: {stream: latent, width: c, layout: "b x w"}}
graph:
  - inner: {op: linear, from: latents, width: D, to: h}
  - blocks: {repeat: L, graph: [{linear: {op: linear, from: h, width: D, add_to: h}}]}
  - outer: {op: linear, from: h, width: c, to: out}
outputs: [out]
"""
MODULE = """import more
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + self.linear(x)

class Small(nn.Module):
    def __init__(self, channels, width=8, layers=2):
        super().__init__()
        self.inner, self.outer = nn.Linear(channels, width), nn.Linear(width, channels)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, latents):
        x = self.inner(latents)
        for block in self.blocks:
            x = block(x)
        return self.outer(x)

class Convolved(Small):
    def __init__(self, channels, layers=2):
        super().__init__(channels)
        self.conv = nn.Conv1d(2, 2, 1)

plain = 3
"""
CASES = "- config: {channels: 6, layers: 3}\n  batch: {latent: [5, 5]}\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    for name, text in (("small.yaml", SPEC), ("small.cases.yaml", CASES), ("networks.py", MODULE), ("more.py", "")):
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path / "small.yaml"


def test_parameters_and_both_passes_are_exact(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(spec)]) == 0
    found = capsys.readouterr()
    assert "networks:Small (torch" in found.out and "exact: 326 parameters, 5,760 forward, 10,560 backward FLOPs" in found.out
    assert "1 cases, 0 not exact, 0 defaults differ" in found.err


RETURNS = {
    "a dict": "{'extra': [a], 'out': b}", "a dict with a tuple": "{'out': (b,), 'extra': a}", "a tuple": "(b, a, x.detach())",
    "a tuple with a list": "(b, [a])", "a list of dicts": "[{'one': b}, {'two': a}]",
}  # fmt: skip


@pytest.mark.parametrize("case", RETURNS)
def test_all_outputs_are_in_the_loss(spec: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    """By name in an object or a dict, by position in a tuple; a module may return a view of its parameter."""
    more = "  - tokens: {graph: [{p: {op: parameter, shape: [1, 3, D], to: _}}]}\n  - {op: zeros, stream: once, width: D, to: _}\n"
    graph = SPEC.replace("  - outer:", more + "  - second: {op: linear, from: h, width: D, to: extra}\n  - outer:").replace("[out]", "[out, extra]")
    spec.write_text(graph, "utf-8")
    text = MODULE.replace("        return self.outer(x)\n", f"        self.tokens()\n        a, b = self.second(x), self.outer(x)\n        return {RETURNS[case]}\n", 1)
    text = text.replace("        self.blocks =", "        self.second, self.tokens = nn.Linear(width, width), Tokens(width)\n        self.blocks =", 1)
    tokens = """import torch

class Tokens(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.p = nn.Parameter(torch.zeros(1, 3, width))

    def forward(self):
        return self.p.expand(2, -1, -1)

"""
    (spec.parent / "networks.py").write_text(text.replace("class Block", tokens + "class Block", 1), "utf-8")
    code = main(["verify", str(spec)])
    assert code == 0, capsys.readouterr()
    backward = 2 * 10 * (6 * 8 + 2 * 3 * 64 + 2 * 64 + 2 * 6 * 8)  # the weights of all, and the inputs of all but the first
    assert f"{backward:,} backward FLOPs" in capsys.readouterr().out


def test_a_class_that_takes_a_config(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it takes is its ``config_class``, whose defaults are those that the spec is held to."""
    whole = MODULE + """
from dataclasses import dataclass

@dataclass
class Sizes:
    channels: int
    width: int = 8
    layers: int = 2

class Whole(Small):
    config_class = Sizes

    def __init__(self, config):
        super().__init__(config.channels, config.width, config.layers)
        self.config = config
"""
    (spec.parent / "networks.py").write_text(whole, "utf-8")
    spec.write_text(SPEC.replace("networks:Small", "networks:Whole"), "utf-8")
    assert main(["verify", str(spec)]) == 0
    assert "exact: 326 parameters, 5,760 forward, 10,560 backward FLOPs" in capsys.readouterr().out
    (spec.parent / "other").mkdir()
    (spec.parent / "other" / "networks.py").write_text(whole.replace("layers: int = 2", "layers: int = 4"), "utf-8")
    for name, text in (("small.yaml", SPEC.replace("networks:Small", "networks:Whole")), ("small.cases.yaml", CASES), ("more.py", "")):
        (spec.parent / "other" / name).write_text(text, "utf-8")
    assert main(["verify", str(spec.parent / "other" / "small.yaml")]) == 1
    assert "default of size 'L' (layers): 2 in the spec, 4 in networks:Whole" in capsys.readouterr().out


def test_a_difference_is_found(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(SPEC.replace("default: 8", "default: 9").replace("width: c, to: out", "width: c, bias: false, to: out"), "utf-8")
    assert main(["verify", str(spec)]) == 1
    found = capsys.readouterr().out
    assert "default of size 'D' (width): 9 in the spec, 8 in networks:Small" in found
    assert "outer.bias [c]" in found and "weight [8, c] = [8, 6] real, [9, 6] derived" in found


@pytest.mark.parametrize("regime", ["lora:r=4,targets=blocks.*.linear", "full:train=blocks.1.*", "full:train=outer.*", "full:groups=blocks.*"])
def test_regimes_are_exact(spec: Path, regime: str) -> None:
    model = load(spec)
    report = verify_regime(model, cases_of(model.file)[0], regime_of(regime))
    assert report.exact and report.forward.expected >= 5760, render_regime(report)


@pytest.mark.parametrize("groups", ["blocks.*", "blocks.*.linear", "*.linear", "*linear", "blocks.*|*.linear"])
def test_a_star_in_a_group_matches_dots(spec: Path, groups: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each block is a linear and its sum: as one group, or its linear alone, it runs once more; modules inside of a group do not."""
    assert main(["verify", str(spec), "--regime", f"full:groups={groups},early_stop=false"]) == 0
    assert f"{10_560 + 3 * 2 * 10 * 8 * 8:,} backward FLOPs" in capsys.readouterr().out


def test_a_group_that_the_model_never_calls_is_told(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(spec), "--regime", "full:groups=bl*,early_stop=false"]) == 1
    assert "the model never calls 'blocks', so that nothing of it is recomputed" in capsys.readouterr().out


def test_lora_is_what_one_counts(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three blocks of 8 by 8 with rank 4 on 10 rows: two small products each, and what passes through the frozen linears."""
    assert main(["verify", str(spec), "--regime", "lora:r=4,targets=blocks.*.linear"]) == 0
    trainable, adapter, frozen, edge = 3 * 2 * 8 * 4, 2 * 10 * 2 * 8 * 4, 2 * 10 * 8 * 8, 2 * 10 * 8 * 6
    backward = edge + 3 * adapter + 2 * (adapter + frozen) + adapter // 2  # the first block's input needs no gradient
    out = capsys.readouterr().out
    assert f"exact: {trainable} trainable parameters, {5760 + 3 * adapter:,} forward, {backward:,} backward FLOPs" in out


def test_a_case_that_fails_leaves_the_others(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (spec.parent / "small.cases.yaml").write_text("- {config: {channels: 6, layers: -1.5}, batch: {latent: [5]}}\n" + CASES, "utf-8")
    for more in ([], ["--regime", "full:train=outer.*"]):
        assert main(["verify", str(spec), *more]) == 1
        found = capsys.readouterr()
        assert "exact:" in found.out and "cannot be built" in found.out and "2 cases, 1 not exact" in found.err
    assert main(["verify", str(spec), "--regime", "full:train=outer.*", "--json"]) == 1
    failed, exact = json.loads(capsys.readouterr().out)["cases"]
    assert "cannot be built" in failed["error"] and not failed["exact"] and exact["exact"]


def test_what_every_case_fails_with_is_the_error_of_the_command(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (spec.parent / "networks.py").write_text(MODULE.replace("return self.outer(x)", "raise ValueError('no')"), "utf-8")
    (spec.parent / "small.cases.yaml").write_text(CASES * 2, "utf-8")
    assert main(["verify", str(spec)]) == 2
    assert capsys.readouterr().err.count("fails to run") == 1


def test_a_wrong_regime_differs(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(SPEC.replace("from: h, width: c, to: out", "from: h, width: c, bias: false, to: out"), "utf-8")
    assert main(["verify", str(spec), "--regime", "full:train=outer.*"]) == 1
    assert "trainable parameters: x8/9: 54 real, 48 derived" in capsys.readouterr().out


def test_a_regime_as_json(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(spec), "--regime", "full:train=outer.*", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (case,) = found["cases"]
    assert (found["schema"], found["regime"], case["exact"]) == (1, "full", True)
    assert case["trainable_parameters"] == {"real": 54, "derived": 54} and case["backward"] == {"real": 960, "derived": 960}


@pytest.mark.parametrize(
    ("regime", "message"),
    [
        ("grpo", "only what trains, is frozen, adapted and recomputed"),
        ("full:timesteps=3", "only what trains"),
        ("lora:kind=dora,targets=blocks.*.linear", "only one set of LoRA adapters"),
        ("full:train=blocks.-1.*", "write the index that '-1' selects"),
    ],
)
def test_what_is_not_put_on_a_real_model_is_said(spec: Path, regime: str, message: str) -> None:
    model = load(spec)
    with pytest.raises(SymflopsError, match=message):
        verify_regime(model, cases_of(model.file)[0], regime_of(regime))


def test_an_adapter_on_a_convolution_is_refused(spec: Path) -> None:
    spec.write_text(SPEC.replace("networks:Small", "networks:Convolved"), "utf-8")
    model = load(spec)
    with pytest.raises(SymflopsError, match="adapter on 'conv' cannot be applied"):
        verify_regime(model, cases_of(model.file)[0], regime_of("lora:targets=*"))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("missing:Small", r"no file 'missing.py' beside the spec"),
        ("networks:Smal", r"networks.py has no class 'Smal': did you mean 'Small'"),
        ("networks:plain", "is no module class"),
        ("raises:Small", r"raises.py fails when it is run: ValueError: not today"),
        ("leaves:Small", r"leaves.py fails when it is run: SystemExit"),
    ],
)
def test_no_such_class(spec: Path, reference: str, message: str) -> None:
    (spec.parent / "raises.py").write_text("raise ValueError('not today')\n", "utf-8")
    (spec.parent / "leaves.py").write_text("import sys\nsys.exit(0)\n", "utf-8")
    with pytest.raises(SymflopsError, match=message):
        class_of(reference, spec.parent)


def test_a_file_in_a_folder(spec: Path) -> None:
    (spec.parent / "inner").mkdir()
    (spec.parent / "inner" / "deeper.py").write_text("from torch import nn\nclass A:\n    class B(nn.Module): ...\n", "utf-8")
    assert class_of("inner.deeper:A.B", spec.parent).__name__ == "B"


@pytest.mark.parametrize("reference", ["networks:", ":Small", "../networks:Small", "a b:Small", "networks:Small:x", "networks"])
def test_what_is_no_reference(spec: Path, reference: str) -> None:
    spec.write_text(SPEC.replace("networks:Small", f'"{reference}"'), "utf-8")
    with pytest.raises(SpecError, match="is not a class"):
        load(spec)


def test_only_verify_runs_the_file(spec: Path, tmp_path: Path) -> None:
    (spec.parent / "networks.py").write_text("raise SystemExit('was run')\n", "utf-8")
    assert main(["check", str(spec)]) == 0
    assert main(["generate", str(spec), "--out", str(tmp_path / "out")]) == 0
    assert main(["verify", str(spec)]) == 2


def test_names_of_classes() -> None:
    assert [class_name(text) for text in ("transformers.LlamaModel", "a.b:C", "a:B.C")] == ["LlamaModel", "C", "C"]


def test_blocks_beside_a_spec_come_before_those_of_the_folder_above(spec: Path) -> None:
    block = "language: 2\nparams: {width: null}\ninputs: [x]\noutputs: [y]\ngraph:\n  - NAME: {op: linear, from: x, width: width, to: y}\n"
    for folder, name in ((spec.parent / "blocks", "far"), (spec.parent / "inner" / "blocks", "near")):
        folder.mkdir(parents=True)
        (folder / "one.yaml").write_text(block.replace("NAME", name), "utf-8")
    text = SPEC.replace("inner: {op: linear, from: latents, width: D", "inner: {block: one, from: latents, width: D")
    for path, name in ((spec, "far"), (spec.parent / "inner" / "small.yaml", "near")):
        path.write_text(text, "utf-8")
        assert f"inner.{name}.weight" in {str(item.path) for operator in load(path).graph().operators() for item in operator.parameters}
