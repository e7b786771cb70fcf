"""Configs that nobody fixed: several fields at once, fields left out, and the numbers of other fields."""

from __future__ import annotations

import pytest

from tests.sampling import amount, sampled
from tests.verify.other_variations import grown, leveled, of_spec
from tests.verify.variations import variations


@pytest.mark.thorough
@pytest.mark.parametrize("name", sampled(sorted(variations()), 32))
def test_no_other_variation_is_silently_wrong(name: str) -> None:
    exact = 0
    for seed in range(1126, 1131):  # of a few configs none may be one that the class builds
        _, counts, wrong = of_spec(name, seed, amount(3, 20), amount(4, 20), False, amount(0, 1) == 1, amount(0, 1) == 1, amount(30, 600))
        exact += counts["exact"]
        assert not wrong
        if exact:
            break
    assert exact


def test_numbers_of_other_fields_divide() -> None:
    config = {"width": 24, "heads": 4, "widths": [8, 8], "sides": [4, 3]}
    assert list(leveled("width", 24, config)) == [1, 3, 4, 6, 8]
    assert list(leveled("widths", [8, 8], config)) == [[1, 8], [8, 1], [1, 1], [4, 8], [8, 4], [4, 4]]


def test_lists_of_one_length_grow_together() -> None:
    config = {"stages": 2, "depths": [1, 3], "width": 7, "part": {"widths": [8, 4], "odd": [1]}}
    longer, shorter = grown(config)
    assert longer == {"depths": [1, 3, 3], "part.widths": [8, 4, 4], "stages": 3}
    assert shorter == {"depths": [1], "part.widths": [8], "stages": 1}
