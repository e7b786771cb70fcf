"""The boxes of a model's picture: operators grouped by module, without those that only pass values on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile, zip_longest
from typing import Any

import networkx

from symflops.ir.network import STEPS

MOST = 30
"""The most boxes that read at a glance; the depth of modules in a picture follows from it."""

SPREAD = 3
"""Number of readers from which the edges of a value are not drawn among levels."""

PASSED = (*STEPS, "parameter")
"""Kinds that only pass values on: edges run past them. Sums of several values are kept."""

WORK = {"linear": "linear", "attention": "attention", "conv": "conv", "matmul": "other", "bilinear": "other", "scan": "other"}
"""The kinds of matrix work, with the colour class of each."""

WIDEST = 44
"""The most characters of a caption in a box; a longer one is left out."""

SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
ENDS = ("input", "output")
Key = tuple[tuple[str, ...], tuple[str, ...], int]
"""Key of a group: its loops, the path of its module, and a number that makes the key unique."""

LETTER, SMALL, PAD, LINE, SUM = 7.4, 6.3, 13.0, 16.0, 24.0
"""In pixels: widths of letters, padding of boxes, height of a line, width of a sum."""


@dataclass
class Group:
    """A box of a drawing: operators of one module.

    Attributes:
        name: The key of the box.
        label: Its first line.
        frame: The loops that contain the operators, outermost first.
        kinds: The kinds of the operators.
        captions: Their captions.
        opens: The name of the picture that a click on the box opens; empty without one.
    """

    name: str
    label: str
    frame: tuple[str, ...]
    kinds: list[str] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    opens: str = ""

    @property
    def small(self) -> str:
        """Second line of a box: kind and caption of a single operator, or number of operators by kind."""
        if self.kinds in (["input"], ["output"]):
            return "" if self.captions[0] else self.kinds[0]
        if len(self.kinds) == 1:
            kind, caption = self.kinds[0], typeset(self.captions[0])
            if len(caption) > WIDEST:
                return words(kind)
            between = " " if kind in ("linear", "conv") or caption.startswith("over ") else ", "
            return between.join(filter(None, (words(kind), caption)))
        counts = Counter(kind for kind in self.kinds if kind not in PASSED)
        work = [kind for kind in counts if kind in WORK] or list(counts)
        return ", ".join(f"{counts[kind]} {words(kind)}" if counts[kind] > 1 else words(kind) for kind in work)

    @property
    def work(self) -> str:
        """CSS class of the box, which gives its colour; empty if no operator computes contractions."""
        kinds = ("attention", "conv", "linear", *self.kinds)
        return next((WORK[kind] for kind in kinds if kind in WORK and kind in self.kinds), "")

    @property
    def size(self) -> tuple[float, float]:
        """(Width, height) of the box in pixels."""
        if self.is_sum:
            return SUM, SUM
        lines = 2 if self.small else 1
        return max(LETTER * len(self.label), SMALL * len(self.small)) + 2 * PAD, LINE * lines + 12

    @property
    def is_sum(self) -> bool:
        return self.kinds == ["add"]


def typeset(text: str) -> str:
    """Typeset an expression with Unicode arrows, dots, signs and superscripts."""
    text = re.sub(r"\*\*(\d)", lambda found: SUPERSCRIPTS[int(found[1])], text.replace("->", "→")).replace("*", "·")
    text = re.sub(r"floor\(([^()]*)\)", r"⌊\1⌋", re.sub(r"ceil\(([^()]*)\)", r"⌈\1⌉", text))
    return text.replace(">=", "≥").replace(" - ", " \u2212 ")


def words(kind: str) -> str:
    """Return the kind of an operator with spaces between its words."""
    return kind.replace("_", " ")


def without_steps(graph: networkx.DiGraph) -> networkx.DiGraph:
    """Return the graph without operators that only pass values on, and without edges to a next iteration."""
    kept = networkx.DiGraph(name=graph.name)
    sources: dict[str, dict[str, None]] = {}
    carried = {(one, two) for one, two, data in graph.edges(data=True) if data.get("carried")}
    for name, data in graph.nodes(data=True):  # in the order of execution
        read: dict[str, None] = {}
        for before in graph.predecessors(name):
            if (before, name) not in carried:
                read |= sources.get(before, {})
        passes = data["kind"] in PASSED and not (data["kind"] == "add" and len(read) > 1)
        if passes:
            sources[name] = read
            continue
        kept.add_node(name, **data)
        kept.add_edges_from((before, name) for before in read)
        sources[name] = {name: None}
    return kept


def best(graph: networkx.DiGraph) -> tuple[dict[str, Group], list[tuple[str, str]]]:
    """Group operators by module as deep as at most ``MOST`` boxes allow.

    Return (boxes by name, edges between names of boxes).
    """
    finer = (grouped(graph, depth) for depth in range(2, 6))
    return [grouped(graph, 1), *takewhile(lambda found: len(found[0]) <= MOST, finer)][-1]


def inside(graph: networkx.DiGraph, nodes: Sequence[str]) -> tuple[dict[str, Group], list[tuple[str, str]]]:
    """Group the part of a graph with ``nodes``, into several boxes if possible; return as :func:`best`."""
    part = networkx.DiGraph()  # in the order of execution, which a view of a part does not keep
    part.add_nodes_from((name, graph.nodes[name]) for name in nodes)
    part.add_edges_from((one, two) for one in nodes for two in graph.successors(one) if two in part)
    found = best(part)
    for depth in range(2, 9):
        if len(found[0]) > 1:
            break
        found = grouped(part, depth)
    return found


def grouped(graph: networkx.DiGraph, depth: int) -> tuple[dict[str, Group], list[tuple[str, str]]]:
    """Group operators by the module that is ``depth`` levels below their innermost loop.

    Groups that form a cycle are cut into runs. Return (boxes by name, edges between names of boxes).
    """
    keys = without_cycles(graph, module_keys(graph, depth))
    names = {key: f"g{number}" for number, key in enumerate(dict.fromkeys(keys.values()))}
    groups: dict[str, Group] = {}
    for node, data in graph.nodes(data=True):
        loops, path, _ = keys[node]
        label = str(data["label"]) if data["kind"] in ENDS else ".".join(path[frame_depth(loops) :]) or ".".join(path)
        name = names[keys[node]]
        group = groups.setdefault(name, Group(name, label or words(data["kind"]), loops))  # a single operator has no path
        group.kinds.append(data["kind"])
        group.captions.append(str(data.get("caption") or ""))
    return groups, edges_between(graph, {node: names[key] for node, key in keys.items()})


def edges_between(graph: networkx.DiGraph, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (group, group) for each edge between groups, once; ``names`` maps nodes of ``graph`` to groups."""
    return list(dict.fromkeys((names[one], names[two]) for one, two in graph.edges if names[one] != names[two]))


