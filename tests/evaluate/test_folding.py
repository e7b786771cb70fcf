"""Names that differ only in numbers merge, and the merged name lists exactly these numbers."""

from __future__ import annotations

import itertools
import re

from hypothesis import HealthCheck, given, settings, strategies as st

from symflops.evaluate.number_ranges import merged_names


def spelled(pattern: str) -> set[str]:
    """All names that a folded one stands for."""
    def numbers(text: str) -> list[str]:
        if re.fullmatch(r"\d+-\d+", text):
            first, last = map(int, text.split("-"))
            return [str(number) for number in range(first, last + 1)]
        return text.split(",")

    pieces = re.split(r"\{([^}]*)\}", pattern)
    choices = [[piece] if place % 2 == 0 else numbers(piece) for place, piece in enumerate(pieces)]
    return {"".join(chosen) for chosen in itertools.product(*choices)}


NAMES = st.lists(st.builds("{}.{}.{}.{}".format, st.sampled_from(["down", "up"]), st.integers(0, 4), st.sampled_from(["a", "b1"]), st.integers(0, 3)), unique=True, max_size=40)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(NAMES, st.lists(st.integers(0, 1), min_size=40, max_size=40))
def test_every_name_stands_once(names: list[str], alike: list[int]) -> None:
    found = merged_names(names, alike[: len(names)])
    assert sorted(place for _, places in found for place in places) == list(range(len(names)))
    for pattern, places in found:
        assert spelled(pattern) == {names[place] for place in places}
        assert len({alike[place] for place in places}) == 1
    assert [places[0] for _, places in found] == sorted(places[0] for _, places in found)


def test_levels_fold() -> None:
    names = [f"down.{level}.resnets.{number}.conv" for level in range(4) for number in range(2)]
    assert merged_names(names) == [("down.{0-3}.resnets.{0,1}.conv", tuple(range(8)))]
    assert merged_names([*names, "down.4.resnets.0.conv"]) == [("down.{0-3}.resnets.{0,1}.conv", tuple(range(8))), ("down.4.resnets.0.conv", (8,))]
    assert merged_names(["attn", "attn"]) == [("attn", (0,)), ("attn", (1,))]
