"""Names as patterns: they match what was chosen and nothing else, whatever the names are."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase

import pytest

from symflops.training.introspect.regime import patterns_of, selectors

NAMES = [f"a.{i}.{part}" for i in range(6) for part in ("q", "k", "b.0.q", "b.1.q")] + ["head", "a.q"]


def meant(pattern, name):
    """Whether a pattern matches, with slices of indices below six."""
    words, given = pattern.split("."), name.split(".")
    slices = [position for position, word in enumerate(words) if ":" in word]
    if not slices:
        return fnmatchcase(name, pattern)
    if len(words) != len(given) or not all(given[position].isdigit() for position in slices):
        return False
    chosen = [int(given[position]) in range(6)[slice(*(int(side) if side else None for side in words[position].split(":")))] for position in slices]
    return all(chosen) and fnmatchcase(name, ".".join("*" if ":" in word else word for word in words))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("loops", [(), ("a.*.q", "a.*.k"), ("a.*.b.*.q",)])
def test_patterns_choose_exactly(seed, loops):
    rng = random.Random(seed)
    share = rng.choice((0.1, 0.5, 0.9))
    chosen = {name for name in NAMES if rng.random() < share} if seed % 3 else {name for name in NAMES if name.endswith(rng.choice("qk"))}
    patterns = patterns_of(chosen, NAMES, loops)
    assert {name for name in NAMES if any(meant(pattern, name) for pattern in patterns)} == chosen


def test_runs_are_slices_where_a_repeat_is():
    assert selectors([0, 1, 2, 5], [0, 1, 2, 3, 4, 5], True) == [":3", "5"]
    assert selectors([2, 3, 4, 5], [0, 1, 2, 3, 4, 5], True) == ["2:"]
    assert selectors([0, 1, 2], [0, 1, 2, 3], False) == ["0", "1", "2"]
    assert selectors([0, 1], [0, 1], False) == ["*"]
