"""Identities that are kept with the specs: whose grade they raise, and whose not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from symflops import estimate
from symflops.api import load
from symflops.cli.main import main
from symflops.evaluate.evidence import FOR_ALL, domain_left
from symflops.library import lookup
from symflops.library.catalog import catalogs
from symflops.library.records.census import spec_digest
from symflops.library.records.identities import all_comparisons, identities, is_identity, stale_comparisons
from symflops.read.spec_files import find_spec
from symflops.verify.cases import cases_of
from tests.sampling import sampled

CATALOG = catalogs()[-1]
KEPT = {name: some for name, some in all_comparisons(find_spec("llama").root).items() if any(map(is_identity, some))}
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}


def grade(batch: Any = None, regime: str = "full", convention: str = "torch", **config: Any) -> tuple[str, str]:
    found = estimate({**LLAMA, **config}, batch or {"text": [8]}, regime=regime, convention=convention)["evidence"]
    return found["grade"], found["why"]


def test_a_config_in_the_domain_is_proven_for_all_sizes():
    assert grade() == (FOR_ALL, "")
    assert grade(hidden_size=96, num_key_value_heads=2, num_hidden_layers=37, regime="forward") == (FOR_ALL, "")


@pytest.mark.parametrize(
    "config",
    [{"head_dim": 5}, {"attention_bias": True}, {"tie_word_embeddings": True}, {"hidden_act": "gelu"}, {"architectures": ["LlamaModel"]}],
    ids=str,
)
def test_other_configs_keep_their_grade(config):
    assert grade(**config)[0] != FOR_ALL


def test_other_regimes_keep_their_grade(tmp_path):
    """Also one that is named like a regime that is proven."""
    (tmp_path / "own.yaml").write_text('name: full\ndoc: a head that does not train\ntrain: ["*"]\nfreeze: ["lm_head.*"]\n')
    for regime in ("lora", "full:freeze=lm_head.*", str(tmp_path / "own.yaml")):
        assert grade(regime=regime)[0] != FOR_ALL


def test_a_config_that_its_class_refuses_is_not_in_the_domain():
    found = grade(hidden_size=66)
    assert found[0] != FOR_ALL and "hidden_size % num_attention_heads == 0" in found[1]


@pytest.mark.parametrize("name", sampled(sorted(KEPT), 8))
def test_the_traced_case_itself_is_in_the_domain(name):
    """With the flags of the trace, in which a cache is off."""
    fields = {row["letter"]: row["keys"][0] for row in CATALOG.program(name)["fields"]}
    for one in filter(is_identity, KEPT[name]):
        (case,) = (case for case in cases_of(find_spec(name)) if case.label == one["case"])
        kind = one["reference"].rpartition(".")[2]
        flags = {fields[letter]: value for letter, value in one["held"].items() if isinstance(value, bool)}
        model = lookup.interpreted(CATALOG, name, {"architectures": [kind], **flags, **case.config}, tell=lambda text: None)
        assert domain_left(model, kind)[0] is not None, one["where"]


def test_a_spec_that_changed_has_no_identity(tmp_path):
    text, path = find_spec("llama").path.read_text("utf-8"), tmp_path / "llama.yaml"
    path.write_text(text, "utf-8")
    kept = [{**one, "spec": spec_digest(load(path).spec, alone=True)} for one in KEPT["llama"]]
    (tmp_path / "identities.json").write_text(json.dumps({"schema": 1, "specs": {"llama": kept}}))
    for changed, current in ((text.replace("title: Llama", "title: Other"), True), (text.replace("hidden: F", "hidden: F + 1"), False)):
        path.write_text(changed, "utf-8")
        model = load(path)
        assert bool(identities(model.file, model.spec)) is current
        assert bool(list(stale_comparisons(model.file, model.spec))) is not current


@pytest.mark.thorough
def test_the_command_keeps_each_comparison_and_no_other(tmp_path):
    path = tmp_path / "kept.json"
    path.write_text(json.dumps({"schema": 1, "specs": {"gpt2": [], "llama": KEPT["llama"]}}))
    assert main(["verify", "gpt2", "--symbolic", "--save", str(path)]) == 0
    kept = json.loads(path.read_text("utf-8"))["specs"]
    assert kept["llama"] == KEPT["llama"] and [one["grade"] for one in kept["gpt2"]] == ["identity"]
    assert kept["gpt2"] == all_comparisons(find_spec("gpt2").root)["gpt2"]
