"""Extracts configs and batches of published models from measured records, for the presets of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symflops.api import Model
from symflops.diagnostics.findings import SymflopsError
from symflops.model.program import Field
from symflops.model.regime import Regime
from symflops.runtime.layouts import batch_of
from symflops.runtime.sizes import is_null, look_up
from symflops.witness.modes import with_value
from symflops.witness.records import Record, arguments_of, config_of_record, regime_of_record


def published_of(records: Iterable[Record], models: Mapping[str, Model]) -> dict[str, list[dict[str, Any]]]:
    """For each spec the entries of its records of published size, or of its first record if none has that size.

    If no record among them proves the closed forms of the spec's page, the first one that does follows.
    """
    found: dict[str, list[Record]] = {}
    for record in records:
        model = models.get(record["class"])
        if model is not None and not record.get("regime"):
            found.setdefault(model.spec.name, []).append(record)
    return {
        name: [entry_of(models[record["class"]], record) for record in kept(some, models)]
        for name, some in sorted(found.items())
    }


def kept(records: Sequence[Record], models: Mapping[str, Model]) -> list[Record]:
    """The records of one spec that are kept."""
    found = [record for record in records if record.get("published_size")] or list(records[:1])
    structure = models[records[0]["class"]].typical(["full"], ["torch"]).fixed

    def proves(record: Record) -> bool:
        model = models[record["class"]]
        plain = regime_of_record(model, record) == Regime("record")
        return plain and model.program(["full"], ["torch"], config_of_record(model, record)).fixed == structure

    if not any(map(proves, found)):
        found += [record for record in records if proves(record)][:1]
    return found


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
