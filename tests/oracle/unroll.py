"""Entries of a graph, executed one after the other: groups, repeats, block calls, operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .expressions import evaluate, fill, free_names
from .facts import Contraction, Operator, Program, Stream, Value

ABSENT: None = None
Values = dict[str, Value | None]


@dataclass
class Context:
    """What the whole program shares."""

    program: Program
    items: dict[str, list[dict[str, int]]]
    blocks: Mapping[str, Any]
    sizes: dict[str, Any]
    streams: dict[str, Stream] = field(default_factory=dict)
    all_pairs: bool = False

    def stream(
        self, over: str, axes: Mapping[str, Any], names: Mapping[str, Any], base: Stream | None = None
    ) -> Stream:
        """A one-part stream; axes of `base` and the batch variables of each item are in scope."""
        items = []
        for i, variables in enumerate(self.items[over]):
            old = dict(base.items[i][0]) if base and len(base.items[i]) == 1 else {}
            scope = {**names, "_longest": lambda text: self.longest(text, names), **variables, **old}
            part = tuple((a, evaluate(e, scope)) for a, e in axes.items())
            if any(type(n) is not int or n < 0 for _, n in part):
                raise ValueError(f"not a length: {part}")
            items.append((part,))
        return Stream(over, tuple(items))

    def longest(self, text: str, names: Mapping[str, Any]) -> int:
        """The largest that an expression of the batch variables of one item is, over the items that have them."""
        wanted = set(free_names(text, names))
        items = [item for known in self.items.values() for item in known if wanted <= item.keys()]
        return max((evaluate(text, {**names, **item}) for item in items), default=0)


@dataclass
class Scope:
    """Names in force at one place of the spec."""

    context: Context
    names: dict[str, Any]
    values: Values
    path: str = ""
    no_grad: bool = False

    def width_of(self, name: str) -> int:
        """The width of a value, for `width(v)`."""
        width = self.value(name).width
        if width is None:
            raise ValueError(f"{name} has no width")
        return width

    def ev(self, source: Any) -> Any:
        """An expression field here."""
        return evaluate(source, self.names, self.width_of)

    def value(self, name: str) -> Value:
        """A value that must be there."""
        found = self.values[name]
        if found is ABSENT:
            raise ValueError(f"{name} is absent")
        return found

    def present(self, names: Any) -> list[Value]:
        """The values of a list that are there (`with`, `gate`, `bias`)."""
        return [v for n in listed(names) if (v := self.values[n]) is not ABSENT]

    def join(self, template: str) -> str:
        """A path template as a full path."""
        relative = fill(template, self.names, self.width_of)
        if relative.startswith("/"):
            return relative[1:]
        return self.path if relative == "_" else ".".join(p for p in (self.path, relative) if p)

    def emit(
        self,
        path: str,
        kind: str,
        operands: list[Value],
        results: list[tuple[Stream, int | None]],
        parameters: list[str] | None = None,
        contractions: list[Contraction] | None = None,
        constant: bool = False,
    ) -> list[Value]:
        """Append one operator; its results."""
        made = tuple(Value(s, w) for s, w in results)
        self.context.program.operators.append(
            Operator(path, kind, tuple(operands), made, tuple(parameters or ()), tuple(contractions or ()),
                     constant or self.no_grad)
        )  # fmt: skip
        return list(made)


def listed(given: Any) -> list[Any]:
    """One or many, as a list."""
    return [] if given is None else given if isinstance(given, list) else [given]


def targets(key: str, entry: Mapping[str, Any]) -> list[str]:
    """Names of the results of an entry, `_` for a dropped one."""
    return listed(entry.get("to", key))


def path_and_fields(each: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The path of an entry, `_` for the one around it, and its fields."""
    ((key, entry), *more) = each.items()
    return (key, entry) if not more and isinstance(entry, Mapping) else ("_", each)


def assigned(entries: list[Mapping[str, Any]]) -> list[str]:
    """Names that a graph may bind and that outlive it (those of a repeat live for one iteration)."""
    names: list[str] = []
    for each in entries:
        key, entry = path_and_fields(each)
        if "repeat" in entry:
            continue
        names += assigned(entry["graph"]) if "graph" in entry else targets(key, entry)
    return [n for n in names if n != "_"]


def graph(scope: Scope, entries: list[Mapping[str, Any]]) -> None:
    """Execute entries in the order written."""
    for each in entries:
        key, entry = path_and_fields(each)
        if not scope.ev(entry.get("when", True)):
            for name in assigned([each]):
                scope.values.setdefault(name, ABSENT)
        elif "repeat" in entry:
            repeat(scope, key, entry)
        elif "graph" in entry:
            no_grad = scope.no_grad or bool(scope.ev(entry.get("no_grad", False)))
            graph(Scope(scope.context, scope.names, scope.values, scope.join(key), no_grad), entry["graph"])
        elif "block" in entry:
            finish(scope, key, entry, block_call(scope, key, entry))
        else:
            from .operators import operator  # operators need Scope, graphs need operators

            finish(scope, key, entry, operator(scope, key, entry))


