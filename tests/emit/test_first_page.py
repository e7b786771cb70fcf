"""The first page has the result: figures, closed forms written out, a line for each letter, a table by module; a pair is a pair."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import symflops
from symflops.cli.main import main
from symflops.emit.math.definitions import with_plain_words
from symflops.emit.math.printer import letters
from symflops.emit.page.page import page, parts_of_pair
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.step import Step
from symflops.evaluate.typical_values import default_sizes, typical_batch
from symflops.formula.formula import evaluate
from tests import shipped
from tests.emit.math_reader import TOKEN, read
from tests.emit.programs import page_text
from tests.emit.test_latex import displayed
from tests.sampling import sampled

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "generated").glob("*/*.md") if path.parent.name != "conventions")
FIRST = 40
SOME = ("llama", "deepseek_v3", "qwen_image", "whisper", "gemma3", "kimi_linear", "unet_2d", "swin", "mamba", "t5")


def test_the_first_lines_of_each_page_have_its_first_equation() -> None:
    """On all pages of the library; a model without work (an embedding) has none, and says so."""
    missed = [path.stem for path in PAGES if r"\tag{1}" not in "\n".join(path.read_text("utf-8").split("\n")[:FIRST])]
    told = {path.stem for path in PAGES if "There is nothing to count." in path.read_text("utf-8").partition("## By module")[0]}
    assert len(PAGES) >= len(shipped.NAMES) and set(missed) <= told and len(told) < 5


@cache
def text_of(name: str) -> str:
    return page_text(shipped.load(name).typical(["full"], ["symflops"]), "0")


@pytest.mark.parametrize("name", sampled(SOME, 4, 1))
def test_the_first_equations_are_whole_and_their_letters_have_lines(name: str) -> None:
    """The letters that the spec has are enough to read them; each is defined in a line below; the value is the estimator's."""
    program = shipped.load(name).typical(["full"], ["symflops"])
    sizes, names = default_sizes(program), letters(program)
    estimator = InterpretedEstimator(program, {}, regime="full", convention="symflops")
    batch = typical_batch(program)
    sums = {f"moment@{place}": value for place, value in enumerate(Step(program, sizes or {}, batch).moments("symflops"))}
    values = {names[letter]: value for letter, value in {**(sizes or {}), **sums}.items() if names.get(letter)}
    first = text_of(name).partition("## By module")[0]
    for head, expected in (("forward", estimator.forward(estimator.moments(**batch))), ("parameters", estimator.parameters)):
        (equation,) = displayed(first, head)
        assert read(equation, values) == expected
        used = {found.group() for found in TOKEN.finditer(equation) if found.lastgroup == "letter"} & set(values)
        lines = re.findall(r"^- (.*)$", first, re.MULTILINE)
        for letter in used:
            assert any(line.startswith((f"${letter}$", f"${letter} =")) or f"${letter}$" in line.partition(":")[0] for line in lines), letter


@pytest.mark.parametrize("name", sampled(SOME, 4, 1))
def test_the_table_by_module_adds_up(name: str) -> None:
    program = shipped.load(name).typical(["full"], ["symflops"])
    estimator = InterpretedEstimator(program, {}, regime="full", convention="symflops")
    moments = estimator.moments(**typical_batch(program))
    sizes = default_sizes(program) or {}
    values = {**sizes, **{f"moment@{place}": value for place, value in enumerate(Step(program, sizes, typical_batch(program)).moments("symflops"))}}
    assert sum(evaluate(row.term, values) for row in page(program).modules) == estimator.forward(moments)
    shares = re.findall(r"\| ([\d.]+) \|$", text_of(name).partition("## By module")[2].partition("\n## ")[0], re.MULTILINE)
    assert shares and abs(sum(map(float, shares)) - 100) < 0.02 * len(shares)


def value(program: Any, lengths: dict[str, list[int]], row: Any, side: str, **changed: int) -> Any:
    sizes = (default_sizes(program) or {}) | changed
    sums = {f"moment@{place}": value for place, value in enumerate(Step(program, sizes, lengths).moments("symflops"))}
    return evaluate(getattr(row, side), sizes | sums)


def test_a_pair_is_one_query_and_one_key() -> None:
    """By counting: what a causal mask and a window leave of all pairs, and 2*H*d FLOPs for the scores of each."""
    for name, changed, kept in (("llama", {}, lambda q, k: k <= q), ("mistral", {"W": 3}, lambda q, k: q - 3 < k <= q), ("mistral", {"W": 9}, lambda q, k: k <= q)):
        program = shipped.load(name).typical(["full"], ["symflops", "torch"])
        shown, sizes = page(program), default_sizes(program)
        (amount,) = (one for one in shown.amounts if one.name.endswith("pairs"))
        assert value(program, {"text": [7]}, amount, "executed", **changed) == 7**2
        assert value(program, {"text": [7]}, amount, "useful", **changed) == sum(kept(query, key) for query in range(7) for key in range(7))
        units = {evaluate(row.unit, sizes) for row in shown.regimes[0].rows if row.amount == amount.name}
        assert sizes is not None and units == {2 * sizes["H"] * sizes["d"]}


