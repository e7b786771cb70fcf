"""Shows what the operators of a spec are for, and notes inferred roles that change what a convention counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from symflops.api import Model, convention_of
from symflops.build.roles import first_line, rules
from symflops.catalog.library import pages
from symflops.count.role_effects import Effect, effects
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.model.convention import ROLES, Convention, role_of, role_of_kind
from symflops.model.graph import Graph
from symflops.model.nodes import Operator


class Shown(NamedTuple):
    """What the operators of one module are for: the role with its origin, and each region with its own."""

    module: str
    operator: str
    role: str
    origin: str
    regions: dict[str, str]


def shown(model: Model) -> list[Shown]:
    """The role and the regions of each operator with work or parameters, in all structures of a spec."""
    found = (_shown(operator) for graph in graphs(model) for operator in graph.operators() if _counts(operator))
    return list({(row.module, row.operator, row.role, row.origin): row for row in found}.values())


def graphs(model: Model) -> Iterator[Graph]:
    """The graph of the defaults, and that of each variant."""
    for variant in ("", *model.variants):
        yield model.graph({} if not variant else None, variant)


def _counts(operator: Operator) -> bool:
    return bool(operator.contractions or operator.parameters or operator.role or operator.inferred)


def _shown(operator: Operator) -> Shown:
    """What one operator is for."""
    role = role_of(operator)
    origin = "spec" if operator.role else origin_of(operator, role) if operator.inferred else "kind"
    regions = {region: origin_of(operator, region) for region in operator.shown} | dict.fromkeys(operator.regions, "spec")
    return Shown(str(operator.path), operator.kind, role, origin, regions)


def origin_of(operator: Operator, role: str) -> str:
    """What an inferred role or region follows from: the structure, or a pattern that the path matches."""
    path = str(operator.path)
    if ROLES[role].group == "region":
        return next(f"path {pattern}" for pattern, region in rules().regions if region == role and fnmatchcase(path, pattern))
    pattern, named = first_line(operator.kind, path)
    return f"path {pattern}" if named == role else "structure"


@cache
def _shipped() -> tuple[Convention, ...]:
    return tuple(map(convention_of, pages("conventions")))


def notes(model: Model, more: Iterable[str | Path] = ()) -> list[Diagnostic]:
    """A note for each inferred role that changes what a shipped convention counts, or one of ``more``.

    Raises:
        SpecError: the structure needs a size that is not given.
    """
    conventions = [one.of(model.spec.called) for one in (*_shipped(), *map(convention_of, more))]
    groups: dict[object, list[Effect]] = {}
    for graph in graphs(model):
        for effect in effects(graph, conventions):
            region = ROLES[effect.role].group == "region"
            place = origin_of(effect.operator, effect.role) if region else effect.operator.span
            groups.setdefault((effect.role, place), []).append(effect)
    return list(map(_note, groups.values()))


def _note(found: Sequence[Effect]) -> Diagnostic:
    """The note on operators whose role follows from the same line of a spec, or whose region from the same pattern."""
    operator, role, _ = found[0]
    origin = origin_of(operator, role)
    said = "the structure" if origin == "structure" else f"the name of '{operator.path}'"
    region = ROLES[role].group == "region"
    message = f"the {'region' if region else 'role'} '{role}' follows from {said} alone"
    others = len({str(one.operator.path) for one in found}) - 1
    message += f", and that of {others} more" if others and region else ""
    names = list(dict.fromkeys(name for one in found for name in one.conventions))
    hint = f"if it is one, say 'role: {role}'; if not, 'role: {role_of_kind(operator)}'"
    if region:
        hint = f"say 'role: {role}' at the entry around it, or 'role: main' if it is none"
    return Diagnostic(
        "inferred-role", message, operator.span, hint, "note", note=f"it changes the counts of {', '.join(names)}"
    )


def notes_or_none(model: Model, more: Iterable[str | Path] = ()) -> Sequence[Diagnostic]:
    """The notes about a model, if its structure is known."""
    try:
        return notes(model, more)
    except SpecError:
        return ()
