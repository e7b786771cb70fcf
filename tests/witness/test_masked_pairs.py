"""Masked pairs of attention, which PyTorch's counter does not see, against the masks that the real class builds.

A census compares parameters and the counter's FLOPs, to which a mask is nothing: a field that only moves a mask looks as if it had
no effect. Here the class runs with an attention that counts what its mask hides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from symflops.api import load
from symflops.catalog.library import find_spec, shipped, specs_in
from symflops.catalog.lookup import by_name, interpreted
from symflops.diagnostics.errors import SymflopsError
from symflops.witness.cases import LiveCase, cases_of
from symflops.witness.census.fields import value_at
from symflops.witness.census.observation import changed, observed
from symflops.witness.census.survey import Base, Survey, plain_lists
from symflops.witness.census.take import quiet
from symflops.witness.census.variations import variations
from symflops.witness.live import reference_of
from symflops.witness.tensors import arguments_of, moved
from tests.sampling import sampled

MASKING = ("window", "pattern", "layer_types", "sliding", "chunk", "causal", "bidirectional", "is_decoder", "global_attn", "local_attention", "rope_layer")
"""Words in the names of fields that may move a mask."""
OTHERWISE = {
    "bloom": "its positions are biases of the scores, in attention of its own",
    "falcon": "the same",
    "deepseek_v32": "an attention that it does not know gets the chosen keys, not a mask",
    "kimi_linear": "a layer of another type is no attention, and the conventions differ in it",
    "qwen3_next": "the same",
}
"""Specs that this witness cannot see, and why."""
NAMES = [
    file.name
    for file in specs_in(shipped("specs"))
    if file.group not in ("nn", "papers", "assumed") and "  transformers." in file.source().text and file.name not in OTHERWISE
]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Attention under the name ``counted``, which notes the FLOPs of the pairs that its mask hides."""
    import torch
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    hidden: list[int] = []

    def attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **_: Any) -> tuple[Any, None]:
        items, heads, queries, width = query.shape
        pairs = items * queries * key.shape[2]
        seen = pairs
        if attention_mask is not None:
            visible = attention_mask if attention_mask.dtype == torch.bool else attention_mask > torch.finfo(attention_mask.dtype).min / 2
            seen = int(visible[:, 0, :, : key.shape[2]].expand(items, queries, key.shape[2]).sum())
        hidden.append((pairs - seen) * 2 * heads * (width + value.shape[3]))
        shared = heads // key.shape[1]
        scores = query @ key.repeat_interleave(shared, 1).transpose(2, 3)
        return (scores.softmax(-1) @ value.repeat_interleave(shared, 1)).transpose(1, 2).contiguous(), None

    AttentionInterface.register("counted", attention)
    AttentionMaskInterface.register("counted", eager_mask)
    yield hidden


class Masks:
    """What masks hide in a class, and under the convention symflops, relative to a small model of the class."""

    def __init__(self, survey: Survey, name: str, base: Base) -> None:
        self.survey, self.name, self.base = survey, name, base

    def real(self, case: LiveCase) -> tuple[int, Mapping[str, Any]]:
        """FLOPs of hidden pairs on the batch of the base, and the complete config.

        Raises:
            Exception: the class cannot be built, or does not run.
        """
        import torch

        case = replace(case, options={**case.options, "attn_implementation": "counted"}, device="cpu")
        arguments = moved(arguments_of(self.base.derived.program, case.batch, self.base.derived.estimator.sizes, case.arguments), "cpu")
        with counted() as hidden, torch.no_grad():
            seen = observed(self.survey.reference, case, self.survey.folder)
            seen.model.eval()(**arguments)
        return sum(hidden), seen.config

    def derived(self, config: Mapping[str, Any]) -> int:
        """How much less of a forward pass counts under symflops than under torch, on the batch of the base."""
        passes = []
        for convention in ("torch", "symflops"):
            found = interpreted(by_name(self.name), self.name, config, "full", convention, tell=lambda text: None)
            passes.append(found.forward(found.moments(**self.base.case.batch)))
        return passes[0] - passes[1]

    def changes(self) -> Iterator[dict[str, Any]]:
        """Each field that may move a mask, varied alone, and some two by two."""
        random, fields = self.survey.random, [item for item in self.survey.fields if any(word in item.path for word in MASKING)]
        values: dict[str, list[Any]] = {}
        for item in fields:
            part = item.path.rpartition(".")[0]
            if not part or isinstance(value_at(self.base.json, part), Mapping):
                value = plain_lists(value_at(self.base.json, item.path))
                small = [1, 2, 3, 4] if type(value) is int else []
                values[item.path] = [*variations(item, value, self.survey.words.of(item), [], random), *small]
        yield from ({path: value} for path, others in values.items() for value in others)
        several = [path for path, others in values.items() if others]
        for _ in range(40 if len(several) > 1 else 0):
            yield {path: random.choice(values[path]) for path in random.sample(several, 2)}


@pytest.mark.parametrize("name", sampled(NAMES, 36, 6))
def test_what_masks_hide_is_what_the_class_hides_under_every_field_that_moves_them(name: str) -> None:
    file = find_spec(name)
    model = load(file)
    cases: dict[str, list[LiveCase]] = {}
    for case in cases_of(file):
        cases.setdefault(reference_of(model, case), []).append(case)
    compared = moving = 0
    with quiet():
        reference = next(iter(cases))
        survey = Survey(model, reference, cases[reference])
        for base in survey.bases:
            masks = Masks(survey, name, base)
            hidden, config = masks.real(base.case)
            other = masks.derived(config) - hidden  # what else the two conventions differ in
            for changes in masks.changes():
                moving += 1
                case = changed(base.case, changes, survey.aliases)
                try:
                    hidden, config = masks.real(case)
                except Exception:  # it cannot be built, or does not run
                    continue
                named = {key: config[key] for key in ("architectures",) if key in config}
                for one in (config, {**case.config, **named}):
                    try:
                        found = masks.derived(one)
                    except SymflopsError:  # refused
                        continue
                    compared += 1
                    assert found - other == hidden, f"{reference}, {changes}: masks hide {hidden:,} FLOPs, derived {found - other:,}"
    assert compared or not moving
