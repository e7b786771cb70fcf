"""Reads the pages that map another framework's records: which spec, config and batch a record is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symflops.ground.diagnostics import Reporter, Source
from symflops.ground.expression import Expression
from symflops.ground.nodes import Mapping as MappingNode
from symflops.ground.nodes import Node, read_yaml
from symflops.model.spec import Template
from symflops.stages.shapes import Shapes

PAGE = ("system", "convention", "notes", "cases")
CASE = (
    "when", "spec", "convention", "regime", "figure", "times", "rename", "drop", "set", "batch", "figures", "tells", "because",
)  # fmt: skip
FIGURES = ("total", "forward")
LENGTHS = ("from", "entry", "empty", "padded")


@dataclass(frozen=True, slots=True)
class Lengths:
    """A stream of the batch: the list of a record that gives it, what an entry is, and what an empty list stands for."""

    stream: str
    source: Expression
    entry: Expression | None
    empty: Expression | None
    padded: Expression | None


@dataclass(frozen=True, slots=True)
class PeerCase:
    """Records of one kind.

    ``when`` chooses them. ``rename``, ``drop`` and ``put`` (which the page calls ``set``) make a config of theirs ours.
    ``regime`` is a text in which expressions are replaced. A figure is ``times`` the total, or the forward pass; where a record
    has several, ``figures`` names the module of each, and ``tells`` says what is no count. ``because`` tells what is known
    to differ.
    """

    when: Expression | None
    spec: str
    convention: str
    regime: Template
    figure: str
    times: Expression | None
    rename: tuple[tuple[str, str], ...]
    drop: tuple[str, ...]
    put: tuple[tuple[str, Expression], ...]
    batch: tuple[Lengths, ...]
    figures: tuple[tuple[str, str], ...]
    tells: tuple[tuple[str, Expression], ...]
    because: str


@dataclass(frozen=True, slots=True)
class PeerPage:
    """How the records of one system are read."""

    system: str
    notes: str
    cases: tuple[PeerCase, ...]


def read_peers(source: Source) -> PeerPage:
    """The mapping on a page.

    Raises:
        SpecError: an unknown field, or one of the wrong shape.
    """
    report = Reporter()
    shapes = Shapes(report)
    given = shapes.known(read_yaml(source), PAGE, "a mapping of records")
    convention = shapes.text(given.get("convention"), "'convention'")
    cases = tuple(_case(node, convention, shapes) for node in shapes.sequence(given.get("cases"), "'cases'"))
    report.check()
    return PeerPage(shapes.text(given.get("system"), "'system'"), shapes.prose(given.get("notes"), "'notes'"), cases)


def _case(node: Node, convention: str, shapes: Shapes) -> PeerCase:
    given = shapes.known(node, CASE, "a case")
    expression = {key: shapes.expression(given.get(key), f"'{key}'") for key in ("when", "times")}
    figure = shapes.text(given.get("figure"), "'figure'") or "total"
    if figure not in FIGURES:
        shapes.report.error("unknown-word", f"a figure cannot be '{figure}'", given["figure"].span, ", ".join(FIGURES))
    regime = given.get("regime")
    told = shapes.template(regime, "'regime'") if regime is not None else Template(("full",), "full", node.span)
    figures = _texts(given.get("figures"), "'figures'", shapes)
    drop = tuple(shapes.text(item, "'drop'") for item in shapes.sequence(given.get("drop"), "'drop'"))
    return PeerCase(
        expression["when"], shapes.text(given.get("spec"), "'spec'"),
        shapes.text(given.get("convention"), "'convention'") or convention, told, figure, expression["times"],
        _texts(given.get("rename"), "'rename'", shapes), drop, _expressions(given.get("set"), "'set'", shapes),
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
