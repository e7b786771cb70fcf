"""Pictures: what they show is what is derived, and a user is told what is missing."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from symflops.cli.main import main
from symflops.emit.page.plots import breakdown, ratios
from symflops.evaluate.item_analysis import ATTENTION
from symflops.evaluate.step import Step, sweep
from tests.parts import of_parts
from tests.shipped import load

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_parts_of_a_picture_add_up() -> None:
    derived = load("qwen_image").derive()
    whole = derived.estimator({})
    parts = of_parts(derived.program, {}, derived.case)
    assert list(parts)[-1] == ATTENTION and list(parts)[0] == "linears"
    batch = {"latent": [4096, 77], "prompt": [256, 3]}
    assert sum(one.total(one.moments(**batch)) for one in parts.values()) == whole.total(whole.moments(**batch))


def test_the_parts_of_a_step_are_those_of_estimators() -> None:
    for name, convention, batch in (("qwen_image", "symflops", {"latent": [4096, 77], "prompt": [256, 3]}), ("deepseek_v3", "megatron", {"text": [512, 3]})):
        derived = load(name).derive("full", convention, {})
        model = derived.estimator({})
        step = Step(derived.program, model.sizes, batch, derived.case, model.stored)
        assert step.parts() == {part: one.total(one.moments(**batch)) for part, one in of_parts(derived.program, {}, derived.case).items()}


def test_a_sweep_grows_one_stream() -> None:
    grown = sweep({"latent": [[4, 16, 16]], "prompt": [10]})
    assert (grown.stream, grown.at(32), grown.tokens(32)) == ("latent", {"latent": [[4, 32, 32]], "prompt": [10]}, 4096)
    text = sweep({"latent": [[16, 16]] * 2, "prompt": [10, 20]}, "prompt")
    assert (grown.label, text.label) == ("positions of latent in an item", "tokens of prompt in an item")
    assert text.at(128) == {"latent": [[16, 16]] * 2, "prompt": [128, 128]}
    assert text.first(lambda batch: batch["prompt"][0] >= 1000) == 1000
    assert text.first(lambda batch: True) is None and text.first(lambda batch: False) is None


def test_shares_are_stacked_to_one_hundred() -> None:
    figure = breakdown("t", "tokens of text", [128, 256, 512], {"linears": [1, 1, 1], "attention": [1, 2, 3]}, 300)
    (axes,) = figure.axes
    tops = [[float(max(y for x, y in area.get_paths()[0].vertices if x == at)) for at in (128, 256, 512)] for area in axes.collections]
    assert tops[0] == pytest.approx([50, 100 / 3, 25]) and tops[1] == pytest.approx([100, 100, 100])
    assert [line.get_xdata()[0] for line in axes.lines] == [300]
    assert "300" in axes.texts[0].get_text() and axes.get_xlabel() == "tokens of text"


def test_lines_are_what_they_are_named() -> None:
    (axes,) = ratios("t", "tokens of text", [128, 256], {"full": [1.0, 1.0], "lora": [0.5, None]}, "full").axes
    assert [line.get_label() for line in axes.lines] == ["full", "lora"]
    assert list(axes.lines[0].get_ydata()) == [1.0, 1.0] and axes.get_ylabel() == "ratio to full"


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "llama"),
        ("explain", "unet_2d_condition", "--over", "latent"),
        ("compare", "llama", "--regimes", "full,lora"),
        ("compare", "llama", "--conventions", "symflops,torch"),
    ],
)
def test_commands_draw(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "picture.png"
    assert main([*words, "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(PNG) and capsys.readouterr().err.count("\n") <= 1  # the note on class defaults


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--plot", "x.nothing"), "the picture cannot be written"),
        (("--plot", "x.png", "--over", "txet"), "the batch has text"),
        (("--plot", "x.png", "--batch", '{"text": []}'), "the batch has none with items"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "llama", *words]) == 2
    assert told in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_without_matplotlib_it_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert main(["explain", "llama", "--plot", "x.png"]) == 2
    assert "pip install 'symflops[plot]'" in capsys.readouterr().err
