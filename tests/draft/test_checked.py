"""Drafts write what the reader checks: what is tied, what a norm is of, and the dimensions of a layout."""

from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.draft import save
from symflops.draft.draft import draft
from symflops.draft.trace.steps import Subject
from symflops.support.findings import SymflopsError

MODULE = Path(__file__).parent / "checked_models.py"


def drafted(name, config, inputs, device="meta"):
    found = draft(Subject(f"{MODULE}:{name}", config, inputs, device=device), 600.0)
    assert found.exact, list(found.partial)
    return found


@pytest.fixture(scope="module")
def tied():
    config = {"words": 31, "width": 24, "heads": 3, "size": 8, "part": 10, "rest": 6, "depth": 2}
    return drafted("Tied", config, {"tokens": {"shape": [2, 7], "dtype": "int64"}})


@pytest.mark.thorough
def test_a_head_that_is_called_ties_its_weight_and_takes_adapters(tied):
    assert "tie: table.weight" in tied.text
    assert any(proof.kind == "drawn" and proof.checks > 8 for proof in tied.proofs)  # one regime has adapters


@pytest.mark.thorough
def test_norms_of_a_part_and_of_heads_together_stand_on_values_of_their_width(tied):
    assert {"latent", "norm"} <= {line.split(":")[0].strip(" -") for line in tied.text.splitlines()}
    assert {"part", "rest", "heads", "size"} <= set(tied.varied)


@pytest.mark.thorough
def test_a_picture_of_a_size_has_a_layout_that_reads():
    config = {"side": 8, "patch": 4, "channels": 3, "width": 16, "classes": 5}
    found = drafted("Picture", config, {"pixels": {"shape": [2, 3, 8, 8], "dtype": "float32"}})
    layout = next(line for line in found.text.splitlines() if "layout" in line)
    assert layout.count("1*") == 2, layout


@pytest.mark.thorough
def test_a_length_is_the_number_of_all_tokens_not_of_those_that_are_equal():
    config = {"words": 31, "width": 16, "features": 6, "hidden": 20}
    inputs = {"tokens": {"value": [[1, 3, 3, 3, 3, 5, 5, 5, 5, 5, 5]] * 2}, "features": {"shape": [2, 4, 6], "dtype": "float32"}}
    found = drafted("Mixed", config, inputs, "cpu")
    assert "tokens: {stream: text, layout: b x}" in found.text and "text: [x]" in found.text


def test_a_word_where_the_default_is_none_is_refused():
    found = drafted("Optional", {"width": 16, "hidden": 20}, {"x": {"shape": [2, 5, 16], "dtype": "float32"}})
    assert found.fields["words"]["norm_type"] == [], found.fields


@pytest.mark.thorough
def test_heads_of_one_number_are_refused_where_a_draft_has_rotated_larger_ones(tmp_path):
    """One number of a head is broadcast to the two of its rotation: a width as large as its heads is outside, and a larger one is not."""
    found = drafted("Rotary", {"words": 31, "width": 24, "heads": 3, "depth": 2}, {"tokens": {"shape": [2, 7], "dtype": "int64"}})
    assert found.fields["guarded"] == {"width": {"values": [], "related": [["larger multiple", "heads", 3]]}}
    save(tmp_path / "rotary.yaml", found.text, found.census)
    model = load(tmp_path / "rotary.yaml")
    for config in ({"width": 8, "heads": 8}, {"heads": 24}, {"width": 3}):
        with pytest.raises(SymflopsError, match="larger multiples of 'heads'"):
            model.estimator(config, "full", "torch")
    assert model.estimator({"width": 16, "heads": 8}, "full", "torch").parameters > 0


@pytest.mark.thorough
def test_a_default_that_a_draft_has_not_seen_is_refused_where_a_config_leaves_it_out(tmp_path):
    """The class cannot be built with its own defaults, and nothing is known about them."""
    config = {"width": 24, "heads": 3, "size": 8, "extra": False}
    found = drafted("Unfit", config, {"x": {"shape": [2, 5, 24], "dtype": "float32"}})
    assert found.fields["guarded"]["extra"]["values"] == [False, None]
    save(tmp_path / "unfit.yaml", found.text, found.census)
    model = load(tmp_path / "unfit.yaml")
    assert model.estimator(config, "full", "torch").parameters == 24 * 24 + 24 + 3 * 8 * 8 + 24 * 24
    with pytest.raises(SymflopsError, match="'extra' is True by default"):
        model.estimator({"width": 24, "heads": 3, "size": 8}, "full", "torch")


@pytest.mark.thorough
@pytest.mark.thorough
@pytest.mark.parametrize("given", [{"inner_width": 32}, {"pairs": 10}])
def test_what_a_class_asks_for_or_sets_by_a_property_is_refused(asking, given):
    """No field of the config class has these names, and the class has other parameters with them."""
    config = {"architectures": ["Asking"], "width": 16}
    assert asking.estimator(config, "full", "torch").parameters == 2 * 16 * 24 + 16 + 24
    with pytest.raises(SymflopsError, match=next(iter(given))):
        asking.estimator(config | given, "full", "torch")


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    found = drafted("Asking", {"width": 16}, {"x": {"shape": [2, 5, 16], "dtype": "float32"}})
    path = tmp_path_factory.mktemp("asking") / "asking.yaml"
    save(path, found.text, found.census)
    return load(path)
