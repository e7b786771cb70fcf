"""Checks a regime against a graph: a pattern that matches nothing, patterns that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symflops.derive.adapters import KINDS
from symflops.diagnostics.findings import Reporter, did_you_mean
from symflops.model.graph import Graph
from symflops.model.path import Path, prefixes
from symflops.model.patterns import matches, spelled
from symflops.model.regime import Regime


def check_patterns(graph: Graph, regime: Regime) -> None:
    """Report the patterns of ``regime`` that select nothing in ``graph``.

    Raises:
        SpecError: with every finding; in a lenient regime only where no pattern of a list matches.
    """
    chosen = dict(graph.chosen)
    parameters = list(dict.fromkeys(parameter.path for operator in graph.operators() for parameter in operator.parameters))
    modules = list(dict.fromkeys(operator.path for operator in graph.operators()))
    projections = [
        operator.path
        for operator in graph.operators()
        if operator.kind in KINDS and operator.parameters and not any(parameter.adapter for parameter in operator.parameters)
    ]
    report = Reporter()

    def check(what: str, patterns: Sequence[str], paths: Iterable[Path], below: str = "") -> None:
        paths = list(paths)
        texts = {pattern: spelled(pattern, graph.listed) for pattern in patterns}
        missing = [
            pattern for pattern in patterns if not any(matches(text, path, chosen) for text in texts[pattern] for path in paths)
        ]
        if regime.lenient and len(missing) < len(patterns):
            return
        names = sorted({str(path).removesuffix(below) for path in paths} if missing else ())
        for pattern in (written.removesuffix(below) for written in missing):
            hint = did_you_mean(pattern, [*names, *tails(pattern, names)], f"e.g. {', '.join(names[:3])}")
            message = f"'{pattern}' under '{what}' of regime '{regime.name}' matches nothing"
            report.error("unmatched-pattern", message, regime.places.get(pattern), hint)

    check("train", [pattern for pattern in regime.train if pattern != "*"], parameters)
    check("freeze", regime.freeze, parameters)
    check("force_grad", regime.force_grad, modules)
    for adapter in regime.adapters:
        base = adapter.names[0]
        check("targets", [f"{target}.{base}" for target in adapter.targets], projections, f".{base}")
    if regime.recompute:
        check("recompute groups", regime.recompute.groups, (prefix for path in modules for prefix in prefixes(path)))
    both = sorted(set(regime.train) & set(regime.freeze))
    for pattern in both:
        message = f"regime '{regime.name}' both trains and freezes '{pattern}'"
        report.error("contradiction", message, regime.places.get(pattern), "take it from one of the lists")
    report.check()


def tails(pattern: str, names: Iterable[str]) -> list[str]:
    """For a pattern ``*.x`` the ends of ``names`` that are as long, written as such a pattern."""
    head, _, rest = pattern.partition(".")
    count = len(rest.split("."))
    return sorted({".".join(["*", *name.split(".")[-count:]]) for name in names}) if head == "*" and rest else []
