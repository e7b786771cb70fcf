"""The graph of a model as a picture (SVG): modules as boxes, loops as frames."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import networkx

from symflops.emit.html.boxes import LETTER, PAD, Group, best, inside, levels, typeset, without_steps
from symflops.emit.html.layered_layout import Layout, Point, layered

HEAD = 30.0
"""Height of the title of a frame, in pixels."""


WIDE = 960.0
"""Width in pixels above which a picture is collapsed to levels."""


def drawing(graph: networkx.DiGraph) -> str:
    """Draw a graph from :func:`symflops.ir.network.network` as SVG; empty if it has fewer than two boxes."""
    found = _frame(*best(without_steps(graph)))
    return _svg(found, graph.name, "graph") if found else ""


def pictures(graph: networkx.DiGraph) -> str:
    """Draw a graph as HTML; a wide one is collapsed to levels, and a click opens the picture of a level."""
    steps = without_steps(graph)
    whole = _frame(*best(steps))
    if whole is None:
        return ""
    groups, edges, members = levels(steps)
    top = _frame(groups, edges) if whole.size[0] > WIDE else None
    if top is None or len(groups) < 3:
        return _box(_svg(whole, graph.name, "graph"), graph.name)
    inner = {name: _frame(*inside(steps, nodes)) for name, nodes in members.items() if len(nodes) > 1}
    details = []
    for number, (name, frame) in enumerate(((name, frame) for name, frame in inner.items() if frame), 1):
        group = groups[name]
        group.opens = f"level-{number}"
        body = _box(_svg(frame, f"{graph.name}, {group.label}", f"graph-{number}"), group.label)
        details.append(
            f'<details class="level" id="{group.opens}"><summary>{html.escape(group.label)}</summary>{body}</details>'
        )
    return "\n".join([_box(_svg(top, graph.name, "graph"), graph.name), *details])


def _box(picture: str, name: str) -> str:
    """Put a picture into a scrollable element."""
    label = html.escape(f"Graph of {name}")
    return f'<div class="scroll drawing" tabindex="0" role="region" aria-label="{label}">\n{picture}\n</div>'


def _frame(groups: dict[str, Group], edges: Sequence[tuple[str, str]]) -> _Frame | None:
    """Build the outermost frame of a picture; None if it has fewer than two boxes or its edges a cycle."""
    drawn = len(groups) > 1 and networkx.is_directed_acyclic_graph(networkx.DiGraph(edges))
    return _Frame((), groups, edges) if drawn else None


def _svg(frame: _Frame, name: str, key: str) -> str:
    """Print a frame as SVG, with element ids that begin with ``key``."""
    width, height = frame.size
    described = html.escape(f"{name}: {frame.in_words()}")
    body = "\n".join(frame.svg((1.0, 1.0)))
    return (
        f'<svg viewBox="0 0 {width + 2:.0f} {height + 2:.0f}" width="{width + 2:.0f}" height="{height + 2:.0f}" role="img" '
        f'aria-labelledby="{key}-title {key}-said">\n<title id="{key}-title">Graph of {html.escape(name)}</title>\n'
        f'<desc id="{key}-said">{described}</desc>\n<defs><marker id="{key}-arrow" viewBox="0 0 8 8" refX="7" refY="4" '
        f'markerWidth="7" markerHeight="7" orient="auto"><path class="arrow" d="M0 0.8 8 4 0 7.2z"/></marker></defs>\n'
        f"{body.replace('url(#arrow)', f'url(#{key}-arrow)')}\n</svg>"
    )


class _Frame:
    """Frame of one loop in a drawing (without a key: the whole drawing), with its boxes and inner frames.

    Edges cross the border of a frame through ports at its top and bottom.
    """

    def __init__(self, key: tuple[str, ...], groups: dict[str, Group], edges: Sequence[tuple[str, str]]) -> None:
        self.key = key
        depth = len(key)
        inside = {name: group for name, group in groups.items() if group.frame[:depth] == key}
        deeper = {name: group.frame[: depth + 1] for name, group in inside.items() if len(group.frame) > depth}
        self.groups = {name: group for name, group in inside.items() if name not in deeper}
        self.frames = {frame_name(child): _Frame(child, inside, edges) for child in dict.fromkeys(deeper.values())}
        self.child_of = {name: frame_name(child) for name, child in deeper.items()}
        self.wires: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        for one, two in edges:
            if one in inside or two in inside:
                self.connect(one, two)
        self.layout = self.laid_out()

    def laid_out(self) -> Layout:
        """Compute the positions of boxes, inner frames and ports."""
        entries = list(dict.fromkeys(one for one, _ in self.wires if one.startswith("in:")))
        exits = list(dict.fromkeys(two for _, two in self.wires if two.startswith("out:")))
        sizes = {name: group.size for name, group in self.groups.items()}
        sizes |= {name: frame.size for name, frame in self.frames.items()}
        anchors = {name: frame.port(frame.entry) for name, frame in self.frames.items()}
        return layered(sizes | dict.fromkeys((*entries, *exits), (2.0, 0.0)), list(self.wires), entries, exits, anchors)

    @property
    def entry(self) -> str:
        """Name of the input port with most edges to boxes; empty without input ports."""
        count = Counter(one for one, _ in self.wires if one.startswith("in:"))
        return max(count, key=count.__getitem__, default="")

    def connect(self, one: str, two: str) -> None:
        """Add the part of the edge from box ``one`` to box ``two`` that lies in this frame."""
        start, end = self.here(one, True), self.here(two, False)
        end = f"out:{start}" if end.startswith("out:") else end
        if start != end:
            leaves = f"out:{self.frames[start].here(one, True)}" if start in self.frames else ""
            self.wires.setdefault((start, end), {})[leaves, f"in:{one}" if end in self.frames else ""] = None

    def here(self, name: str, leaves: bool) -> str:
        """Return the node of this frame for the box ``name``: the box, an inner frame around it, or a port.

        ``leaves``: whether an edge starts at the box, so that a box outside of this frame has an input port.
        """
        return self.child_of.get(name) or (name if name in self.groups else f"{'in' if leaves else 'out'}:{name}")

    def port(self, name: str) -> float:
        """Return the horizontal distance of the port ``name`` from the frame's middle; 0 for an empty name."""
        return self.layout.places[name][0] - self.layout.width / 2 if name else 0.0

    @property
    def title(self) -> str:
        """Title of the frame: path and iteration count."""
        path, _, times = self.key[-1].rpartition(" x ") if self.key else ("", "", "")
        return f"{path} \u00d7 {typeset(times)}"

    @property
    def size(self) -> tuple[float, float]:
        if not self.key:
            return self.layout.width, self.layout.height
        width = max(self.layout.width + 2 * PAD, LETTER * len(self.title) + 2 * PAD)
        return width, self.layout.height + HEAD + PAD

    def in_words(self) -> str:
        """Return the labels of the boxes row by row, as text for screen readers."""
        order = sorted(
            [*self.groups, *self.frames], key=lambda name: (self.layout.places[name][1], self.layout.places[name][0])
        )
        texts = [
            self.groups[name].label if name in self.groups else f"{self.frames[name].title} ({self.frames[name].in_words()})"
            for name in order
            if name in self.frames or not self.groups[name].is_sum
        ]
        return ", ".join(texts)

    def svg(self, corner: Point) -> Iterator[str]:
        """Yield the SVG elements of the frame, with its upper left corner at ``corner``."""
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
        """Return the SVG attribute for the arrowhead of an edge to ``name``.

        It is empty for an inner frame, because the edge continues inside to a box.
        """
        return "" if name in self.frames else ' marker-end="url(#arrow)"'


