"""Masks of each shipped spec beside those of the real class, under every field that may move them.

PyTorch's counter sees all pairs, so a field that only moves a mask has no effect on its figures. ``symflops.verify.pairs`` asks the
class; no formula of ours says what it hides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from symflops.api import load
from symflops.library.lookup import by_name, interpreted
from symflops.read.spec_files import SpecFile, find_spec, shipped, specs_in
from symflops.support.errors import SymflopsError
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.census.fields import ConfigField, value_at
from symflops.verify.census.observation import with_values
from symflops.verify.census.survey import Base, Survey, plain_lists
from symflops.verify.census.take import quiet
from symflops.verify.census.variations import variations
from symflops.verify.live import masks_of, reference_of
from tests.sampling import sampled

MASKING = ("window", "pattern", "layer_types", "sliding", "chunk", "causal", "bidirectional", "is_decoder", "global_attn", "local_attention", "rope_layer")
"""Words in the names of fields that may move a mask."""
OF_ANY_CLASS = ("is_causal", "is_decoder")
"""Flags that transformers reads of any config, declared or not."""


def attends(file: SpecFile) -> bool:
    """Whether the text of a spec tells of attention, its own or that of the spec that it extends."""
    text = file.path.read_text("utf-8")
    return "att" in text or "extends:" in text


NAMES = [file.name for file in specs_in(shipped("specs")) if file.group not in ("papers", "assumed") and cases_of(file) and attends(file)]


def changes(survey: Survey, base: Base) -> Iterator[Mapping[str, Any]]:
    """Each field that may move a mask, varied alone, and some two by two."""
    random, values = survey.random, dict[str, list[Any]]()
    declared = {item.path for item in survey.fields}
    parts = ["", *{item.path.rpartition(".")[0] + "." for item in survey.fields if "." in item.path}]
    flags = [ConfigField(part + flag, "bool") for part in parts for flag in OF_ANY_CLASS if survey.reference.startswith("transformers.")]
    for item in [*survey.fields, *(flag for flag in flags if flag.path not in declared)]:
        part = item.path.rpartition(".")[0]
        if any(word in item.path for word in MASKING) and (not part or isinstance(value_at(base.json, part), Mapping)):
            value = plain_lists(value_at(base.json, item.path))
            small = [1, 2, 3, 4] if type(value) is int else []
            values[item.path] = [*variations(item, value, survey.words.of(item), [], random), *small]
    yield from ({path: value} for path, others in values.items() for value in others)
    several = [path for path, others in values.items() if others and path.rpartition(".")[2] not in OF_ANY_CLASS]
    for _ in range(20 if len(several) > 1 else 0):
        yield {path: random.choice(values[path]) for path in random.sample(several, 2)}


def classes(name: str) -> dict[str, list[LiveCase]]:
    """The cases of a spec by their class; that which the spec names first has no name."""
    found: dict[str, list[LiveCase]] = {}
    for case in cases_of(find_spec(name)):
        found.setdefault(case.reference, []).append(case)
    return found


CLASSES = [(name, reference) for name in NAMES for reference in classes(name)]


@pytest.mark.parametrize(("name", "reference"), sampled(CLASSES, 400, 30))
def test_masks_are_those_of_the_class_under_every_field_that_moves_them(name: str, reference: str) -> None:
    model, cases = load(find_spec(name)), classes(name)[reference]
    with quiet():
        survey = Survey(model, reference_of(model, cases[0]), cases)
        for base in survey.bases:
            for change in ({}, *changes(survey, base)):
                case = replace(base.case, config=with_values(base.case.config, change, {}, survey.aliases))
                try:
                    interpreted(by_name(name), name, case.config, tell=lambda text: None)
                except SymflopsError:  # refused
                    continue
                masks = masks_of(model, case, survey.estimated)
                assert masks is None or not (masks.modules or masks.unlike), f"{change}: {masks}"
                assert masks is None or change or not masks.unseen, masks
