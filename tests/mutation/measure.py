"""``python -m tests.mutation.measure``: measures the records that the stored ones lack, on the real classes; needs torch.

Biases, no query latent, a tied head: configs under which a mutant gives another number, and which nobody publishes. With names
of specs, both passes of the real class where one parameter trains alone, for each parameter (of a list: the first and the last);
kept are those that tell a survivor of ``survivors.yaml`` from the spec.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symflops.ground.diagnostics import SymflopsError
from symflops.library import find_spec
from symflops.witness.cases import cases_of
from symflops.witness.live_regimes import Bench, Choice
from symflops.witness.records import starred
from tests.mutation.catching import PARTIAL, Subject, alone
from tests.mutation.test_specs import listed
from tests.mutation.trees import written

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


def rows(subject: Subject) -> Iterator[dict[str, Any]]:
    """What each live case measures with one parameter trained alone."""
    model = subject.model(subject.name, subject.documents[subject.name])
    for case in cases_of(find_spec(subject.name)):
        bench = Bench(model, case)
        ends: dict[str, list[str]] = {}
        for name in bench.names():
            ends[starred(name)] = [*ends.get(starred(name), ())[:1], name]
        alone = [{"train": name, "figures": bench.measured(Choice((name,)))} for names in ends.values() for name in names]
        yield {"config": bench.config, "batch": dict(case.batch), "measured": alone}


def telling(subject: Subject, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what was measured, what catches a known survivor; what caught most is tried first."""
    singles = [(row, single) for row in found for single in row["measured"]]
    survivors = {mutant for ids in listed(subject.name).values() for mutant in ids}
    kept: list[int] = []
    for mutant in subject.mutants():
        if mutant.id not in survivors:
            continue
        model = built(subject, mutant)
        for single in singles:
            if not alone(model, *single):
                singles.remove(single)
                singles.insert(0, single)
                kept.append(id(single[1]))
                break
        print(mutant.id, len(set(kept)), flush=True)
    return [{**row, "measured": few} for row in found if (few := [single for single in row["measured"] if id(single) in kept])]


def built(subject: Subject, mutant: Any) -> Any:
    """The first choice of a mutant that builds."""
    for tree in mutant.trees(subject.trees[mutant.document]):
        try:
            model = subject.model(mutant.document, written(tree))
            model.graph(subject.records[0]["config_json"])
        except SymflopsError:
            continue
        return model
    raise AssertionError(f"{mutant.id} does not build")


def partial(names: list[str]) -> None:
    """Measure and select for some specs."""
    for name in names:
        subject = Subject(find_spec(name))
        found = telling(subject, list(rows(subject)))
        document = json.loads(PARTIAL.read_text("utf-8")) if PARTIAL.is_file() else {}
        PARTIAL.write_text(json.dumps({**document, name: found}, indent=1, default=str) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        partial(sys.argv[1:])
    else:
        RECORDS.write_text(json.dumps([measure(name, config) for name, config in CASES], indent=1, default=str) + "\n", "utf-8")
