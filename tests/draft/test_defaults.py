"""The default of a field that a config lacks is an expression in other sizes, or a number."""

import pytest
from torch import nn

from symflops.draft.draft import draft
from symflops.draft.trace.steps import Subject
from symflops.draft.write.draft_document import ordered


class Part(nn.Module):
    """Two linears whose fields stand in a nested config, so no signature shows their defaults."""

    def __init__(self, part):
        super().__init__()
        width = part["width"]
        self.up = nn.Linear(width, part.get("hidden", 4 * width))
        self.down = nn.Linear(part.get("hidden", 4 * width), part.get("out", 40))

    def forward(self, x):
        return self.down(self.up(x).relu())


@pytest.fixture(scope="module")
def found():
    config = {"part": {"width": 24, "hidden": 88, "out": 36}}
    return draft(Subject(f"{__file__}:Part", config, {"x": {"shape": [2, 7, 24], "dtype": "float32"}}), 120.0)


@pytest.mark.thorough
def test_a_size_that_is_made_of_others_and_a_number_are_told_apart(found):
    assert found.exact, (found.given_up, found.unsolved, found.proofs)
    sizes = [line.split(": ", 1) for line in found.text.split("sizes:\n")[1].split("streams")[0].splitlines()]
    told = {fields.split("part.")[1].split(",")[0].rstrip("}"): fields for _, fields in sizes}
    assert "default: 4*" in told["hidden"]
    assert told["out"].endswith("default: 40}")


def test_letters_stand_after_those_that_they_are_made_of():
    assert list(ordered({"H": "n//G", "G": "n//s", "d": "2*H"})) == ["G", "H", "d"]
    assert list(ordered({"G": "H", "d": "D//H"})) == ["G", "d"]
