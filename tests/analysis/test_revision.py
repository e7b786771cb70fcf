"""``generate`` says which figures a change of a spec moves: as a formula, and in percent at a published size."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from symflops.analysis.revision import relative, ways
from symflops.cli.main import main

SPEC = """language: 2
name: mine
sizes:
  L: {key: layers, default: 4}
  D: {key: width, default: 16}
  E: {key: more, default: 2}
requires: {at least 1 token: longest(x) >= 1}
streams: {text: [x]}
inputs: {ids: {stream: text}}
graph:
  - table: {op: embedding, from: ids, rows: 8, width: D, to: h}
  - layers:
      repeat: L
      graph:
        - up: {op: linear, from: h, width: D, bias: false, add_to: h}
  - down: {op: linear, from: h, width: D*E, bias: false, to: h}
outputs: [h]
"""
ADDED = "        - side: {op: linear, from: h, width: E, bias: false, to: s}\n        - back: {op: linear, from: s, width: D, bias: false, add_to: h}\n"
Change = Callable[..., list[str]]


@pytest.fixture
def change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Change:
    """Replaces texts of a spec whose files are there, and returns what ``generate`` prints then."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "specs/nn/mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(SPEC, "utf-8")
    rules = ("--regime", "full,forward", "--convention", "symflops,linears")
    assert main(["generate", *rules]) == 0
    assert capsys.readouterr().out == ""

    def changed(*pairs: tuple[str, str], words: tuple[str, ...] = ()) -> list[str]:
        text = path.read_text("utf-8")
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new, 1)
        path.write_text(text, "utf-8")
        assert main(["generate", *rules, *words]) == int("--check" in words)
        return capsys.readouterr().out.splitlines()

    return changed


PLACE = ("bias: false, add_to: h}\n", "bias: false, add_to: h}\n" + ADDED)


def test_a_difference_is_a_formula_and_a_share_at_the_defaults(change: Change) -> None:
    """A passing comparison prints it, too, and leaves the files as they are."""
    told = [
        "mine:",
        "  parameters: + 2*L*D*E; defaults: +15.4 %",
        "  forward: + 4*L*D*E*x; defaults at text 4096: +16.7 %",
        "  backward (full): + 8*L*D*E*x; defaults at text 4096: +16.7 %",
    ]
    assert change(PLACE, words=("--check",)) == told == change() and change() == []


def test_at_published_sizes(change: Change) -> None:
    """In the order of ``expect``; a size without figures of its own is none."""
    expect = "expect: {wide: {config: {width: 64}, parameters: 25e3}, deep: {config: {layers: 40}, parameters: 10880}, parameters: 1664}\n"
    told = change(("streams:", expect + "streams:"))
    assert told == ["no figure moves: mine"]
    assert change(PLACE)[1:3] == ["  parameters: + 2*L*D*E; wide: +4.08 %; deep: +23.5 %", "  forward: + 4*L*D*E*x; wide at text 4096: +4.17 %; deep at text 4096: +23.8 %"]


def test_regimes_and_conventions_are_told_apart(change: Change) -> None:
    """An attention is seen by one convention and not by the other."""
    told = change(("outputs: [h]", "  - a: {op: attention, heads: 1, query: h, key: h, value: h, to: h}\noutputs: [h]"))
    assert [line.partition(":")[0] for line in told[1:]] == ["  forward (under symflops)", "  backward (full under symflops)"]
    assert told[1].endswith("+ 4*D*E*x**2; defaults at text 4096: x 172")


def test_a_default_moves_figures_without_a_formula(change: Change) -> None:
    assert change(("default: 16", "default: 32"))[1] == "  parameters: the same formula; defaults: +285 %"


def test_a_derived_size_that_changes_its_formula(change: Change) -> None:
    """The letter stays, and the figures move."""
    assert change(("requires:", "derived: {W: D*E}\nrequires:"), ("width: D*E", "width: W")) == ["no figure moves: mine"]
    assert change(("W: D*E", "W: 2*D*E"))[1] == "  parameters: + D**2*E; defaults: +30.8 %"


def test_a_change_of_words_or_letters_moves_no_figure(change: Change) -> None:
    assert change(("name: mine", "name: mine\ntitle: Another")) == ["no figure moves: mine"]
    assert change(("  E: {", "  M: {"), ("D*E", "D*M")) == ["no figure moves: mine"]


def test_a_summary_is_markdown(change: Change) -> None:
    told = change(PLACE, words=("--check", "--summary"))
    assert told[:4] == ["### `mine`", "", "| figure | difference | change |", "|:--|:--|:--|"]
    assert told[4] == "| parameters | `+ 2*L*D*E` | defaults: +15.4 % |"
    change()
    assert change(("name: mine", "name: mine\ntitle: Another"), words=("--summary",)) == ["no figure moves: `mine`"]


@pytest.mark.parametrize("damage", [{"format": 0}, {"cases": 1}, {"cases": []}, {"regimes": [{}]}, {"formulas": []}])
def test_damaged_programs_are_written_anew(change: Change, tmp_path: Path, damage: dict[str, object]) -> None:
    """Nothing is said about them."""
    path = tmp_path / "generated/nn/mine.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **damage}), "utf-8")
    assert change() == []
    path.write_text("{", "utf-8")
    assert change() == []


@pytest.mark.parametrize(("before", "after", "text"), [(10, 10, "0 %"), (1000, 1003, "+0.3 %"), (10, 5, "-50 %"), (1, 20, "x 20"), (0, 3, "new"), (3, 0, "-100 %")])
def test_relative_changes(before: int, after: int, text: str) -> None:
    assert relative(before, after) == text


def test_groups_of_regimes_and_conventions_are_named_shortly() -> None:
    every = [(regime, convention) for regime in ("full", "lora") for convention in "abcdef"]
    assert ways(every, every) == "" and ways(every[:6], every) == "full"
    assert ways([cell for cell in every if cell[1] == "a"], every) == "under a"
    assert ways([cell for cell in every if cell != ("lora", "f")], every) == "full; lora under all but f"
