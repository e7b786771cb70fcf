"""Services that place entries, each with one job, and checkpoints to undo a failed attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from symflops.build.expressions import Evaluator
from symflops.build.graph_builder import GraphBuilder, ParameterTable
from symflops.build.name_binding import NameBinder
from symflops.build.scopes import Frame
from symflops.build.streams import Streams
from symflops.build.surroundings import OperatorLimit, Surroundings
from symflops.formula.polynomial import Definitions
from symflops.ir.spec import Entry, Spec
from symflops.ops.stacks import Stacks
from symflops.support.findings import Reporter

PlaceEntries = Callable[[Sequence[Entry], Frame], None]
"""A function that places the entries of a body, such as a block's, in a frame."""


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that together add entries to the graph under construction.

    Attributes:
        report: Collects findings.
        definitions: Compares and divides widths.
        streams: Declared streams and batch variables.
        surroundings: Calls, repeats and entries around the current entry, for findings.
        limit: Counts operators.
        evaluator: Evaluates expressions and paths.
        graph: Creates values, node numbers and indices.
        parameters: Parameters that operators have claimed, by path.
        stacks: The stacks of ``push`` and ``pop``.
        binder: Looks up operands and binds results.
    """

    report: Reporter
    definitions: Definitions
    streams: Streams
    surroundings: Surroundings
    limit: OperatorLimit
    evaluator: Evaluator
    graph: GraphBuilder
    parameters: ParameterTable
    stacks: Stacks
    binder: NameBinder

    def checkpoint(self, frame: Frame) -> Callable[[], None]:
        """Note the state before nodes are added in ``frame``; return a function that restores this state."""
        values, returned, diagnostics = len(self.graph.values), len(self.graph.returned), list(self.report.diagnostics)
        claims, bindings = self.parameters.claims.mark, frame.values.mark
        nodes, stacks, operators = len(frame.nodes), self.stacks.copy(), self.limit.operators

        def go_back() -> None:
            self.graph.truncate(values, returned)
            self.parameters.claims.undo(claims)
            self.report.restore(diagnostics)
            del frame.nodes[nodes:]
            frame.values.undo(bindings)
            self.stacks.restore(stacks)
            self.limit.operators = operators

        return go_back


def services_of(
    spec: Spec, report: Reporter, definitions: Definitions, streams: Streams, patterns: tuple[str, ...]
) -> Services:
    """Create the services for building one graph; ``patterns`` are those of the regime."""
    surroundings, graph = Surroundings(spec), GraphBuilder(spec.apart, patterns)
    evaluator = Evaluator(graph.is_poisoned, spec.renamed)
    limit = OperatorLimit(surroundings)
    parameters, binder = ParameterTable(definitions), NameBinder(graph, limit, definitions, evaluator)
    own = surroundings, limit, evaluator, graph, parameters, Stacks(), binder
    return Services(report, definitions, streams, *own)
