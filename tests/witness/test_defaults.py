"""The defaults in the specs are those of the installed libraries' own config classes."""

from __future__ import annotations

import pytest

from symflops.api import load
from symflops.library import shipped, specs_in
from symflops.witness.defaults import default_differences

NAMES = [file.name for file in specs_in(shipped("specs"))]


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_the_class(name):
    assert list(default_differences(load(name))) == []


def test_a_wrong_default_is_told(tmp_path):
    text = (shipped("specs") / "language" / "llama.yaml").read_text().replace("default: 4096", "default: 4095")
    path = tmp_path / "llama.yaml"
    path.write_text(text)
    told = next(default_differences(load(path)))
    assert "size 'D' (hidden_size): 4095 in the spec, 4096 in transformers.LlamaForCausalLM" in told
