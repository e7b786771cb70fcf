"""Compares the defaults of a spec's sizes with those of the library's config class."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from symflops.api import Model
from symflops.evaluate.config import as_json
from symflops.evaluate.sizes import is_null, look_up, sizes_of
from symflops.evaluate.stored import stored_of
from symflops.ir.program import Field
from symflops.verify.classes import class_of, config_class_of, with_value

EXAMPLES = {
    "number": 1, "count": 1, "entries": 1, "position": 0, "rational": 1, "flag": False, "text": "", "list": [],
    "number or list": 1, "any": 1, "number, list, same or valid": 1,
}  # fmt: skip


def class_defaults(reference: str, folder: Path | None = None) -> Mapping[str, Any]:
    """The default config of a class: from its config class, else from its constructor's signature.

    Raises:
        SymflopsError: the package or the class does not exist.
    """
    real = class_of(reference, folder)
    config_class = config_class_of(real)
    if config_class is not None and hasattr(config_class, "to_dict"):
        found: Mapping[str, Any] = config_class().to_dict()
        return found
    return signature_of(real if config_class is None else config_class)


def written_defaults(reference: str, folder: Path | None = None) -> Mapping[str, Any]:
    """The defaults as a class's signature has them, before the class replaces nulls by computed values.

    Raises:
        SymflopsError: the package or the class does not exist.
    """
    real = class_of(reference, folder)
    kind = config_class_of(real) or real
    parts = getattr(kind, "sub_configs", {})
    return {**signature_of(kind), **{name: signature_of(part) for name, part in parts.items() if hasattr(part, "to_dict")}}


def signature_of(kind: type) -> Mapping[str, Any]:
    """Map the arguments of a class's constructor to their defaults."""
    parameters = inspect.signature(kind).parameters.values()
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    made = {item.name: item.default_factory for item in fields if item.default_factory is not dataclasses.MISSING}
    given = {item.name: item.default for item in parameters if item.default is not inspect.Parameter.empty}
    return {name: as_json(made[name]() if name in made else value) for name, value in given.items()}


def default_differences(model: Model) -> Iterator[str]:
    """Yield a line for each size whose default differs from that of a class which the spec describes.

    If a size has no default, the class must have none either: a config must give it. A default may equal the one in the
    class's signature even if the class replaces it later, because the spec itself describes the replacement.
    """
    program = replace(model.program(["forward"], ["symflops"], {}), census=None)
    needed = [field for field in program.fields if field.required and field.default is None]
    folder = model.file.path.parent
    for reference in model.spec.references:
        defaults, written = class_defaults(reference, folder), written_defaults(reference, folder)
        known = {field.keys[0]: look_up(defaults, field.keys) for field in needed}
        ours, theirs = (sizes_of(stored_of(program), _completed(config, known, needed)) for config in ({}, defaults))
        for field in program.fields:
            own, real = ours[field.letter], theirs[field.letter]
            as_written = own == look_up(written, field.keys) if own is not None else is_null(written, field.keys)
            if (own != real and not as_written) or known.get(field.keys[0]) is not None:
                both = f"{'none' if field in needed else repr(own)} in the spec, {real!r} in {reference}"
                yield f"default of size '{field.letter}' ({field.keys[0]}): {both}"


def _completed(config: Mapping[str, Any], known: Mapping[str, Any], needed: Sequence[Field]) -> dict[str, Any]:
    """Return ``config`` with a value for each ``needed`` field: that in ``known``, or if null an example."""
    completed = dict(config)
    for field in needed:
        value = known[field.keys[0]]
        completed = with_value(completed, field.keys[0], EXAMPLES[field.kind] if value is None else value)
    return completed
