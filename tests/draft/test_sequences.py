"""Arguments with values: the numbers that may move, and what moves along."""

from symflops.draft.vary.slots import Slot, applied, number_at, slots_of, tokens_in
from symflops.draft.vary.variables import Variable, moved

INPUTS = {
    "input_ids": {"value": [[5, 9, 9, 9, 9, 7, 7]]},
    "types": {"value": [[0, 1, 1, 1, 1, 0, 0]]},
    "attention_mask": {"shape": [1, 7], "dtype": "int64(ones)"},
    "grid": {"value": [[1, 4, 4]]},
    "pixels": {"shape": [16, 12], "dtype": "float32"},
}


def slots() -> dict[str, Slot]:
    return {slot.label: slot for slot in slots_of({"patch": 2}, INPUTS)}


def test_numbers() -> None:
    assert list(slots()) == [
        "patch", "input_ids[0]", "tokens like input_ids[1]", "tokens like input_ids[5]", "types[0]", "grid[0]", "grid[1]",
        "grid[2]", "grid[3]", "attention_mask[0]", "pixels[0]", "pixels[1]",
    ]  # fmt: skip
    assert number_at(INPUTS, ("input_ids", "run", 1)) == 4
    assert number_at(INPUTS, ("input_ids", "run", 2)) is None


def test_a_run_takes_masks_along() -> None:
    known = slots()
    _, found = applied(
        {}, INPUTS, {known["tokens like input_ids[1]"]: 6, known["tokens like input_ids[5]"]: 3, known["grid[2]"]: 6}
    )
    assert found["input_ids"]["value"] == [[5, 9, 9, 9, 9, 9, 9, 7, 7, 7]]
    assert found["types"]["value"] == [[0, 1, 1, 1, 1, 1, 1, 0, 0, 0]]
    assert found["attention_mask"]["shape"] == [1, 10]
    assert found["grid"]["value"] == [[1, 6, 4]]


def test_powers() -> None:
    known = slots()
    variable = Variable(known["patch"], along=((known["tokens like input_ids[1]"], -2), (known["pixels[1]"], 2)))
    state = moved({}, [(variable, 4)])
    assert state is not None
    assert {slot.label: value for slot, value in state.items()} == {"patch": 4, "tokens like input_ids[1]": 1, "pixels[1]": 48}
    assert moved({}, [(variable, 3)]) is None


def test_tokens_are_those_of_a_row() -> None:
    assert tokens_in(INPUTS, "input_ids") == tokens_in(INPUTS, "attention_mask") == 7
    assert tokens_in({"x": {"shape": [3]}, "y": 4}, "x") is tokens_in({"x": {"shape": [3]}, "y": 4}, "y") is tokens_in({}, "z") is None