def finish(scope: Scope, key: str, entry: Mapping[str, Any], results: list[Value | None]) -> None:
    """`gate`, `to`, `add_to`: the first result is gated, named, then added."""
    path = scope.join(key)
    if gates := scope.present(entry.get("gate")):
        first = results[0]
        check_rows(first.stream, gates)
        results = [*scope.emit(path, "gate", [first, *gates], [(first.stream, first.width)]), *results[1:]]
    names = targets(key, entry)
    if len(names) != len(results):
        raise ValueError(f"{path}: {len(results)} results, {len(names)} names")
    for name, value in zip(names, results, strict=True):
        if name != "_":
            scope.values[name] = value
    if "add_to" in entry:
        target, first = scope.value(entry["add_to"]), results[0]
        if target.width != first.width:
            raise ValueError(f"{path}: add_to of widths {target.width} and {first.width}")
        check_rows(target.stream, [first])
        (total,) = scope.emit(path, "add_to", [target, first], [(target.stream, target.width)])
        scope.values[entry["add_to"]] = total


def check_rows(stream: Stream, others: list[Value]) -> None:
    """The row rule of section 3."""
    for other in others:
        if other.stream == stream or other.stream.over == "once":
            continue
        if other.stream.over != stream.over:
            raise ValueError("values of different index sets")
        for mine, theirs in zip(stream.items, other.stream.items, strict=True):
            if mine != theirs and not (len(theirs) == 1 and all(set(theirs[0]) <= set(part) for part in mine)):
                raise ValueError(f"rows do not match: {mine} and {theirs}")


def repeat(scope: Scope, key: str, entry: Mapping[str, Any]) -> None:
    """Unroll a repeat; names that exist outside are carried, new ones live for one iteration."""
    over, start = scope.ev(entry["repeat"]), scope.ev(entry.get("start", 0))
    items: list[Any] = over if isinstance(over, list) else [None] * max(0, over)
    shared = scope.ev(entry.get("shared", False))
    numbered = key != "_" and not shared
    path = scope.join(key)
    if shared and not items and "index" not in entry:  # a module that no iteration calls has its parameters all the same
        operators = list(scope.context.program.operators)
        graph(Scope(scope.context, dict(scope.names), dict(scope.values), path, scope.no_grad), entry["graph"])
        scope.context.program.operators[:] = operators
    for step, item in enumerate(items):
        names = dict(scope.names)
        for field_, value in (("index", start + step), ("item", item)):
            if (name := entry.get(field_)) is not None:
                if name in scope.names:
                    raise ValueError(f"{path}: {field_} {name} hides a name")
                names[name] = value
        inner = Scope(scope.context, names, dict(scope.values), path, scope.no_grad)
        if numbered:
            inner.path = f"{path}.{start + step}"
        graph(inner, entry["graph"])
        scope.values.update({name: inner.values[name] for name in scope.values})


CALL_FIELDS = {"block", "from", "to", "gate", "add_to", "when", "with"}


def block_call(scope: Scope, key: str, entry: Mapping[str, Any]) -> list[Value | None]:
    """A local block: sees its inputs, its parameters and the sizes of the spec."""
    block = scope.context.blocks[entry["block"]]
    given, inputs, optional = listed(entry.get("from")), listed(block.get("inputs")), listed(block.get("optional"))
    values: Values = {}
    for position, name in enumerate(inputs):
        value = scope.values[given[position]] if position < len(given) else ABSENT
        if value is ABSENT and name not in optional:
            raise ValueError(f"block {entry['block']}: input {name} is missing")
        values[name] = value
    if len(given) > len(inputs):
        raise ValueError(f"block {entry['block']}: too many inputs")
    first = inputs[0] if inputs else None
    if added := scope.present(entry.get("with")):
        base = values[first]
        (values[first],) = scope.emit(scope.join(key), "with", [base, *added], [(base.stream, base.width)])
    inner = Scope(scope.context, dict(scope.context.sizes), values, scope.join(key), scope.no_grad)
    params = block.get("params") or {}
    if unknown := set(entry) - CALL_FIELDS - set(params):
        raise ValueError(f"block {entry['block']}: unknown {unknown}")
    for name, default in params.items():
        if name not in entry and default is None:
            raise ValueError(f"block {entry['block']}: parameter {name} is missing")
        inner.names[name] = scope.ev(entry[name]) if name in entry else inner.ev(default)
    graph(inner, block["graph"])
    return [inner.values[name] for name in listed(block["outputs"])]
