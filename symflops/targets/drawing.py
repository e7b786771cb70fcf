"""The graph of a model as a picture (SVG): modules as boxes, repeats as frames, drawn when a page is made."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import networkx

from symflops.targets.layout import Layout, Point, layered

MOST = 30
"""The boxes up to which a picture is read at a glance: modules are shown as deep as these suffice."""

PASSED = ("with", "mul", "map", "detach", "concat", "split", "view", "zeros", "parameter", "reshape", "add")
"""Kinds that only hand values on: what reads them is drawn as reading what they read. Sums that stand alone are kept."""

WORK = {"linear": "linear", "attention": "attention", "conv": "conv", "matmul": "other", "bilinear": "other", "scan": "other"}
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
LETTER, SMALL, PAD, LINE, HEAD = 7.4, 6.3, 13.0, 16.0, 30.0  # widths of letters, room in boxes, height of lines and of frame titles


@dataclass
class _Group:
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
            return 24.0, 24.0
        lines = 2 if self.small else 1
        return max(LETTER * len(self.label), SMALL * len(self.small)) + 2 * PAD, LINE * lines + 12

    @property
    def is_sum(self) -> bool:
        return self.kinds == ["add"]


def words(kind: str) -> str:
    """A kind of operator as people write it."""
    return kind.replace("_", " ")


def drawing(graph: networkx.DiGraph) -> str:
    """The picture of a graph as :func:`symflops.model.network.network` makes it; empty where there is nothing to show."""
    whole = without_steps(graph)
    groups, edges = best(whole)
    if len(groups) < 2:
        return ""
    frame = _Frame((), groups, edges)
    width, height = frame.size
    said = html.escape(f"{graph.name}: {frame.told()}")
    body = "\n".join(frame.svg((1.0, 1.0)))
    return (
        f'<svg viewBox="0 0 {width + 2:.0f} {height + 2:.0f}" width="{width + 2:.0f}" height="{height + 2:.0f}" role="img" '
        f'aria-labelledby="graph-title graph-said">\n<title id="graph-title">Graph of {html.escape(graph.name)}</title>\n'
        f'<desc id="graph-said">{said}</desc>\n<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path class="arrow" d="M0 0.8 8 4 0 7.2z"/></marker></defs>\n{body}\n</svg>'
    )


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


def best(graph: networkx.DiGraph) -> tuple[dict[str, _Group], list[tuple[str, str]]]:
    """The groups of the finest depth that still reads at a glance."""
    found = grouped(graph, 1)
    for depth in range(2, 6):
        finer = grouped(graph, depth)
        if len(finer[0]) > MOST:
            break
        found = finer
    return found


def grouped(graph: networkx.DiGraph, depth: int) -> tuple[dict[str, _Group], list[tuple[str, str]]]:
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
    groups: dict[str, _Group] = {}
    for name, data in graph.nodes(data=True):
        loops, own, _ = keys[name]
        base = len(path_of(loops[-1])) if loops else 0
        label = str(data["label"]) if data["kind"] in ("input", "output") else ".".join(own[base:]) or ".".join(own)
        group = groups.setdefault(names[keys[name]], _Group(names[keys[name]], label, loops))
        group.kinds.append(data["kind"])
        group.captions.append(str(data.get("caption") or ""))
    edges = dict.fromkeys((names[keys[one]], names[keys[two]]) for one, two in graph.edges if keys[one] != keys[two])
    return groups, list(edges)


def path_of(loop: str) -> list[str]:
    """The path of a frame's modules: ``model.layers x L`` holds ``model.layers.*``."""
    return [*loop.rpartition(" x ")[0].split("."), "*"]


