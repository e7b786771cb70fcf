"""Calls that keep a state: prompts, steps over a past, and whole generations as the sum of their calls."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import symflops
from symflops.cli.main import main
from symflops.evaluate.batch import BatchError
from symflops.formula.table import ConfigError
from symflops.support.findings import SpecError

SMALL = {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 3, "intermediate_size": 20, "vocab_size": 30}
MODEL = symflops.load("llama")
ESTIMATORS = {
    (regime, convention): MODEL.estimator(SMALL, regime, convention)
    for regime in ("forward", "prefill", "decode", "generate")
    for convention in ("symflops", "torch")
}


HEAD = 2 * 12 * 30


def forward(regime: str, convention: str, entries: list) -> int:
    estimator = ESTIMATORS[regime, convention]
    return estimator.forward(estimator.moments(text=entries))


@pytest.mark.parametrize("convention", ["symflops", "torch"])
@given(st.integers(1, 40), st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_a_generation_is_the_sum_of_its_calls_with_the_head_on_the_last_token(convention, prompt, new):
    steps = [[prompt, 0], *([1, prompt + step] for step in range(new - 1))]
    assert forward("generate", convention, [[prompt, new]]) == forward("decode", convention, steps) - HEAD * (prompt - 1)


@pytest.mark.parametrize("convention", ["symflops", "torch"])
def test_without_a_past_a_step_is_a_forward_pass(convention):
    assert forward("decode", convention, [[7, 0], [3, 0]]) == forward("forward", convention, [7, 3])
    assert forward("generate", convention, [[9, 1]]) == forward("forward", convention, [9]) - 8 * HEAD
    assert forward("prefill", convention, [9]) == forward("forward", convention, [9])


def test_useful_pairs_of_chunks_are_those_of_the_whole():
    """A prompt in two chunks, the second over the first as its past, sees what the whole prompt sees."""
    assert forward("decode", "symflops", [[5, 0], [6, 5]]) == forward("forward", "symflops", [11])
    assert forward("decode", "torch", [[5, 0], [6, 5]]) < forward("forward", "torch", [11])


def test_a_step_by_hand():
    """One token over 9: 24*D^2-like linears of one token, and 10 pairs in each of two contractions of two layers."""
    linears = 2 * 2 * (12 * 12 * 4 + 3 * 12 * 20) + 2 * 12 * 30
    assert forward("decode", "symflops", [[1, 9]]) == linears + 2 * 2 * 2 * 12 * 10


def test_a_model_without_causal_attention_does_not_decode():
    with pytest.raises(SpecError, match="keeps nothing for further tokens"):
        symflops.load("qwen_image").derive("decode")


def test_layers_with_a_cache_and_without_an_output_cost_nothing_backward():
    estimator = ESTIMATORS["generate", "symflops"]
    assert estimator.backward(estimator.moments(text=[[4, 4]])) == 0 and estimator.trainable_parameters == 0


def kept(regime: str, entries: list) -> dict[str, int]:
    estimator = ESTIMATORS[regime, "torch"]
    return estimator.cache(estimator.moments(text=entries))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_what_is_kept_by_hand(new, past, more):
    """Keys and values of two layers, three heads of width 4 each, for all tokens but the last new one of a generation."""
    assert kept("prefill", [past]) == {"keys and values": 48 * past}
    assert kept("decode", [[new, past], [1, 2]]) == {"keys and values": 48 * (new + past + 3)}
    assert kept("generate", [[past, more]]) == {"keys and values": 48 * (past + more - 1)}
    assert kept("forward", [past]) == {}


def test_what_is_kept_is_explained_and_has_bytes(capsys):
    estimator = ESTIMATORS["decode", "symflops"]
    assert estimator.cache(estimator.moments(text=[[1, 9]]), bytes_each=2) == {"keys and values": 960}
    assert estimator.cache({"text": [[1, 9]]}) == {"keys and values": 480}
    assert main(["explain", "llama3-8b", "--regime", "decode", "--batch", '{"text": [[1, 8191]]}']) == 0
    assert "keys and values: 536,870,912 = (2*L*G*d) * past + (2*L*G*d) * x" in capsys.readouterr().out


def test_a_window_keeps_all_but_one_of_its_tokens():
    config = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 8}
    estimator = symflops.load("mistral").estimator(config, "decode", "torch")
    assert [sum(estimator.cache(estimator.moments(text=[[1, past]])).values()) for past in (3, 6, 7, 90)] == [32 * 4, 32 * 7, 32 * 7, 32 * 7]


@pytest.mark.parametrize("regime", ["prefill", "decode", "generate"])
def test_a_window_of_one_token_has_no_cache(regime):
    """Transformers keeps the last ``[-1 + 1:]`` tokens then, which is all of them, and masks of more new tokens do not fit."""
    with pytest.raises(ConfigError, match="window of 1 token"):
        symflops.load("mistral").estimator({"sliding_window": 1}, regime, "torch")


def test_images_of_a_step_without_a_past_are_refused():
    estimator = symflops.load("qwen2_vl").estimator({}, "decode", "torch")
    forward = [estimator.forward(estimator.moments(text=[[1, 30]], images=images)) for images in ([], [[1, 4, 4]])]
    assert forward[0] == forward[1] > 0, "the cache has what the images became"
    assert estimator.moments(text=[[9, 0]], images=[])
    for text in ([[9, 0]], [[9, 0], [1, 30]]):
        with pytest.raises(BatchError, match="a past for every text"):
            estimator.moments(text=text, images=[[1, 4, 4]])


@pytest.mark.parametrize("name", ["prefill", "decode", "generate"])
@pytest.mark.parametrize("change", ["train=*", "input_grad=inputs_embeds", "force_grad=lm_head", "enter_grad=lm_head", "groups=model.layers.*"])
def test_calls_that_keep_a_state_have_no_backward_pass(name, change):
    with pytest.raises(SpecError, match=rf"decodes, which has no backward pass, and has '{change.partition('=')[0].replace('groups', 'recompute')}'"):
        MODEL.derive(f"{name}:{change}")


@pytest.mark.parametrize("name", ["prefill", "decode", "generate"])
def test_adapters_run_in_calls_that_keep_a_state_and_do_not_train(name):
    entries = [5] if name == "prefill" else [[5, 1]]
    found = [MODEL.estimator(SMALL, regime, "torch") for regime in (name, f"{name}:rank=3,targets=*.q_proj")]
    plain, adapted = ([one.forward(one.moments(text=entries)), one.backward(one.moments(text=entries))] for one in found)
    assert adapted == [plain[0] + 2 * 2 * 5 * 3 * (12 + 12), 0] and found[1].trainable_parameters == 0


@pytest.mark.parametrize(("first", "other"), [("decode: generate", "full"), ("doc: a", "generate"), ("decode: step", "prefill")])
def test_phases_with_other_lengths_are_refused(first, other, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\n{first}\nphases: [{{regime: {other}}}]\n")
    with pytest.raises(SpecError, match=f"lengths of both regime 'mine' and its phase '{other}'"):
        MODEL.estimator(SMALL, str(path), "torch")


KEPT = """language: 2
name: kept
sizes: {D: width, Q: queries, T: frames}
streams: {text: [x], pictures: {over: pictures, axes: [p]}, frames: {t: T}, time: [], table: {over: once, axes: {n: Q}}}
inputs:
  tokens: {stream: text, width: D}
  pictures: {stream: pictures, width: D}
  frames: {stream: frames, width: D}
  time: {stream: time, width: D}
