"""Lengths of a diffusion batch from pixels, frames and tokens of the prompt, by the rules in ``specs/pipelines.json``.

A rule says for each stream of a spec how long one sample is, as a formula of what a pipeline is called with.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache

from symflops.evaluate.layouts import inputs_of
from symflops.evaluate.sizes import sizes_of
from symflops.library.catalog import shipped_catalog
from symflops.support.errors import SymflopsError, did_you_mean
from symflops.support.reading import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Mapping
    from typing import Any

LARGEST = {"height": 4096, "width": 4096}
"""Pixels of the largest usual image; a batch with more is taken for one that has pixels in place of latents."""
OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mult": lambda a, b: a * b, "FloorDiv": lambda a, b: a // b,
}  # fmt: skip


@lru_cache(maxsize=1)
def rules() -> dict[str, dict[str, Any]]:
    """All rules by name: ``spec``, ``pipelines``, ``given`` (name -> default), ``lengths`` (stream -> formula, or a list)."""
    found: dict[str, dict[str, Any]] = read_json(os.path.join(shipped_catalog().folder, "specs", "pipelines.json"))
    return found


def rule_for(model: Any, name: str = "") -> dict[str, Any] | None:
    """The rule called ``name``, or of the pipeline class ``name``, for an estimator; without a name the usual one.

    The usual one is the rule that was measured with the config most like that of the model, else the first one of the spec;
    None if the spec has no rule.

    Raises:
        SymflopsError: the spec has no rule of that name.
    """
    own = {key: rule for key, rule in rules().items() if rule["spec"] == model.name}
    if name:
        found = own.get(name) or next((rule for rule in own.values() if name in rule["pipelines"]), None)
        if found is None:
            hint = did_you_mean(name, own, f"there {'is' if len(own) == 1 else 'are'} {', '.join(own) or 'none'}")
            raise SymflopsError(f"'{model.name}' has no pipeline '{name}': {hint}")
        return found
    measured = {row["name"]: row["config"] for row in shipped_catalog().published().get(model.name, ())} if len(own) > 1 else {}
    return max(own.values(), key=lambda rule: likeness(model, measured.get(rule.get("measured"))), default=None)


def likeness(model: Any, published: Mapping[str, Any] | None) -> tuple[int, float]:
    """How like a published config that of ``model`` is: inputs of equal channels, then the share of equal fields."""
    inputs: dict[str, Any] = {}
    with suppress(SymflopsError):
        sizes = sizes_of(model.stored, published or {})
        inputs = inputs_of(model.stored, lambda position: model.stored.formulas.checked(position, sizes)) if published else {}
    equal = [model.config.get(key) == value for key, value in (published or {}).items()]
    return sum(inputs.get(name) == row for name, row in model.inputs().items()), sum(equal) / max(len(equal), 1)


def lengths_of(rule: Mapping[str, Any], given: Mapping[str, int]) -> dict[str, Any]:
    """The length or lengths of one sample, by stream; values that ``given`` lacks are those of the rule.

    Raises:
        SymflopsError: the rule does not use a given value, or a length is less than 1.
    """
    needless = [name for name in given if name not in rule["given"]]
    if needless:
        raise SymflopsError(f"this pipeline has no {needless[0]} to choose: it takes {', '.join(rule['given'])}")
    names = {**rule["given"], **given}
    found: dict[str, Any] = {}
    for stream, formula in rule["lengths"].items():
        formulas = formula if isinstance(formula, list) else [formula]
        row = [value(one, names) for one in formulas]
        if any(length < 1 and isinstance(one, str) for one, length in zip(formulas, row, strict=True)):
            raise SymflopsError(f"{', '.join(f'{name} {names[name]}' for name in rule['given'])} leave no {stream}")
        found[stream] = row if isinstance(formula, list) else row[0]
    return found


def value(formula: int | str, names: Mapping[str, int]) -> int:
    """Evaluate a formula of a rule, which has names, whole numbers, ``+``, ``-``, ``*`` and ``//``."""
    if isinstance(formula, int):
        return formula
    import ast

    def of(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            return OPERATIONS[type(node.op).__name__](of(node.left), of(node.right))
        return names[node.id] if isinstance(node, ast.Name) else int(node.value)  # type: ignore[attr-defined]

    return of(ast.parse(formula, mode="eval").body)


def notes(model: Any, batch: Mapping[str, Any]) -> list[str]:
    """Say of a batch with lengths of pixels that the model takes latents; empty if its images have a usual size."""
    own = [rule for rule in rules().values() if rule["spec"] == model.name and LARGEST.keys() <= rule["given"].keys()]
    if not own:
        return []
    names = {**own[0]["given"], **LARGEST}
    for stream, formula in own[0]["lengths"].items():
        formulas = formula if isinstance(formula, list) else [formula]
        axes = [place for place, one in enumerate(formulas) if any(name in str(one) for name in LARGEST)]
        most = [value(one, names) for one in formulas]
        for entry in batch.get(stream, ()) if isinstance(batch.get(stream), list) else ():
            row = entry if isinstance(entry, list) else [entry]
            if len(row) == len(most) and any(isinstance(row[place], int) and row[place] > most[place] for place in axes):
                told = " x ".join(str(row[place]) for place in axes)
                side = f"more than those of an image of {LARGEST['width']} x {LARGEST['height']} pixels"
                return [f"a {stream} of {told} is {side}: lengths are those of latents; --height and --width take pixels"]
    return []
