"""The calculator of a page: the fields of its form, its initial values, and the data of its script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from symflops.emit.page.sections_results import convention_doc
from symflops.emit.python.printer import PythonPrinter
from symflops.evaluate.typical_values import typical_batch
from symflops.evaluate.units import NAMES
from symflops.formula.formula import symbols
from symflops.ir.batch import StreamInfo
from symflops.ir.program import Field, Program
from symflops.ir.verification import VerifiedCase

TIMES = " \u00d7 "


@dataclass(frozen=True, slots=True)
class Preset:
    """Preset of the calculator: a config, and a batch with one entry per item and stream.

    ``source`` is where the config was published, ``record`` the name of the measured case with this config.
    """

    label: str
    config: Mapping[str, Any]
    batch: Mapping[str, Any]
    source: str = ""
    record: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """Contents of an HTML page besides the derivation.

    Attributes:
        family: The folder of the spec.
        presets: The presets of the calculator.
        drawing: The picture of the graph, as HTML.
        estimators: (key under which a script registers, address of the script), that of the program first; the address is
            empty if the page contains the script.
        home: The address of the index; empty without one.
        records: Measured cases, with which the calculator compares its result.
    """

    family: str
    presets: tuple[Preset, ...]
    drawing: str
    estimators: tuple[tuple[str, str], ...]
    home: str = ""
    records: tuple[VerifiedCase, ...] = ()


def embedded(value: object) -> str:
    """Print ``value`` as JSON that is safe in a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def calculator(program: Program, setting: Setting) -> dict[str, Any]:
    """Return the template variables of the calculator by name; ``data`` is JSON for its script."""
    regimes = [(regime.name, regime.doc) for regime in program.regimes]
    conventions = [(name, convention_doc(program, name)) for name in program.conventions]
    streams = [(stream, stream_note(stream)) for stream in program.streams if stream.given]
    words = {name: NAMES[unit] for name, unit in program.units}
    data = {
        "name": program.name,
        "estimators": setting.estimators,
        "regimes": dict(regimes),
        "conventions": dict(conventions),
        "units": words,
        "streams": {stream.name: [stream.variables, stream.counts, stream.optional] for stream, _ in streams},
        "presets": [asdict(preset) for preset in setting.presets],
        "batch": whole_batch(program, setting.presets[0].batch if setting.presets else {}),
        "fields": {
            field.attribute: [field.keys[0], field.kind, field.nullable or field.null is not None] for field in program.fields
        },
        "reading": program.reading,
        "census": checks(program),
        "references": program.references,
        "types": program.model_types,
        "records": {case.name: [str(case.parameters), str(case.forward), str(case.backward)] for case in setting.records},
    }
    return {
        "data": embedded(data),
        "unit": next(iter(words.values())) if len(set(words.values())) == 1 else "Work",
        "sizes": "this configuration" if len(program.fixed) == len(program.fields) > 0 else "default sizes",
        "presets": [(preset.label, preset.label) for preset in setting.presets],
        "regimes": regimes,
        "conventions": conventions,
        "streams": streams,
        "axes": any(len(stream.variables) > 1 for stream, _ in streams),
        "inputs": [(field, size_note(field, program)) for field in program.fields],
    }


def checks(program: Program) -> dict[str, Any]:
    """Map the name of each class to those parts of its census by which the calculator rejects a config."""
    kept = ("guarded", "words", "unrun")
    census: Mapping[str, Any] = cast(Any, program.census) or {}
    return {name: {part: entry[part] for part in kept if part in entry} for name, entry in census.items()}


def whole_batch(program: Program, batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``batch`` with all required streams; one that only counts items has their number."""
    counted = {stream.name for stream in program.streams if stream.counts}
    given = {
        name: len(value) if name in counted and isinstance(value, (list, tuple)) else value for name, value in batch.items()
    }
    return {**needed_lengths(program, batch), **given}


def needed_lengths(program: Program, batch: Mapping[str, Any]) -> dict[str, Any]:
    """Map each required stream that ``batch`` lacks to typical items, as many as its longest stream has."""
    count = max([len(given) for given in batch.values() if isinstance(given, list)] or [1])
    typical = typical_batch(program)
    missing = [stream for stream in program.streams if stream.given and not stream.optional and stream.name not in batch]
    return {stream.name: count if stream.counts else typical[stream.name] * count for stream in missing}


def stream_note(stream: StreamInfo) -> str:
    """Describe in words what the calculator expects for a stream: a number, or lengths per item."""
    if stream.counts:
        return f"the number of {stream.items}"
    return f"{TIMES.join(stream.variables)} per item of {stream.items}" + (", may be left out" if stream.optional else "")


def size_note(field: Field, program: Program) -> str:
    """Describe a size, with the formula of its default if it depends on other sizes."""
    notes = [field.doc] if field.doc else []
    if (
        field.default is not None
        and not isinstance(field.default, (bool, str, tuple))
        and any(True for _ in symbols(field.default))
    ):
        names = {other.letter: other.attribute for other in program.fields}
        notes.append(f"default {PythonPrinter(names).text(field.default)}")
    return "; ".join(notes)