def frame_name(key: tuple[str, ...]) -> str:
    """Return the name of the frame ``key`` in the layout of the frame around it."""
    return f"f{'/'.join(key)}"


def curve(points: Sequence[Point]) -> str:
    """Smooth SVG path through ``points``, vertical at each."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (a, b), (c, d) in pairwise(points):
        middle = (b + d) / 2
        path += f"V{d:.1f}" if abs(a - c) < 0.5 else f"C{a:.1f} {middle:.1f} {c:.1f} {middle:.1f} {c:.1f} {d:.1f}"
    return path


def box(group: Group, x: float, y: float) -> str:
    """SVG of a box with its label, centred at (x, y); a sum is a circle."""
    if group.is_sum:
        plus = f'<path class="edge" d="M{x - 5:.1f} {y:.1f}h10M{x:.1f} {y - 5:.1f}v10"/>'
        return f'<g><circle class="box" cx="{x:.1f}" cy="{y:.1f}" r="11"/>{plus}</g>'
    width, height = group.size
    ends = group.kinds in (["input"], ["output"])
    name = "end-box" if ends else f"box works-{group.work}" if group.work else "box"
    rounding = height / 2 if ends else 6
    top = y - height / 2
    first = top + (21 if group.small else height / 2 + 4.5)
    corner = f'x="{x - width / 2:.1f}" y="{top:.1f}"'
    parts = [
        f'<rect class="{name}" {corner} width="{width:.1f}" height="{height:.1f}" rx="{rounding:.0f}"/>',
        f'<text x="{x:.1f}" y="{first:.1f}" text-anchor="middle">{html.escape(group.label)}</text>',
    ]
    if group.small:
        parts.append(
            f'<text class="small" x="{x:.1f}" y="{first + 15:.1f}" text-anchor="middle">{html.escape(group.small)}</text>'
        )
    if group.opens:
        opens = (
            f' class="opens" data-opens="{group.opens}" tabindex="0" role="button" aria-label="open {html.escape(group.label)}"'
        )
        return f"<g{opens}>{''.join(parts)}</g>"
    return f"<g>{''.join(parts)}</g>"
