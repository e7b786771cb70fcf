"""``python -m tests.mutation.measure``: measures the records that the stored ones lack, on the real classes; needs torch.

Biases, no query latent, a tied head: configs under which a mutant gives another number, and which nobody publishes. With names
of specs, both passes of the real class on each live case, and on some without blocks: everything trains; so, with one part of
each block recomputed; one parameter trains alone, for each parameter (of a list: the first and the last); so, with its blocks
recomputed (first case only); all linears named like projections get adapters. Kept are those that tell a survivor of
``survivors.yaml`` from the spec, and what was kept before. Each case also has its forward FLOPs without those on masked pairs
of queries and keys.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from symflops.ir.regime import Recompute
from symflops.read.spec_files import find_spec
from symflops.support.findings import SymflopsError
from symflops.training.introspect.tree import starred
from symflops.verify.bench import Choice
from symflops.verify.cases import LiveCase, cases_of
from tests.mutation.catching import PARTIAL, RANK, Subject, alone, useful
from tests.mutation.test_specs import listed
from tests.mutation.trees import written
from tests.verify.random_regimes import RandomBench

ADAPTED = "*_proj"
RECORDS = Path(__file__).parent / "records.json"
SMALL = {"vocab_size": 67, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4}
MLA = {"num_key_value_heads": 4, "kv_lora_rank": 20, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "first_k_dense_replace": 2}
CASES = (
    ("LlamaForCausalLM", {**SMALL, "num_key_value_heads": 2, "attention_bias": True, "mlp_bias": False}),
    ("LlamaForCausalLM", {**SMALL, "num_key_value_heads": 2, "attention_bias": False, "mlp_bias": True}),
    ("DeepseekV3ForCausalLM", {**SMALL, **MLA, "q_lora_rank": None, "tie_word_embeddings": True}),
    ("DeepseekV3ForCausalLM", {**SMALL, **MLA, "q_lora_rank": 28, "attention_bias": True}),
    ("Qwen3MoeForCausalLM", {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "mlp_only_layers": [0, 1], "attention_bias": True, "tie_word_embeddings": True}),
    *((f"LlamaFor{head}", {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0}) for head in ("SequenceClassification", "TokenClassification", "QuestionAnswering")),
)
WAN = {"num_attention_heads": 4, "attention_head_dim": 24, "in_channels": 6, "out_channels": 6, "text_dim": 40, "freq_dim": 32}
FURTHER = {"wan": (LiveCase({**WAN, "ffn_dim": 208, "num_layers": 0}, {"latent": [[2, 6, 8]], "prompt": [11]}),)}


def measure(name: str, config: dict[str, Any]) -> dict[str, Any]:
    """A record of a small text model."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    made = getattr(transformers, f"{name.partition('For')[0]}Config")(**config)
    made._attn_implementation = "eager"
    with torch.device("cpu"):
        model = getattr(transformers, name)(made).train()
        words = torch.zeros((2, 11), dtype=torch.long)
    with FlopCounterMode(display=False) as forward:
        output = model(input_ids=words, use_cache=False)
    with FlopCounterMode(display=False) as backward:
        sum(value.sum() for value in output.values()).backward()
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
        "id": f"mutation/{name}/{tag}", "class": name, "tag": tag, "config_json": {**made.to_dict(), "architectures": None if name.endswith("CausalLM") else [name], **config}, "inputs": {"input_ids": {"shape": [2, 11]}},
        "params_total": sum(tensors.values()), "params_by_tensor": tensors, "fwd_flops": forward.get_total_flops(), "bwd_flops": backward.get_total_flops(), "by_module_fwd": modules,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }  # fmt: skip


def rows(subject: Subject) -> Iterator[dict[str, Any]]:
    """What each live case measures."""
    model = subject.model(subject.name, subject.documents[subject.name])
    for position, case in enumerate((*cases_of(find_spec(subject.name)), *FURTHER.get(subject.name, ()))):
        bench = RandomBench(model, case)
        whole = bench.measured(Choice(("*",)))
        found = [single(bench, train=pattern, recompute=group) for pattern, group in regimes(bench, position == 0)]
        if any(fnmatchcase(name, ADAPTED) for name in bench.linears):
            found.append(single(bench, targets=ADAPTED))
        yield {"config": bench.config, "batch": dict(case.batch), "useful_forward": whole[1] - masked(bench), "measured": found}


