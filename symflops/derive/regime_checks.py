"""Checks a regime against a graph: patterns that match nothing, and patterns that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symflops.derive.adapters import KINDS
from symflops.diagnostics.findings import Diagnostic, Reporter, SpecError, did_you_mean
from symflops.model.graph import Graph
from symflops.model.nodes import Operator
from symflops.model.path import Path, prefixes
from symflops.model.patterns import any_fits, marked, spelled
from symflops.model.regime import Regime

MOST_MATCHES = 2_000_000
MOST_REPORTED = 10  # of the patterns of a field that match nothing: to look for similar names takes time
Field = tuple[str, list[str], list[Path], str]
"""A field of a regime, its patterns, the paths that they may match, and the end of patterns that users do not write."""


def check_patterns(graph: Graph, regime: Regime) -> None:
    """Report the patterns of ``regime`` that match nothing in ``graph``, and those that it both trains and freezes.

    Raises:
        SpecError: with every finding; in a lenient regime only if no pattern of a field matches.
    """
    chosen = dict(graph.chosen)
    report = Reporter()
    for field, patterns, paths, suffix in fields(graph, regime):
        marks = [marked(path, chosen) for path in paths]
        if regime.lenient and any(any_fits(spelled(pattern, graph.listed), marks) for pattern in patterns):
            continue
        missing = [pattern for pattern in patterns if not any_fits(spelled(pattern, graph.listed), marks)]
        names = sorted({str(path).removesuffix(suffix) for path in paths} if missing else ())
        some = f"e.g. {', '.join(filter(None, names[:3]))}"
        if regime.lenient and len(missing) > 1:  # patterns for many models: names that are alike are chance
            message = f"none of the {len(missing)} patterns under '{field}' of regime '{regime.name}' matches anything"
            report.error("unmatched-pattern", message, regime.places.get(missing[0]), some)
            continue
        for pattern in (written.removesuffix(suffix) for written in missing[:MOST_REPORTED]):
            hint = did_you_mean(pattern, [*names, *tails(pattern, names)], some)
            idle = uncalled(graph) if field == "targets" else ()
            if any_fits(spelled(pattern, graph.listed), [marked(path, chosen) for path in idle]):
                hint = "the model uses the weight of this module without calling it: no adapter runs beside it"
            message = f"'{pattern}' under '{field}' of regime '{regime.name}' matches nothing"
            report.error("unmatched-pattern", message, regime.places.get(pattern), hint)
    for pattern in sorted(set(regime.train) & set(regime.freeze)):
        message = f"regime '{regime.name}' both trains and freezes '{pattern}'"
        report.error("contradiction", message, regime.places.get(pattern), "take it from one of the lists")
    report.check()


def check_size(graph: Graph, regime: Regime) -> None:
    """Refuse a regime of too many patterns for its graph.

    Raises:
        SpecError: matching them would take longer than seconds.
    """
    patterns, operators = len(regime.patterns), sum(1 for _ in graph.operators())
    if patterns * operators > MOST_MATCHES:
        message = (
            f"regime '{regime.name}' has {patterns:,} patterns for {operators:,} operators: {MOST_MATCHES:,} pairs at most"
        )
        raise SpecError([Diagnostic("regime-too-large", message, None, "a pattern with '*' stands for many modules")])


def fields(graph: Graph, regime: Regime) -> Iterator[Field]:
    """The fields of ``regime`` that hold patterns."""
    operators = list(graph.operators())
    parameters = list(dict.fromkeys(parameter.path for operator in operators for parameter in operator.parameters))
    modules = list(dict.fromkeys(operator.path for operator in operators))
    yield "train", [pattern for pattern in regime.train if pattern != "*"], parameters, ""
    yield "freeze", list(regime.freeze), parameters, ""
    yield "force_grad", list(regime.force_grad), modules, ""
    yield "no_force_grad", list(regime.no_force_grad), modules, ""
    projections = [operator.path for operator in operators if is_adapted(operator)]
    for adapter in regime.adapters:
        base = adapter.names[0]
        yield "targets", [f"{target}.{base}" for target in adapter.targets], projections, f".{base}"
    if regime.recompute:
        groups = list(dict.fromkeys(prefix for path in modules for prefix in prefixes(path)))
        yield "recompute groups", list(regime.recompute.groups), groups, ""


def is_adapted(operator: Operator) -> bool:
    """Whether an operator may be the base of an adapter, and no part of one."""
    weights = operator.parameters
    return operator.kind in KINDS and not operator.bare and bool(weights) and not any(weight.adapter for weight in weights)


def uncalled(graph: Graph) -> Iterator[Path]:
    """The modules whose weights another module uses, as attention of PyTorch does that of its ``out_proj``."""
    for operator in graph.operators():
        if operator.bare:
            yield from (weight.path.parent for weight in operator.parameters if weight.path.parent != operator.path)


def tails(pattern: str, names: Iterable[str]) -> list[str]:
    """For a pattern ``*.x``, the ends of ``names`` of equal length as such patterns, to suggest one.

    >>> tails("*.q", ["layers.0.q_proj"])
    ['*.q_proj']
    """
    head, _, rest = pattern.partition(".")
    count = len(rest.split("."))
    return sorted({".".join(["*", *name.split(".")[-count:]]) for name in names}) if head == "*" and rest else []
