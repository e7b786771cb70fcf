"""Numbers that do not move alone move with those they are tied to: sides of pictures, patches, rotations, shares of a width."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from symflops.draft.draft import draft
from symflops.draft.prove.points import ranks
from symflops.draft.prove.prove import PUBLISHED
from symflops.draft.sample.samples import Runner, explored
from symflops.draft.trace.steps import Subject

MODULE = Path(__file__).parent / "picture_model.py"
CONFIG = {"width": 24, "heads": 4, "shares": [2, 4], "patch": 2, "channels": 5, "depth": 2, "multiple": 8, "words": 20}
INPUTS = {
    "picture": {"shape": [2, 5, 8, 12], "dtype": "float32"},
    "mask": {"shape": [2, 8, 12], "dtype": "float32"},
    "turns": {"shape": [24, 6], "dtype": "float32"},
    "text": {"shape": [2, 7, 20], "dtype": "float32"},
}
SUBJECT = Subject(f"{MODULE}:Patches", CONFIG, INPUTS)


@pytest.fixture(scope="module")
def moves():
    return explored(Runner(SUBJECT, time.monotonic() + 600, lambda _: None))


def tied(moves, label):
    return next({slot.label for slot in one.slots} for one in moves.variables if one.lead.label == label)


@pytest.mark.thorough
def test_a_side_of_a_picture_moves_with_its_mask_and_its_tokens(moves):
    assert tied(moves, "picture[2]") == {"picture[2]", "mask[1]", "turns[0]"}
    assert tied(moves, "picture[3]") == {"picture[3]", "mask[2]", "turns[0]"}


@pytest.mark.thorough
def test_a_patch_moves_with_the_sides_that_it_divides(moves):
    assert {"picture[2]", "picture[3]", "mask[1]", "mask[2]"} <= tied(moves, "patch")


@pytest.mark.thorough
def test_shares_move_together_with_their_width(moves):
    assert tied(moves, "shares[0]") == {"shares[0]", "shares[1]", "width"}


@pytest.mark.thorough
@pytest.mark.thorough
def test_a_number_that_rounding_hides_is_not_taken_for_one_that_changes_nothing(moves):
    assert "multiple" in {one.lead.label for one in moves.variables}


@pytest.mark.thorough
def test_nothing_is_stuck(moves):
    assert not moves.stuck


@pytest.mark.nightly
def test_the_draft_is_exact_far_from_its_samples():
    far = {**CONFIG, "width": 1200, "heads": 20, "shares": [20, 40], "patch": 4, "multiple": 64, "depth": 7}
    inputs = {
        "picture": {"shape": [3, 5, 48, 20], "dtype": "float32"},
        "mask": {"shape": [3, 48, 20], "dtype": "float32"},
        "turns": {"shape": [60, 60], "dtype": "float32"},
        "text": {"shape": [3, 11, 20], "dtype": "float32"},
    }
    found = draft(SUBJECT, 600, published=[SUBJECT.having(far, inputs)])
    assert found.exact, (found.proofs, found.unsolved, found.given_up)
    assert any(proof.kind == PUBLISHED for proof in found.proofs)
    assert "min(" in found.text
    assert "ceil(" in found.text


def test_inputs_of_other_ranks_are_another_variant():
    other = {**INPUTS, "mask": {"shape": [2, 96], "dtype": "float32"}}
    assert ranks(INPUTS) != ranks(other)
    assert ranks(INPUTS) == ranks({**INPUTS, "mask": {"shape": [9, 3, 5], "dtype": "float32"}})
    assert ranks([{"shape": [1, 2]}]) == ranks([{"shape": [3, 4]}, {"shape": [5, 6]}])
    assert replace(SUBJECT, inputs=other).inputs != INPUTS
