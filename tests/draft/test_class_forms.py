"""A draft that says exact has the formulas of its class: what its samples do not reach is compared with the class's trace."""

from pathlib import Path

import pytest

from symflops.api import load
from symflops.cli.draft import save
from symflops.draft.draft import draft
from symflops.draft.prove.prove import FORMS
from symflops.draft.trace.steps import Subject
from symflops.support.errors import SymflopsError

MODULE = Path(__file__).parent / "bounded_models.py"
X = {"x": {"shape": [2, 7, 24], "dtype": "float32"}}
CONFIG = {"width": 24, "hidden": 40}
BOUNDS = {
    "Wide": (CONFIG, "width=5001, x[2]=5001: 4 parameters differ"),
    "Ratio": (CONFIG, "hidden=60: 2 parameters differ"),
    "Long": (CONFIG, "x[1]=2001: full, forward: 30,735,360 measured, 15,367,680 drafted"),
    "Many": (CONFIG, "x[0]=101: full, forward"),
    "Capped": (CONFIG, "hidden=30001: 3 parameters differ"),
    "Deep": ({"width": 24, "depth": 3}, "depth=40: 60 parameters differ"),
}


def drafted(name, config, inputs=X):
    found = draft(Subject(f"{MODULE}:{name}", config, inputs), 300.0)
    return found, [one for one in found.proofs if one.kind == FORMS]


def test_formulas_of_the_class_hold_for_all_sizes():
    found, proofs = drafted("Free", {**CONFIG, "depth": 3})
    assert found.exact and not proofs, list(found.partial)
    assert found.proof == "for all sizes"
    assert [one.grade for one in found.forms] == ["identity"]


@pytest.mark.parametrize("name", ["Ratio", *(pytest.param(name, marks=pytest.mark.thorough) for name in BOUNDS if name != "Ratio")])
def test_work_beyond_a_bound_is_not_exact(name):
    config, told = BOUNDS[name]
    found, (proof,) = drafted(name, config)
    assert not found.exact
    assert f"{proof.label}: {proof.differences[0]}".startswith(told)
    assert any(reason.startswith(f"differs at {told}") for reason in found.partial)
    assert all(one.exact for one in found.proofs if one is not proof), "samples would have seen it"


def test_without_a_trace_the_samples_prove(monkeypatch):
    found, proofs = drafted("Untraced", CONFIG)
    assert found.exact and not proofs, list(found.partial)
    assert found.proof.startswith("for these configurations: ") and "not with tensors of this kind" in found.proof


def test_a_config_of_which_nothing_says_the_class_is_followed(tmp_path):
    path = Path(__file__).parent / "nano_model.py"
    found = draft(Subject(f"{path}:Nano", {"width": 24, "layers": 2}, X), 300.0)
    assert found.exact and found.proof == "for all sizes", list(found.partial)
    assert {"width", "layers", "hidden"} <= {word for label in found.varied for word in label.split(" with ")}
    save(tmp_path / "nano.yaml", found.text, found.census)
    model = load(tmp_path / "nano.yaml")
    config = {"width": 16, "layers": 5, "hidden": 30, "factors": [2, 3]}
    assert model.estimator(config).parameters == 5 * (2 * 16 * 30 + 30 + 16) + 2 * 16 * 48 + 48 + 16
    for factors in ([2, 5], [5, 7, 9]):  # the draft was right for [2, 3, 3], by its second item
        with pytest.raises(SymflopsError, match="factors"):
            model.estimator({**config, "factors": factors})
