"""Figures that README and the documentation print, computed again."""

from __future__ import annotations

import json
import re

import pytest

from symflops.cli.main import main
from symflops.read.spec_files import roots, specs_in
from tests.docs.pages import DOCS, ROOT
from tests.shipped import load

README = (ROOT / "README.md").read_text("utf-8")
CONVENTIONS = (DOCS / "conventions.md").read_text("utf-8")
ROW = re.compile(r"^\| `([\w-]+)` \| ([\d,]+) \| ([\d.]+) \|", re.MULTILINE)
TEXT = [4096]


def total(convention: str) -> int:
    estimator = load("llama").estimator({}, "full", convention)
    return estimator.total(estimator.moments(text=TEXT))


def test_the_table_of_conventions(capsys):
    """Each figure is that of the convention, and what ``compare`` prints."""
    rows = ROW.findall(CONVENTIONS)
    assert len(rows) == 15 and {"symflops", "torch", "verl", "megatron", "palm"} < {name for name, _, _ in rows}
    useful = total("symflops")
    for name, figure, ratio in rows:
        assert int(figure.replace(",", "")) == total(name), name
        assert ratio == f"{total(name) / useful:.3f}", name
    names = [name for name, _, _ in rows]
    assert main(["compare", "llama", "--conventions", ",".join(names), "--batch", "4096", "--table", "--json"]) == 0
    shown = {row["convention"]: row["total"] for row in json.loads(capsys.readouterr().out)["conventions"]}
    assert shown == {name: int(figure.replace(",", "")) for name, figure, _ in rows}


def test_the_first_screens_of_the_readme():
    """One sentence, the picture, an answer, MFU, what others can do, a formula, evidence; then how to use it, in 1,700 words."""
    assert len(README.split()) <= 1700 and len(README.splitlines()) <= 250
    picture = re.search(r"!\[([^]]{40,})\]\(([^)]+)\)", README)
    assert picture and (ROOT / picture[2]).is_file()
    order = ["**What does this network cost?**", picture[2], "pip install -q .", "$ symflops estimate", "$ symflops mfu", "## What else counts FLOPs", "FLOPs, not bytes"]
    order += ["## A model as a formula", "## Why believe it", "## Commands", "| to ask |", "| to train |", "| to author |", "| to maintain |", "## Speed", "docs/speed.md"]
    places = [README.index(words) for words in order]
    assert places == sorted(places) and len(re.findall(r"^\\mathrm\{forward\}", README, re.MULTILINE)) == 1


def test_one_install_and_one_test():
    assert README.count("pip install -q .") == 1 and README.count("python -m pytest -q\n") == 1


def test_how_many_records_are_exact():
    exact, records = re.search(r"(\d+) of \[(\d+) measured records\]", README).groups()
    counted = (ROOT / "generated" / "verified.md").read_text("utf-8")
    assert f"{records} records: {exact} are exact" in counted


@pytest.mark.parametrize(("regime", "ratio", "pages"), [("lora:r=16,targets=*.q_proj|*.v_proj", "0.69", ("faq.md",)), ("checkpointed", "1.26", ("mfu.md", "faq.md"))])
def test_ratios_in_prose(regime, ratio, pages):
    model = load("llama")
    one, full = (model.estimator({}, name, "torch") for name in (regime, "full"))
    moments = one.moments(text=[2048])
    found = (one.total(moments) + one.recomputed(moments)) / full.total(full.moments(text=[2048]))
    assert f"{found:.2f}" == ratio
    for page in pages:
        assert ratio in (DOCS / page).read_text("utf-8")


def test_factors_on_the_page_of_conventions():
    page = CONVENTIONS
    totals = [int(figure.replace(",", "")) for _, figure, _ in ROW.findall(page)]
    assert f"a factor of {max(totals) / min(totals):.2f}" in page
    differences = (ROOT / "generated" / "conventions" / "differences.md").read_text("utf-8")
    row = next(line for line in differences.splitlines() if line.startswith("| transformers |"))
    assert "DeepSeek-V3 sixteen" in page and re.findall(r"\[([\d.]+)\]", row)[2].startswith("16.")


@pytest.mark.thorough
def test_how_many_specs_are_derived_for_a_config():
    said = re.search(r"(\d+) of (\d+) specs need it", README.replace("\n  ", " "))
    graphs = [load(file.name).graph({}) for file in specs_in(roots()[-1])]
    assert said and (int(said[1]), int(said[2])) == (sum(bool(graph.fixed) for graph in graphs), len(graphs))
