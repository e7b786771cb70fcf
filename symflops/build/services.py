"""The services with which entries are placed, each with one job, and the way back before a second attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from symflops.build.expressions import Evaluator
from symflops.build.graph_builder import GraphBuilder
from symflops.build.limits import OperatorLimit
from symflops.build.name_binding import NameBinder
from symflops.build.parameter_table import Claims, ParameterTable
from symflops.build.scopes import Binding, Frame
from symflops.build.streams import Streams
from symflops.build.surroundings import Surroundings
from symflops.diagnostics.findings import Diagnostic, Reporter
from symflops.model.path import Path
from symflops.model.spec import Spec
from symflops.ops.kind import Definitions
from symflops.ops.stacks import Stacks


class Mark(NamedTuple):
    """The state of a graph before an attempt to place entries."""

    values: int
    claims: dict[Path, Claims]
    diagnostics: list[Diagnostic]
    nodes: int
    bindings: dict[str, Binding]
    stacks: dict[str, list[Any]]
    operators: int


@dataclass(frozen=True, slots=True)
class Services:
    """What placing an entry uses."""

    report: Reporter
    definitions: Definitions
    streams: Streams
    patterns: tuple[str, ...]
    surroundings: Surroundings
    limit: OperatorLimit
    evaluator: Evaluator
    graph: GraphBuilder
    parameters: ParameterTable
    stacks: Stacks
    binder: NameBinder

    def mark(self, frame: Frame) -> Mark:
        """Remember the state before an attempt in ``frame``."""
        placed = len(self.graph.values), dict(self.parameters.claims), list(self.report.diagnostics), len(frame.nodes)
        return Mark(*placed, dict(frame.values), self.stacks.copy(), self.limit.operators)

    def reset(self, mark: Mark, frame: Frame) -> None:
        """Forget what was placed since ``mark``."""
        self.graph.truncate(mark.values)
        self.parameters.claims = dict(mark.claims)
        self.report.restore(mark.diagnostics)
        del frame.nodes[mark.nodes :]
        frame.values.clear()
        frame.values.update(mark.bindings)
        self.stacks.lists = {name: list(entries) for name, entries in mark.stacks.items()}
        self.limit.operators = mark.operators


def services_of(
    spec: Spec, report: Reporter, definitions: Definitions, streams: Streams, patterns: tuple[str, ...]
) -> Services:
    """New services for one graph."""
    surroundings, graph, evaluator = Surroundings(spec), GraphBuilder(), Evaluator()
    limit = OperatorLimit(surroundings)
    parameters, binder = ParameterTable(definitions), NameBinder(graph, limit, definitions, evaluator)
    own = surroundings, limit, evaluator, graph, parameters, Stacks(), binder
    return Services(report, definitions, streams, patterns, *own)