@pytest.mark.parametrize("name", sampled(shipped.NAMES, 12, 1))
def test_halves_of_pairs_stand_only_where_a_mask_leaves_them(name: str) -> None:
    program = shipped.load(name).typical(["full"], ["symflops"])
    stored = {amount.name: amount for amount in program.amounts}
    for row in page(program).amounts:
        halves = parts_of_pair(stored[row.name])
        assert halves in (1, 2) and (halves == 1 or row.useful != row.executed)


def render(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["render", *words, "--format", "markdown"]) == 0
    return capsys.readouterr().out


def test_one_page_by_default_and_the_derivation_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    sections = re.findall(r"^## (.*)$", render(capsys, "llama"), re.MULTILINE)
    assert sections == ["Result", "By module"]
    full = re.findall(r"^## (.*)$", render(capsys, "llama", "--full"), re.MULTILINE)
    assert full[:2] == sections and "Step 3: closed forms" in full


def test_each_regime_and_convention_that_is_asked_for_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    text = render(capsys, "llama", "--regime", "full", "--regime", "lora", "--convention", "symflops", "--convention", "torch")
    heads = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert heads == [f"Regime `{regime}`, convention `{name}`" for regime in ("full", "lora") for name in ("symflops", "torch")]
    assert r"- $\bar{S}_{x} = \sum_{b} x_{b}$ of padded lengths" in text


def test_a_bar_is_explained_where_it_is_used() -> None:
    text = page_text(shipped.load("llama").typical(["full"], ["symflops", "torch"]), "0")
    place = text.index(r"A bar, as in $\bar{S}_{x}$")
    assert text.index("convention `torch`\n") < text.index(r"\bar{S}") < place < text.index("## Why backward")
    assert text.index("Useful pairs are those") < text.index("| Useful pairs | All pairs |") and text.count("A bar,") == 1


def test_a_config_has_its_case_and_its_numbers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 10, "q_lora_rank": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    text = render(capsys, "deepseek_v3", "--config", str(tmp_path / "config.json"))
    assert "- $L$ = $10$: decoder layers (`num_hidden_layers`)" in text and "r_q" not in text and "^{+} \\thinspace" not in text
    assert "at the sizes of this configuration" in text and "whose values stand beside its letters" in text


def test_several_specs_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """Each formula is that of the spec's own page; a letter with two meanings has two rows; what is equal is told once."""
    text = render(capsys, "llama", "mixtral", "whisper")
    table = [re.split(r" \| ", line[2:-2]) for line in text.splitlines() if line.startswith("| ")]
    rows = {cells[0]: cells[1:] for cells in reversed(table)}
    for place, name in enumerate(("llama", "mixtral", "whisper")):
        program = with_plain_words(shipped.load(name).typical(["full"], ["symflops"]))
        sizes, names = default_sizes(program) or {}, letters(program)
        values = {names[letter]: value for letter, value in sizes.items()}
        assert read(rows["parameters"][place].strip("$"), values) == evaluate(program.parameters, sizes)
        for moment, formula in program.case("full", "symflops").forward:
            sign = names[f"moment@{moment}"].replace(r"\,", r"\thinspace ")
            assert read(rows[f"forward, per ${sign}$"][place].strip("$"), values) == evaluate(formula, sizes)
    assert rows["forward, per $S_{\\min(x, W)}$"][0] == "—" and text.count("| $F$ |") > 1
    assert text.count("- a bracket is") == 1 and rows["Parameters"][:2] == ["6,738,415,616", "46,702,792,704"]
    for words in (("--full",), ("--format", "html"), ("--config", "x.json")):
        assert main(["render", "llama", "mixtral", "--format", "latex", *words]) == 2
        assert "several specs" in capsys.readouterr().err



def test_published_models_stand_side_by_side_with_their_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    text = render(capsys, "llama3-8b", "meta-llama/Llama-3.1-70B", "llama")
    parameters = [f"{symflops.explain(name).model.parameters:,}" for name in ("llama3-8b", "Llama-3.1-70B", "llama")]
    assert f"| Parameters | {' | '.join(parameters)} |" in text and "| At these sizes | `llama3-8b` | `meta-llama/Llama-3.1-70B` | `llama` |" in text
    assert main(["render", "llama3-8b", "llama", "--format", "markdown", "--set", "num_hidden_layers=3"]) == 2
    assert "not --set" in capsys.readouterr().err
