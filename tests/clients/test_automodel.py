"""NeMo Automodel's own formulas beside symflops under its convention; its recipes need CUDA and are not run."""

from __future__ import annotations

import pytest
from nemo_automodel.components.utils import flops_utils
from transformers import LlamaConfig, Qwen3Config

from symflops.library import lookup

CONFIGS = {
    "llama": LlamaConfig(architectures=["LlamaForCausalLM"], hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=128),
    "qwen3": Qwen3Config(architectures=["Qwen3ForCausalLM"], hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=128),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_its_own_figure_under_its_convention(name):
    config = CONFIGS[name]
    theirs = flops_utils.get_flops_formula_for_hf_config(config)(config, gbs=3, seq_len=64)
    found = lookup.config_of(config)
    one = lookup.estimator(*lookup.by_config(found), found, "full", "nemo-automodel")[1]
    assert one.total(one.moments(text=[64] * 3)) == pytest.approx(theirs, rel=1e-12)
