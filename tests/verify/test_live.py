"""The shipped specs are exact against the real classes, and a spec that is broken on purpose is told where."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from symflops.api import Model, load
from symflops.evaluate.batch import BatchError
from symflops.evaluate.parameters import copies
from symflops.formula.table import Formulas
from symflops.read.spec_files import find_spec
from symflops.support.findings import Source, SpecError, SymflopsError
from symflops.training.introspect.tree import starred
from symflops.verify.authoring_report import render
from symflops.verify.cases import LiveCase, cases_of, read_cases
from symflops.verify.classes import class_of
from symflops.verify.live import LiveReport, verify_live
from symflops.verify.running import (
    counter,
    described,
    different,
    light_counter,
    moved,
    plain_attention,
    rolled_up,
    summed_tensors,
)

SPECS = ("llama", "qwen_image")
CASES = [pytest.param(name, case, id=f"{name}-{row}") for name in SPECS for row, case in enumerate(cases_of(find_spec(name)))]



def broken(tmp_path: Path, name: str, *changes: tuple[str, str]) -> Model:
    """A shipped spec with pieces of its text replaced."""
    text = find_spec(name).path.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = tmp_path / f"{name}.yaml"
    path.write_text(text)
    return load(path)


def report_of(tmp_path: Path, name: str, case: int, *changes: tuple[str, str]) -> LiveReport:
    report = verify_live(broken(tmp_path, name, *changes), cases_of(find_spec(name))[case])
    assert not report.exact
    return report


@pytest.mark.parametrize(("name", "case"), CASES)
def test_exact(name: str, case: LiveCase) -> None:
    report = verify_live(load(name), case)
    assert report.exact, render(report)
    assert "\n" not in render(report)
    assert report.forward.expected > 0
    assert report.inference.expected == report.forward.expected
    assert report.inference_backward.expected == 0
    assert dict(report.versions).keys() == {"torch", report.reference.partition(".")[0]}


def test_the_records_have_the_same_numbers() -> None:
    report = verify_live(load("llama"), cases_of(find_spec("llama"))[0])
    figures = (report.parameters, report.forward, report.backward)
    assert [figure.expected for figure in figures] == [316_128, 65_615_616, 131_231_232]


def test_the_loss_sums_the_outputs_that_the_spec_names(tmp_path: Path) -> None:
    case = cases_of(find_spec("bert"))[0]
    both = verify_live(load("bert"), case)
    one = verify_live(broken(tmp_path, "bert", ("outputs: [last_hidden_state, pooler_output, ", "outputs: [last_hidden_state, ")), case)
    assert both.exact and one.exact
    assert both.backward.expected - one.backward.expected == 2 * 2 * 2 * 96 * 96  # both gradients of the pooler, two samples


def test_a_dropped_bias(tmp_path: Path) -> None:
    report = report_of(tmp_path, "llama", 2, ("width: H*d, bias: biased", "width: H*d, bias: false"))
    assert report.missing == (("model.layers.0.self_attn.q_proj.bias", (48,)),)
    assert (report.extra, report.wrong, report.modules) == ((), (), ())
    assert report.parameters.expected - report.parameters.derived == 48
    assert report.forward.equal and report.backward.equal
    text = render(report)
    assert "not claimed yet, 1 of 19 parameters (48 elements):\n    model.layers.*.self_attn.q_proj.bias [D]\n" in text
    assert "24,184 real, 24,136 derived" in text


def test_a_wrong_width(tmp_path: Path) -> None:
    report = report_of(tmp_path, "llama", 1, ("from: m, hidden: F,", "from: m, hidden: F + 2,"))
    names = [f"model.layers.{i}.mlp.{name}.weight" for i in range(2) for name in ("gate_proj", "up_proj", "down_proj")]
    assert [name for name, _, _ in report.wrong] == names
    assert report.wrong[0][1:] == ((208, 96), (210, 96))
    assert report.wrong[2][1:] == ((96, 208), (96, 210))
    assert (report.missing, report.extra) == ((), ())
    difference = 2 * 20 * 96 * 2 * 3 * 2
    assert report.forward.derived - report.forward.expected == difference
    assert report.backward.derived - report.backward.expected == 2 * difference
    text = render(report)
    assert "of another shape (6):\n    model.layers.*.mlp.gate_proj.weight [F, D] = [208, 96] real, [210, 96] derived (x 2)\n" in text
    assert "    model.layers.*.mlp.up_proj: x1.009615: " in text
    assert "    model.layers.*: " not in text


def test_a_dropped_operator(tmp_path: Path) -> None:
    line = "        - txt_mlp: {block: feed_forward, from: txt_n, hidden: 4*D, width: D, gate: txt_mod, add_to: txt}\n"
    report = report_of(tmp_path, "qwen_image", 1, (line, ""))
    names = [f"transformer_blocks.{i}.txt_mlp.net.{name}" for i in range(2) for name in ("0.proj", "2")]
    assert [name for name, _ in report.missing] == [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]
    work = 2 * 22 * 96 * 384 * 2
    assert report.forward.expected - report.forward.derived == 2 * work
    assert report.backward.expected - report.backward.derived == 2 * work  # of the first block: the last one is dead
    modules = dict(report.modules)
    assert (modules["transformer_blocks.*.txt_mlp"].expected, modules["transformer_blocks.*.txt_mlp"].derived) == (2 * work, 0)
    assert modules["transformer_blocks.*"].expected - modules["transformer_blocks.*"].derived == 2 * work


def test_a_dropped_norm(tmp_path: Path) -> None:
    line = "        - post_attention_layernorm: {op: rms_norm, from: h, to: m}\n"
    report = report_of(tmp_path, "llama", 2, (line, ""), ("from: m, hidden", "from: h, hidden"))
    assert report.missing == (("model.layers.0.post_attention_layernorm.weight", (48,)),)
    assert report.forward.equal and report.backward.equal and not report.modules


def test_a_wrong_name(tmp_path: Path) -> None:
    report = report_of(tmp_path, "llama", 1, ("self_attn.q_proj:", "self_attn.query:"))
    assert [name for name, _ in report.missing] == [f"model.layers.{i}.self_attn.q_proj.weight" for i in range(2)]
    assert [name for name, _ in report.extra] == [f"model.layers.{i}.self_attn.query.weight" for i in range(2)]
    assert report.forward.equal and report.parameters.equal
    assert {path: (figure.expected > 0, figure.derived > 0) for path, figure in report.modules} == {
        "model.layers.*.self_attn.q_proj": (True, False),
        "model.layers.*.self_attn.query": (False, True),
    }


def test_a_wrong_number_of_layers(tmp_path: Path) -> None:
    report = report_of(tmp_path, "llama", 0, ("repeat: L\n", "repeat: L + 1\n"))
    assert len(report.extra) == 9 and all(name.startswith("model.layers.3.") for name, _ in report.extra)
    assert report.forward.derived > report.forward.expected


def test_an_untied_head(tmp_path: Path) -> None:
    report = report_of(tmp_path, "llama", 1, (", tied: tied, to: logits", ", to: logits"))
    assert report.extra == (("lm_head.weight", (131, 96)),)
    assert report.parameters.derived - report.parameters.expected == 131 * 96
    assert report.forward.equal and report.backward.equal


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("transformers.LlamaForCausalLLM", "did you mean 'LlamaForCausalLM'"),
        ("diffusers.QwenImageTransformer3DModel", "did you mean 'QwenImageTransformer2DModel'"),
        ("os.system", "a reference is a class of transformers, diffusers, torch"),
        ("torch.load", "is no module class"),
        ("transformers.LlamaConfig", "is no module class"),
        ("", "a reference is a class of"),
    ],
)
def test_no_such_class(reference: str, message: str) -> None:
    with pytest.raises(SymflopsError, match=message):
        class_of(reference)


def test_a_case_may_name_its_class(tmp_path: Path) -> None:
    case = cases_of(find_spec("llama"))[0]
    mistral = LiveCase(case.config, case.batch, reference="transformers.MistralForCausalLM")
    listed = broken(tmp_path, "llama", ("  transformers.LlamaModel:", "  transformers.MistralForCausalLM: {}\n  transformers.LlamaModel:"))
    assert verify_live(listed, mistral).exact
    with pytest.raises(SymflopsError, match="the config is of the class MistralForCausalLM, and 'llama' describes LlamaForCausalLM"):
        verify_live(load("llama"), mistral)


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(SymflopsError, match=r"diffusers: pip install symflops\[verify\]"):
        class_of("diffusers.QwenImageTransformer2DModel")


def test_what_the_class_refuses() -> None:
    first = cases_of(find_spec("qwen_image"))[0]
    with pytest.raises(SymflopsError, match=r"a case: .* cannot be built: TypeError: .*layers"):
        verify_live(load("qwen_image"), LiveCase({"layers": 3}, first.batch))
    with pytest.raises(SymflopsError, match="fails to run"):
        verify_live(load("qwen_image"), LiveCase(first.config, first.batch))
    ragged = LiveCase(first.config, {"latent": [24, 25], "prompt": [7, 7]}, first.arguments)
    with pytest.raises(BatchError, match="equal lengths"):
        verify_live(load("qwen_image"), ragged)


def test_grouped_convolution() -> None:
    import torch

    layer = torch.nn.Conv2d(8, 16, 3, groups=4, device="meta")
    image = torch.zeros(2, 8, 10, 10, device="meta", requires_grad=True)
    with counter() as forward:
        output = layer(image).sum()
    with counter() as backward:
        output.backward()
    assert forward.get_total_flops() == 2 * 2 * 8 * 8 * 16 * 2 * 9
    assert backward.get_total_flops() == 2 * forward.get_total_flops()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_fast_counter_counts_as_that_of_pytorch(device: str) -> None:
    import torch
    from torch import nn

    def composite(values: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():  # PyTorch does not take operators apart here, so that a counter has to
            return torch.zeros(5, 8, device=device).matmul(torch.ones(8, 3, device=device)).sum() + values.sum()

    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, device=device, activation=nn.functional.silu)
    layer.train()
    found = []
    for made in (lambda: counter(False), light_counter):
        with plain_attention(), made() as mode:
            layer(torch.zeros(2, 5, 8, device=device)).sum().backward()
            composite(torch.zeros(3, device=device))
        found.append(mode.total if made is light_counter else mode.get_total_flops())
    assert found[0] == found[1] > 2 * 5 * 8 * 3


def test_cases_are_read() -> None:
    config = "{a: 1, b: 0x10, c: 1e-5, d: true, e: ~, f: '1', g: yes, h: [1.5, -2]}"
    text = f"- {{config: {config}, batch: {{text: [3]}}, options: {{x: eager}}}}"
    (case,) = read_cases(Source("x.cases.yaml", text))
    assert case.config == {"a": 1, "b": 16, "c": 1e-5, "d": True, "e": None, "f": "1", "g": "yes", "h": [1.5, -2]}
    assert (case.batch, case.arguments, case.options) == ({"text": [3]}, {}, {"x": "eager"})
    assert case.label == "x.cases.yaml:1"


def test_findings_of_a_case_file() -> None:
    text = "- {config: [1], bach: {text: [3]}}\n- 7\n- {config: {}, batch: {}, reference: [a]}\n"
    with pytest.raises(SpecError) as caught:
        read_cases(Source("x.cases.yaml", text))
    told = [(finding.code, finding.span.line if finding.span else 0) for finding in caught.value.diagnostics]
    assert told == [("missing-field", 1), ("bad-shape", 1), ("unknown-field", 1), ("bad-shape", 2), ("bad-shape", 3)]
    assert "did you mean 'batch'?" in str(caught.value)
    with pytest.raises(SpecError, match="a case file is a list"):
        read_cases(Source("x.cases.yaml", "config: {}"))


def test_runs_of_one_index_are_joined() -> None:
    nodes = Formulas([0, 1, 2, 4, "L", "i", "j"])
    stored = SimpleNamespace(document={"shapes": [{"shape": [], "exists": 1}]}, formulas=nodes)
    ranges = [["i", 0, 2, 1], ["i", 3, 4, 1], ["j", 0, 5, 1]]
    found = [name for name, _ in copies(stored, ["w", 0, {"template": ["w.", 5, ".", 6], "ranges": ranges}], {"L": 6})]
    assert found == ["w.1.0", *(f"w.4.{j}" for j in range(4)), *(f"w.5.{j}" for j in range(5))]


def test_starred() -> None:
    assert starred("0.layer1.12.fc2.0") == "*.layer1.*.fc2.*"
    assert list(different({"a": 3, "a.0": 1, "a.1": 2}, {("a", "a.*"): 3}, ["a", "a.0", "a.1"])) == []


def test_a_container_has_what_runs_while_it_does() -> None:
    work = {("a", "a.*", "a.*.b"): 3, ("a.0.b",): 5, ("c", "a.0.b"): 7, ("a", "a.1", "a.0", "a.0.b"): 11}
    assert rolled_up(work) == {"a": 14, "a.*": 14, "a.*.b": 26, "c": 7}


def test_further_arguments_may_be_nested() -> None:
    """Models take mappings and lists of tensors, too."""
    found = described({"sizes": {"resolution": {"shape": [1, 2]}, "none": None}, "images": [{"shape": [3, 4]}, [[1, 4]]]})
    assert found["sizes"]["resolution"].shape == (1, 2) and found["sizes"]["none"] is None
    assert found["images"][0].shape == (3, 4) and found["images"][1] == [[1, 4]]


def test_a_model_that_looks_at_values_runs_on_the_cpu() -> None:
    """Attention is counted there, too: as two products, not as the kernel that the counter does not see."""
    first = cases_of(find_spec("qwen_image"))[0]
    case = LiveCase(first.config, first.batch, first.arguments, device="cpu")
    report = verify_live(load("qwen_image"), case)
    assert report.exact, render(report)
    assert moved({"a": [torch_zeros("meta"), None]}, "cpu")["a"][0].device.type == "cpu"


def test_outputs_may_be_lists_of_tensors() -> None:
    from types import SimpleNamespace

    one, two, three = (torch_zeros("meta") for _ in range(3))
    output = SimpleNamespace(samples=[one, (two,)], more=three, none=None)
    assert [id(tensor) for tensor in summed_tensors(output, ("samples", "more", "none"))] == [id(one), id(two), id(three)]
    output = SimpleNamespace(sample=[one, two])
    assert [id(tensor) for tensor in summed_tensors(output, ("other",))] == [id(one), id(two)]


def test_a_device_that_there_is_not() -> None:
    with pytest.raises(SpecError) as caught:
        read_cases(Source("x.cases.yaml", "- {config: {}, batch: {}, device: tpu}"))
    assert [finding.code for finding in caught.value.diagnostics] == ["unknown-word"]


def torch_zeros(device: str):  # type: ignore[no-untyped-def]
    import torch

    return torch.zeros(1, device=device)
