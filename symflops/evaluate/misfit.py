"""Turns findings in a spec that a config causes into a message about the config's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from symflops.evaluate.config import as_json, look_up
from symflops.formula.table import ConfigError
from symflops.ir.spec import Spec
from symflops.support.findings import SpecError

MOST_FIELDS = 40
"""The largest number of fields to remove in turn in search of the one that does not fit."""


@contextmanager
def about_config(spec: Spec, config: Any, derives: Callable[[Mapping[str, Any]], object]) -> Iterator[None]:
    """Context manager that turns an error in the spec into one about the config, if the config causes it.

    ``derives`` raises an error for a config whose structure cannot be derived.

    Raises:
        ConfigError: replaces a :class:`SpecError` located in the spec, if ``derives`` accepts the config without its sizes.
    """
    try:
        yield
    except SpecError as error:
        own = {source.path for source in spec.sources}
        inside = all(one.span is not None and one.span.source.path in own for one in error.diagnostics)
        given = as_json(config or {})
        if not inside or not given or not fits(derives, without(given, spec.sizes)):
            raise
        raise ConfigError(misfit(spec, given, error, derives)) from error


def misfit(spec: Spec, config: Mapping[str, Any], error: SpecError, derives: Callable[[Mapping[str, Any]], object]) -> str:
    """Message that names the fields whose removal makes the config valid, and the first finding."""
    present = [size for size in spec.sizes if size.keys and look_up(config, size.keys) is not None][:MOST_FIELDS]
    guilty = [size for size in present if fits(derives, without(config, [size]))]
    told = " and ".join(f"'{size.keys[0]}' is {look_up(config, size.keys)!r:.80}" for size in guilty[:3])
    why = error.diagnostics[0].message
    if not told:
        return f"the config does not fit '{spec.name}': {why}"
    return f"the config's {told}, with which '{spec.name}' has no structure beside its other fields: {why}"


def fits(derives: Callable[[Mapping[str, Any]], object], config: Mapping[str, Any]) -> bool:
    """Whether ``derives`` accepts a config: raises neither SpecError nor ConfigError."""
    try:
        derives(config)
    except (SpecError, ConfigError):
        return False
    return True


def without(config: Mapping[str, Any], sizes: Sequence[Any]) -> dict[str, Any]:
    """Copy a config without the fields that set the sizes ``sizes``."""
    found = deepcopy(dict(config))
    for *outer, last in (key.split(".") for size in sizes for key in size.keys):
        inner = look_up(found, [".".join(outer)]) if outer else found
        if isinstance(inner, dict):
            inner.pop(last, None)
    return found
