"""Which modules a model recomputes, read off its source, and how, tried out on a number."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from symflops.training.introspect.checkpoints import manner, passed_modules, recomputed
from symflops.training.introspect.tree import LiveModelError, tree_of


class Model(nn.Module):
    """Passes its modules to a checkpoint function in the ways that libraries do."""

    gradient_checkpointing = True

    def __init__(self):
        super().__init__()
        for name in ("plain", "counted", "zipped", "beside", "assigned", "sliced", "skipped", "guarded"):
            setattr(self, name, nn.ModuleList(nn.Linear(2, 2) for _ in range(3)))
        self.single = nn.Linear(2, 2)
        self.untouched = nn.Linear(2, 2)
        self._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)

    def forward(self, x, skip=()):
        for block in self.plain:
            x = self._gradient_checkpointing_func(block.__call__, x) if self.gradient_checkpointing and self.training else block(x)
        for index, block in enumerate(self.counted):
            if torch.is_grad_enabled() and self.gradient_checkpointing:
                x = self._gradient_checkpointing_func(block, x)
            else:
                x = block(x) * index
        for one, other in zip(self.zipped, self.beside):
            x = self._gradient_checkpointing_func(one, x)
            x = other(x)
        pairs = list(zip(self.assigned, self.beside))
        for _, (one, _) in enumerate(pairs):
            x = self._gradient_checkpointing_func(one, x)
        for block in self.sliced[1:]:
            x = self._gradient_checkpointing_func(block, x)
        for index, block in enumerate(self.skipped):
            is_skipped = index in skip
            if self.gradient_checkpointing and not is_skipped:
                x = self._gradient_checkpointing_func(block, x)
            elif not is_skipped:
                x = block(x)
        if len(self.guarded) > 0:
            for block in self.guarded:
                x = self._gradient_checkpointing_func(block, x)
        return self.untouched(self._gradient_checkpointing_func(self.single, x))


class Choosy(Model):
    def forward(self, x, every=2):
        for index, block in enumerate(self.plain):
            if self.gradient_checkpointing and index % every == 0:
                x = self._gradient_checkpointing_func(block, x)
            else:
                x = block(x)
        return x


def test_the_source_says_which():
    assert set(passed_modules(Model)) == {"plain", "counted", "zipped", "assigned", "sliced[1:]", "skipped", "guarded", "single"}
    found = recomputed(tree_of(Model()))
    groups = [f"{name}.{index}" for name in ("plain", "counted", "zipped", "assigned", "skipped", "guarded") for index in range(3)]
    assert set(found.groups) == {*groups, "sliced.1", "sliced.2", "single"} and found.early_stop and not found.reentrant


def test_a_choice_that_the_source_makes_is_refused():
    assert passed_modules(Choosy) == (None,)
    with pytest.raises(LiveModelError, match="cannot be read off its source"):
        recomputed(tree_of(Choosy()))


def test_how_is_tried():
    assert manner("x", partial(checkpoint, use_reentrant=True)) == (True, False)
    assert manner("x", partial(checkpoint, use_reentrant=False)) == (False, True)
    assert manner("x", partial(checkpoint, use_reentrant=False, early_stop=False)) == (False, False)
    assert manner("x", lambda function, *given: function(*given)) is None
    with pytest.raises(LiveModelError, match="how 'x' is recomputed is not known"):
        manner("x", lambda: None)
    with pytest.raises(LiveModelError, match="selectively"):
        manner("x", partial(checkpoint, use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, [])))


def test_several_ways_and_nested_groups_are_refused():
    model = Model()
    model.inner = Model()
    model.inner._gradient_checkpointing_func = partial(checkpoint, use_reentrant=True)
    with pytest.raises(LiveModelError, match="in several ways"):
        recomputed(tree_of(model))
    model = Model()
    model.single = Model()
    with pytest.raises(LiveModelError, match="inside of another"):
        recomputed(tree_of(model))
