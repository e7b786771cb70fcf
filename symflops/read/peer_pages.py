"""Reads the pages that map records of another framework to a spec, a config, a batch and a regime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symflops.formula.expression import Expression
from symflops.read.shapes import Shapes
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, python_value, read_yaml
from symflops.support.findings import Reporter, Source

CASE = (
    "when", "spec", "convention", "class", "regime", "regime_with", "figure", "times", "rename", "drop", "set", "batch",
    "figures", "tells", "because",
)  # fmt: skip
PAGE = ("system", "same_as", "notes", "models", "cases", *CASE[1:])
LENGTHS = ("from", "entry", "empty", "padded")


@dataclass(frozen=True, slots=True)
class Lengths:
    """How to find the lengths of one stream in a record.

    Attributes:
        stream: The stream.
        source: The list in the record (``from`` on the page).
        entry: The length that an item of the list stands for; by default the item itself.
        empty: What replaces an empty list.
        padded: The lengths with padding.
    """

    stream: str
    source: Expression
    entry: Expression | None
    empty: Expression | None
    padded: Expression | None


@dataclass(frozen=True, slots=True)
class PeerCase:
    """How to derive the figures of some records of a framework.

    Attributes:
        when: Condition on a record that selects the case.
        spec: The spec of the model.
        convention: The convention by which the framework counts.
        named: The class that the framework assumes (``class`` on the page); the convention may have an exception for it.
        regime: The regime.
        changes: (field, value) that the regime has instead (``regime_with`` on the page).
        figure: The figure: ``'total'``, ``'forward'``, or an expression over ``forward`` and ``backward``.
        times: A number by which the figure is multiplied.
        rename: (field of the framework's config, field of ours).
        drop: Fields of the framework's config that ours lacks.
        put: (field, value) to set in our config (``set`` on the page).
        batch: The lengths of each stream.
        figures: (name, expression over modules) for records with several figures.
        tells: (name, expression over the record) for values of a record that are not counts of work.
        because: Why the framework differs, if it is known to.
    """

    when: Expression | None
    spec: str
    convention: str
    named: Expression | None
    regime: str
    changes: tuple[tuple[str, Expression], ...]
    figure: Expression | None
    times: Expression | None
    rename: tuple[tuple[str, str], ...]
    drop: tuple[str, ...]
    put: tuple[tuple[str, Expression], ...]
    batch: tuple[Lengths, ...]
    figures: tuple[tuple[str, Expression], ...]
    tells: tuple[tuple[str, Expression], ...]
    because: str


@dataclass(frozen=True, slots=True)
class PeerPage:
    """How to derive the figures of one system, a framework; ``same_as`` is a system with the same cases.

    ``models`` maps the name of a model to config fields that records with this name lack, since the framework knows them.
    """

    system: str
    same_as: str
    notes: str
    cases: tuple[PeerCase, ...]
    models: Mapping[str, Mapping[str, Any]]


def read_peers(source: Source) -> PeerPage:
    """Parse the page of one system.

    Raises:
        SpecError: an unknown field, or one of the wrong shape.
    """
    report = Reporter()
    shapes = Shapes(report)
    given = shapes.known(read_yaml(source), PAGE, "a mapping of records")
    common = {key: value for key, value in given.items() if key in CASE}
    nodes = shapes.sequence(given.get("cases"), "'cases'")
    cases = tuple(_case({**common, **shapes.known(node, CASE, "a case")}, shapes, common.get("set")) for node in nodes)
    report.check()
    same_as = shapes.text(given.get("same_as"), "'same_as'")
    system, notes = shapes.text(given.get("system"), "'system'"), shapes.prose(given.get("notes"), "'notes'")
    models = shapes.mapping(given.get("models"), "'models'")
    known = {
        name.text: {key.text: python_value(field, report) for key, field in shapes.mapping(node, name.text)}
        for name, node in models
    }
    report.check()
    return PeerPage(system, same_as, notes, cases, known)


def _case(given: Mapping[str, Node], shapes: Shapes, common: Node | None) -> PeerCase:
    """Read one case.

    ``given`` has the fields of the case, and for others the page's. ``common`` is the page's ``set``, to which the case adds.
    """
    expression = {key: shapes.expression(given.get(key), f"'{key}'") for key in ("when", "times", "figure", "class")}
    figures = _expressions(given.get("figures"), "'figures'", shapes)
    put = dict(entry for node in (common, given.get("set")) for entry in _expressions(node, "'set'", shapes))
    drop = tuple(shapes.text(item, "'drop'") for item in shapes.sequence(given.get("drop"), "'drop'"))
    return PeerCase(
        expression["when"], shapes.text(given.get("spec"), "'spec'"),
        shapes.text(given.get("convention"), "'convention'"), expression["class"],
        shapes.text(given.get("regime"), "'regime'") or "full",
        _expressions(given.get("regime_with"), "'regime_with'", shapes), expression["figure"], expression["times"],
        _texts(given.get("rename"), "'rename'", shapes), drop, tuple(put.items()),
        tuple(_batch(given, shapes)), figures, _expressions(given.get("tells"), "'tells'", shapes),
        shapes.prose(given.get("because"), "'because'"),
    )  # fmt: skip


def _texts(node: Node | None, what: str, shapes: Shapes) -> tuple[tuple[str, str], ...]:
    return tuple((key.text, shapes.text(value, what)) for key, value in shapes.mapping(node, what))


def _expressions(node: Node | None, what: str, shapes: Shapes) -> tuple[tuple[str, Expression], ...]:
    read = ((key.text, shapes.expression(value, what)) for key, value in shapes.mapping(node, what))
    return tuple((key, found) for key, found in read if found is not None)


def _batch(given: Mapping[str, Node], shapes: Shapes) -> list[Lengths]:
    found = []
    for key, value in shapes.mapping(given.get("batch"), "'batch'"):
        fields = shapes.known(value, LENGTHS, "lengths") if isinstance(value, MappingNode) else {"from": value}
        source, entry, empty, padded = (shapes.expression(fields.get(name), f"'{name}'") for name in LENGTHS)
        if source is not None:
            found.append(Lengths(key.text, source, entry, empty, padded))
    return found
