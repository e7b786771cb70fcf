"""Checks a regime against a graph, and names the rules by which it differs from training everything.

A forward-only regime needs no rule: each record of a whole step measures it. A record of another regime measures its rules on
the operator kinds of that model, which covers all classes made of these kinds (``specs/measured.json``). What a class keeps
between its calls is its own, so records of decoding cover their class alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from symflops.derive.adapters import KINDS
from symflops.derive.heads import kinds_of_head
from symflops.derive.leaving import leaving
from symflops.derive.merged import without
from symflops.derive.recompute import group_of
from symflops.ir.graph import Graph, ParameterCount
from symflops.ir.nodes import Checkpoint, walk
from symflops.ir.patterns import Path, any_fits, marked, prefixes, spelled
from symflops.ir.regime import MERGED, Recompute, Regime
from symflops.support.findings import Diagnostic, Reporter, SpecError, did_you_mean

MOST_MATCHES = 2_000_000
MOST_REPORTED = 10  # unmatched patterns per field: searching for similar names is slow
Field = tuple[str, list[str], list[Path], str]
"""(field of a regime, its patterns, the paths that they may match, pattern suffix that users do not write)"""


def check_patterns(graph: Graph, regime: Regime) -> None:
    """Report patterns that match nothing in ``graph``, and patterns that are both trained and frozen.

    Raises:
        SpecError: lists all findings. A lenient regime reports a field only if none of its patterns matches.
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
        if regime.lenient and len(missing) > 1:  # these patterns serve many models: similar names are coincidence
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
    """Refuse a regime with too many patterns for the size of its graph.

    Raises:
        SpecError: patterns times operators exceed ``MOST_MATCHES``; matching would take too long.
    """
    patterns, operators = len(regime.patterns), sum(1 for _ in graph.operators())
    if patterns * operators > MOST_MATCHES:
        message = (
            f"regime '{regime.name}' has {patterns:,} patterns for {operators:,} operators: {MOST_MATCHES:,} pairs at most"
        )
        raise SpecError([Diagnostic("regime-too-large", message, None, "a pattern with '*' stands for many modules")])


def check_decoding(regime: Regime) -> None:
    """Refuse a regime whose calls keep a state if it needs a backward pass.

    Raises:
        SpecError: names the first field that needs one.
    """
    for field in ("train", "input_grad", "force_grad", "enter_grad", "recompute") if regime.decode else ():
        if given := getattr(regime, field):
            message = f"regime '{regime.name}' decodes, which has no backward pass, and has '{field}'"
            place = regime.places.get(given[0]) if isinstance(given, tuple) else None
            raise SpecError([Diagnostic("contradiction", message, place, "train under a regime without 'decode'")])


def check_phases(first: Regime, others: Iterable[Regime]) -> None:
    """Refuse phases of one step whose batches differ: a call that keeps a state has lengths of its own.

    Raises:
        SpecError: names two such phases.
    """
    for other in others:
        if other.decode != first.decode:
            message = f"one batch cannot hold the lengths of both regime '{first.name}' and its phase '{other.name}'"
            raise SpecError([Diagnostic("contradiction", message, None, "estimate each under a regime of its own")])


def fields(graph: Graph, regime: Regime) -> Iterator[Field]:
    """Yield each field of ``regime`` that holds patterns, with the paths that they may match."""
    operators = list(graph.operators())
    parameters = list(dict.fromkeys(parameter.path for operator in operators for parameter in operator.parameters))
    modules = list(dict.fromkeys(operator.path for operator in operators))
    yield "train", [pattern for pattern in regime.train if pattern != "*"], parameters, ""
    yield "freeze", list(regime.freeze), parameters, ""
    around = [module for module, _, _ in leaving(graph, regime)] if regime.force_grad else []
    holders = [path.parent for path in parameters]  # a module of shared weights may never run
    yield "force_grad", list(regime.force_grad), [*modules, *around, *holders], ""
    yield "enter_grad", list(regime.enter_grad), modules, ""
    yield "no_force_grad", list(regime.no_force_grad), modules, ""
    projections = [
        operator.path
        for operator in operators
        if operator.kind in KINDS and not operator.bare and operator.parameters
        if not any(weight.adapter for weight in operator.parameters)
    ]
    for adapter in regime.adapters:
        base = adapter.names[0]
        if adapter.kind in MERGED:
            yield "targets", list(adapter.targets), [without(path, base) for path in parameters], ""
            continue
        yield "targets", [f"{target}.{base}" for target in adapter.targets], projections, f".{base}"
    if regime.recompute:
        groups = list(dict.fromkeys(prefix for path in modules for prefix in prefixes(path)))
        yield "recompute groups", list(regime.recompute.groups), groups, ""