graph:
  - queries: {op: parameter, shape: [Q, D], to: q}
  - {op: expand, from: q, like: pictures, stream: {q: Q}, to: q}
  - to_q: {op: linear, from: q, width: D, bias: false, to: q}
  - to_k: {op: linear, from: pictures, width: D, bias: false, to: k}
  - resampler: {op: attention, heads: 1, query: q, key: k, value: k, to: r}
  - out: {op: linear, from: r, width: D, bias: false, to: r}
  - scatter: {op: map, from: [tokens, r], to: h}
  - encoder: {op: linear, from: frames, width: D, bias: false, to: e}
  - memory: {op: linear, from: e, width: D, bias: false, to: m}
  - shift: {op: linear, from: time, width: D, bias: false, to: s}
  - {op: expand, from: s, like: h, to: s}
  - {op: add, from: [h, s], to: h}
  - table: {op: parameter, shape: [Q, D], stream: table, to: w}
  - biases: {op: linear, from: w, width: D, bias: false, to: w}
  - biased: {op: map, from: [h, w], to: h}
  - self: {op: linear, from: h, width: 3*D, bias: false, to: [sq, sk, sv], split: [D, D, D]}
  - attention: {op: attention, heads: 1, mask: causal, query: sq, key: sk, value: sv, to: a}
  - cross: {op: attention, heads: 1, query: a, key: m, value: m, to: c}
  - head: {op: linear, from: c, width: D, bias: false, to: h}
outputs: [h]
"""


def test_constant_rows_run_again_only_if_new_tokens_read_what_is_made_of_them(tmp_path):
    """Queries that are learned, and frames of a constant length, run in the first call alone; what shifts all tokens, in each."""
    path = tmp_path / "kept.yaml"
    path.write_text(KEPT)
    model, (D, Q, T) = symflops.load(str(path)), (5, 3, 7)

    def counted(regime: str, text: list, pictures: list) -> int:
        estimator = model.estimator({"width": D, "queries": Q, "frames": T}, regime, "torch")
        return estimator.forward(estimator.moments(text=text, pictures=pictures))

    def of_tokens(new: int, past: int) -> int:
        return 2 * D * (new * 4 * D + 2 * new * (new + past) + 2 * new * T + D + Q * D)

    first = 2 * D * (2 * T * D + 2 * Q * D + 9 * D + 2 * Q * 9)
    assert counted("prefill", [4], [9]) == counted("decode", [[4, 0]], []) + first - 2 * D * 2 * T * D == of_tokens(4, 0) + first
    assert counted("decode", [[1, 6]], []) == counted("decode", [[1, 6]], [9]) == of_tokens(1, 6)
    assert counted("generate", [[4, 3]], [9]) == of_tokens(4, 0) + of_tokens(1, 4) + of_tokens(1, 5) + first
    apart = counted("generate", [[4, 3]], [9]) + counted("generate", [[4, 1]], [])
    assert counted("generate", [[4, 3], [4, 1]], [9]) == apart - 2 * D * Q * D, "the first calls of a batch are one"
    with pytest.raises(BatchError, match="a past for every text"):
        counted("decode", [[4, 0]], [9])


@pytest.mark.parametrize("name", ["whisper", "qwen2_5_vl", "t5"])
def test_keys_of_others_are_those_of_another_stream(name):
    """Windows of axes and equally long sequences decide nothing."""
    graph = symflops.load(name).derivation("decode").graph
    for operator in graph.operators():
        if operator.kind == "attention":
            query, key = ({graph.values[value].stream for value in operator.named[field]} for field in ("query", "key"))
            assert (query == key) or [kept.kind for kept in operator.keeps] == ["keys and values of other tokens"], str(operator.path)
            assert (query != key) or "keys and values of other tokens" not in [kept.kind for kept in operator.keeps], str(operator.path)
