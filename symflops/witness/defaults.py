"""The defaults of a spec's sizes against those of the library's own config class."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from symflops.api import Model
from symflops.runtime.sizes import sizes_of
from symflops.witness.live import class_of


def class_defaults(reference: str) -> Mapping[str, Any]:
    """The config that a class has when nothing is said: of its config class, or of its constructor's signature.

    Raises:
        SymflopsError: the package or the class is not there.
    """
    real = class_of(reference)
    config_class = getattr(real, "config_class", None)
    if config_class is not None and hasattr(config_class, "to_dict"):
        found: Mapping[str, Any] = config_class().to_dict()
        return found
    parameters = inspect.signature(real.__init__).parameters.values()
    return {item.name: _plain(item.default) for item in parameters if item.default is not inspect.Parameter.empty}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def default_differences(model: Model) -> Iterator[str]:
    """The sizes whose default is not that of the real class, for every class that the spec describes."""
    program = model.program(["forward"], ["symflops"], {})
    ours = sizes_of(program, {})
    for reference in model.spec.references:
        theirs = sizes_of(program, class_defaults(reference))
        for field in program.fields:
            if ours[field.letter] != theirs[field.letter]:
                told = f"{ours[field.letter]!r} in the spec, {theirs[field.letter]!r} in {reference}"
                yield f"default of size '{field.letter}' ({field.keys[0]}): {told}"
