"""Layered layout of a directed acyclic graph, top to bottom: positions of boxes and routes of edges.

The method of Sugiyama, Tagawa and Toda: ranks by longest paths, bends where edges cross a rank, an order within each rank by
barycentres. Consecutive boxes are aligned vertically, and so are the bends of an edge (Brandes and Köpf).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from types import MappingProxyType

import networkx

ROW, COLUMN, BEND = 30.0, 22.0, 10.0
"""Gaps in pixels between rows, between boxes in a row, and around a passing edge."""

SWEEPS = 16

Point = tuple[float, float]
Boxes = Mapping[str, tuple[float, float]]
Node = str | tuple[str, str, int]
"""A box (its name) or a bend (both ends of its edge, and its rank)."""
Neighbours = dict[Node, tuple[list[Node], list[Node]]]
"""Neighbours above and below each box and bend."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions in a drawing, in pixels.

    Attributes:
        places: Centre of each box by name.
        routes: Points through which each edge runs, by the names of its boxes.
        width: Width of the drawing.
        height: Height of the drawing.
    """

    places: Mapping[str, Point]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]
    width: float
    height: float


def layered(
    boxes: Boxes,
    edges: Sequence[tuple[str, str]],
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    anchors: Mapping[str, float] = MappingProxyType({}),
) -> Layout:
    """Lay out ``boxes`` (width and height by name), ``first`` in the top row, ``last`` in the bottom row.

    ``anchors`` are the horizontal offsets from a box's middle at which it aligns with others.

    Raises:
        networkx.NetworkXUnfeasible: the edges form a cycle.
    """
    graph = networkx.DiGraph()
    graph.add_nodes_from(boxes)
    graph.add_edges_from(edges)
    ranks = _ranks(graph, first, last)
    rows, neighbours = _rows(graph, ranks)
    for sweep in range(SWEEPS):
        _sort(rows, neighbours, down=sweep % 2 == 0)
    place_of = {node: place for row in rows for place, node in enumerate(row)}
    for sides in neighbours.values():
        for side in sides:
            side.sort(key=place_of.__getitem__)

    def halves(node: Node) -> Point:
        half, off = (boxes[node][0] / 2, anchors.get(node, 0.0)) if isinstance(node, str) else (0.0, 0.0)
        return half + off, half - off

    x = _Lines(rows, neighbours, halves).places()
    left = min((place - halves(node)[0] for node, place in x.items()), default=0.0)
    right = max((place + halves(node)[1] for node, place in x.items()), default=0.0)
    heights = [max((boxes[node][1] for node in row if isinstance(node, str)), default=0.0) for row in rows]
    tops = [sum(heights[:number]) + ROW * number for number in range(len(rows))]
    places = {name: (x[name] - anchors.get(name, 0.0) - left, tops[rank] + heights[rank] / 2) for name, rank in ranks.items()}

    def route(one: str, two: str) -> tuple[Point, ...]:
        (start, top), (end, bottom) = places[one], places[two]
        bends = ((x[one, two, rank] - left, rank) for rank in range(ranks[one] + 1, ranks[two]))
        points = (point for bend, rank in bends for point in ((bend, tops[rank]), (bend, tops[rank] + heights[rank])))
        return ((start, top + boxes[one][1] / 2), *points, (end, bottom - boxes[two][1] / 2))

    routes = {(one, two): route(one, two) for one, two in graph.edges}
    return Layout(places, routes, right - left, tops[-1] + heights[-1] if rows else 0.0)


def _ranks(graph: networkx.DiGraph, first: Sequence[str], last: Sequence[str]) -> dict[str, int]:
    """Map each box to the number of its row, below the rows of all its predecessors.

    A box without predecessors is in the row right above its first successor. Boxes ``first`` are in the top row, ``last`` in
    the bottom row.
    """
    order = list(networkx.lexicographical_topological_sort(graph, key={name: place for place, name in enumerate(graph)}.get))
    lowest = 1 if first else 0
    ranks: dict[str, int] = {}
    for name in order:
        ranks[name] = 0 if name in first else max([lowest, *(ranks[before] + 1 for before in graph.predecessors(name))])
    for name in reversed(order):
        if graph.out_degree(name) and name not in first and not graph.in_degree(name):
            ranks[name] = min(ranks[after] for after in graph.successors(name)) - 1
    inner = max((rank for name, rank in ranks.items() if name not in last), default=-1)
    below = any(set(graph.successors(name)) - set(last) for name in last)
    return ranks | dict.fromkeys(last, max(max(ranks.values(), default=0) + below, inner + 1))


def _rows(graph: networkx.DiGraph, ranks: Mapping[str, int]) -> tuple[list[list[Node]], Neighbours]:
    """Return (rows of boxes and of bends of edges, neighbours of each); ``ranks`` maps boxes to their rows."""
    rows: list[list[Node]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    neighbours: Neighbours = {}
    for name, rank in sorted(ranks.items(), key=lambda item: item[1]):
        rows[rank].append(name)
        neighbours[name] = ([], [])
    for one, two in graph.edges:
        chain: list[Node] = [one, *((one, two, rank) for rank in range(ranks[one] + 1, ranks[two])), two]
        for rank, node in enumerate(chain[1:-1], ranks[one] + 1):
            rows[rank].append(node)
            neighbours[node] = ([], [])
        for above, below in pairwise(chain):
            neighbours[above][1].append(below)
            neighbours[below][0].append(above)
    return rows, neighbours


def _sort(rows: list[list[Node]], neighbours: Neighbours, down: bool) -> None:
    """Sort each row by the mean place of the neighbours in the row above, or if not ``down``, below."""
    for number in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
        before = {node: place for place, node in enumerate(rows[number - 1 if down else number + 1])}

        def mean(item: tuple[int, Node], before: dict[Node, int] = before, row: list[Node] = rows[number]) -> float:
            found = [before[node] for node in neighbours[item[1]][0 if down else 1]]
            return sum(found) / len(found) if found else item[0] * len(before) / max(1, len(row))

        rows[number] = [node for _, node in sorted(enumerate(rows[number]), key=mean)]


class _Lines:
    """Vertical alignment of a layout: each box and bend is on a vertical line, alone or with others.

    Lines are made of the bends of an edge, and of boxes in consecutive rows. ``halves`` returns the extent of a box to the left
    and to the right of its line.
    """

    def __init__(self, rows: Sequence[Sequence[Node]], neighbours: Neighbours, halves: Callable[[Node], Point]) -> None:
        self.neighbours = neighbours
        self.line: dict[Node, Node] = {node: node for row in rows for node in row}
        for above, below in pairwise(rows):
            self.join(above, below)
        self.before: dict[Node, dict[Node, float]] = {}
        self.after: dict[Node, dict[Node, float]] = {}
        for row in rows:
            for one, two in pairwise(row):
                gap = halves(one)[1] + halves(two)[0] + (COLUMN if isinstance(one, str) and isinstance(two, str) else BEND)
                for side, key, other in ((self.before, two, one), (self.after, one, two)):
                    known = side.setdefault(self.line[key], {})
                    known[self.line[other]] = max(gap, known.get(self.line[other], 0.0))

    def join(self, above: Sequence[Node], below: Sequence[Node]) -> None:
        """Put nodes of consecutive rows on one line where lines do not cross: bends first, then boxes."""
        place = {node: number for number, node in enumerate(above)}
        wanted = []
        for number, node in enumerate(below):
            bends = isinstance(node, tuple)
            other = _middle([one for one in self.neighbours[node][0] if isinstance(one, tuple) is bends])
            back = _middle([one for one in self.neighbours[other][1] if isinstance(one, tuple) is bends]) if other else None
            if other and back == node:
                wanted.append((not bends, place[other], number, other, node))
        kept: list[tuple[int, int]] = []
        for _, start, end, other, node in sorted(wanted, key=lambda item: item[:3]):
            if all((start < one) == (end < two) for one, two in kept):
                kept.append((start, end))
                self.line[node] = self.line[other]

    def places(self) -> dict[Node, float]:
        """Map each box and bend to its horizontal position.

        Each line is as close to its neighbours as the gaps between the nodes of a row allow.
        """
        lines = list(dict.fromkeys(self.line.values()))
        x = dict.fromkeys(lines, 0.0)
        moved = True
        while moved:  # push all lines as far left as the gaps allow
            moved = False
            for line in lines:
                least = max([0.0, *(x[other] + gap for other, gap in self.before.get(line, {}).items())])
                moved, x[line] = moved or least > x[line], max(least, x[line])
        near: dict[Node, list[Node]] = {line: [] for line in lines}
        for node, sides in self.neighbours.items():
            outer = [other for side in sides for other in side if self.line[other] != self.line[node]]
            near[self.line[node]] += [other for other in outer if isinstance(other, str)] or outer
        order = lines
        for _ in range(SWEEPS):
            order = order[::-1]
            for line in order:
                wanted = sum(x[self.line[other]] for other in near[line]) / len(near[line]) if near[line] else x[line]
                low = max((x[other] + gap for other, gap in self.before.get(line, {}).items()), default=-inf)
                high = min((x[other] - gap for other, gap in self.after.get(line, {}).items()), default=inf)
                x[line] = min(max(wanted, low), high)
        return {node: x[line] for node, line in self.line.items()}


def _middle(nodes: Sequence[Node]) -> Node | None:
    """Return the middle node; None if the number of nodes is even."""
    return nodes[len(nodes) // 2] if len(nodes) % 2 else None
