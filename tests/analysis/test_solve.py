"""``symflops solve`` and ``symflops budget``: whole numbers by exact evaluation, and what is told where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.analysis.solve import LARGEST, search, solve
from symflops.analysis.subject import Subject
from symflops.cli.main import main
from symflops.support.errors import SymflopsError
from tests import shipped

BATCH = {"text": [300, 20]}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("name", ["num_hidden_layers", "D", "vocab_size", "intermediate_size"])
def test_the_value_is_the_last_one_within_the_budget(name: str) -> None:
    """As the estimates of configs with this value and with the next one say."""
    model = shipped.load("llama")
    key = {"D": "hidden_size"}.get(name, name)
    budget = 10**14 + 7
    found = solve(Subject("llama", None, "full", "symflops"), name, budget, BATCH)
    totals = []
    for value in (found.value, found.following):
        estimator = model.estimator({key: value})
        totals.append(estimator.total(estimator.moments(**BATCH)))
    assert totals == [found.flops, found.following_flops]
    assert totals[0] <= budget < totals[1] and found.remainder == budget - totals[0]
    assert found.following == found.value + 1 and found.grows and found.throughout


def test_groups_are_solved_for_among_those_that_divide_the_heads() -> None:
    model, budget = shipped.load("llama"), 10**13
    totals = {groups: estimator.total(estimator.moments(**BATCH)) for groups in (1, 2, 4, 8, 16, 32) for estimator in (model.estimator({"num_key_value_heads": groups}),)}
    budget = (totals[8] + totals[16]) // 2
    found = solve(Subject("llama", None, "full", "symflops"), "num_key_value_heads", budget, BATCH)
    assert (found.value, found.following, found.flops, found.following_flops) == (8, 16, totals[8], totals[16])
    with pytest.raises(SymflopsError, match="that fits the model"):
        solve(Subject("llama", None, "full", "symflops"), "num_key_value_heads", 10**16, BATCH)


def test_a_length_is_solved_for_in_all_items() -> None:
    found = solve(Subject("llama", None, "forward", "torch"), "text", 10**14, BATCH)
    estimator = shipped.load("llama").estimator({}, "forward", "torch")
    totals = [estimator.total(estimator.moments(text=[length, length])) for length in (found.value, found.value + 1)]
    assert totals[0] == found.flops <= 10**14 < totals[1]


def test_tokens_are_those_of_whole_steps() -> None:
    subject = Subject("llama", None, "full", "symflops")
    step = subject.estimator.total(subject.estimator.moments(**BATCH))
    found = solve(subject, "tokens", 10 * step + 5, BATCH)
    assert (found.value, found.flops, found.remainder) == (10 * 320, 10 * step, 5)
    layers = solve(subject, "num_hidden_layers", 10 * step + 5, BATCH, tokens=10 * 320 - 3)  # ten steps, the last one not full
    assert layers.value == 32 and layers.flops == 10 * step


def test_a_size_that_fits_only_every_second_value() -> None:
    config = shipped.cases_of(shipped.FILES["hunyuan_dit"])[0].config
    subject = Subject("hunyuan_dit", config, "full", "symflops")
    found = solve(subject, "num_layers", 10**12, subject.batch())
    assert found.step == 2 and found.value % 2 == 0


def test_costs_that_fall_or_do_not_change() -> None:
    falling = search(lambda value: 10**6 // value, 10**3 + 1, 7, LARGEST["number"], "p")
    assert (falling.value, falling.grows, falling.following) == (1000 - 1 + (10**6 // 999 > 1001), False, falling.value - 1)
    with pytest.raises(SymflopsError, match="does not depend on 'p'"):
        search(lambda value: 5, 10, 1, 100, "p")
    with pytest.raises(SymflopsError, match="more than the budget"):
        search(lambda value: 50 * value, 10, 1, 100_000, "p")
    with pytest.raises(SymflopsError, match="still less than the budget"):
        search(lambda value: value, 10**9, 1, 1000, "p")
    wild = search(lambda value: value * 100 + (5000 if value % 7 == 3 else 0), 10_000, 5, 10**6, "p")
    assert not wild.throughout and wild.flops <= 10_000 < (wild.following_flops or 0)


@pytest.mark.parametrize("words, told", [
    (("--for", "num_hidden_layer", "--flops", "1e15"), "did you mean 'num_hidden_layers'"),
    (("--for", "tied", "--flops", "1e15"), "not a number"),
    (("--for", "L", "--flops", "ten"), "takes a number"), (("--for", "L", "--flops", "1e99"), "at most 40 digits"),
    (("--for", "L", "--flops", "0.5"), "whole number"), (("--for", "L", "--flops", "5"), "more than the budget"),
    (("--for", "tokens", "--flops", "5"), "more than the budget"),
    (("--for", "tokens", "--tokens", "9", "--flops", "1e15"), "either"),
    (("--for", "text", "--flops", "1e15", "--batch", "{\"text\": []}"), "no items of 'text'"),
])  # fmt: skip
def test_mistakes_are_told(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "solve", "llama", *words)
    assert code == 2 and not out and told in err and len(err.splitlines()) == 1


def test_what_solve_prints(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("solve", "llama", "--for", "num_hidden_layers", "--flops", "1e15", "--batch", '{"text": [4096]}')
    code, out, _ = run(capsys, *words)
    assert code == 0 and out.startswith("num_hidden_layers = 185\n") and all(len(line) <= 80 for line in out.splitlines())
    found = json.loads(run(capsys, *words, "--json")[1])
    assert found["value"] == 185 and found["flops"] + found["remainder"] == found["budget"] == 10**15
    assert found["monotone"] is found["grows"] is True


def test_device_hours(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("budget", "llama", "--tokens", "1e9", "--mfu", "0.5", "--peak", "1000", "--devices", "8", "--batch", '{"text": [4096]}')
    code, out, _ = run(capsys, *words)
    named = run(capsys, *words[:6], "--peak", "h100")[1]
    assert code == 0 and "H100 SXM" in named and all(len(line) <= 80 for line in (out + named).splitlines())
    found = json.loads(run(capsys, *words, "--json")[1])
    estimator = shipped.load("llama").estimator({})
    step = estimator.total(estimator.moments(text=[4096]))
    assert (found["steps"], found["flops"]) == (-(-(10**9) // 4096), -(-(10**9) // 4096) * step)
    assert found["device_hours"] == pytest.approx(found["flops"] / 0.5e15 / 3600) and found["hours"] * 8 == pytest.approx(found["device_hours"])


@pytest.mark.parametrize("words, told", [
    (("--tokens", "1e9", "--mfu", "40", "--peak", "1000"), "at most 1"), (("--tokens", "0", "--mfu", "0.4", "--peak", "1000"), "at least one token"),
    (("--tokens", "1e9", "--mfu", "0.4", "--peak", "-3"), "not a positive number"), (("--tokens", "1e9", "--mfu", "0.4", "--peak", "warp"), "warp"),
    (("--tokens", "1e9", "--mfu", "0.4", "--peak", "1000", "--devices", "0"), "at least one device"),
    (("--tokens", "1e9", "--mfu", "0.4", "--peak", "1000", "--convention", "macs.yaml"), "MACs"),
])  # fmt: skip
def test_mistaken_budgets_are_told(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "macs.yaml").write_text("name: mine\nunit: macs\n")
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "budget", "llama", *words)
    assert (code, out) == (2, "") and told in err
