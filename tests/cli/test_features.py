"""``symflops new --with`` and ``symflops check --watch``."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from symflops.cli.actions.check import changes
from symflops.cli.actions.new import features
from symflops.cli.main import main
from symflops.read.spec_files import find_spec
from tests.shipped import load


@pytest.mark.parametrize("feature", features())
@pytest.mark.parametrize("like", ["llama", "jamba"])
def test_each_feature_changes_a_copy(tmp_path: Path, like: str, feature: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The copy is valid without a warning, and describes no class."""
    assert main(["new", "mine", "--like", like, "--with", feature, "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["check", str(tmp_path / "mine.yaml")]) == 0
    assert "1 spec, all fine\n" in capsys.readouterr().err
    assert "reference" not in (tmp_path / "mine.yaml").read_text("utf-8").split("graph:")[1]


def test_features_combine(tmp_path: Path) -> None:
    """Useful pairs are those of the window, and each token runs through its experts alone."""
    assert main(["new", "mine", "--like", "llama", "--with", "window, experts", "-o", str(tmp_path)]) == 0
    config = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 10, "sliding_window": 3}
    config |= {"num_experts": 4, "num_experts_per_tok": 2}
    estimator = load(tmp_path / "mine.yaml").estimator(config)
    pairs, tokens = sum(min(row + 1, 3) for row in range(7)), 7
    per_token = 2 * (4 * 8 * 8 + 8 * 4 + 2 * 3 * 8 * 16) + 8 * 10
    assert estimator.forward(estimator.moments(text=[7])) == 2 * (per_token * tokens + 2 * 2 * 8 * pairs)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--like", "llama", "--with", "windw"], "did you mean 'window'"),
        (["--like", "vit", "--with", "window"], "no entry of its own"),
        (["--like", "mistral", "--with", "experts"], "begin like 'llama'"),
        (["--with", "window"], "--like"),
    ],
)
def test_what_cannot_be_added(tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says why, and no file."""
    assert main(["new", "mine", *words, "-o", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


GOOD = "language: 2\nname: small\nsizes: {D: width}\nstreams: {text: [x]}\ninputs: {t: {stream: text, width: D}}\ngraph: [{a: {op: linear, from: t, width: D, to: a}}]\noutputs: [a]\n"


def test_a_watched_spec_is_checked_after_each_change(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens while nothing changes; a file that is gone for a moment does no harm."""
    path = tmp_path / "small.yaml"
    path.write_text(GOOD, "utf-8")
    steps = iter([lambda: None, lambda: path.write_text(GOOD.replace("[a]", "[b]"), "utf-8"), lambda: None, path.unlink, lambda: path.write_text(GOOD, "utf-8")])

    def sleep(seconds: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(time, "sleep", sleep)
    assert main(["check", str(path), "--watch"]) == 0
    told = capsys.readouterr().err
    assert told.count("1 spec, all fine") == 2 and told.count("1 spec, 1 with errors") == 1
    assert "unknown-value" in told and str(path) in told


def test_blocks_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block beside the spec is a file that it may read."""
    (tmp_path / "small.yaml").write_text(GOOD, "utf-8")
    (tmp_path / "blocks").mkdir()
    monkeypatch.setattr(time, "sleep", lambda seconds: (tmp_path / "blocks" / "mine.yaml").write_text(GOOD, "utf-8"))
    found = changes([find_spec(tmp_path / "small.yaml")])
    assert [next(found), next(found)] == [None, None]