def levels(graph: networkx.DiGraph) -> tuple[dict[str, Group], list[tuple[str, str]], dict[str, list[str]]]:
    """Group operators by their outermost repeat or module.

    Return (boxes by name, edges between names of boxes, operators by name of box).
    A value with many readers, such as a timestep embedding, gets one edge to a box that lists them.
    """
    keys = without_cycles(graph, level_keys(graph))
    names = {key: f"g{number}" for number, key in enumerate(dict.fromkeys(keys.values()))}
    groups: dict[str, Group] = {}
    members: dict[str, list[str]] = {}
    for node, data in graph.nodes(data=True):
        loops, path, _ = keys[node]
        label = str(data["label"]) if data["kind"] in ENDS else ".".join(path)
        times = loops[0].rpartition(" x ")[2] if loops else ""
        name = names[keys[node]]
        title = f"{label} \u00d7 {typeset(times)}" if times else label or words(data["kind"])
        group = groups.setdefault(name, Group(name, title, ()))
        group.kinds.append(data["kind"])
        group.captions.append(str(data.get("caption") or ""))
        members.setdefault(name, []).append(node)
    edges = edges_between(graph, {node: names[key] for node, key in keys.items()})
    readers = Counter(one for one, _ in edges)
    spread = [name for name, group in groups.items() if readers[name] >= SPREAD and group.work in ("", "linear")]
    for name in spread:
        end = groups[f"{name}-all"] = Group(f"{name}-all", f"to {readers[name]} modules", (), ["output"], ["read by many"])
        edges = [edge for edge in edges if edge[0] != name] + [(name, end.name)]
    return groups, edges, members


