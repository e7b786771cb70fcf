"""What a census refuses, in the interpreter and in a generated module alike."""

from __future__ import annotations

import pytest

from symflops.api import load
from symflops.evaluate.classes import check_census
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import stored_of
from symflops.formula.table import ConfigError
from tests.standalone import published

SPEC = """
language: 2
name: gated
reference: library.Gated
sizes:
  D: {key: width, default: 4}
  word: {key: gate, default: "'none'"}
streams: {text: [x]}
inputs: {x: {stream: text, width: D}}
graph:
  - up: {op: linear, from: x, width: 2*D if word == 'glu' else D, to: y}
outputs: [y]
"""
CENSUS = {
    "schema": 1,
    "spec": "",
    "classes": {
        "library.Gated": {
            "described": ["width", "gate"],
            "free": ["dropout"],
            "guarded": {
                "flag": {"values": [False]},
                "heads": {"values": [None], "kinds": ["number"]},
                "inner.ranks": {"values": [[1, 2]]},
                "layers": {"values": [], "least": 1},
            },
            "words": {"gate": ["glu", "none"], "blocks": ["Down", "Up"]},
            "made_from": {},
        }
    },
}
FINE = [
    {}, {"flag": False}, {"heads": None}, {"heads": 7}, {"heads": 2.5}, {"inner": {"ranks": [1, 2]}}, {"inner": {}}, {"layers": 1}, {"layers": 40},
    {"gate": "glu"}, {"blocks": ["Up", ["Down"]]}, {"dropout": 0.5}, {"flag": False, "_class_name": "Gated"},
]  # fmt: skip
REFUSED = {
    "flag": [True, None, 0, "no"],
    "heads": [True, "7", [7]],
    "inner.ranks": [[2, 1], [1, 2, 3], None],
    "layers": [0, None, True],
    "gate": ["swiglu", ""],
    "blocks": [["Up", "Skip"], "Skip", ["Up", ["Side"]]],
}


def config_with(path, value):
    head, _, rest = path.partition(".")
    return {head: config_with(rest, value) if rest else value}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import json

    path = tmp_path_factory.mktemp("specs") / "gated.yaml"
    path.write_text(SPEC)
    path.with_name("gated.census.json").write_text(json.dumps(CENSUS))
    return load(path)


@pytest.fixture(scope="module")
def module(model):
    return vars(published(model.typical()))


@pytest.mark.parametrize("config", FINE, ids=str)
def test_what_is_known_to_be_exact_is_answered(model, module, config):
    assert model.estimator(config).parameters in (20, 40)
    module["Sizes"].from_config(config)


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in REFUSED.items() for value in values], ids=str)
def test_what_no_spec_describes_is_refused(model, module, path, value):
    config = config_with(path, value)
    with pytest.raises(ConfigError) as found:
        model.estimator(config)
    assert path in str(found.value) and "describe" in str(found.value) and "symflops new" in str(found.value)
    with pytest.raises(ValueError, match="does not describe|not a text"):
        module["Sizes"].from_config(config)


def test_the_stored_program_carries_its_census(model):
    stored = stored_of(model.typical())
    assert stored.document["census"]["Gated"]["guarded"]["flag"] == {"values": [False]}
    assert "made_from" not in stored.document["census"]["Gated"]
    with pytest.raises(ConfigError):
        sizes_of(stored, {"flag": True})


def test_each_class_has_its_own_census():
    document = {"name": "two", "census": {"One": {"guarded": {"a": {"values": [1]}}}, "Two": {"guarded": {"a": {"values": [2]}}}}}
    check_census(document, {"a": 1})
    check_census(document, {"a": 2, "architectures": ["Two"]})
    for config in ({"a": 2}, {"a": 2, "architectures": ["One"]}, {"a": 1, "_class_name": "Two"}):
        with pytest.raises(ConfigError):
            check_census(document, config)


def test_a_program_without_a_census_refuses_nothing():
    check_census({"name": "none"}, {"a": 1})


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("place", ["", "text_config"])
def test_a_flag_that_moves_the_masks_of_any_class_is_refused(place: str, value: bool) -> None:
    """The real classes: 'is_causal' false lets Llama and its kin see both ways, true makes BERT causal under sdpa."""
    flag = {"is_causal": value}
    document = {"name": "gated", "census": {"Gated": CENSUS["classes"]["library.Gated"]}}
    with pytest.raises(ConfigError, match=r"'(text_config\.)?is_causal' is (True|False): it moves the masks"):
        check_census(document, {"width": 8, **({place: flag} if place else flag)})
    check_census(document, {"width": 8, "is_causal": None})
    described = {**CENSUS["classes"]["library.Gated"], "described": ["width", "gate", "is_causal", "text_config.is_causal"]}
    check_census({"name": "gated", "census": {"Gated": described}}, {"width": 8, **({place: flag} if place else flag)})
