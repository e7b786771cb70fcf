"""Configs that make a model in training mode behave as in evaluation mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symflops.model.spec import Spec


def in_evaluation(spec: Spec, config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` with the flags of ``spec`` that evaluation mode overrides."""
    changed = dict(config)
    for size in spec.sizes:
        if size.evaluation is not None:
            changed = with_value(changed, size.keys[0], size.evaluation)
    return changed


def with_value(config: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """``config`` with ``value`` at ``key``; dots in the key lead into nested configs."""
    first, _, rest = key.partition(".")
    return {**config, first: with_value(config.get(first) or {}, rest, value) if rest else value}