def level_keys(graph: networkx.DiGraph) -> dict[str, Key]:
    """Map each operator to the key of its group in :func:`levels`: its outermost repeat or module."""
    holders = {str(loop).partition(".")[0] for _, data in graph.nodes(data=True) for loop in data["loops"] if "." in loop}
    return merged(graph, {name: level(number, data, holders) for number, (name, data) in enumerate(graph.nodes(data=True))})


def level(number: int, data: Mapping[str, Any], holders: Container[str]) -> Key:
    """Return the key of the group of one operator: its outermost repeat, else its outermost module.

    ``data`` are the attributes of the operator and ``number`` its position. A module in ``holders``, which contains repeats,
    is split into its children. Inputs, outputs and sums outside of modules have groups of their own.
    """
    if data["loops"]:
        return data["loops"][:1], tuple(data["loops"][0].rpartition(" x ")[0].split(".")), -1
    path = () if data["kind"] in ENDS else tuple(str(data["label"]).split("."))
    alone = data["kind"] in ENDS or path == ("",)
    depth = 2 if path[:1] and (path[0] in holders or (path[1:2] and path[1].isdecimal())) else 1
    return (), path[:depth], number if alone else -1


def merged(graph: networkx.DiGraph, keys: dict[str, Key]) -> dict[str, Key]:
    """Return ``keys`` with the groups of each cycle merged into the module that contains them all."""
    into: dict[Key, Key] = {}
    for part in cycles(graph, keys):
        paths = sorted(path for loops, path, _ in part if not loops)
        if len(paths) == len(part):
            same = next(place for place, words in enumerate(zip_longest(*paths)) if len(set(words)) > 1)
            into |= dict.fromkeys(part, ((), paths[0][: max(1, same)], -1))
    return {name: into.get(key, key) for name, key in keys.items()}


def module_keys(graph: networkx.DiGraph, depth: int) -> dict[str, Key]:
    """Map each operator to the key of its group: the module ``depth`` levels below its innermost loop.

    Inputs, outputs and sums between loops have groups of their own.
    """
    frames = {tuple(path_of(loop)) for _, data in graph.nodes(data=True) for loop in data["loops"]}
    keys = {}
    for number, (name, data) in enumerate(graph.nodes(data=True)):
        path = () if data["kind"] in ENDS else tuple(str(data["label"]).split("."))
        base = frame_depth(data["loops"])
        while any(frame[: base + 1] == path[: base + 1] and len(frame) > base + 1 for frame in frames):
            base += 1
        alone = data["kind"] in ENDS or (data["kind"] == "add" and len(path) <= base)
        keys[name] = (data["loops"], path[: base + depth], number if alone else -1)
    return keys


def without_cycles(graph: networkx.DiGraph, keys: dict[str, Key]) -> dict[str, Key]:
    """Return ``keys`` with the groups of each cycle cut into runs of consecutive operators."""
    for _ in range(2):
        cyclic = set[Key]().union(*cycles(graph, keys))
        if not cyclic:
            break
        runs = enumerate(groupby(keys, keys.__getitem__), 1)
        keys = {name: (*key[:2], run) if key in cyclic else key for run, (key, names) in runs for name in names}
    return keys


def cycles(graph: networkx.DiGraph, keys: Mapping[str, Key]) -> Iterator[set[Key]]:
    """Yield each set of groups that form a cycle."""
    quotient = networkx.DiGraph()
    quotient.add_nodes_from(keys.values())
    quotient.add_edges_from((keys[one], keys[two]) for one, two in graph.edges if keys[one] != keys[two])
    yield from (part for part in networkx.strongly_connected_components(quotient) if len(part) > 1)


def frame_depth(loops: tuple[str, ...]) -> int:
    """Return the number of parts in the path of the innermost loop; 0 without loops."""
    return len(path_of(loops[-1])) if loops else 0


def path_of(loop: str) -> list[str]:
    """Return the parts of the path of a loop's body: those of ``model.layers.*`` for ``model.layers x L``."""
    return [*loop.rpartition(" x ")[0].split("."), "*"]
