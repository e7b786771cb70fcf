"""Witnesses whose paper rewrites a plain definition agree with that definition, computed step by step."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.papers import (
    hyena,
    mixture_of_block_attention,
    native_sparse_attention,
    neighbourhood_attention,
    reformer,
    top_p_experts,
    tree_decoding,
    ttt_linear,
)


@pytest.fixture(autouse=True)
def _exact():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_the_dual_form_of_test_time_training_takes_the_gradient_steps() -> None:
    config = ttt_linear.Config(vocab=11, width=6, layers=1, heads=1, head_dim=3, hidden=7, mini_batch=4)
    learner = ttt_linear.Learner(config)
    for weight in learner.parameters():
        nn.init.normal_(weight, std=0.5)
    x = torch.randn(10, 6)
    train, label, test, rate = learner.train_view(x), learner.label_view(x), learner.test_view(x), learner.rate(x).sigmoid() / 3
    state, bias, rows = learner.state[0].detach(), learner.state_bias[0, 0].detach(), []

    def inner(view, state, bias):
        return view + functional.layer_norm(
            view @ state + bias, (3,), learner.inner_weight[0, 0], learner.inner_bias[0, 0], 1e-6
        )

    for start in range(0, 10, 4):
        moved = (state, bias)
        for t in range(start, min(start + 4, 10)):
            old = (state.clone().requires_grad_(), bias.clone().requires_grad_())
            steps = torch.autograd.grad(((inner(train[t], *old) - label[t]) ** 2).sum() / 2, old)
            moved = tuple(value - rate[t] * step for value, step in zip(moved, steps, strict=True))
            rows.append(inner(test[t], *moved))
        state, bias = moved
    torch.testing.assert_close(learner(x), learner.out(learner.norm(torch.stack(rows))))


def test_a_node_of_a_tree_is_decoded_as_its_path_alone() -> None:
    config = tree_decoding.Config(vocab=11, width=6, layers=2, heads=4, groups=2, head_dim=3, hidden=7, branches=[2, 3])
    model = tree_decoding.Model(config)
    tree, prefix, nodes = model.tree, torch.randint(11, (5,)), torch.randint(11, (9,))
    assert tree == [-1, 0, 0, 1, 1, 1, 2, 2, 2]
    logits, _ = model.sample(prefix, nodes)
    for node in range(9):
        path = [node]
        while tree[path[0]] >= 0:
            path.insert(0, tree[path[0]])
        model.tree = list(range(-1, len(path) - 1))
        torch.testing.assert_close(model.sample(prefix, nodes[path])[0][-1], logits[node])


def test_a_long_convolution_by_fft_is_the_sum_over_the_past() -> None:
    config = hyena.Config(
        vocab=11, width=4, layers=1, order=1, short_kernel=1, features=3, filter_hidden=5, filter_layers=1, hidden=7
    )
    operator, x = hyena.Operator(config), torch.randn(6, 4)
    filters = operator.filters(9, x.device)
    value, gate = operator.short(operator.enter(x).T[None])[0].T.split(4, 1)
    mixed = torch.stack([sum(filters[back, 0] * value[t - back] for back in range(t + 1)) for t in range(6)])
    torch.testing.assert_close(operator(x, filters), operator.out(gate * (mixed + operator.skip[0] * value)))


def test_experts_are_taken_until_the_threshold() -> None:
    config = top_p_experts.Config(vocab=11, width=6, layers=1, heads=2, head_dim=3, experts=5, hidden=7, threshold=0.7)
    experts, x, rows, routes = top_p_experts.Experts(config), torch.randn(9, 6), [], 0
    nn.init.normal_(experts.router.weight)
    for row in x:
        probabilities, reached, out = experts.router(row).softmax(-1), 0.0, 0
        for i in probabilities.argsort(descending=True).tolist():
            if reached < 0.7:
                reached, routes = reached + probabilities[i].item(), routes + 1
                out = out + probabilities[i] * experts.experts[i](row)
        rows.append(out)
    torch.testing.assert_close(experts(x, None), torch.stack(rows))
    assert experts.routes == routes


def test_hashed_attention_in_one_bucket_is_causal_attention_without_the_token_itself() -> None:
    config = reformer.Config(vocab=11, width=6, layers=1, heads=2, head_dim=3, hidden=7, chunk=16, buckets=2, rounds=1)
    query, value = torch.randn(2, 16, 3), torch.randn(2, 16, 3)
    found, _ = reformer.Attention(config).chunked(query, value, torch.zeros(2, 16, dtype=torch.long))
    scores = query @ functional.normalize(query, dim=-1).mT * 3**-0.5
    scores = scores.masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(), -torch.inf)
    torch.testing.assert_close(found[:, 1:], scores[:, 1:].softmax(-1) @ value)
    torch.testing.assert_close(found[:, 0], value[:, 0])


def test_blocks_that_are_all_chosen_are_full_attention() -> None:
    config = mixture_of_block_attention.Config(
        vocab=11, width=6, layers=1, full_layers=0, heads=2, head_dim=3, hidden=7, block=4, top=99
    )
    routed, full = (mixture_of_block_attention.Attention(config, full) for full in (False, True))
    full.load_state_dict(routed.state_dict())
    x = torch.randn(17, 6)
    torch.testing.assert_close(routed(x), full(x))


@pytest.mark.parametrize("top", [3, 99])
def test_chosen_blocks_are_the_first_the_last_and_others_once(top: int) -> None:
    config = native_sparse_attention.Config(
        vocab=11, width=6, layers=1, heads=4, groups=2, key_dim=3, value_dim=5, hidden=7, block=4, stride=2, compress_hidden=3,
        chosen_block=4, top=top, window=9,
    )  # fmt: skip
    attention = native_sparse_attention.Attention(config)
    for t in range(25):
        for group in attention.chosen(torch.rand(2, 2, max(0, (t - 3) // 2 + 1)), t).tolist():
            assert len(set(group)) == len(group) == (t // 4 if top == 99 else min(2, t // 4)) * 4 + t % 4 + 1
            assert {0, t, max(0, t // 4 * 4 - 1)} <= set(group) and max(group) == t


@pytest.mark.parametrize(("pixel", "rows", "columns"), [((4, 6), (3, 4), (5, 6)), ((2, 3), (0, 1, 2, 3, 4), (2, 3, 4))])
def test_a_pixel_reaches_the_windows_that_hold_it(pixel: tuple, rows: tuple, columns: tuple) -> None:
    attention, x = neighbourhood_attention.Attention(6, 2, 3), torch.randn(5, 7, 6)
    other = x.clone()
    other[pixel] += 1
    changed = ((attention(other) - attention(x)).abs().sum(-1) > 1e-12).nonzero().tolist()
    assert changed == [[i, j] for i in rows for j in columns]
