"""Every printing of a convention says its unit, and what it assumes of the backward pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.emit.emit import emit
from symflops.read.spec_files import pages
from tests.sampling import sampled
from tests.shipped import load

ASIDE = re.compile(r"[^.\n]*(PyTorch|counted its parameters)[^.\n]*\.[^.\n]*")  # what PyTorch counted is in FLOPs


@pytest.fixture
def macs(tmp_path) -> str:
    """The page of a convention that counts what ``symflops`` does, in MACs."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nunit: macs\n")
    return str(path)


def printed(spec: str, regime: str, conventions: list[str], form: str, folder: Path) -> str:
    words = [word for name in conventions for word in ("--convention", name)]
    assert main(["render", spec, "--full", "--format", form, "--regime", regime, *words, "-o", str(folder)]) == 0
    (path,) = (path for path in folder.iterdir() if path.stem == spec and path.suffix in (".md", ".tex", ".html"))
    return path.read_text("utf-8")


@pytest.mark.parametrize("form", ["markdown", "latex"])
@pytest.mark.parametrize("spec", sampled(["llama", "dit", "qwen3_moe"], 3, 1))
def test_pages_of_a_convention_in_macs_say_macs(spec, form, macs, tmp_path):
    text = ASIDE.sub("", printed(spec, "full", [macs], form, tmp_path))
    assert "A multiply-add counts as one MAC" in " ".join(text.split())
    assert "Forward MACs" in text and "MACs each" in text and "All values are MACs per batch" in " ".join(text.split())
    assert "FLOP" not in text.replace("symflops", "").replace("floating-point", "")


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_pages_with_both_units_say_which_is_which(form, macs, tmp_path):
    text = " ".join(printed("llama", "full", ["symflops", macs], form, tmp_path).split())
    assert "A multiply-add counts as two FLOPs" in text and "Forward FLOPs" in text
    assert "Values are FLOPs, or what a heading says, per batch" in text
    assert re.search(r"convention \W*(\\texttt\{|`)mine(\}|`), in MACs", text)


def test_html_pages_name_the_unit_of_each_convention(macs, tmp_path):
    text = printed("llama", "full", ["symflops", macs], "html", tmp_path)
    assert '"units":{"symflops":"FLOPs","mine":"MACs"}' in text and "Work of this batch by part" in text
    alone = printed("llama", "full", [macs], "html", tmp_path)
    assert "MACs of this batch by part" in alone


def test_modules_say_which_conventions_count_macs(macs):
    both = "FLOPs (MACs under mine; a multiply-add as one under latte)"
    for conventions, told in ((["symflops", macs, "latte"], both), ([macs], "MACs"), (["symflops"], "FLOPs")):
        text = emit(load("llama").typical(["full"], conventions), "1", endings=("py",))["py"]
        assert f'"""{told} by part of the model:' in text and f'"""{told} of the forward pass."""' in text


@pytest.mark.parametrize("form", ["markdown", "latex", "html"])
def test_pages_say_that_a_source_counts_a_multiply_add_as_one_flop(form, tmp_path):
    alone, both = (" ".join(printed("llama", "full", names, form, tmp_path / names[0]).split()) for names in (["latte"], ["symflops", "latte"]))
    assert "A multiply-add counts as one FLOP, as its source counts" in alone and "Forward FLOPs" in alone and "MACs" not in alone
    assert "reproduces XDiMo, a fork of Latte at commit 51d8d5a6c639 of 2026-02-10; since then: tokens are patches" in alone
    assert "Its source counts a multiply-add as one FLOP" in alone and "Its source counts a multiply-add as one FLOP" in both
    assert "A multiply-add counts as two FLOPs" in both


ASSUMING = ("latte", "kaplan", "megatron", "litgpt", "veomni", "ascend-guide")


@pytest.mark.parametrize("convention", sampled(ASSUMING, 3, 1))
def test_an_assumed_backward_pass_is_no_derived_one(convention, tmp_path):
    text = printed("llama", "full", [convention], "markdown", tmp_path)
    assert "x forward in this convention" in text or "x the derived forward pass in this convention" in text
    assert "## Backward as a multiple of forward" in text and "| Forward | Backward |" in text
    assert not any(words in text for words in ("backward is less than that", "not always computed", "times for the", "Input gradients"))


def test_a_derived_backward_pass_is_explained(tmp_path):
    text = printed("dit", "full", ["symflops"], "markdown", tmp_path)
    assert "## Why backward is not twice forward" in text and "Input gradients" in text and "backward is less than that" in text


def test_every_shipped_convention_says_what_it_counts_in():
    program = load("llama").typical(["full"], list(pages("conventions")))
    assert {unit for _, unit in program.units} == {"flops", "macs_as_flops"} and len(program.units) == len(pages("conventions"))
