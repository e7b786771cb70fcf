"""``python -m tests.mutation.measure``: measures the records that the stored ones lack, on the real classes; needs torch.

Biases, no query latent, a tied head: configs under which a mutant gives another number, and which nobody publishes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from symflops.witness.records import starred

RECORDS = Path(__file__).parent / "records.json"
SMALL = {"vocab_size": 67, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4}
MLA = {"num_key_value_heads": 4, "kv_lora_rank": 20, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "first_k_dense_replace": 2}
CASES = (
    ("LlamaForCausalLM", {**SMALL, "num_key_value_heads": 2, "attention_bias": True, "mlp_bias": False}),
    ("LlamaForCausalLM", {**SMALL, "num_key_value_heads": 2, "attention_bias": False, "mlp_bias": True}),
    ("DeepseekV3ForCausalLM", {**SMALL, **MLA, "q_lora_rank": None, "tie_word_embeddings": True}),
    ("DeepseekV3ForCausalLM", {**SMALL, **MLA, "q_lora_rank": 28, "attention_bias": True}),
    ("Qwen3MoeForCausalLM", {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "mlp_only_layers": [0, 1], "attention_bias": True, "tie_word_embeddings": True}),
)


def measure(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """A record of a small text model."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    made = getattr(transformers, name.replace("ForCausalLM", "Config"))(**config)
    made._attn_implementation = "eager"
    with torch.device("cpu"):
        model = getattr(transformers, name)(made).train()
        words = torch.zeros((2, 11), dtype=torch.long)
    with FlopCounterMode(display=False) as forward:
        output = model(input_ids=words, use_cache=False).logits
    with FlopCounterMode(display=False) as backward:
        output.sum().backward()
    tensors: dict[str, int] = {}
    for key, tensor in model.named_parameters():
        tensors[starred(key)] = tensors.get(starred(key), 0) + tensor.numel()
    modules: dict[str, int] = {}
    for key, counts in forward.get_flop_counts().items():
        path = key.removeprefix(f"{name}.")
        if path not in ("Global", name):
            modules[starred(path)] = modules.get(starred(path), 0) + sum(counts.values())
    tag = "tiny-" + "-".join(key for key in ("attention_bias", "mlp_bias", "tie_word_embeddings") if config.get(key))
    return {
        "id": f"mutation/{name}/{tag}", "class": name, "tag": tag, "config_json": {**made.to_dict(), **config}, "inputs": {"input_ids": {"shape": [2, 11]}},
        "params_total": sum(tensors.values()), "params_by_tensor": tensors, "fwd_flops": forward.get_total_flops(), "bwd_flops": backward.get_total_flops(), "by_module_fwd": modules,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }  # fmt: skip


if __name__ == "__main__":
    RECORDS.write_text(json.dumps([measure(name, config) for name, config in CASES], indent=1, default=str) + "\n", "utf-8")
