"""Target projects of vendored estimators: their files, and the config fields that hold sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Reads = Literal["arguments", "attributes", "mapping", "words"]
Feeds = Literal["lists", "latents", "one", "sums", "video"]


@dataclass(frozen=True, slots=True)
class Target:
    """A project for which estimators are written, and the form that it requires of them.

    Attributes:
        name: Name in the command, and of the folder of templates.
        files: Path in the project's tree of the text of each template.
        reads: How sizes reach the estimator: from a config's ``attributes``, from a ``mapping``, from config fields with other
            names (``words``), or as ``arguments`` of the function.
        feeds: How a batch reaches the estimator: ``lists`` of lengths, flat lists of ``latents`` and prompts, ``one`` length of
            all sequences, ``sums`` over the batch, or the frames and the side of one ``video``.
        config: Variable name of the config in the estimator.
        words: Path in the project's config by spec field; ``len:`` marks the length of a list. If sizes are arguments, these
            come first.
        wiring: Edit that registers the estimator: (file of the tree, lines to add).

    The default ``convention`` is the one with the project's name.
    """

    name: str
    files: Mapping[str, str]
    reads: Reads
    feeds: Feeds
    config: str = "config"
    words: Mapping[str, str] = field(default_factory=dict)
    wiring: tuple[str, str] = ("", "")

    @property
    def convention(self) -> str:
        """Name of the default convention: that of the project."""
        return self.name


LAYER = "layers[0]"

TARGETS = {
    target.name: target
    for target in (
        Target(
            "verl",
            {
                "estimator.py": "verl/utils/flops_{name}.py",
                "test.py": "tests/utils/test_flops_{name}_on_cpu.py",
                "page.md": "docs/perf/flops_{name}.md",
            },
            reads="attributes",
            feeds="lists",
            wiring=("verl/utils/__init__.py", "from verl.utils import flops_{name}  # noqa: F401"),
        ),
        Target(
            "verl-omni",
            {
                "estimator.py": "verl_omni/utils/mfu/{name}.py",
                "test.py": "tests/utils/test_{name}_flops_on_cpu.py",
                "page.md": "docs/perf/mfu_{name}.md",
            },
            reads="mapping",
            feeds="latents",
            wiring=("verl_omni/utils/mfu/__init__.py", "from verl_omni.utils.mfu import {name}  # noqa: F401"),
        ),
        Target(
            "torchtitan",
            {
                "estimator.py": "torchtitan/models/{name}/flops.py",
                "test.py": "tests/unit_tests/test_{name}_flops.py",
                "page.md": "torchtitan/models/{name}/FLOPS.md",
            },
            reads="words",
            feeds="one",
            words={
                "hidden_size": "dim",
                "n_embd": "dim",
                "vocab_size": "vocab_size",
                "num_hidden_layers": "len:layers",
                "num_attention_heads": f"{LAYER}.attention.n_heads",
                "num_key_value_heads": f"{LAYER}.attention.n_kv_heads",
                "head_dim": f"{LAYER}.attention.head_dim",
                "intermediate_size": f"{LAYER}.feed_forward.w1.out_features",
                "num_experts": f"{LAYER}.moe.num_experts",
                "num_local_experts": f"{LAYER}.moe.num_experts",
                "num_experts_per_tok": f"{LAYER}.moe.router.top_k",
                "tie_word_embeddings": "enable_weight_tying",
            },
            wiring=(
                "torchtitan/models/{name}/model.py",
                "return get_{name}_nparams_and_flops(self, model, seq_len)  # in Config.get_nparams_and_flops",
            ),
        ),
        Target(
            "kempnerforge",
            {
                "estimator.py": "kempnerforge/metrics/flops_{name}.py",
                "test.py": "tests/unit/test_flops_{name}.py",
                "page.md": "docs/metrics-and-profiling/flops_{name}.md",
            },
            reads="words",
            feeds="one",
            words={
                "hidden_size": "dim",
                "n_embd": "dim",
                "num_hidden_layers": "n_layers",
                "n_layer": "n_layers",
                "num_attention_heads": "n_heads",
                "n_head": "n_heads",
                "num_key_value_heads": "n_kv_heads",
                "intermediate_size": "computed_ffn_hidden_dim",
                "moe_intermediate_size": "computed_expert_ffn_hidden_dim",
                "num_local_experts": "num_experts",
                "n_routed_experts": "num_experts",
                "num_experts_per_tok": "moe_top_k",
                "n_shared_experts": "moe_shared_experts",
                "tie_word_embeddings": "tie_embeddings",
                **{
                    name: name
                    for name in (
                        "dim",
                        "n_layers",
                        "n_heads",
                        "n_kv_heads",
                        "head_dim",
                        "vocab_size",
                        "computed_ffn_hidden_dim",
                        "num_experts",
                        "moe_top_k",
                        "moe_frequency",
                        "moe_shared_experts",
                    )
                },
            },
            wiring=(
                "kempnerforge/metrics/mfu.py",
                "from kempnerforge.metrics import flops_{name}\n\n"
                "estimate_model_flops_per_token = flops_{name}.estimate_{name}_flops_per_token",
            ),
        ),
        Target(
            "latte",
            {"estimator.py": "flops_{name}.py", "test.py": "tests/test_flops_{name}.py", "page.md": "docs/flops_{name}.md"},
            reads="arguments",
            feeds="video",
            words={"hidden_size": "hidden_size", "num_layers": "num_layers"},
            wiring=(
                "train.py",
                "import flops_{name}\n\nestimate_latte_flops_per_forward = flops_{name}.estimate_{name}_flops_per_forward",
            ),
        ),
        Target(
            "megatron-bridge",
            {
                "estimator.py": "src/megatron/bridge/models/{name}/{name}_flops.py",
                "test.py": "tests/unit_tests/models/{name}/test_{name}_flops.py",
                "page.md": "docs/models/{name}/flops.md",
            },
            reads="words",
            feeds="sums",
            config="self",
            words={
                "hidden_size": "hidden_size",
                "vocab_size": "vocab_size",
                "num_hidden_layers": "num_layers",
                "num_attention_heads": "num_attention_heads",
                "num_key_value_heads": "num_query_groups",
                "head_dim": "kv_channels",
                "intermediate_size": "ffn_hidden_size",
                "moe_intermediate_size": "moe_ffn_hidden_size",
                "num_experts": "num_moe_experts",
                "num_local_experts": "num_moe_experts",
                "n_routed_experts": "num_moe_experts",
                "num_experts_per_tok": "moe_router_topk",
                "shared_expert_intermediate_size": "moe_shared_expert_intermediate_size",
                "q_lora_rank": "q_lora_rank",
                "kv_lora_rank": "kv_lora_rank",
                "qk_nope_head_dim": "qk_head_dim",
                "qk_rope_head_dim": "qk_pos_emb_head_dim",
                "v_head_dim": "v_head_dim",
                "num_layers": "num_layers",
                "ffn_dim": "ffn_hidden_size",
                "attention_head_dim": "kv_channels",
                "in_channels": "in_channels",
                "out_channels": "out_channels",
                "text_dim": "text_dim",
            },
            wiring=("the model's provider", "class Provider({title}Flops, GPTModelProvider)  # the mixin before the provider"),
        ),
    )
}
"""Target projects by name."""