def regimes(bench: RandomBench, blocks: bool) -> Iterator[tuple[str, str]]:
    """What trains, and which group of modules is recomputed."""
    yield "*", ""
    yield from (("*", f"{name}.*.{part}") for name, parts in bench.parts.items() for part in parts)
    ends: dict[str, list[str]] = {}
    for name in bench.names():
        ends[starred(name)] = [*ends.get(starred(name), ())[:1], name]
    for name in (name for names in ends.values() for name in names):
        yield name, ""
        if blocks:
            yield from ((name, f"{over}.*") for over in bench.lists if name.startswith(f"{over}."))


def single(bench: RandomBench, train: str = "", recompute: str = "", targets: str = "") -> dict[str, Any]:
    """One measurement: what trains, is recomputed and gets adapters, as far as anything is, and the figures."""
    linears = tuple(name for name in bench.linears if targets and fnmatchcase(name, targets))
    given = {key: value for key, value in (("train", train), ("recompute", recompute), ("targets", targets)) if value}
    again = Recompute((recompute,)) if recompute else None
    return {**given, "figures": bench.measured(Choice((train,) if train else (), targets=linears, rank=RANK, recompute=again))}


def masked(bench: RandomBench) -> int:
    """Forward FLOPs of the real model on pairs that its own masks leave out; fused attention must be given no mask."""
    import torch

    source = sys.modules[type(bench.real).__module__]
    real, arguments, owner, name = bench.real, bench.arguments, torch.nn.functional, "scaled_dot_product_attention"
    if hasattr(source, "eager_attention_forward"):
        owner, name = source, "eager_attention_forward"
        real = copy.deepcopy(bench.real).to_empty(device="cpu")
        for tensor in (*real.parameters(), *real.buffers()):
            tensor.data.zero_()
        moved = {key: torch.zeros_like(value, device="cpu") for key, value in arguments.items() if getattr(value, "is_meta", False)}
        arguments = {**arguments, **moved}
    attend, found = getattr(owner, name), []

    def eager(layer: Any, query: Any, key: Any, value: Any, mask: Any, *given: Any, **named: Any) -> Any:
        hidden = 0 if mask is None else int((mask != 0).expand(*query.shape[:3], key.shape[2]).sum())
        assert mask is None or mask.is_floating_point()
        found.append(hidden * 2 * (query.shape[-1] + value.shape[-1]))
        return attend(layer, query, key, value, mask, *given, **named)

    def fused(*given: Any, **named: Any) -> Any:
        assert len(given) <= 3 and named.get("attn_mask") is None and not named.get("is_causal")
        found.append(0)
        return attend(*given, **named)

    setattr(owner, name, eager if owner is source else fused)
    try:
        with torch.no_grad():
            real(**arguments)
    finally:
        setattr(owner, name, attend)
    assert found or not bench.lists
    return sum(found)


def telling(subject: Subject, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what was measured, what was kept before or catches a known survivor; what caught most is tried first."""
    singles = [(row, one) for row in found for one in row["measured"]]
    for row, one in singles:
        assert alone(subject.model(subject.name, subject.documents[subject.name]), row, one), one
    before = [json.dumps({"batch": row["batch"], **one}, sort_keys=True) for row, one in subject.partial]
    kept = [id(one) for row, one in singles if json.dumps({"batch": row["batch"], **one}, sort_keys=True) in before]
    assert len(kept) == len(before)
    survivors = {mutant for ids in listed(subject.name).values() for mutant in ids}
    for mutant in subject.mutants():
        model = built(subject, mutant) if mutant.id in survivors else None
        if model is None or not all(useful(model, row) for row in found):
            continue
        for pair in singles:
            if not alone(model, *pair):
                singles.remove(pair)
                singles.insert(0, pair)
                kept.append(id(pair[1]))
                print(mutant.id, {key: value for key, value in pair[1].items() if key != "figures"}, flush=True)
                break
        else:
            print(mutant.id, "survives", flush=True)
    return [{**row, "measured": [one for one in row["measured"] if id(one) in kept]} for row in found]


def built(subject: Subject, mutant: Any) -> Any:
    """The first choice of a mutant that builds, if any."""
    for tree in mutant.trees(subject.trees[mutant.document]):
        try:
            model = subject.model(mutant.document, written(tree))
            model.graph(subject.records[0]["config_json"])
        except SymflopsError:
            continue
        return model
    return None


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
