"""The tables of other systems' statements: each figure is what the source's own rule gives, which knows nothing of symflops.

``docs/write.py --check`` runs the rows and proves that the page is current, so the figures are read from the page here.
"""

from __future__ import annotations

import re
import sys

import pytest

from tests.docs.pages import DOCS

PAGE = (DOCS / "systems.md").read_text("utf-8")
PART = re.compile(r"<!-- written by docs/write\.py: system ([\w-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
ROW = re.compile(r"^\| (.*) \| (`.*`) \| (.*?) \|$", re.MULTILINE)
TABLES = {name: ROW.findall(text) for name, text in PART.findall(PAGE)}
LEAST = {"verl-omni": 67, "kempnerforge": 26, "ascend": 42, "megatron-bridge": 27, "latte": 24}


@pytest.fixture
def systems(monkeypatch):
    """The module that writes the tables."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import systems

    return systems


def test_every_system_has_its_rows(systems):
    assert set(TABLES) == set(LEAST) == set(systems.systems())
    assert all(len(TABLES[name]) == len(systems.systems()[name]["rows"]) >= least for name, least in LEAST.items())


@pytest.mark.parametrize("name", LEAST)
def test_each_figure_is_that_of_the_sources_rule(systems, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "symflops", None)  # a rule that asks symflops fails
    for (says, _, figure), (stated, rule, holds) in zip(TABLES[name], systems.expected(name), strict=True):
        assert says == systems.escaped(stated)
        if holds:
            assert eval(holds, {**rule, "figure": float(figure.replace(",", ""))}), (says, figure)
        else:
            assert figure == systems.escaped(systems.shown(rule)), says


def test_a_row_runs_as_it_is_written(systems):
    assert systems.shown(systems.ran("symflops device 'NVIDIA H100 PCIe'", {}, r"^([\d.]+) TFLOP/s")) == "756"
    assert systems.shown(systems.ran("size = 3\n[size * 1000, 0.1234567]", {}, "")) == "3,000; 0.123457"
    with pytest.raises(TypeError):
        systems.ran("symflops device 'NVIDIA H100 PCIe'", {}, "no such line ([0-9])")
