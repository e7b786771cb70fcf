"""The boxes of a picture of a model: operators by module, as deep as reads at a glance, without what hands values on."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import networkx

MOST = 30
"""The boxes up to which a picture is read at a glance: modules are shown as deep as these suffice."""

PASSED = ("with", "mul", "map", "detach", "concat", "split", "view", "zeros", "parameter", "reshape", "add")
"""Kinds that only hand values on: what reads them is drawn as reading what they read. Sums of several values are kept."""

WORK = {"linear": "linear", "attention": "attention", "conv": "conv", "matmul": "other", "bilinear": "other", "scan": "other"}
"""The kinds that do matrix work, and how a picture shows them."""

SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
LETTER, SMALL, PAD, LINE, SUM = 7.4, 6.3, 13.0, 16.0, 24.0
"""Widths of letters, room in boxes, height of a line, width of a sum."""


@dataclass
class Group:
    """A box: the modules of one path within one frame."""

    name: str
    label: str
    frame: tuple[str, ...]
    kinds: list[str] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)

    @property
    def small(self) -> str:
        if self.kinds in (["input"], ["output"]):
            return self.kinds[0]
        if len(self.kinds) == 1:
            kind, caption = self.kinds[0], self.captions[0].replace("->", "→")
            caption = re.sub(r"\*\*(\d)", lambda found: SUPERSCRIPTS[int(found[1])], caption).replace("*", "·")
            between = " " if kind in ("linear", "conv") or caption.startswith("over ") else ", "
            return between.join(filter(None, (words(kind), caption)))
        counts = Counter(kind for kind in self.kinds if kind not in PASSED)
        work = [kind for kind in counts if kind in WORK] or list(counts)
        return ", ".join(f"{counts[kind]} {words(kind)}" if counts[kind] > 1 else words(kind) for kind in work)

    @property
    def work(self) -> str:
        for kind in ("attention", "conv", "linear"):
            if kind in self.kinds:
                return WORK[kind]
        return next((WORK[kind] for kind in self.kinds if kind in WORK), "")

    @property
    def size(self) -> tuple[float, float]:
        if self.is_sum:
            return SUM, SUM
        lines = 2 if self.small else 1
        return max(LETTER * len(self.label), SMALL * len(self.small)) + 2 * PAD, LINE * lines + 12

    @property
    def is_sum(self) -> bool:
        return self.kinds == ["add"]


def words(kind: str) -> str:
    """A kind of operator as people write it."""
    return kind.replace("_", " ")


def without_steps(graph: networkx.DiGraph) -> networkx.DiGraph:
    """The graph without what only hands values on, and without what an iteration hands to the next."""
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
    """The groups of the finest depth that still reads at a glance."""
    found = grouped(graph, 1)
    for depth in range(2, 6):
        finer = grouped(graph, depth)
        if len(finer[0]) > MOST:
            break
        found = finer
    return found


def grouped(graph: networkx.DiGraph, depth: int) -> tuple[dict[str, Group], list[tuple[str, str]]]:
    """Modules to ``depth`` below their frame, or below what holds frames; where that would be a cycle, runs of them."""
    frames = {tuple(path_of(loop)) for _, data in graph.nodes(data=True) for loop in data["loops"]}
    keys = {}
    for number, (name, data) in enumerate(graph.nodes(data=True)):
        path = [] if data["kind"] in ("input", "output") else str(data["label"]).split(".")
        base = len(path_of(data["loops"][-1])) if data["loops"] else 0
        while any(frame[: base + 1] == tuple(path[: base + 1]) and len(frame) > base + 1 for frame in frames):
            base += 1
        own = tuple(path[: base + depth])
        alone = data["kind"] in ("input", "output") or (data["kind"] == "add" and len(path) <= base)
        keys[name] = (data["loops"], own, number if alone else -1)
    for _ in range(2):
        quotient = networkx.DiGraph()
        quotient.add_nodes_from(keys.values())
        quotient.add_edges_from((keys[one], keys[two]) for one, two in graph.edges if keys[one] != keys[two])
        knots = {key for part in networkx.strongly_connected_components(quotient) if len(part) > 1 for key in part}
        if not knots:
            break
        run, before = 0, None
        for name, key in list(keys.items()):
            run += key != before
            before = key
            keys[name] = (key[0], key[1], run) if key in knots else key
    names = {key: f"g{number}" for number, key in enumerate(dict.fromkeys(keys.values()))}
    groups: dict[str, Group] = {}
    for name, data in graph.nodes(data=True):
        loops, own, _ = keys[name]
        base = len(path_of(loops[-1])) if loops else 0
        label = str(data["label"]) if data["kind"] in ("input", "output") else ".".join(own[base:]) or ".".join(own)
        label = label or words(data["kind"])  # a class that is one operator has no path
        group = groups.setdefault(names[keys[name]], Group(names[keys[name]], label, loops))
        group.kinds.append(data["kind"])
        group.captions.append(str(data.get("caption") or ""))
    edges = dict.fromkeys((names[keys[one]], names[keys[two]]) for one, two in graph.edges if keys[one] != keys[two])
    return groups, list(edges)


def path_of(loop: str) -> list[str]:
    """The path of a frame's modules: ``model.layers x L`` holds ``model.layers.*``."""
    return [*loop.rpartition(" x ")[0].split("."), "*"]
