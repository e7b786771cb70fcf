"""``symflops growth``: crossovers and what one more costs are those of exact estimates."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from symflops.analysis.growth import Growth, OneMore
from symflops.analysis.subject import Subject
from symflops.cli.growth import terms_of
from symflops.cli.main import main
from symflops.evaluate.item_analysis import ATTENTION
from tests import shipped
from tests.parts import of_parts
from tests.sampling import sampled


def growth(name: str, config: dict | None = None) -> Growth:
    subject = Subject(name, config, "full", "symflops")
    return Growth(subject, subject.batch())


@pytest.mark.parametrize("name", sampled(["llama", "qwen3", "gpt2", "deepseek_v3", "qwen3_moe", "phi3"], 6, 2))
def test_attention_overtakes_where_it_is_told(name: str) -> None:
    found = growth(name)
    parts = of_parts(found.subject.program, {}, found.subject.derived.case)
    for one in found.overtakings():
        if one.crossover.value is None:
            continue
        shares = []
        most = found.subject.estimator.taken.get("x", one.crossover.value)
        assert one.refused == ("" if one.crossover.value <= most else f"item 0 of 'text' has length {one.crossover.value}, and the class takes at most {most} tokens")
        if one.refused:  # a class with a longer table of positions costs the same
            wide = Subject(name, {found.program.keys["P"][0]: one.crossover.value}, "full", "symflops")
            parts = of_parts(wide.program, wide.config, wide.derived.case)
        for length in (one.crossover.value - 1, one.crossover.value):
            work = {part: model.total(model.moments(text=[length])) if one.crossover.work == "both" else model.forward(model.moments(text=[length])) for part, model in parts.items()}
            shares.append(2 * work[ATTENTION] >= sum(work.values()))
        assert shares == [False, True]
        assert one.root is None or one.crossover.value - 1 < one.root <= one.crossover.value + 1e-6


@pytest.mark.parametrize("name", ["llama", "deepseek_v3", "gemma3", "qwen_image"])
def test_one_more_is_the_difference_of_two_estimates(name: str) -> None:
    model, found = shipped.load(name), growth(name)
    rows = {one.name: one for one in (*found.tokens(), *found.sizes())}
    base = model.estimator({})
    m = base.moments(**found.batch)
    for key, one in rows.items():
        if one.kind == "length":
            longer = {**found.batch, key: [found.batch[key][0] + one.step]}
            expected = (0, *(work(base.moments(**longer)) - work(m) for work in (base.forward, base.backward)))
        else:
            other = model.estimator({key: one.now + 1})
            n = other.moments(**found.batch)
            expected = (other.parameters - base.parameters, other.forward(n) - base.forward(m), other.backward(n) - base.backward(m))
        assert (one.parameters, one.forward, one.backward) == expected, key
    assert {"llama": "num_hidden_layers", "deepseek_v3": "num_experts_per_tok"}.get(name, "hidden_size" if name != "qwen_image" else "latent") in rows


def test_the_formula_of_one_more_layer() -> None:
    rows: dict[str, OneMore] = {one.name: one for one in growth("llama").sizes()}
    assert terms_of(rows["num_hidden_layers"]) == {"x": "2*(D*(2*d*(H + G) + 3*F) + d*H)", "xx": "2*d*H"}
    experts = {one.name: one for one in growth("deepseek_v3").sizes()}["num_experts_per_tok"]
    assert terms_of(experts) == {"x": "6*D*M*(L - K)"}


def test_the_cost_per_token_over_a_length() -> None:
    _, rows = growth("llama").over()
    estimator = shipped.load("llama").estimator({})
    assert [row.length for row in rows] == [2**power for power in range(7, 18)]
    for row in rows:
        assert row.each == Fraction(estimator.total(estimator.moments(text=[row.length])), row.length)
    assert [row.attention for row in rows] == sorted(row.attention for row in rows)


@pytest.mark.parametrize("name", sampled(["llama", "deepseek_v3", "qwen_image", "gemma3", "qwen3_next", "whisper", "bert", "vit"], 2))
def test_rows_fit_eighty_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["growth", name]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines()), [line for line in out.splitlines() if len(line) > 80]
    assert main(["growth", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1 and {"overtakes", "one_more", "per_token"} <= found.keys()


def test_a_model_without_default_sizes_needs_a_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["growth", "linear"]) == 2
    assert "the config has no" in capsys.readouterr().err
