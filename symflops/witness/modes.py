"""What a model does only in training, or only in evaluation mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symflops.model.spec import Spec


def in_evaluation(spec: Spec, config: Mapping[str, Any]) -> dict[str, Any]:
    """A config that makes a model in training mode do what one of ``config`` does in evaluation mode."""
    changed = dict(config)
    for size in spec.sizes:
        if size.evaluation is not None:
            changed = with_value(changed, size.keys[0], size.evaluation)
    return changed


def with_value(config: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """``config`` with ``value`` at ``key``, whose points walk into nested configs."""
    first, _, rest = key.partition(".")
    return {**config, first: with_value(config.get(first) or {}, rest, value) if rest else value}
