"""``symflops new --extends SPEC --class CLASS``: real classes that have the graph of another one, and one that has not."""

from __future__ import annotations

import pytest

from symflops.cli.actions.extend import beginning
from symflops.cli.main import main
from symflops.verify.cases import cases_of
from tests.shipped import load


def begun(folder, name, reference, base="llama"):
    return main(["new", name, "--extends", base, "--class", reference, "-o", str(folder)])


def test_a_class_with_the_graph_of_another_one_comes_out_exact_with_its_heads_defaults_and_cases(tmp_path, capsys):
    assert begun(tmp_path, "mine", "transformers.Ministral3ForCausalLM") == 0
    printed = capsys.readouterr()
    model = load(tmp_path / "mine.yaml")
    endings = ("ForCausalLM", "Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
    assert model.spec.references == tuple(f"transformers.Ministral3{ending}" for ending in endings)
    assert {case.reference for case in cases_of(model.file)} == {"", *model.spec.references[1:]}
    assert printed.out.count(": exact: ") == 7 and ": differs" not in printed.out
    assert "7 cases, 7 exact\n" in printed.err and "default of size" not in printed.out
    # transformers, configuration_ministral3.py: a default of its own is no formula, even if it has the formula's value
    defaults = {size.name.text: size.default.text for size in model.spec.sizes}
    assert defaults["L"] == "34" and defaults["G"] == "8" and defaults["d"] == "128" and defaults["V"] == "131072"


def test_a_class_with_another_graph_shows_where_it_differs(tmp_path, capsys):
    assert begun(tmp_path, "mine", "transformers.ArceeForCausalLM") == 0
    printed = capsys.readouterr()
    assert "7 cases, 0 exact\n" in printed.err
    assert printed.out.count("mlp.gate_proj.weight [F, D] (x 3)") == 1  # modeling_arcee.py: up, relu2, down; no gate
    assert "model.layers.*.mlp.gate_proj: 11,860,992 derived, and nothing real" in printed.out  # 2 * 99 * 96 * 208 * 3
    assert "act: {key: hidden_act, default: \"'relu2'\"" in (tmp_path / "mine.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("reference", "base", "hint"),
    [
        ("transformers.ArceForCausalLM", "llama", "did you mean 'ArceeForCausalLM'"),
        ("transformers.BertForMaskedLM", "llama", "of another kind than the classes of 'llama': did you mean 'BertForCausalLM'?"),
        ("transformers.ArceePreTrainedModel", "llama", "did you mean 'ArceeModel'?"),
        ("diffusers.FluxTransformer2DModel", "llama", "such a class is called ...ForCausalLM, ...Model"),
        ("transformers.ArceeConfig", "llama", "is no module class"),
        ("absent.Model", "llama", "a reference is a class of transformers, diffusers, torch, or 'module:Class'"),
        ("transformers.ArceeForCausalLM", "dense_decoder", "begin a copy with --like dense_decoder"),
        ("transformers.ArceeForCausalLM", "lama", "did you mean 'llama'"),
    ],
)
def test_what_is_no_such_class_is_refused_with_a_hint(tmp_path, capsys, reference, base, hint):
    assert begun(tmp_path, "mine", reference, base) == 2
    assert hint in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_without_its_package_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    assert begun(tmp_path, "mine", "transformers.ArceeForCausalLM") == 2
    assert "pip install symflops[verify]" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [["--extends", "llama"], ["--class", "my:X"], ["--like", "llama", "--extends", "llama", "--class", "my:X"]],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, capsys, words):
    assert main(["new", "mine", *words, "-o", str(tmp_path)]) == 2
    assert " go " in capsys.readouterr().err and not list(tmp_path.iterdir())


MODULE = """
import dataclasses, torch
@dataclasses.dataclass
class SmallConfig:
    num_layers: int = 5
    hidden_size: int = 24
    unlike: int = 0
class SmallStack(torch.nn.Module):
    def __init__(self, config: SmallConfig):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(config.hidden_size, config.hidden_size) for _ in range(config.num_layers))
    def forward(self, states):
        for layer in self.layers:
            states = layer(states)
        return states
@dataclasses.dataclass
class OtherConfig:
    num_layers: int = 7
    hidden_size: int = 32
Stacked = SmallStack
class OtherStack(SmallStack):
    def __init__(self, config: OtherConfig):
        super().__init__(config)
class Wrong(OtherStack):
    def forward(self, states):
        raise ValueError("not today")
"""
BASE = """
language: 2
name: small
reference: "own:SmallStack"
sizes:
  L: {key: num_layers, default: 5}
  D: {key: hidden_size, default: 24}
streams: {text: [x]}
inputs: {states: {stream: text, width: D, layout: b x c}}
graph:
  - layers: {repeat: L, graph: [{op: linear, from: states, width: D, bias: true, to: states}]}
outputs: [states]
"""


def test_a_class_in_a_file_extends_a_spec_beside_it(tmp_path, capsys):
    (tmp_path / "own.py").write_text(MODULE)
    (tmp_path / "small.yaml").write_text(BASE)
    (tmp_path / "small.cases.yaml").write_text("- {config: {num_layers: 2, hidden_size: 8, unlike: 1}, batch: {text: [4, 4]}}\n")
    assert begun(tmp_path, "other", "own:OtherStack", str(tmp_path / "small.yaml")) == 0
    printed = capsys.readouterr()
    assert ": exact: 144 parameters, 2,048 forward, " in printed.out and "1 cases, 1 exact" in printed.err
    model = load(tmp_path / "other.yaml")
    assert [size.default.text for size in model.spec.sizes] == ["7", "32"] and model.spec.references == ("own:OtherStack",)
    assert dict(cases_of(model.file)[0].config) == {"num_layers": 2, "hidden_size": 8}
    (tmp_path / "small.yaml").write_text(BASE.replace("SmallStack", "Stacked"))  # a name that is not after its config
    assert begun(tmp_path, "wrong", "own:Wrong", str(tmp_path / "small.yaml")) == 0
    printed = capsys.readouterr()
    assert ": parameters are equal\n" in printed.out and "144, equal" in printed.out and "1 cases, 0 exact" in printed.err
    assert "no passes to compare: Wrong fails to run: ValueError: not today" in printed.out


def test_the_beginning_of_names():
    assert beginning(["OneModel", "OneForTwo", "One"]) == "One" and beginning(["Stacked", "Small"]) == "" and beginning(["A", "B"]) == "" and beginning(["A"]) == "A"
