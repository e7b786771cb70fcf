"""`run`: a spec as plain data, a config and a batch in; four integers out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .expressions import evaluate, exact, free_names
from .facts import Program, Stream, Value, backward_flops, forward_flops
from .unroll import ABSENT, Context, Scope, graph

SAMPLES, ONCE = "samples", "once"


@dataclass(frozen=True)
class Result:
    """Numbers of elements, and FLOPs (a multiply-add is two)."""

    parameters: int
    trainable_parameters: int
    forward: int
    backward: int


def _lookup(config: Mapping[str, Any], key: str) -> Any:
    """A dotted key of a nested config; None when it is missing."""
    found: Any = config
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def read_sizes(document: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes and derived sizes; a config value of null counts as missing."""
    names: dict[str, Any] = {}
    for name, given in (document.get("sizes") or {}).items():
        size = given if isinstance(given, Mapping) else {"key": given}
        keys = size.get("key", name)
        values = [_lookup(config, k) for k in (keys if isinstance(keys, list) else [keys])]
        present = [v for v in values if v is not None]
        if present:
            names[name] = exact(present[0])
        elif "default" in size:
            names[name] = evaluate(size["default"], names)
        elif size.get("optional"):
            names[name] = None
        else:
            raise KeyError(f"the config lacks {keys} for size {name}")
    for name, text in (document.get("derived") or {}).items():
        names[name] = evaluate(text, names)
    return names


def _axes(given: Any) -> dict[str, Any]:
    """Axes from the list form or the mapping form."""
    return {a: a for a in given} if isinstance(given, list) else dict(given or {})


def read_streams(document: Mapping[str, Any], names: Mapping[str, Any], batch: Mapping[str, Any]) -> Context:
    """Named streams with numbers, and the batch variables of every item."""
    declared: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, given in (document.get("streams") or {}).items():
        if isinstance(given, Mapping) and ("over" in given or isinstance(given.get("axes"), list | Mapping)):
            declared[name] = (given.get("over", SAMPLES), _axes(given.get("axes")))
        else:
            declared[name] = (SAMPLES, _axes(given))
    items: dict[str, list[dict[str, int]]] = {ONCE: [{}]}
    shared: dict[tuple[str, str], int] = {}
    lacking: list[tuple[str, str]] = []
    for name, (over, axes) in declared.items():
        variables = list(dict.fromkeys(v for text in axes.values() for v in free_names(text, names)))
        default = (document["streams"][name] or {}).get("default") if isinstance(document["streams"][name], Mapping) else None
        if default is not None and isinstance(batch.get(name, default), int):
            shared |= dict.fromkeys([(over, variable) for variable in variables], batch.get(name, default))
            continue
        if name not in batch:
            lacking += [(over, variable) for variable in variables if over != ONCE]
            continue
        entries = [list(e) if isinstance(e, list | tuple) else [e] for e in batch[name]]
        known = items.setdefault(over, [{} for _ in entries])
        if len(known) != len(entries):
            raise ValueError(f"stream {name}: {len(entries)} items, index set {over} has {len(known)}")
        for scope, entry in zip(known, entries, strict=True):
            for variable, length in zip(variables, entry, strict=True):
                if scope.setdefault(variable, length) != length:
                    raise ValueError(f"batch variable {variable} has two lengths")
    for (over, variable), length in shared.items():
        for scope in items[over]:
            scope[variable] = length
    if any(variable not in scope for over, variable in lacking for scope in items.get(over, [{}])):
        raise KeyError("the batch lacks a stream")
    context = Context(program=Program(), items=items, blocks=document.get("blocks") or {}, sizes=dict(names))
    for name, (over, axes) in declared.items():
        if over not in items:
            raise KeyError(f"no batch entry says how many items {over} has")
        context.streams[name] = context.stream(over, axes, names)
    return context


def unroll(
    document: Mapping[str, Any], config: Mapping[str, Any], batch: Mapping[str, Any], convention: str = "symflops"
) -> Program:
    """The flat operator list of a spec for one config and one batch."""
    if convention not in ("symflops", "torch"):
        raise ValueError(f"unknown convention {convention}")
    names = read_sizes(document, config)
    context = read_streams(document, names, batch)
    context.all_pairs = convention == "torch"
    values: dict[str, Value | None] = {}
    for name, given in (document.get("inputs") or {}).items():
        if not evaluate(given.get("when", True), names):
            values[name] = ABSENT
            continue
        stream: Stream = context.streams[given["stream"]]
        values[name] = Value(stream, evaluate(given.get("width"), names))
    scope = Scope(context, names, values)
    graph(scope, document.get("graph") or [])
    for name in document.get("outputs") or []:
        output = scope.values[name]
        if output is not ABSENT:
            context.program.outputs.append(output)
    return context.program


def run(
    document: Mapping[str, Any],
    config: Mapping[str, Any],
    batch: Mapping[str, Any],
    *,
    train: Iterable[str] = ("*",),
    freeze: Iterable[str] = (),
    convention: str = "symflops",
) -> Result:
    """Parameters, forward and backward of a spec, by unrolling everything."""
    program = unroll(document, config, batch, convention)
    trains = program.trains(train, freeze)
    count = {name: math.prod(shape) for name, shape in program.shapes.items()}
    return Result(
        parameters=sum(count.values()),
        trainable_parameters=sum(count[name] for name in trains),
        forward=forward_flops(program),
        backward=backward_flops(program, trains),
    )