class _Frame:
    """A frame with its boxes and the frames in it; edges from outside come in through ports at its top and bottom."""

    def __init__(self, key: tuple[str, ...], groups: dict[str, _Group], edges: Sequence[tuple[str, str]]) -> None:
        self.key = key
        depth = len(key)
        inside = {name: group for name, group in groups.items() if group.frame[:depth] == key}
        self.groups = {name: group for name, group in inside.items() if len(group.frame) == depth}
        deeper = dict.fromkeys(group.frame[: depth + 1] for group in inside.values() if len(group.frame) > depth)
        self.frames = {f"f{'/'.join(child)}": _Frame(child, inside, edges) for child in deeper}
        child_of = {name: f"f{'/'.join(group.frame[: depth + 1])}" for name, group in inside.items() if len(group.frame) > depth}

        self.child_of = child_of
        self.wires: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        for one, two in edges:
            if one in inside or two in inside:
                start, end = self.here(one, True), self.here(two, False)
                end = f"out:{start}" if end.startswith("out:") else end
                if start != end:
                    ports = (self.frames[start].port_out(one) if start in self.frames else "", f"in:{one}" if end in self.frames else "")
                    self.wires.setdefault((start, end), {})[ports] = None
        self.entries = list(dict.fromkeys(one for one, _ in self.wires if one.startswith("in:")))
        self.exits = list(dict.fromkeys(two for _, two in self.wires if two.startswith("out:")))
        boxes = {name: group.size for name, group in self.groups.items()}
        boxes |= {name: frame.size for name, frame in self.frames.items()}
        boxes |= dict.fromkeys((*self.entries, *self.exits), (2.0, 0.0))
        self.layout: Layout = layered(boxes, list(self.wires), self.entries, self.exits)

    def here(self, name: str, comes: bool) -> str:
        """What stands for a box in this frame: itself, the frame that holds it, or a port."""
        return self.child_of.get(name) or (name if name in self.groups else f"{'in' if comes else 'out'}:{name}")

    def port_out(self, name: str) -> str:
        """The port through which the lines of a box inside leave."""
        return f"out:{self.here(name, True)}"

    def port(self, name: str) -> float:
        """How far a port stands from the middle of the frame."""
        return self.layout.places[name][0] - self.layout.width / 2 if name else 0.0

    @property
    def title(self) -> str:
        """What stands on the frame."""
        path, _, times = self.key[-1].rpartition(" x ") if self.key else ("", "", "")
        return f"{path} × {times}"

    @property
    def size(self) -> tuple[float, float]:
        if not self.key:
            return self.layout.width, self.layout.height
        width = max(self.layout.width + 2 * PAD, LETTER * len(self.title) + 2 * PAD)
        return width, self.layout.height + HEAD + PAD

    def told(self) -> str:
        """The modules in words, in the order of the rows."""
        order = sorted(
            [*self.groups, *self.frames], key=lambda name: (self.layout.places[name][1], self.layout.places[name][0])
        )
        texts = [
            self.groups[name].label if name in self.groups else f"{self.frames[name].title} ({self.frames[name].told()})"
            for name in order
            if name in self.frames or not self.groups[name].is_sum
        ]
        return ", ".join(texts)

    def svg(self, corner: Point) -> Iterator[str]:
        """The elements of the frame, its upper left corner at ``corner``."""
        x, y = corner
        width, height = self.size
        if self.key:
            yield f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="10"/>'
            label = f'<text class="frame-label" x="{x + PAD:.1f}" y="{y + 19:.1f}">{html.escape(self.title)}</text>'
            x, y = x + (width - self.layout.width) / 2, y + HEAD
        for (one, two), points in self.layout.routes.items():
            for leaves, enters in self.wires[one, two]:
                route = [(x + a, y + b) for a, b in points]
                if one in self.frames:
                    route[0] = (route[0][0] + self.frames[one].port(leaves), route[0][1])
                if two in self.frames:
                    route[-1] = (route[-1][0] + self.frames[two].port(enters), route[-1][1])
                    route.append((route[-1][0], route[-1][1] + HEAD))
                if one in self.frames:
                    route.insert(0, (route[0][0], route[0][1] - PAD))
                yield f'<path class="edge" d="{curve(route)}"{"" if two.startswith("out:") else self.arrow(two)}/>'
        for name, frame in self.frames.items():
            place = self.layout.places[name]
            yield from frame.svg((x + place[0] - frame.size[0] / 2, y + place[1] - frame.size[1] / 2))
        if self.key:
            yield label
        for name, group in self.groups.items():
            place = self.layout.places[name]
            yield box(group, x + place[0], y + place[1])

    def arrow(self, name: str) -> str:
        """The mark at the end of a line, which those into a frame do not have."""
        return "" if name in self.frames else ' marker-end="url(#arrow)"'


def curve(points: Sequence[Point]) -> str:
    """A line through ``points``, upright at each."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (a, b), (c, d) in zip(points, points[1:], strict=False):
        middle = (b + d) / 2
        path += f"V{d:.1f}" if abs(a - c) < 0.5 else f"C{a:.1f} {middle:.1f} {c:.1f} {middle:.1f} {c:.1f} {d:.1f}"
    return path


def box(group: _Group, x: float, y: float) -> str:
    """A box with its label; a sum is a circle."""
    if group.is_sum:
        return f'<g><circle class="box" cx="{x:.1f}" cy="{y:.1f}" r="11"/><path class="edge" d="M{x - 5:.1f} {y:.1f}h10M{x:.1f} {y - 5:.1f}v10"/></g>'
    width, height = group.size
    ends = group.kinds in (["input"], ["output"])
    name = "end-box" if ends else f"box works-{group.work}" if group.work else "box"
    rounding = height / 2 if ends else 6
    top = y - height / 2
    first = top + (21 if group.small else height / 2 + 4.5)
    parts = [
        f'<rect class="{name}" x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{rounding:.0f}"/>',
        f'<text x="{x:.1f}" y="{first:.1f}" text-anchor="middle">{html.escape(group.label)}</text>',
    ]
    if group.small:
        parts.append(f'<text class="small" x="{x:.1f}" y="{first + 15:.1f}" text-anchor="middle">{html.escape(group.small)}</text>')
    return f"<g>{''.join(parts)}</g>"
