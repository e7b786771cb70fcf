"""Selects the regimes and conventions of generated files, and loads stored programs and figures if they are up to date.

Figures are the FLOPs of one step under shipped conventions: derived once, stored next to the program, read by pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from symflops import __version__
from symflops.analysis.convention_comparison import UNFIT
from symflops.api import CONVENTIONS, Model, convention_of, regime_of
from symflops.compiler import Goal, NeedsSizeError
from symflops.evaluate.config import put
from symflops.evaluate.typical_values import default_sizes, typical_batch
from symflops.evaluate.worked_figures import ConventionFigures
from symflops.ir.format import FormatError
from symflops.ir.program import Program
from symflops.ir.serialise import program_of
from symflops.read.spec_files import SpecFile, pages
from symflops.support.files import digest
from symflops.support.findings import SpecError, SymflopsError
from symflops.support.reading import read_own
from symflops.verify.differences import Comparison

BAKED = ("full", "forward", "lora", "checkpointed")

MOST = 150
"""Structures with more lines than this are not compared."""

ENDING = "compared.json"
SHAPE = {"of": str, "figures": [[str]]}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The regimes and conventions that the user chose for generated files; empty: the usual ones."""

    regimes: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()

    def regimes_of(self, model: Model, variant: str = "") -> list[str]:
        """Return the names of the regimes of a spec: the chosen ones, else those of :func:`baked`."""
        return list(self.regimes) or baked(model, variant)

    def stored(self, model: Model, variant: str = "") -> tuple[str, ...]:
        """Return the names of the conventions in the stored program of a spec.

        They are those of :attr:`shown` for a variant, and for a spec whose structure depends on a config.
        """
        try:
            model.compiled(Goal.GRAPH, variant=variant)
        except NeedsSizeError:
            return self.shown
        return self.shown if variant else self.conventions or (*CONVENTIONS, *stored())

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the conventions in generated modules and on pages: the chosen ones, else the defaults."""
        return self.conventions or CONVENTIONS


@cache
def stored() -> tuple[str, ...]:
    """Return the names of shipped conventions that set ``stored: true``, without the two default ones."""
    return tuple(name for name in pages("conventions") if name not in CONVENTIONS and convention_of(name).stored)


ALL = Chosen()


def baked(model: Model, variant: str = "") -> list[str]:
    """Return the regimes in ``BAKED`` that fit the model and fix no more sizes than the first that fits."""
    config: dict[str, Any] | None = None
    found: list[str] = []
    for regime in BAKED:
        try:
            model.compiled(Goal.DERIVATION, [regime], config=config, variant=variant)
        except NeedsSizeError:
            if found:
                continue
            config = {}  # the structure that the defaults have
            model.compiled(Goal.DERIVATION, [regime], config=config, variant=variant)
        except SpecError as error:
            if not found or any(diagnostic.code not in UNFIT for diagnostic in error.diagnostics):
                raise
            continue
        found.append(regime)
    return found


@cache
def compared() -> tuple[str, ...]:
    """Return the names of shipped conventions that set ``compared: true``; pages show their figures."""
    return tuple(name for name in pages("conventions") if convention_of(name).compared)


def figures(model: Model, program: Program, against: Sequence[str]) -> tuple[ConventionFigures, ...]:
    """Return the figures of a typical batch under the first convention and those of ``against``.

    The result is empty if they cannot be computed, and for structures with very many contractions.
    """
    if not against or program.whole or len(program.regimes[0].lines) > MOST:
        return ()  # statistics of a whole batch have no formula to compare
    try:
        return convention_figures(model, program, config_of(program), list(dict.fromkeys((program.conventions[0], *against))))
    except SymflopsError:
        return ()


def convention_figures(
    model: Model, program: Program, config: Mapping[str, Any], names: Sequence[str]
) -> tuple[ConventionFigures, ...]:
    """Return the figures under each convention in ``names`` at default sizes, in the first regime.

    The batch is a typical one. Ratios and causes compare with the convention that ``names`` has first.
    The result is empty if a size has no default.

    Raises:
        SymflopsError: a convention is unknown or invalid, or the model does not accept the typical batch.
    """
    return () if default_sizes(program) is None else tuple(_figures(model, program, config, list(dict.fromkeys(names))))


def _figures(model: Model, program: Program, config: Mapping[str, Any], names: Sequence[str]) -> Iterator[ConventionFigures]:
    batch = typical_batch(program) | {stream.name: 1 for stream in program.streams if stream.counts}
    comparison = Comparison(model, config, batch, regime_of(program.regimes[0].name))
    first = 0
    every = {name: convention_of(name).of(model.spec.called) for name in names}
    comparison.pieces.prepare(every.values())
    for name, rules in every.items():
        total = int(comparison.total(rules))
        first = first or total
        ratio = Fraction(total, first) if first else None
        yield ConventionFigures(name, total, ratio, comparison.main_cause(names[0], name), rules.unit)


def config_of(program: Program) -> dict[str, Any]:
    """Build a config (field -> value) with only those sizes that decide the structure of ``program``."""
    keys = {field.letter: field.keys for field in program.fields}
    config: dict[str, Any] = {}
    for letter, value in program.fixed:
        put(config, keys[letter], config_value(value))
    return config


def config_value(value: Any) -> Any:
    """Convert a size to a config value: tuples become lists, fractions floats."""
    if isinstance(value, (tuple, list)):
        return [config_value(item) for item in value]
    return float(value) if isinstance(value, Fraction) else value


def text_of(program: Program, found: Sequence[ConventionFigures], against: Sequence[str]) -> str:
    """Print the figures ``found`` as JSON, with the digest of what they were computed from."""
    rows = [[item.name, str(item.total), str(item.ratio or ""), item.reason, item.unit] for item in found]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{{"of": "{made_from(program, against)}", "figures": [\n{lines}\n]}}\n'


def stored_figures(file: SpecFile, program: Program, against: Sequence[str]) -> tuple[ConventionFigures, ...] | None:
    """Load stored figures; None if there are none, or a source or convention has changed since."""
    folder = folder_of(file)
    found = read_own(folder / f"{program.name}.{ENDING}", SHAPE) if folder else {}
    if not found or found["of"] != made_from(program, against):
        return None
    return tuple(
        ConventionFigures(name, int(total), Fraction(ratio) if ratio else None, reason, unit)
        for name, total, ratio, reason, unit in found["figures"]
    )


def made_from(program: Program, against: Sequence[str]) -> str:
    """Return the digest of all that stored figures depend on: program, first regime, conventions."""
    names = dict.fromkeys((program.conventions[0], *against))
    conventions = [(name, convention_of(name).digest) for name in names]
    return digest(
        repr((program.sources, program.fixed, program.fields, program.regimes[0].name, program.regimes[0].doc, conventions))
    )


def folder_of(file: SpecFile) -> Path | None:
    """Return the folder of the generated files of a spec; None if another version, or none, wrote it."""
    folder = file.root.parent / "generated"
    return folder / file.group if file.group and _version(folder) == __version__ else None


@cache
def _version(folder: Path) -> str:
    found = read_own(folder / "manifest.json", {"version": str})
    return str(found.get("version", ""))


def stored_program(file: SpecFile, variant: str, regime: str, conventions: Sequence[str]) -> Program | None:
    """Load the stored program of a spec or variant under ``conventions``.

    None if it is missing, has another first regime, or if the spec, a block or a base has changed.
    """
    folder = folder_of(file)
    found = read_own(folder / f"{file.name}{f'_{variant}' if variant else ''}.json", {"format": int}) if folder else {}
    try:
        program = program_of(found).counting(conventions) if found else None
    except FormatError:
        return None
    if program is None or program.regimes[0].name != regime or set(program.conventions) != set(conventions):
        return None
    return program if file.has(dict(program.sources)) else None
