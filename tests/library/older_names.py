"""Writes ``specs/older.json``, names of transformers before version 5, as it says itself: ``python -m tests.library.older_names``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import torch
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import PrefixChange, revert_weight_conversion

from symflops.api import load
from symflops.evaluate.classes import class_name
from symflops.library.lookup import catalogs
from symflops.read.spec_files import shipped
from symflops.support.errors import SymflopsError
from symflops.training.introspect.older import CLASSES, FILE, OlderNames
from symflops.training.introspect.tree import starred
from symflops.verify.live import build
from tests.shipped import FILES, cases_of


def older_of(model: Any) -> dict[str, str]:
    """Each name of a parameter then -> its name today, with ``*`` for indices.

    Names have changed several times, prefixes by themselves; those of all times are known.
    """
    found = {starred(name): starred(name) for name, _ in model.named_parameters()}
    every = get_model_conversion_mapping(model, add_legacy=False)
    prefixes = [one for one in every if isinstance(one, PrefixChange)]
    for model._weight_conversions in ([one for one in every if one not in prefixes], prefixes, every):
        for name, tensor in model.named_parameters():
            for old in revert_weight_conversion(model, {name: torch.zeros(tuple(tensor.shape))}):
                found.setdefault(starred(old), starred(name))
    return found


def renamed(rules: dict[str, str], old: str) -> str:
    """The name today by rules; the digits stand for stars."""
    return starred(OlderNames(rules).parameter(old.replace("*", "0"))[0])


def rules_of(names: dict[str, str]) -> dict[str, str]:
    """The shortest rules that rename all: each drops the words at the end that both names have."""
    every = {**{new: new for new in names.values()}, **names}
    rules: dict[str, str] = {}
    for old, new in names.items():
        words, others = old.split("."), new.split(".")
        alike = next((place for place, pair in enumerate(zip(reversed(words), reversed(others), strict=False)) if pair[0] != pair[1]), min(len(words), len(others)))
        for drop in range(min(alike, len(words) - 1, len(others) - 1), -1, -1):
            if renamed(rules, old) == new:
                break
            more = {**rules, ".".join(words[: len(words) - drop]): ".".join(others[: len(others) - drop])}
            right, before = ({one for one, two in every.items() if renamed(table, one) == two} for table in (more, rules))
            if old in right and before <= right:
                rules = more
    assert all(renamed(rules, old) == new for old, new in every.items())
    return rules


def classes() -> dict[str, dict[str, str]]:
    """The rules of each class that a spec describes and whose names have changed."""
    found = {}
    catalog = next(one for one in catalogs() if one.shipped)
    for name, entry in sorted(catalog.specs.items()):
        for reference in (one for one in entry["references"] if one.startswith("transformers.") and any(cases_of(FILES[name]))):
            case = replace(next(iter(cases_of(FILES[name]))), reference=reference)
            try:
                model, _ = build(reference, case, load(FILES[name]).file.path.parent)
                names = older_of(model)
            except SymflopsError:
                continue
            if any(old != new for old, new in names.items()):
                found[class_name(reference)] = rules_of(names)
    return found


if __name__ == "__main__":
    text = json.dumps({"schema": 1, CLASSES: dict(sorted(classes().items()))}, indent=1)
    (shipped("specs") / FILE).write_text(text + "\n")
