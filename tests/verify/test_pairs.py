"""Masks of classes of one's own beside those of their specs: a module of PyTorch says what it hides, not our formulas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import symflops
from symflops.cli.main import main
from symflops.verify import live, proof
from symflops.verify.cases import cases_of
from symflops.verify.census.survey import Derivations
from symflops.verify.live import Estimated, masks_of
from symflops.verify.pairs import Pairs

CLASS = """
import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, window, written):
        super().__init__()
        self.q, self.window, self.written = nn.Linear(8, 8), window, written

    def forward(self, x):
        n = x.shape[1]
        place = torch.arange(n, device=x.device)
        far = place[:, None] - place
        seen = (far >= 0) & (far < (self.window or n))
        q = self.q(x).unflatten(-1, (2, 4)).transpose(1, 2)
        if self.written:
            scores = (q @ q.transpose(2, 3)) + torch.where(seen, 0.0, -1e4)
            mixed = scores.softmax(-1) @ q
        else:
            mixed = F.scaled_dot_product_attention(q, q, q, attn_mask=seen)
        return mixed.transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self, written=False):
        super().__init__()
        self.layers = nn.ModuleList(Layer(3 if i % 2 == 0 else None, written) for i in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
SPEC = """
language: 2
name: striped
reference: striped:Model
streams: {text: [n]}
inputs: {x: {stream: text, width: 8, layout: b n c}}
graph:
  - layers:
      repeat: 4
      index: i
      graph:
        - q: {op: linear, from: x, width: 8, to: q}
        - {op: attention, heads: 2, mask: causal, sliding: "3 if i % 2 == PLACE else null", query: q, key: q, value: q, to: x}
outputs: [x]
"""


def verified(folder: Path, place: int, written: bool, text: str = CLASS) -> int:
    """Exit code of ``verify`` for a spec with windows in the even (0) or the odd (1) of four layers; the class has them in the even."""
    folder.joinpath("striped.py").write_text(text)
    folder.joinpath("striped.yaml").write_text(SPEC.replace("PLACE", str(place)))
    folder.joinpath("striped.cases.yaml").write_text(f"- {{config: {{written: {str(written).lower()}}}, batch: {{text: [7]}}}}\n")
    return main(["verify", str(folder / "striped.yaml"), "--json"])


@pytest.mark.parametrize("written", [False, True])
def test_a_window_in_the_wrong_layers_is_not_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: bool) -> None:
    assert verified(tmp_path, 0, written) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["masks"] == {"verdict": "equal"}
    assert "striped: masks: equal" in printed.err

    assert verified(tmp_path, 1, written) == 1  # as many windows as in the class, in the other layers
    printed = capsys.readouterr()
    found = json.loads(printed.out)[0]
    causal, band = 7 * 6 // 2, 7 * 7 - (1 + 2 + 3 * 5)  # hidden pairs of 7 tokens, by hand
    assert not found["exact"]
    assert found["forward"]["real"] == found["forward"]["derived"]
    assert found["masks"]["verdict"] == "differ"
    assert found["masks"]["modules"][:2] == [
        {"module": "layers.0", "real": 2 * band, "derived": 2 * causal},
        {"module": "layers.1", "real": 2 * causal, "derived": 2 * band},
    ]
    assert main(["verify", str(tmp_path / "striped.yaml")]) == 1
    assert f"layers.0: {2 * band} real, {2 * causal} derived" in capsys.readouterr().out


def test_a_class_that_does_not_run_on_the_cpu_is_not_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CLASS.replace("n = x.shape[1]", 'n = x.shape[1]\n        assert x.device.type == "meta", "no values here"')
    assert verified(tmp_path, 0, False, text) == 0
    assert "masks: not seen: the class does not run on the CPU: AssertionError: no values here" in capsys.readouterr().err


def test_a_proof_looks_at_the_masks_of_a_small_model_with_the_settings_of_the_config(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = {"use_sliding_window": True, "max_window_layers": 3, "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}
    config = {"hidden_size": 8192, "num_hidden_layers": 4, "auto_map": {"x": "y.Z"}, "_attn_implementation": "flash", **windows}
    small = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    assert proof.like(small, config, {"num_hidden_layers"}) == {
        "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "use_sliding_window": True, "layer_types": windows["layer_types"],
    }  # fmt: skip
    reference = "transformers.Qwen2ForCausalLM"
    assert str(proof.masks_beside("qwen2", reference, config)) == "masks: equal"
    monkeypatch.setattr(live, "derived_pairs", lambda *_: Pairs(Counter(), frozenset({"", "model.layers.3.self_attn"})))
    found = proof.masks_beside("qwen2", reference, config)
    assert found is not None
    assert found.verdict == "differ"
    assert [path for path, _, _ in found.modules] == ["model.layers.3.self_attn"]


def test_flags_that_only_flash_attention_reads_are_seen() -> None:
    """Gemma 2 stays causal where its masks are built, and attends both ways where a kernel is given its flag instead."""
    model = symflops.load("gemma2")
    case, derivations = cases_of(model.file)[0], Derivations(model)

    def derived(config: Mapping[str, Any]) -> Estimated:
        found = derivations.derived(config)
        return found.program, found.estimator.sizes

    for both, unlike in ((False, ""), (True, "flash")):
        config = {**case.config, "use_bidirectional_attention": both}
        found = masks_of(model, replace(case, config=config), derived)
        assert found is not None
        assert (found.verdict, found.unlike) == ("equal", unlike)
    with pytest.raises(symflops.SymflopsError, match="use_bidirectional_attention"):
        symflops.estimate({"model_type": "gemma2", "use_bidirectional_attention": True}, {"text": [9]})
