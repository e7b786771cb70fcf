"""Items of several kinds become one body with branches, under conditions on sizes and lists of the config."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from symflops.draft.fit.conditions import Rows, condition
from symflops.draft.fit.symbols import Names
from symflops.draft.fold.fold import with_folded_lists
from symflops.draft.polish.polish import inlined
from symflops.draft.trace.lowering import steps_of
from symflops.draft.trace.steps import Branch, Loop
from symflops.draft.trace.tape import record


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.mlp = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 24), nn.Linear(24, 8)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


class Stack(nn.Module):
    def __init__(self, kinds, keeps=False):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.layers = nn.ModuleList(kind() for kind in kinds)
        self.keeps = keeps

    def forward(self, x):
        x = kept = self.first(x)
        for number, layer in enumerate(self.layers):
            x = layer(x)
            kept = x if number == 1 else kept
        return x + self.first(kept) if self.keeps else x


def plan_of(kinds, keeps=False):
    with torch.device("meta"):
        model = Stack(kinds, keeps)
    return with_folded_lists(steps_of(record(model, {"x": torch.zeros(2, 3, 8, device="meta")})))


def branches(plan):
    return [part for entry in plan.entries if isinstance(entry, Loop) for part in entry.body if isinstance(part, Branch)]


@pytest.mark.parametrize("kinds", [[Plain, Wide] * 3, [Plain, Plain, Wide, Wide, Wide], [Plain] * 5 + [Wide]])
def test_kinds_are_cases_of_one_branch_between_what_all_items_do(kinds):
    plan = plan_of(kinds)
    (loop,) = (entry for entry in plan.entries if isinstance(entry, Loop))
    assert loop.count == len(kinds)
    assert [getattr(part, "kind", "branch") for part in loop.body] == ["norm", "branch", "join"]
    (branch,) = branches(plan)
    assert [tuple(step.kind for step in case) for case in branch.cases] == [("linear",), ("linear", "linear")]
    assert branch.chosen == tuple(int(kind is Wide) for kind in kinds)
    (choice,) = branch.choices
    assert [ref.id for ref in choice.sources] == [case[-1].id for case in branch.cases]
    assert choice.id in {ref.id for ref in loop.body[-1].operands}


def test_an_item_that_others_read_later_stays_apart():
    (loop,) = (entry for entry in plan_of([Plain, Wide] * 3, keeps=True).entries if isinstance(entry, Loop))
    assert (loop.start, loop.count) == (2, 4)


SAMPLES = ((6, 2, 1, [2, 4]), (9, 3, 0, [1, 2, 7]), (8, 4, 3, [5]))


def names_and_family():
    names = Names()
    for place, (letter, key) in enumerate((("L", "depth"), ("p", "period"), ("o", "offset"))):
        names.sizes[letter] = (key,)
        names.vectors[letter] = tuple(sample[place] for sample in SAMPLES)
    words = [["a" if number in items else "b" for number in range(depth)] for depth, _, _, items in SAMPLES]
    configs = [
        {"depth": depth, "special": items, "kinds": kinds} for (depth, _, _, items), kinds in zip(SAMPLES, words, strict=True)
    ]
    return names, SimpleNamespace(samples=[SimpleNamespace(config=config) for config in configs])


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (lambda i, depth, period, offset, items: i % period == offset, "i % p == o"),
        (lambda i, depth, period, offset, items: i % period != offset, "i % p != o"),
        (lambda i, depth, period, offset, items: (i + 1) % period == 0, "(i + 1) % p == 0"),
        (lambda i, depth, period, offset, items: i < period, "i < p"),
        (lambda i, depth, period, offset, items: i >= depth - 1, "i >= L - 1"),
        (lambda i, depth, period, offset, items: i % 3 == 1, "i % 3 == 1"),
        (lambda i, depth, period, offset, items: i in items, "i in special"),
        (lambda i, depth, period, offset, items: i * i % 7 == 2, None),
    ],
)
def test_a_condition_is_found_over_all_samples(kind, text):
    names, family = names_and_family()
    rows = Rows([0] * len(SAMPLES), [[kind(i, *sample) for i in range(sample[0])] for sample in SAMPLES])
    assert condition(rows, "i", "L", family, names) == text
    assert ("special" in names.sizes) == (text == "i in special")


def test_a_list_of_words_is_one_of_the_sizes():
    names, family = names_and_family()
    for sample in family.samples:
        del sample.config["special"]
    rows = Rows([0] * len(SAMPLES), [[word == "b" for word in sample.config["kinds"]] for sample in family.samples])
    assert condition(rows, "i", "L", family, names) in ("kinds[i] == 'b'", "kinds[i] != 'a'")
    assert names.sizes["kinds"] == ("kinds",)


def test_each_case_adds_for_itself():
    entries = [
        ("_", {"when": "i < 2", "graph": [("mlp", {"op": "linear", "from": "m", "to": "t"})]}),
        (
            "_",
            {
                "when": "i >= 2",
                "graph": [("up", {"op": "linear", "from": "m", "to": "u"}), ("down", {"op": "linear", "from": "u", "to": "t"})],
            },
        ),
        ("_", {"op": "add", "from": ["h", "t"], "to": "h"}),
    ]
    first, second = inlined(entries)
    assert first == ("mlp", {"op": "linear", "from": "m", "add_to": "h", "when": "i < 2"})
    assert second[1]["graph"][1] == ("down", {"op": "linear", "from": "u", "add_to": "h"})
