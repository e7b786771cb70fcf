"""Conditions of a spec that a config must fulfil: symbolic ones, ones of lists, inherited ones, and what is no condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from symflops.api import load
from symflops.cli.main import main
from symflops.support.findings import SymflopsError

SPEC = """language: 2
name: demanding
sizes:
  D: {key: width, default: 8}
  H: {key: heads, default: 2}
  widths: {key: widths, default: [4, 4]}
  act: {key: act, default: "'silu'"}
derived: {d: D//H}
requires:
  pairs: d % 2 == 0
  alike: sum(1 for width in per(widths, len(widths)) if width == widths[0]) == len(widths)
  known: act in ['silu', 'gelu']
streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - a: {op: linear, from: t, width: H*d, to: u}
  - blocks: {repeat: widths, item: w, graph: [{b: {op: linear, from: u, width: w, to: _}}]}
outputs: [u]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demanding")
    (folder / "demanding.yaml").write_text(SPEC, "utf-8")
    return folder


def refused(path: Path, config: dict[str, Any]) -> str:
    try:
        assert load(path).estimator(config).parameters
    except SymflopsError as error:
        return str(error)
    return ""


@given(st.integers(1, 40), st.integers(1, 6), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.sampled_from(["silu", "gelu", "relu"]))
def test_a_config_is_refused_exactly_if_a_condition_does_not_hold(folder: Path, width: int, heads: int, widths: list[int], act: str) -> None:
    found = refused(folder / "demanding.yaml", {"width": width, "heads": heads, "widths": widths, "act": act})
    holds = (width // heads) % 2 == 0, len(set(widths)) == 1, act != "relu"
    assert bool(found) == (not all(holds)) or width // heads == 0
    if found:
        told = [("d % 2 == 0", "(heads, width)"), ("sum(1 for", "widths"), ("act in", "(act)")]
        assert any(words in found and fields in found for held, (words, fields) in zip(holds, told, strict=True) if not held), found


def test_conditions_are_inherited_and_taken_away(folder: Path) -> None:
    heir = folder / "heir.yaml"
    heir.write_text("language: 2\nname: heir\nextends: demanding\nrequires: {alike: null, wide: D >= 8}\n", "utf-8")
    assert "'d % 2 == 0' does not hold" in refused(heir, {"width": 9, "heads": 3})
    assert not refused(heir, {"widths": [1, 2]}) and "wide: 'D >= 8' does not hold" in refused(heir, {"width": 4})


@pytest.mark.parametrize(
    ("condition", "words"),
    [("D", "'D' is no condition"), ("Q > 1", "'Q'"), ("y > 1", "'y'"), ("D >", "is not an expression"), ("[D]", "is no condition")],
)
def test_what_is_no_condition_of_sizes_is_a_finding(folder: Path, condition: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "wrong.yaml"
    path.write_text(SPEC.replace("d % 2 == 0", f'"{condition}"').replace("name: demanding", "name: wrong"), "utf-8")
    assert main(["check", str(path)]) == 1
    assert words in capsys.readouterr().err


def test_lists_are_compared_item_by_item(folder: Path) -> None:
    """A list with a size in it is equal to one of numbers if the size is."""
    path = folder / "lists.yaml"
    path.write_text(SPEC.replace("name: demanding", "name: lists").replace("pairs: d % 2 == 0", "pairs: '[D, [H, 3]] == [8, [2, 3]]'"), "utf-8")
    assert not refused(path, {}) and "does not hold" in refused(path, {"width": 10}) and "does not hold" in refused(path, {"heads": 4})


def test_a_structure_that_one_config_decided_says_nothing_of_another(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of a config whose lists do not fit is kept, and is not taken for one whose lists fit."""
    from symflops.library.catalog import by_name
    from symflops.library.lookup import interpreted

    (tmp_path / "specs" / "own").mkdir(parents=True)
    (tmp_path / "specs" / "own" / "demanding.yaml").write_text(SPEC, "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for widths, fits in (([2, 3], False), ([3, 3], True), ([2, 3], False), ([4, 4], True)):
        try:
            interpreted(by_name("demanding"), "demanding", {"widths": widths}, tell=lambda text: None)
            assert fits
        except SymflopsError as error:
            assert not fits and "does not hold" in str(error)
