"""Layers that predict tokens further ahead, beside the ones that transformers makes of a main model: parameters, and FLOPs of both passes."""

from __future__ import annotations

import pytest

from symflops.api import regime_of
from symflops.cli.main import main
from symflops.evaluate.parameters import instances_of
from symflops.read.regimes import inline_regime
from symflops.support.findings import SpecError
from symflops.verify.running import counter, plain_attention
from tests.shipped import load

SMALL = {
    "vocab_size": 131, "hidden_size": 96, "intermediate_size": 208, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 6, "q_lora_rank": 40, "kv_lora_rank": 28, "qk_nope_head_dim": 20, "qk_rope_head_dim": 12, "v_head_dim": 22,
    "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2, "moe_intermediate_size": 56, "first_k_dense_replace": 1,
    "n_group": 4, "topk_group": 2,
}  # fmt: skip
CONFIGS = [
    {**SMALL, "num_mtp_layers": 1},
    {**SMALL, "num_mtp_layers": 2, "q_lora_rank": None, "attention_bias": True, "tie_word_embeddings": True},
]


@pytest.mark.parametrize("config", CONFIGS, ids=["one", "two, tied"])
def test_prediction_heads_are_those_of_the_real_class(config):
    import torch
    import transformers
    from transformers.modeling_layers import MtpModel

    made = transformers.DeepseekV3Config(**config, experts_implementation="batched_mm")
    main_model = transformers.DeepseekV3ForCausalLM(made).to("cpu")
    heads = MtpModel(main_model, config["num_mtp_layers"])
    model, count = load("deepseek_v3"), config["num_mtp_layers"]
    own = {f"mtp.{name}": tuple(tensor.shape) for name, tensor in heads.named_parameters() if name.startswith("layers.")}
    real = {name: tuple(tensor.shape) for name, tensor in main_model.named_parameters()}
    program = model.program(["mtp"], ["torch"], config)
    estimator = model.estimator(config, "mtp", "torch")
    derived = {name: tuple(shape) for name, shape in instances_of(program, estimator.sizes).items()}
    assert derived == {**real, **own}

    ids = torch.randint(0, config["vocab_size"], (2, 7))
    with counter() as forward, plain_attention():
        hidden = main_model.model(ids).last_hidden_state
        outputs = [main_model.lm_head(hidden)]
        positions = torch.arange(7)[None]
        for layer in range(count):
            hidden = heads.forward_layer(layer, hidden, positions, None, input_ids=ids)
            outputs.append(heads._project_to_logits(hidden))
    with counter() as backward, plain_attention():
        sum(output.sum() for output in outputs).backward()
    moments = estimator.moments(text=[7, 7])
    assert estimator.forward(moments) == forward.get_total_flops()
    assert estimator.backward(moments) == backward.get_total_flops()


@pytest.mark.nightly
def test_megatrons_own_layers_cost_the_same():
    """Megatron Core builds them with the model: its spec counts them under any regime."""
    given = {
        "num_layers": 5, "hidden_size": 7168, "num_attention_heads": 128, "multi_latent_attention": True, "q_lora_rank": 1536,
        "kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128, "ffn_hidden_size": 18432, "swiglu": True,
        "num_experts": 256, "moe_router_topk": 8, "moe_ffn_hidden_size": 2048, "moe_shared_expert_intermediate_size": 2048,
        "moe_layer_freq": [0, 0, 0, 1, 1], "padded_vocab_size": 129280, "mtp_num_layers": 2,
    }  # fmt: skip
    for convention in ("megatron", "torch"):
        theirs = load("megatron").estimator(given, "full", convention)
        ours = load("deepseek_v3").estimator({"num_hidden_layers": 5, "num_nextn_predict_layers": 2}, "mtp", convention)
        m, n = (each.moments(text=[4096, 1000]) for each in (theirs, ours))
        assert (theirs.forward(m), theirs.total(m)) == (ours.forward(n), ours.total(n))


@pytest.mark.thorough
def test_the_default_says_what_it_leaves_out(capsys):
    batch = {"text": [64]}
    model = load("deepseek_v3")
    (note,) = model.estimator({}, "full").notes(batch)
    assert note.startswith("regime 'full' leaves out the layers that predict tokens further ahead ('num_mtp_layers' is 1)")
    assert model.estimator({}, "mtp").notes(batch) == model.estimator({"num_nextn_predict_layers": 0}, "full").notes(batch) == []
    other = load("deepseek_v32").estimator({"num_nextn_predict_layers": 1})  # its class does not know the key
    assert len(other.notes(batch)) == 1 and not other.unread and not other.evidence["unread"]
    page = ["render", "deepseek_v3", "--regime", "full", "--format", "markdown", "--full"]
    assert main(page) == 0
    assert "leaves out the layers that predict tokens further ahead" in capsys.readouterr().out


def test_without_heads_the_regime_is_the_full_one():
    model, config, batch = load("deepseek_v3"), {"num_mtp_layers": 0}, {"text": [5, 9]}
    plain, heads = (model.estimator(config, regime) for regime in ("full", "mtp"))
    assert plain.parameters == heads.parameters
    assert plain.total(plain.moments(**batch)) == heads.total(heads.moments(**batch))


def test_any_regime_can_run_them():
    model = load("deepseek_v3")
    alone = inline_regime("train=mtp.*", regime_of("mtp"))
    assert alone.parts == ("prediction_heads",)
    trained = model.estimator({}, alone)
    every, without = model.estimator({}, "mtp"), model.estimator({}, "full")
    assert trained.trainable_parameters == every.parameters - without.parameters > 0
    adapted = model.program([inline_regime("parts=prediction_heads", regime_of("lora")), "lora"], ["symflops"], {})
    heads, plain = (sum(tensor.name.startswith("mtp.") and "lora" in tensor.name for tensor in regime.tensors) for regime in adapted.regimes)
    assert heads > 0 == plain


def test_regimes_with_and_without_them_share_a_program():
    model = load("deepseek_v3")
    program = model.program(["full", "mtp"], ["symflops", "torch"])
    for regime in ("full", "mtp"):
        for convention in ("symflops", "torch"):
            alone = model.estimator(CONFIGS[1], regime, convention)
            together = type(alone)(program, CONFIGS[1], regime=regime, convention=convention)
            m = alone.moments(text=[5, 9])
            assert together.total(together.moments(text=[5, 9])) == alone.total(m)
            assert together.parameters_active == alone.parameters_active


def test_a_model_without_the_part_refuses_the_regime():
    with pytest.raises(SpecError, match="runs 'prediction_heads', a part that 'llama' does not have"):
        load("llama").estimator({}, "mtp")
