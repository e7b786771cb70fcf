"""A module that takes a config object is drafted as any other: every field of the config is varied, and described or guarded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.draft.prove.vary_fields import every_field
from symflops.draft.trace.steps import Subject, full_config
from symflops.support.errors import SymflopsError
from symflops.verify.classes import argument_of, referenced
from symflops.verify.live import LiveCase, build
from tests.draft import config_models, nano_model

MODULE = Path(config_models.__file__)
FLAT = {"width": 8, "layers": 3, "bias": False}
CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "Named": (FLAT, {"width", "layers", "bias"}),
    "Annotated": (FLAT, {"width", "layers", "bias"}),
    "Perhaps": (FLAT, {"width", "layers", "bias"}),
    "OfRow": (FLAT, {"width", "layers", "bias"}),
    "OfPlain": (FLAT, {"width", "layers", "bias"}),
    "OfMaybe": (FLAT, {"width", "layers", "bias", "feed", "feed.hidden"}),
    "OfOuter": ({"width": 8, "layers": 3, "feed": {"hidden": 16}}, {"width", "layers", "feed.hidden", "feed.bias", "feed.kind"}),
    "OfTwo": ({"width": 8, "layers": 3, "feed": {"hidden": 16}}, {"width", "layers", "feed.hidden", "feed.bias", "feed.kind"}),
}


@pytest.mark.parametrize("name", CASES)
def test_every_field_of_a_config_class_is_a_field(name: str) -> None:
    config, paths = CASES[name]
    subject = Subject(f"{MODULE}:{name}", config)
    model = subject.build()
    assert sum(one.numel() for one in model.parameters()) == 3 * 2 * 8 * 16
    whole = full_config(model, config)
    found = {item.path for item in every_field(referenced(subject.reference), whole)}
    assert paths <= found and not found & {"config", "cfg", "row", "total", *(["feed"] if "feed" in config else [])}
    assert json.loads(json.dumps(whole)) == whole
    again = Subject(subject.reference, whole).build()
    assert [one.shape for one in again.parameters()] == [one.shape for one in model.parameters()]


@pytest.mark.parametrize(("name", "argument", "own"), [("Nameless", "", None), ("OfDefault", "setup", config_models.Config), ("OfRow", "row", config_models.Row)])
def test_the_class_of_a_config_is_that_of_its_annotation_or_default(name: str, argument: str, own: Any) -> None:
    assert argument_of(getattr(config_models, name)) == (argument, own)
    assert argument_of(nano_model.Nano) == ("config", nano_model.Shape)


def test_a_member_of_an_enumeration_is_its_value_in_json() -> None:
    gated = Subject(f"{MODULE}:OfOuter", {"width": 8, "layers": 1, "feed": {"hidden": 16, "kind": "gated"}}).build()
    assert sum(one.numel() for one in gated.parameters()) == 3 * 8 * 16
    assert full_config(gated, {"feed": {"kind": "gated"}})["feed"] == {"hidden": 48, "bias": False, "kind": "gated"}


def test_verify_builds_such_a_class(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODULE.read_text())
    model, config = build("models:OfOuter", LiveCase({"width": 8, "layers": 3, "feed": {"hidden": 16}}, {}), tmp_path)
    assert sum(one.numel() for one in model.parameters()) == 3 * 2 * 8 * 16
    assert config["feed"] == {"hidden": 16, "bias": False, "kind": "plain"} and config["architectures"] == ["OfOuter"]


def by_hand(config: dict[str, Any]) -> int:
    """The parameters of a stack without biases and gates."""
    width = config.get("width", 32)
    return config.get("layers", 2) * 2 * width * (config["feed"].get("hidden", 48) if "feed" in config else 2 * width)


CHANGES = ({}, {"width": 24}, {"layers": 5}, {"bias": True}, {"bias": False}, {"kind": "gated"}, {"kind": "plain"})


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Named", "Annotated", "OfMaybe", "OfOuter", "OfTwo", "OfPlain"])
def test_a_draft_is_exact_or_refuses(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the draft answers is what the class has, at each value of each field, and where a field is left out."""
    config, inputs = CASES[name][0], {"x": {"shape": [2, 6, 8], "dtype": "float32"}}
    spec = tmp_path / "drafted.yaml"
    words = ["--config", json.dumps(config), "--inputs", json.dumps(inputs), "--timeout", "300", "-o", str(spec)]
    code, told = main(["draft", f"{MODULE}:{name}", *words]), capsys.readouterr().err
    assert code == (name == "Annotated"), told
    assert "bias: false" in told and "config:" not in told
    assert ("the class's own defaults are not described: bias = true" in told) == (name == "Annotated")
    answered = 0
    for changes in CHANGES:
        inner = "feed" in config and not changes.keys() & {"width", "layers"}
        if "kind" in changes and "feed" not in config:
            continue
        whole = {**config, "feed": {**config["feed"], **changes}} if inner else {**config, **changes}
        for given in (whole, {key: value for key, value in whole.items() if key != "bias"}):
            try:
                found = load(spec).estimator(given).parameters
            except SymflopsError:
                continue
            real = sum(one.numel() for one in Subject(f"{MODULE}:{name}", given).build().parameters())
            assert found == real == by_hand(given), given
            answered += 1
    assert answered >= 4
    refused = ({"bias": True}, {"kind": "gated"}) if "feed" in config else ({"bias": True},)
    if name == "OfMaybe":
        with pytest.raises(SymflopsError, match="'feed' is {}, whose effect"):
            load(spec).estimator({**config, "feed": {}})
    for changes in refused:
        with pytest.raises(SymflopsError, match="whose effect '"):
            load(spec).estimator({**config, "feed": {**config["feed"], **changes}} if "feed" in config else {**config, **changes})
