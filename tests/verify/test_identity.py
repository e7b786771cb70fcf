"""Specs minus their classes, for all sizes at once.

The witness is the real class, run with symbols; a spec that is wrong must differ, by what it is wrong about.
"""

from __future__ import annotations

import json

import pytest

from symflops.api import load
from symflops.cli.main import main
from symflops.library.records.identities import all_comparisons
from symflops.read.spec_files import find_spec
from symflops.verify.cases import cases_of
from symflops.verify.symbolic.identity import identity_of, is_given
from symflops.verify.symbolic.traced import text_of


def identity(name: str, path=None):
    return identity_of(load(path or name), cases_of(find_spec(name))[0])


def changed(tmp_path, name: str, old: str, new: str):
    text = find_spec(name).path.read_text("utf-8")
    assert old in text
    path = tmp_path / f"{name}.yaml"
    path.write_text(text.replace(old, new, 1), "utf-8")
    return path


def test_llama_is_an_identity_on_the_domain_of_its_class():
    found = identity("llama")
    assert found.grade == "identity" and not found.gaps and not found.numbers and not found.assumed
    divided = {"hidden_size % num_attention_heads == 0", "num_attention_heads % num_key_value_heads == 0", "head_dim % 2 == 0"}
    assert {text_of(one) for one in found.traced.domain} == divided
    assert len(found.traced.modules) > 10 and {"b", "s", "num_hidden_layers"} <= set(found.traced.symbols())


FEED_FORWARD = ("hidden: F", "hidden: F + 1", "model.layers.*.mlp")
FURTHER = ("to: n}\n        - self_attn.q_proj", "to: n}\n        - again: {op: linear, from: n, width: H}\n        - self_attn.q_proj", "model.layers.*")


@pytest.mark.parametrize(("old", "new", "where"), [FEED_FORWARD, pytest.param(*FURTHER, marks=pytest.mark.thorough)])
def test_a_spec_that_is_wrong_differs_where_it_is_wrong(tmp_path, old, new, where):
    found = identity("llama", changed(tmp_path, "llama", old, new))
    assert found.grade == "differs" and found.gaps["forward"] != 0
    assert any(name.startswith(where) for name in found.gaps), found.gaps


def test_the_command_succeeds_where_all_are_identities(capsys):
    assert main(["verify", "gpt2", "--symbolic", "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert data["grade"] == "identity" and data["gaps"] == {} and "n_embd % n_head == 0" in data["domain"]


@pytest.mark.thorough
def test_the_command_fails_where_one_differs(tmp_path, capsys):
    path = changed(tmp_path, "gpt2", "n_inner", "n_embd")
    (tmp_path / "gpt2.cases.yaml").write_text(find_spec("gpt2").path.with_name("gpt2.cases.yaml").read_text("utf-8"), "utf-8")
    assert main(["verify", str(path), "--symbolic"]) == 1
    out, err = capsys.readouterr()
    assert "differs" in out and "the spec has" in out and err.endswith("1 differs\n")


KEPT = all_comparisons(find_spec("llama").root)
THOROUGH = ("bert_masked_lm", "deepseek_v3")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.thorough if name in THOROUGH else pytest.mark.nightly) for name in sorted(KEPT)])
def test_what_is_kept_of_a_spec_comes_out_again(name):
    found = identity(name)
    assert [found.grade] == [one["grade"] for one in KEPT[name]], str(found)


@pytest.mark.parametrize(
    ("place", "given"),
    [(("dims",), True), (("dims", 0), True), (("dims", 0, 1), True), (("dims", 2), False), (("text", "depths"), True), (("depths",), False), (("dims", 0, 1, 5), False)],
)
def test_items_of_lists_are_set_where_the_config_has_the_list(place, given):
    assert is_given({"dims": [[None, 72], [44]], "text": {"depths": [2, 2]}}, place) == given
