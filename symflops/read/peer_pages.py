"""Reads the pages that map records of another framework to a spec, a config, a batch and a regime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symflops.formula.expression import Expression
from symflops.read.plain_values import python_value
from symflops.read.shapes import Shapes
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, read_yaml
from symflops.support.findings import Reporter, Source

CASE = (
    "when", "spec", "convention", "class", "regime", "regime_with", "figure", "times", "rename", "drop", "set", "batch",
    "figures", "tells", "because",
)  # fmt: skip
PAGE = ("system", "same_as", "notes", "models", "cases", *CASE[1:])
LENGTHS = ("from", "entry", "empty", "padded")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mapping from a record to the lengths of one stream.

    ``source`` (``from`` on the page) is the record's list, ``entry`` maps one entry to its length, ``empty`` replaces an empty
    list, ``padded`` are the lengths with padding.
    """

    stream: str
    source: Expression
    entry: Expression | None
    empty: Expression | None
    padded: Expression | None


@dataclass(frozen=True, slots=True)
class PeerCase:
    """Mapping for records of one kind.

    ``when`` selects the records. ``rename``, ``drop`` and ``put`` (``set`` on the page) convert the framework's config to ours.
    ``changes`` (``regime_with``) override fields of the regime. ``named`` (``class`` on the page) is the class that the
    framework assumes, which may have rules of its own. ``figure`` is ``'total'``, ``'forward'`` or an expression over
    ``forward`` and ``backward``; a record with several figures maps counts under ``figures`` and other values under
    ``tells``. ``because`` explains a known difference.
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
    """Mapping for the records of one system; ``same_as`` names another system whose cases it shares.

    ``models`` maps a record's ``model`` to the config fields that the framework knows by that name and the record omits.
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
    """Read one case; ``given`` includes the page's defaults, and ``set`` is merged into the page's."""
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
