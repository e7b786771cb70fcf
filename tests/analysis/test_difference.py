"""``symflops diff``: causes sum to the difference, and formulas evaluate to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.analysis.difference import Difference, Figures, Pair
from symflops.analysis.subject import Subject
from symflops.cli.diff import texts
from symflops.cli.main import main
from tests import shipped
from tests.sampling import sampled

BIG = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
       "num_key_value_heads": 40, "intermediate_size": 13824}  # fmt: skip


def pair(first: str, second: str, config: dict | None = None, other: dict | None = None) -> tuple[Pair, Difference]:
    one, two = Subject(first, config, "full", "symflops"), Subject(second, other, "full", "symflops")
    found = Pair(one, two, one.batch())
    return found, found.difference()


def summed(figures: list[Figures]) -> tuple[int, int, int]:
    return tuple(sum(getattr(one, name) for one in figures) for name in ("parameters", "forward", "backward"))


@pytest.mark.parametrize("first, second", sampled([
    ("llama", "qwen3"), ("mixtral", "qwen3_moe"), ("flux", "qwen_image"), ("gemma3", "llama"), ("qwen3", "qwen3_next"), ("gpt2", "llama"),
    ("llama", "deepseek_v3"), ("mamba2", "llama"),
], 8, 2))  # fmt: skip
def test_causes_sum_to_the_difference(first: str, second: str) -> None:
    found, told = pair(first, second)
    assert summed([cause.figures for cause in told.causes]) == summed([told.second.less(told.first)])
    for name, figures in ((first, told.first), (second, told.second)):
        estimator = shipped.load(name).estimator({})
        m = estimator.moments(**found.batch)
        assert figures == Figures(estimator.parameters, estimator.forward(m), estimator.backward(m))


def value(terms: tuple[tuple[str, str], ...], subject: Subject, batch: dict) -> int:
    """The value of printed formulas, read by Python."""
    sums = subject.estimator.moments(**batch).sums()
    names = {name: number for name, number in subject.estimator.sizes.items() if isinstance(number, int)}
    return sum(eval(text, {"max": max, "min": min}, dict(names)) * sums[moment] for moment, text in terms)  # noqa: S307


@pytest.mark.parametrize("first, second, other", [("llama", "llama", BIG), ("llama", "qwen3", None), ("qwen3", "llama", None)])
def test_formulas_evaluate_to_the_difference(first: str, second: str, other: dict | None) -> None:
    found, told = pair(first, second, None, other)
    change = told.second.less(told.first)
    for subject in (found.first, found.second):  # sizes that differ are numbers, so both give the same
        assert value(texts(told.terms["forward"]), subject, found.batch) == change.forward
        assert value(texts(told.terms["backward"]), subject, found.batch) == change.backward
    names = [cause.words for cause in told.causes if cause.kind == "size"]
    assert any("intermediate_size: " in name for name in names)


def test_two_models_that_are_the_same() -> None:
    _, told = pair("llama", "llama")
    assert (told.terms, told.causes) == ({"forward": (), "backward": ()}, ())


def test_a_module_of_one_alone() -> None:
    _, told = pair("llama", "qwen3")
    names = {cause.words: cause for cause in told.causes if cause.kind == "module"}
    assert set(names) == {f"model.layers.*.self_attn.{name}_norm of qwen3 alone" for name in "qk"}
    assert all(cause.figures.total == 0 < cause.figures.parameters for cause in names.values())


@pytest.mark.thorough
def test_what_diff_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BIG))
    for second in (tmp_path, tmp_path / "config.json"):
        assert main(["diff", "llama", str(second)]) == 0
        out = capsys.readouterr().out
        assert all(len(line) <= 80 for line in out.splitlines() if str(tmp_path) not in line)
        assert "num_hidden_layers: 32 -> 40" in out and "+6,277,448,704" in out
    assert main(["diff", "llama", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"]["difference"] == sum(cause["total"] for cause in found["causes"])


@pytest.mark.parametrize("words, told", [
    (("llama", "lama2"), "lama2"), (("llama", "flux"), "no stream 'text'"), (("linear", "linear"), "give a config in its place"),
    (("llama", "nowhere/config.json"), "nowhere"), (("llama", "qwen3", "--top", "-1"), "number of causes"),
])  # fmt: skip
def test_mistakes_are_told(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *words]) == 2
    captured = capsys.readouterr()
    assert not captured.out and told in captured.err