def uncalled(graph: Graph) -> Iterator[Path]:
    """Modules whose weights another module uses without a call, such as ``out_proj`` in PyTorch attention."""
    for operator in graph.operators():
        if operator.bare:
            yield from (weight.path.parent for weight in operator.parameters if weight.path.parent != operator.path)


def tails(pattern: str, names: Iterable[str]) -> list[str]:
    """Patterns to suggest for ``*.x``: ``*.`` and the last parts of ``names``, as many as in ``x``.

    >>> tails("*.q", ["layers.0.q_proj"])
    ['*.q_proj']
    """
    head, _, rest = pattern.partition(".")
    count = len(rest.split("."))
    return sorted({".".join(["*", *name.split(".")[-count:]]) for name in names}) if head == "*" and rest else []


Rules = tuple[tuple[str, frozenset[str]], ...]
"""(name of a rule, operator kinds that it acts on; of a decoding rule, the names of the classes)"""


def rules_of(graph: Graph, regime: Regime, parameters: Sequence[ParameterCount]) -> Rules:
    """List what ``regime`` does to a step: (name of a rule, operator kinds of ``graph`` it acts on).

    Most rules are named after a field of the regime's page. ``graph`` has the regime's adapters. If no value needs a gradient,
    there is no rule for freezing or recomputation.
    """
    everything, outputs = frozenset(one.kind for one in graph.operators()), {name for name, _ in graph.outputs}
    own = (entry.trains for entry in parameters if entry.parameter.trainable and not entry.parameter.adapter)
    backward = bool(regime.input_grad or regime.force_grad or regime.enter_grad) or any(entry.trains for entry in parameters)
    conditions = {
        "parts": regime.parts,
        "freeze": backward and not all(own),
        "loss": backward and regime.loss and set(regime.loss) != outputs,
        "input_grad": regime.input_grad,
        "force_grad": regime.force_grad or regime.enter_grad,
    }
    found = {name: everything for name, holds in conditions.items() if holds}
    if regime.decode:
        name = "decode" if regime.decode == "step" else regime.decode
        found[name] = frozenset(reference.rpartition(".")[2] for reference in graph.spec.alike) or everything
    if regime.head:
        found["head"] = kinds_of_head(graph)
    for adapter in regime.adapters:  # rank-stabilised LoRA only changes a scale, which costs nothing
        names = {"dora": "dora with dropout" if adapter.dropout else "dora", **dict.fromkeys(MERGED, "lora on parameters")}
        added = (one.kind for one in graph.operators() if any(parameter.adapter for parameter in one.parameters))
        found[names.get(adapter.kind, "lora")] = frozenset(added)
    if regime.recompute and backward:
        found |= recomputed_kinds(graph, regime.recompute)
    return tuple((name, kinds) for name, kinds in found.items() if kinds)


def recomputed_kinds(graph: Graph, recompute: Recompute) -> dict[str, frozenset[str]]:
    """Map the name of the one rule for ``recompute`` to the operator kinds in the recomputed groups.

    Reentrant groups with several results have their own rule: results that a module returns in a tuple get no gradient.
    """
    several = any(len(one.results) > 1 for one in walk(graph.body, Checkpoint))
    ways = {"recompute of attention alone": recompute.attention_only, "reentrant recompute of several results": several}
    ways |= {"reentrant recompute": recompute.reentrant}
    ways |= {"recompute without early stop": not recompute.early_stop, "recompute": True}
    chosen, name = dict(graph.chosen), next(name for name, holds in ways.items() if holds)
    inside = (one.kind for one in graph.operators() if group_of(one.modules, recompute, chosen))
    return {name: frozenset(kind for kind in inside if kind == "attention" or not recompute.attention_only)}


def unmeasured(rules: Rules, measured: Mapping[str, Sequence[str]]) -> str:
    """Message about the first rule that acts on an operator kind on which it was not measured.

    Empty if there is none. ``measured`` maps names of rules to the kinds on which a record measured them.
    """
    for name, kinds in rules:
        lacking = sorted(kinds.difference(measured.get(name, ())))
        if lacking:
            on = f" on {', '.join(lacking)}" if name in measured else ""
            return f"{name} was not measured{on}"
    return ""
