"""The page on packing: its recipe balances, and its table says what the text does."""

from __future__ import annotations

import random
import re

from tests.docs.pages import DOCS, ROOT, blocks

PAGE = DOCS / "packing.md"


def test_the_recipe_balances():
    (block,) = [block for block in blocks(PAGE) if block.language == "python"]
    names: dict = {}
    exec(compile(block.text, "packing.md", "exec"), names)
    draw = random.Random(0)
    lengths = [round(2 ** draw.uniform(6, 14)) for _ in range(400)]
    ranks = names["balanced"](lengths, 8)
    assert sorted(sample for some in ranks for sample in some) == list(range(400))
    costs = names["model"].per_sample(text=lengths)
    totals = [sum(costs[sample] for sample in some) for some in ranks]
    assert max(totals) * 8 <= 1.01 * sum(totals)


def test_exact_costs_are_never_worse_by_more_than_the_greedy_choice_itself():
    rows = [[float(cell.strip(" %")) for cell in line.split("|")[2:8]] for line in PAGE.read_text("utf-8").splitlines() if re.match(r"^\| [A-Z]", line)]
    assert len(rows) == 5
    for tokens, squares, exact, of_tokens, of_squares, of_exact in rows:
        assert exact <= 0.1 and exact <= min(tokens, squares) and of_exact <= min(of_tokens, of_squares)


def test_bins_take_what_fits():
    import runpy

    names = runpy.run_path(str(ROOT / "benchmarks" / "packing.py"))
    found = names["spread"]([5, 4, 3, 3, 3], 2, lambda item, some: len(some) < 3)
    assert [sum([5, 4, 3, 3, 3][item] for item in some) for some in found] == [8, 10] and names["idle"](found, [5, 4, 3, 3, 3]) > 0.1
