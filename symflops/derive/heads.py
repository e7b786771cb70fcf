"""Checks the head of a model of which a batch says on how many tokens it runs: ``logits_to_keep``, labels, masked positions."""

from __future__ import annotations

from dataclasses import replace

from symflops.formula.functions import AtLeast
from symflops.formula.state import PREDICTED
from symflops.formula.truth import Truth
from symflops.ir.graph import Graph, Limit
from symflops.ir.regime import Regime
from symflops.support.findings import Diagnostic, SpecError

TEXT = "a head on at most as many tokens as there are"


def with_head(graph: Graph, regime: Regime) -> Graph:
    """``graph`` with the condition that the head of ``regime`` runs on no more tokens than there are.

    Raises:
        SpecError: a batch gives the tokens of the head, and the model has none, or generates.
    """
    if not regime.head:
        return graph
    if regime.decode == "generate":
        message = f"regime '{regime.name}' generates, where the head runs on the last token of each call"
        raise SpecError([Diagnostic("no-head", message, None, "leave out 'head', or give one call: 'prefill' or 'decode'")])
    rows = {value.id: value.stream for value in graph.values}
    pairs = ((rows[one.operands[0]], rows[result]) for one in graph.operators() if one.operands for result in one.results)
    found = {(old.items, old.rows) for old, new in pairs if PREDICTED in new.rows.free_symbols - old.rows.free_symbols}
    if not found:
        message = f"regime '{regime.name}' gives the tokens of a head, and no head of this class of '{graph.name}' skips any"
        hint = "a spec says so before its head: {op: select, stream: {last: predicted}, when: final}"
        raise SpecError([Diagnostic("no-head", message, None, hint)])
    limits = (Limit(items, Truth.of(AtLeast(all_of - PREDICTED, 0)), TEXT, ()) for items, all_of in found)
    return replace(graph, limits=(*graph.limits, *limits))


def kinds_of_head(graph: Graph) -> frozenset[str]:
    """The kinds of operators whose results have as many rows as a batch gives tokens of the head."""
    rows = {value.id for value in graph.values if PREDICTED in value.stream.rows.free_symbols}
    return frozenset(one.kind for one in graph.operators() if not rows.isdisjoint(one.results))
