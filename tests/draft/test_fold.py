"""Equal items of module lists fold into loops that carry values; unequal ones stay outside."""

import torch
from torch import nn

from symflops.draft.fold.fold import with_folded_lists
from symflops.draft.trace.lowering import steps_of
from symflops.draft.trace.steps import Loop
from symflops.draft.trace.tape import record


def plan_of(model):
    arguments = {"x": torch.zeros(2, 3, 8, device="meta")}
    return with_folded_lists(steps_of(record(model, arguments)))


def loops(plan):
    return [entry for entry in plan.entries if isinstance(entry, Loop)]


class Residual(nn.Module):
    def __init__(self, depth, odd=0):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(8, 16) for _ in range(odd))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = x + layer(x)
        for layer in self.wide:
            x = x + layer(x)[..., :8]
        return x


class Beside(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.a = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))
        self.b = nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in range(depth))

    def forward(self, x):
        x = self.first(x)
        for a, b in zip(self.a, self.b):
            x = x + b(a(x).relu())
        return x


class Again(nn.Module):
    def __init__(self, turns):
        super().__init__()
        self.turns, self.first, self.layer = turns, nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.first(x)
        for _ in range(self.turns):
            x = x + self.layer(x)
        return x


class Kept(Residual):
    def forward(self, x):
        x = self.first(x)
        kept = []
        for layer in self.layers:
            x = x + layer(x)
            kept.append(x)
        return sum(self.first(one) for one in kept)


def build(kind, *arguments):
    with torch.device("meta"):
        return kind(*arguments)


def test_equal_items_are_one_loop_that_carries_the_residual():
    (loop,) = loops(plan_of(build(Residual, 5)))
    assert (loop.prefix, loop.start, loop.count) == ("layers", 0, 5)
    assert len(loop.carried) == 1
    assert [step.kind for step in loop.body] == ["linear", "join"]


def test_lists_one_after_another_are_two_loops():
    first, second = loops(plan_of(build(Residual, 4, 3)))
    assert (first.prefix, first.count) == ("layers", 4)
    assert (second.prefix, second.count) == ("wide", 3)


def test_lists_side_by_side_are_one_loop():
    (loop,) = loops(plan_of(build(Beside, 4)))
    assert (loop.prefix, loop.others, loop.count) == ("a", ("b",), 4)


def test_the_same_module_again_is_a_shared_loop():
    (loop,) = loops(plan_of(build(Again, 6)))
    assert loop.shared
    assert loop.count == 6


def test_items_that_others_read_later_stay_apart():
    assert not any(loop.count > 2 for loop in loops(plan_of(build(Kept, 5))))
