"""The defaults in the specs are those of the installed libraries' own config classes."""

from __future__ import annotations

import pytest

from symflops.read.spec_files import shipped, specs_in
from symflops.verify.classes import default_differences
from tests.sampling import sampled
from tests.shipped import load

NAMES = [file.name for file in specs_in(shipped("specs"))]


@pytest.mark.parametrize("name", sampled(list(NAMES), 8, 2))
def test_defaults_are_those_of_the_class(name):
    assert list(default_differences(load(name))) == []


def test_a_wrong_default_is_told(tmp_path):
    text = (shipped("specs") / "language" / "llama.yaml").read_text().replace("default: 4096", "default: 4095")
    path = tmp_path / "llama.yaml"
    path.write_text(text)
    told = next(default_differences(load(path)))
    assert "size 'D' (hidden_size): 4095 in the spec, 4096 in transformers.LlamaForCausalLM" in told


def changed(tmp_path, name, old, new):
    path = tmp_path / f"{name}.yaml"
    text = (shipped("specs") / "diffusion" / f"{name}.yaml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return list(default_differences(load(path)))


def test_a_default_that_the_spec_lacks_is_told(tmp_path):
    (told,) = changed(tmp_path, "wan", "key: ffn_dim, default: 13824, if_null: 4*H*d", "key: ffn_dim")
    assert told == "default of size 'F' (ffn_dim): none in the spec, 13824 in diffusers.WanTransformer3DModel"


def test_a_size_for_which_the_class_has_no_value_needs_no_default(tmp_path):
    assert changed(tmp_path, "latte", "key: patch_size, doc", "key: patch_size, doc") == []


OWN = """
language: 2
name: own
extends: llama
reference: transformers.Gemma2ForCausalLM
sizes: {kinds: {key: layer_types, type: list, optional: true}, W: {key: sliding_window, optional: true}}
graph:
  - model.layers:
      index: i
      graph:
        - self_attn: {sliding: "W if kinds != null and kinds[i] == 'sliding_attention' else null"}
"""


def test_null_stands_where_the_class_writes_null(tmp_path):
    """The class writes null for ``layer_types`` and fills it in; for ``sliding_window`` it writes a number."""
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    told = [difference.partition(":")[0] for difference in default_differences(load(path))]
    assert "default of size 'W' (sliding_window)" in told
    assert "default of size 'kinds' (layer_types)" not in told


NESTED = """
language: 2
name: nested
extends: llama
reference: transformers.Qwen2VLForConditionalGeneration
sizes:
  kinds: {key: text_config.layer_types, type: list, optional: true}
  first: {key: text_config.max_window_layers, optional: true}
  L: {key: text_config.num_hidden_layers, default: 80}
graph:
  - model.layers:
      index: i
      graph:
        - self_attn: {sliding: "first if kinds != null and kinds[i] == 'sliding_attention' else null"}
"""


def test_null_stands_where_the_class_of_a_nested_config_writes_null(tmp_path):
    path = tmp_path / "nested.yaml"
    path.write_text(NESTED)
    told = [difference.partition(":")[0] for difference in default_differences(load(path))]
    assert "default of size 'first' (text_config.max_window_layers)" in told
    assert not any("layer_types" in difference for difference in told)
