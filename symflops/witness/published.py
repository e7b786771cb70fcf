"""Extracts configs and batches of published models from measured records, for the presets of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symflops.api import Model
from symflops.diagnostics.findings import SymflopsError
from symflops.model.program import Field
from symflops.runtime.layouts import batch_of
from symflops.runtime.sizes import is_null, look_up
from symflops.witness.modes import with_value
from symflops.witness.records import Record, arguments_of, config_of_record


def published_of(records: Iterable[Record], models: Mapping[str, Model]) -> dict[str, list[dict[str, Any]]]:
    """For each spec the entries of its records of published size, or of its first record if none has that size."""
    found: dict[str, list[tuple[bool, dict[str, Any]]]] = {}
    for record in records:
        model = models.get(record["class"])
        if model is None or record.get("regime"):
            continue
        entries = found.setdefault(model.spec.name, [])
        if record.get("published_size") or not entries:
            entries.append((bool(record.get("published_size")), entry_of(model, record)))
    return {
        name: [entry for large, entry in entries if large or not any(large for large, _ in entries)]
        for name, entries in sorted(found.items())
    }


def entry_of(model: Model, record: Record) -> dict[str, Any]:
    """The stored part of a record: the sizes of its config, and the lengths of its batch.

    Raises:
        SymflopsError: the spec does not fit the record.
    """
    config = config_of_record(model, record)
    program = model.program(["full"], ["torch"], config)
    try:
        batch = batch_of(program, arguments_of(model, record))
    except SymflopsError as error:
        raise SymflopsError(f"{record['id']}: {error}") from None
    counted = {stream.name for stream in program.streams if stream.counts}
    return {
        "name": record["id"].rpartition("/")[2],
        "reference": f"{record['package']}.{record['class']}",
        "config": sizes_in(config, program.fields),
        "batch": {name: len(given) if name in counted else given for name, given in batch.items()},
    }


def sizes_in(config: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """The part of a config that a program reads, each size under its first key."""
    found: dict[str, Any] = {}
    for field in fields:
        value = look_up(config, field.keys)
        if value is not None or (field.nullable and is_null(config, field.keys)):
            value = len(value) if field.kind == "entries" and not isinstance(value, int) else value
            found = with_value(found, field.keys[0], value)
    return found
