"""Names of moments: short enough to read, distinct, and with their formula beside them."""

from __future__ import annotations

import re

import pytest

from symflops.emit.python.module import render
from symflops.emit.python.printer import PythonPrinter
from symflops.lower.names import LONGEST_NAME
from symflops.read.spec_files import shipped, specs_in
from tests.sampling import sampled
from tests.shipped import load

PAPERS = [file.name for file in specs_in(shipped("specs"), "papers")]
NAMES = [*sampled(list(PAPERS), 4, 1), *sampled([file.name for file in specs_in(shipped("specs")) if file.name not in PAPERS], 36, 12)]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_short_and_distinct(name: str) -> None:
    names = [moment.name for moment in load(name).typical(("full",), ("symflops",)).moments]
    assert len(set(names)) == len(names) and max(map(len, names), default=0) <= LONGEST_NAME
    assert all(one.isidentifier() and one.strip("_") for one in names)


def test_a_name_that_was_short_is_as_it_was() -> None:
    for spec, names in (("mistral", ["min_x_W", "min_x_W_min_x_W"]), ("unet_3d_condition", ["x_8_1_plus_1_plus_1_plus_h_over_2_over_2_over_2_1_plus_1_plus_1_plus_w_over_2_over_2_over_2"])):
        assert set(names) <= {moment.name for moment in load(spec).typical(("full",), ("symflops",)).moments}


def test_the_formula_stands_beside_a_short_name() -> None:
    program = load("bigbird").typical()
    text = re.sub(r"\s+(# )?", " ", render(program, "0"))
    short = [moment for moment in program.moments if moment.name.startswith("min_B_R_W_g_n")]
    assert len(short) == 8 and short[0].name == "min_B_R_W_g_n"
    for moment in short:
        assert f"sum of {PythonPrinter().text(moment.formula)} over samples {moment.name}: int" in text
