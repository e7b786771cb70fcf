"""``symflops verify`` guides the author of a half-finished spec: what is not claimed yet, what is not there, what differs and by what."""

from __future__ import annotations

import pytest

from symflops.verify.authoring_report import in_letters, shape_in_letters
from tests.verify.guide import FOLDER, SPECS, shown


@pytest.mark.parametrize("name", SPECS)
def test_the_guide_is_as_its_golden_says(name):
    code, out, err = shown(FOLDER, name)
    assert code == 1
    assert f"{out}---\n{err}" == (FOLDER / f"{name}.expected.txt").read_text("utf-8"), "python -m tests.verify.guide writes the goldens anew"


def test_there_is_a_golden_of_a_language_model_and_of_a_diffusion_model():
    assert SPECS == ["half_llama", "half_mmdit"]


def copied(tmp_path, name: str, *changes: tuple[str, str]):
    """A guide's spec with pieces of its text replaced, beside its cases."""
    text = (FOLDER / f"{name}.yaml").read_text("utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (tmp_path / "mine.yaml").write_text(text, "utf-8")
    (tmp_path / "mine.cases.yaml").write_text((FOLDER / f"{name}.cases.yaml").read_text("utf-8"), "utf-8")
    return shown(tmp_path, "mine")


def test_a_claimed_parameter_that_is_not_there_is_named_with_the_nearest(tmp_path):
    _, out, _ = copied(tmp_path, "half_llama")
    assert "claimed, and not in the model (3):\n    model.layers.*.self_attn.out_proj.weight [D, H*d] (x 3): did you mean 'model.layers.*.self_attn.o_proj.weight'?\n" in out
    _, out, _ = copied(tmp_path, "half_llama", ("self_attn.out_proj", "self_attn.o_proj"))
    assert "not in the model" not in out and "o_proj.weight" not in out


def test_the_factor_between_the_work_of_a_module_is_an_exact_fraction():
    text = (FOLDER / "half_mmdit.expected.txt").read_text("utf-8")
    assert "transformer_blocks.*.img_mlp.net.*.proj: x3/2: 5,308,416 real, 7,962,624 derived (+2,654,208)" in text
    assert "proj_out: x1/2: 92,160 real, 46,080 derived (-46,080)" in text
    assert "norm_out.linear: nothing derived yet of 36,864" in text


def test_a_spec_with_an_empty_graph_is_told_everything_that_is_to_be_written(tmp_path):
    (tmp_path / "mine.yaml").write_text("language: 2\nname: mine\nreference: transformers.LlamaForCausalLM\nsizes: {D: hidden_size}\ngraph: []\n", "utf-8")
    (tmp_path / "mine.cases.yaml").write_text((FOLDER / "half_llama.cases.yaml").read_text("utf-8"), "utf-8")
    code, out, err = shown(tmp_path, "mine")
    assert code == 1 and "a spec needs 'outputs'" in err
    assert "not claimed yet, 30 of 30 parameters" in out and "model, nothing of it yet" in out
    assert "layers.*.mlp.down_proj.weight [D, 208] (x 3)" in out and "[D, 144]" in out
    assert "no passes to compare: the model has no stream 'text'" in out


def test_a_spec_that_does_not_say_what_the_model_receives_is_compared_by_its_parameters(tmp_path):
    _, out, _ = copied(tmp_path, "half_llama", (", layout: b x", ""))
    assert "no passes to compare" in out and "parameters: x" in out


def test_a_spec_without_cases_or_a_class_is_told_how_to_get_them(tmp_path):
    (tmp_path / "mine.yaml").write_text((FOLDER / "half_llama.yaml").read_text("utf-8"), "utf-8")
    _, out, err = shown(tmp_path, "mine")
    assert not out and "there is no mine.cases.yaml beside it: list configs and batches there" in err
    code, _, err = copied(tmp_path, "half_llama", ("reference: transformers.LlamaForCausalLM\n", ""))
    assert code == 2 and "'half_llama' names no class to compare with: write 'reference: package.Class'" in err


SIZES = {"D": 97, "H": 6, "d": 24, "F": 211, "V": 131}


@pytest.mark.parametrize(
    ("number", "text"),
    [(97, "D"), (211, "F"), (4 * 97, "4*D"), (144, "144"), (97 + 211, "D + F"), (6, "H"), (5, "5"), (1, "1"), (10_007, "10007"), (2 * 97 * 211, "2*D*F"), (97 * 131, "D*V")],
)  # fmt: skip
def test_a_number_is_the_simplest_expression_that_has_its_value(number, text):
    assert in_letters([(number, SIZES)]) == text


def test_a_number_that_two_expressions_have_stays_a_number():
    assert in_letters([(64, {"D": 64, "E": 64})]) == "64"
    assert in_letters([(64, {"D": 64, "E": 64}), (32, {"D": 32, "E": 48})]) == "D"


def test_several_cases_tell_what_one_cannot():
    one, two = {"H": 6, "d": 24, "G": 2}, {"H": 6, "d": 16, "G": 3}
    assert in_letters([(144, one), (96, two)]) == "144"
    assert in_letters([(144, one), (96, two), (64, {"H": 4, "d": 16, "G": 2})]) == "H*d"
    assert in_letters([(240, {"H": 6, "d": 24, "G": 2}), (240, {"H": 9, "d": 16, "G": 3}), (384, {"H": 8, "d": 32, "G": 2})]) == "(H + 2*G)*d"


def test_a_shape_is_told_dimension_by_dimension():
    assert shape_in_letters([((211, 97), SIZES)]) == "[F, D]"
    assert shape_in_letters([((96, 4, 2, 2), {"D": 96, "p": 2})]) == "[D, 4, p, p]"
    assert shape_in_letters([((), SIZES)]) == "[]"
