"""Layered layout of a directed acyclic graph: places of its boxes and routes of its edges, from top to bottom.

The method of Sugiyama, Tagawa and Toda: ranks by longest paths, bends where edges cross a rank, an order within each rank by
barycentres, and places nearest to those of the neighbours with room in between (an isotonic regression).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx

ROW, COLUMN, BEND = 30.0, 22.0, 10.0
"""Room between rows, between boxes in a row, and around an edge that passes by."""

SWEEPS = 16

STRAIGHT = 8.0
"""The weight of the place of a bend, against 1 of a box."""

Point = tuple[float, float]
Boxes = Mapping[str, tuple[float, float]]
Node = str | tuple[str, str, int]
"""A box by name, or a bend: both ends of its edge, and its rank."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The centres of boxes, the points of each edge, and the size of the whole."""

    places: Mapping[str, Point]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]
    width: float
    height: float


def layered(boxes: Boxes, edges: Sequence[tuple[str, str]], first: Sequence[str] = (), last: Sequence[str] = ()) -> Layout:
    """The layout of ``boxes`` (width and height by name); ``first`` are the boxes of the first row, ``last`` of the last.

    Raises:
        networkx.NetworkXUnfeasible: the edges make a cycle.
    """
    graph = networkx.DiGraph()
    graph.add_nodes_from(boxes)
    graph.add_edges_from(edges)
    ranks = _ranks(graph, first, last)
    rows, neighbours = _rows(graph, ranks)
    for sweep in range(SWEEPS):
        _sort(rows, neighbours, down=sweep % 2 == 0)
    x = _places(rows, neighbours, boxes)
    left = min((place - _width(node, boxes) / 2 for node, place in x.items()), default=0.0)
    right = max((place + _width(node, boxes) / 2 for node, place in x.items()), default=0.0)
    heights = [max((boxes[node][1] for node in row if isinstance(node, str)), default=0.0) for row in rows]
    tops = [sum(heights[:number]) + ROW * number for number in range(len(rows))]
    places = {name: (x[name] - left, tops[rank] + heights[rank] / 2) for name, rank in ranks.items()}

    def route(one: str, two: str) -> tuple[Point, ...]:
        (start, top), (end, bottom) = places[one], places[two]
        bends = ((x[one, two, rank] - left, rank) for rank in range(ranks[one] + 1, ranks[two]))
        points = (point for bend, rank in bends for point in ((bend, tops[rank]), (bend, tops[rank] + heights[rank])))
        return ((start, top + boxes[one][1] / 2), *points, (end, bottom - boxes[two][1] / 2))

    routes = {(one, two): route(one, two) for one, two in graph.edges}
    return Layout(places, routes, right - left, tops[-1] + heights[-1] if rows else 0.0)


def _ranks(graph: networkx.DiGraph, first: Sequence[str], last: Sequence[str]) -> dict[str, int]:
    """The row of each box: below all its predecessors; a source stands right above its first successor."""
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


def _rows(
    graph: networkx.DiGraph, ranks: Mapping[str, int]
) -> tuple[list[list[Node]], dict[Node, tuple[list[Node], list[Node]]]]:
    """Boxes and bends by row, and the neighbours of each: those above and those below."""
    rows: list[list[Node]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    neighbours: dict[Node, tuple[list[Node], list[Node]]] = {}
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


def _sort(rows: list[list[Node]], neighbours: Mapping[Node, tuple[list[Node], list[Node]]], down: bool) -> None:
    """Order each row by the mean place of its neighbours in the previous row."""
    for number in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
        before = {node: place for place, node in enumerate(rows[number - 1 if down else number + 1])}

        def mean(item: tuple[int, Node], before: dict[Node, int] = before, row: list[Node] = rows[number]) -> float:
            found = [before[node] for node in neighbours[item[1]][0 if down else 1]]
            return sum(found) / len(found) if found else item[0] * len(before) / max(1, len(row))

        rows[number] = [node for _, node in sorted(enumerate(rows[number]), key=mean)]


def _places(
    rows: Sequence[Sequence[Node]],
    neighbours: Mapping[Node, tuple[list[Node], list[Node]]],
    boxes: Boxes,
) -> dict[Node, float]:
    """The horizontal centre of each box and bend: near its neighbours in one row, in later sweeps in both rows."""
    x: dict[Node, float] = {}
    for row in rows:
        x |= _spread(row, dict.fromkeys(row, 0.0), boxes)
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wanted = {}
            for node in row:
                above, below = neighbours[node]
                first, second = (above, below) if down else (below, above)
                wanted[node] = _wanted(node, above + below if sweep >= SWEEPS else first or second, x)
            x |= _spread(row, wanted, boxes)
    return x


def _wanted(node: Node, near: list[Node], x: Mapping[Node, float]) -> float:
    """The mean place of neighbours; for a box, those that are boxes come first, so that a sequence forms one line."""
    if isinstance(node, str):
        near = [other for other in near if isinstance(other, str)] or near
    return sum(x[other] for other in near) / len(near) if near else x[node]


def _spread(row: Sequence[Node], wanted: Mapping[Node, float], boxes: Boxes) -> dict[Node, float]:
    """The places nearest to ``wanted`` in the order of the row, with room in between: an isotonic regression."""
    offsets, total = [], 0.0
    for before, node in zip([None, *row], row, strict=False):
        if before is not None:
            bends = isinstance(before, tuple) or isinstance(node, tuple)
            total += (_width(before, boxes) + _width(node, boxes)) / 2 + (BEND if bends else COLUMN)
        offsets.append(total)
    blocks: list[tuple[float, float, int]] = []  # sum of weights times places, sum of weights, how many
    for node, offset in zip(row, offsets, strict=True):
        weight = STRAIGHT if isinstance(node, tuple) else 1.0
        blocks.append((weight * (wanted[node] - offset), weight, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            (one, heavy, many), (two, light, few) = blocks[-2:]
            blocks[-2:] = [(one + two, heavy + light, many + few)]
    means = [top / weight for top, weight, many in blocks for _ in range(many)]
    return {node: mean + offset for node, mean, offset in zip(row, means, offsets, strict=True)}


def _width(node: Node, boxes: Boxes) -> float:
    return boxes[node][0] if isinstance(node, str) else 0.0
