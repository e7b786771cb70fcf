"""Other frameworks' own figures, derived under the conventions that are named after them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symflops.cli.main import main
from symflops.verify.peers import Conforming, systems
from tests.sampling import amount, sampled

PEERS = Path(__file__).parents[1] / "data" / "peers"
WHOLE = ("verl_omni", "kempnerforge", "latte_fork", "trl", "litgpt", "nanotron", "levanter", "llm_foundry", "transformers",
         "megatron_bridge_accumulate", "eleuther_cookbook", "olmo_core", "torchtitan")  # fmt: skip
SHARES = {"maxtext": 201, "megatron_bridge": 107, "megatron_lm": 147, "nemo": 28, "nemo_automodel": 40, "lightning_measure_flops": 24}
"""The records that are equal of systems some of whose records are not; what is left out is on their pages."""
FEW = ("maxtext/1", "maxtext/32", "maxtext/43", "maxtext/58", "maxtext/78", "maxtext/94", "maxtext/170", "maxtext/298", "nemo/13", "nemo/25", "nemo/43", "nemo/44",
       "nemo_automodel/12", "nemo_automodel/18", "nemo_automodel/19", "nemo_automodel/35", "megatron_bridge/115", "megatron_bridge/133",
       "megatron_bridge/147")  # fmt: skip
UNLIKE = {"maxtext/1": "no structure is written down", "megatron_bridge/115": "mean length"}
"""Engrams; keys that count by the mean length of a batch."""
KINDS = ("dense", "moe", "moe+mtp", "mla", "mla+mtp", "wan", "gdn", "gdn2", "gdn+mtp", "hybrid", "hybrid+mtp")
RECORDS = dict(systems(PEERS))


def judged(system: str, every: int = 1):
    conforming = Conforming()
    return [(record, conforming.judge(system, position, record)) for position, record in enumerate(RECORDS[system]) if position % every == 0]


@pytest.mark.parametrize("system", sampled(WHOLE, 3, 1))
def test_every_record_is_equal(system):
    wrong = [found for _, found in judged(system) if not found.equal]
    assert not wrong


@pytest.mark.drawn
@pytest.mark.parametrize("system", sampled(["megatron_lm", "megatron_bridge"], 2, 1))
def test_records_of_the_usual_kinds_are_equal(system):
    every = amount(24, 1, 8)
    found = [conformance for record, conformance in judged(system, every) if record["architecture"] in KINDS]
    assert len(found) >= 50 // every
    others = [conformance for conformance in found if not conformance.equal]
    assert all(other.status == "refused" and "the model needs at least" in other.explanation for other in others)
    assert len(others) <= 2  # image models are run on no empty image


@pytest.mark.nightly
@pytest.mark.parametrize("system", SHARES)
def test_nine_records_of_ten_are_equal_and_the_others_explained(system):
    found = [conformance for _, conformance in judged(system)]
    assert sum(conformance.equal for conformance in found) == SHARES[system] >= 0.9 * len(found)
    assert all(conformance.explanation for conformance in found if not conformance.equal)


def test_records_of_each_kind_of_attention_are_equal():
    conforming, found, few = Conforming(), {}, set(FEW[:: amount(5, 1)])
    for system in ("maxtext", "nemo", "nemo_automodel", "megatron_bridge"):
        for position, record in enumerate(RECORDS[system]):
            if record["id"] in few:
                found[record["id"]] = conforming.judge(system, position, record)
    assert found.keys() == few
    others = {name: one.explanation for name, one in found.items() if not one.equal}
    assert others.keys() == set(UNLIKE) & few
    assert all(UNLIKE[name] in told for name, told in others.items())


def test_a_model_that_a_framework_knows_by_its_name_is_completed():
    record = next(record for record in RECORDS["torchtitan"] if record["model"] == "llama3/8B")
    assert Conforming().judge("torchtitan", 0, record).equal
    unknown = Conforming().judge("torchtitan", 0, {**record, "model": "llama3/9B"})
    assert unknown.status == "unmapped" and "whose widths are written down" in unknown.explanation
    told = {**record, "config": {**record["config"], "hidden_dim": 14337}}  # what a record says goes before the table
    layers, width = record["config"]["n_layers"], record["config"]["dim"]
    assert Conforming().judge("torchtitan", 0, told).derived - record["flops"] == 6 * 3 * layers * width * sum(record["seqlens"]["tokens"])


def test_windows_beside_compressed_keys_are_the_sum_of_their_parts():
    """No record has them: the terms that flop_utils adds up, as plain arithmetic."""
    h, heads, rq, qk, v, ro, groups, index, wide, window, top, length = 64, 8, 96, 192, 128, 16, 4, 4, 32, 64, 512, 4096
    ratios, tokens, ffn, vocabulary = [0, 4, 128, 4], [300, 2000], 256, 1024
    config = {
        "num_layers": 4, "hidden_size": h, "num_attention_heads": heads, "kv_channels": v, "ffn_hidden_size": ffn, "vocab_size": vocabulary,
        "make_vocab_size_divisible_by": 128, "tensor_model_parallel_size": 1, "gated_linear_unit": True, "moe_layer_freq": 1, "seq_length": length,
        "multi_latent_attention": True, "experimental_attention_variant": "dsv4_hybrid", "csa_compress_ratios": ratios, "csa_window_size": window,
        "q_lora_rank": rq, "qk_head_dim": qk - 64, "qk_pos_emb_head_dim": 64, "v_head_dim": v, "o_lora_rank": ro, "o_groups": groups,
        "dsa_indexer_n_heads": index, "dsa_indexer_head_dim": wide, "dsa_indexer_topk": top, "is_hybrid_model": False,
    }  # fmt: skip
    layer = rq * (h + heads * qk + 1) + h * v + v + heads * v * ro + groups * ro * h + 2 * heads * window * v + 3 * h * ffn
    picked = top * (1 - top * 4 / (2 * length))
    quarter = 2 * heads * picked * v + 4 * h * v + 4 * h * wide + rq * index * wide + h * index
    rough, pairs = 2 * h * v, 2 * index * wide / 4 + heads * v / 128
    each = 4 * layer + 2 * quarter + rough + h * vocabulary
    figure = 6 * (sum(tokens) * each + pairs * sum(s * s for s in tokens))
    record = {"system": "megatron_bridge", "id": "drawn", "config": config, "seqlens": {"tokens": tokens}, "flops": int(figure)}
    found = Conforming().judge("megatron_bridge", 0, record)
    assert found.equal, found.explanation


def test_parts_of_a_sequence_count_in_proportion():
    record = next(record for record in RECORDS["eleuther_cookbook"] if record["seqlens"]["tokens"] == [1e6])
    assert record["seqlens"]["tokens"][0] % record["config"]["sequence_length"]
    assert Conforming().judge("eleuther_cookbook", 0, record).equal


@pytest.mark.parametrize("system", sampled(["veomni", "verl"], 2, 1))
def test_most_records_are_equal_and_the_others_explained(system):
    found = [conformance for _, conformance in judged(system)]
    assert sum(conformance.equal for conformance in found) >= 0.9 * len(found)
    assert all(conformance.explanation for conformance in found if not conformance.equal)


def test_a_record_that_is_off_by_one_is_different():
    record = dict(RECORDS["nanotron"][0])
    record["flops"] += 1
    found = Conforming().judge("nanotron", 0, record)
    assert (found.status, found.equal, found.derived) == ("different", False, record["flops"] - 1)
    assert "-1" in found.explanation


def test_a_system_without_a_page_is_reported():
    found = Conforming().judge("nobody", 3, {"flops": 5})
    assert (found.status, found.id, found.equal) == ("unmapped", "3", False)
    assert found.explanation


def test_the_command_prints_a_list(capsys):
    assert main(["conform", "--peers", str(PEERS), "--system", "latte_fork", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == len(RECORDS["latte_fork"])
    assert set(found[0]) == {"system", "id", "status", "expected", "derived", "equal", "explanation"}
    assert all(one["equal"] for one in found)


def test_the_command_refuses_a_folder_that_is_not_there(capsys):
    assert main(["conform", "--peers", "/nowhere"]) != 0
    assert "there is no folder" in capsys.readouterr().err
