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
ROW = re.compile(r"^\| `([\w-]+)` \| ([\d,]+) \| ([\d.]+) \|", re.MULTILINE)
TEXT = [4096]


def total(convention: str) -> int:
    estimator = load("llama").estimator({}, "full", convention)
    return estimator.total(estimator.moments(text=TEXT))


def test_the_table_of_the_readme():
    rows = ROW.findall(README)
    assert len(rows) == 7 and {"symflops", "torch", "verl", "megatron", "palm"} < {name for name, _, _ in rows}
    useful = total("symflops")
    for name, figure, ratio in rows:
        assert int(figure.replace(",", "")) == total(name), name
        assert ratio == f"{total(name) / useful:.3f}", name
    assert [int(figure.replace(",", "")) for _, figure, _ in rows] == sorted(total(name) for name, _, _ in rows)


def test_the_table_of_the_readme_is_what_compare_prints(capsys):
    names = [name for name, _, _ in ROW.findall(README)]
    assert main(["compare", "llama", "--conventions", ",".join(names), "--batch", '{"text": [4096]}', "--json"]) == 0
    shown = {row["convention"]: row["total"] for row in json.loads(capsys.readouterr().out)["conventions"]}
    assert shown == {name: int(figure.replace(",", "")) for name, figure, _ in ROW.findall(README)}


def test_the_first_screen_of_the_readme():
    head = README.partition("## Install")[0]
    assert len(README.splitlines()) <= 250 and len(head.splitlines()) < 70
    picture = re.search(r"!\[([^]]{40,})\]\(([^)]+)\)", head)
    assert picture and (ROOT / picture[2]).is_file()
    order = ["**What does this network cost?**", "meter = symflops.of_model(model)", picture[2], "who says what", "DeepSeek-V3"]
    places = [head.index(words) for words in order]
    assert places == sorted(places) and len(re.findall(r"^\\mathrm\{forward\}", head, re.MULTILINE)) == 1


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
    page = (DOCS / "conventions.md").read_text("utf-8")
    totals = [int(figure.replace(",", "")) for _, figure, _ in ROW.findall(page)]
    assert len(totals) == 15
    assert f"a factor of {max(totals) / min(totals):.2f}" in page
    differences = (ROOT / "generated" / "conventions" / "differences.md").read_text("utf-8")
    row = next(line for line in differences.splitlines() if line.startswith("| transformers |"))
    assert "DeepSeek-V3 sixteen" in page and re.findall(r"\[([\d.]+)\]", row)[2].startswith("16.")


@pytest.mark.thorough
def test_how_many_specs_are_derived_for_a_config():
    said = re.search(r"(\d+) of (\d+) specs need it", README.replace("\n  ", " "))
    graphs = [load(file.name).graph({}) for file in specs_in(roots()[-1])]
    assert said and (int(said[1]), int(said[2])) == (sum(bool(graph.fixed) for graph in graphs), len(graphs))
