"""Infers roles and regions that a spec does not give, from the use of results and from module paths.

A router is a linear whose result only reaches the weights of experts. All other roles come from the table
``conventions/tables/roles.yaml``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache
from typing import Any, NamedTuple

from symflops.ir.convention import MAIN
from symflops.ir.graph import Graph
from symflops.ir.nodes import Loop, Node, Operator, Push, Select, with_operators
from symflops.read.spec_files import PACKAGE, read_source
from symflops.read.yaml_nodes import python_value, read_yaml
from symflops.support.findings import Reporter

TABLE = PACKAGE / "conventions" / "tables" / "roles.yaml"


class Rules(NamedTuple):
    """The rules of ``roles.yaml``, with patterns for operator kinds and module paths.

    Attributes:
        roles: (operator kind, path, role) of each rule for roles, in order; the first that matches applies.
        regions: (path, region) of each rule for regions; all that match apply.
    """

    roles: tuple[tuple[str, str, str], ...]
    regions: tuple[tuple[str, str], ...]


@cache
def rules() -> Rules:
    """Load the rules of ``roles.yaml``, which infer roles and regions from module paths."""
    report = Reporter()
    found: Any = python_value(read_yaml(read_source(TABLE, "conventions/tables/roles.yaml"), report), report)
    roles = tuple((line["op"], line["path"], line["role"]) for line in found["roles"])
    return Rules(roles, tuple((line["path"], line["region"]) for line in found["regions"]))


def with_roles(graph: Graph) -> Graph:
    """``graph`` with inferred roles and regions for operators without their own."""
    routers = frozenset(_routers(graph))

    def named(operator: Operator) -> list[Node]:
        role = "" if operator.role else "router" if operator.id in routers else first_line(operator.kind, str(operator.path))[1]
        apart = MAIN in operator.regions or "shared_gate" in (role, operator.role)
        regions = () if apart else regions_at(str(operator.path))
        return [replace(operator, inferred=role, shown=regions) if role or regions else operator]

    return replace(graph, body=with_operators(graph.body, named))


@lru_cache(maxsize=1 << 14)
def first_line(kind: str, path: str) -> tuple[str, str]:
    """(path pattern, role) of the first rule of ``roles.yaml`` that matches an operator's kind and path; else empty texts."""
    pattern, lines = _lines_of(kind)
    first = pattern.match(path)
    return lines[first.lastindex - 1] if first and first.lastindex else ("", "")


@lru_cache(maxsize=1 << 8)
def _lines_of(kind: str) -> tuple[re.Pattern[str], list[tuple[str, str]]]:
    """Compile the rules for roles that apply to operators of ``kind``.

    Returns a regular expression with one group for each rule, and (path pattern, role) of each rule.
    """
    fit = [(path, role) for wanted, path, role in rules().roles if fnmatchcase(kind, wanted)]
    return re.compile("|".join(f"({translate(path)})" for path, _ in fit) or r"\b\B"), fit


@lru_cache(maxsize=1 << 14)
def regions_at(path: str) -> tuple[str, ...]:
    """All regions that ``roles.yaml`` infers from a module path, without repetition."""
    return tuple(dict.fromkeys(region for pattern, region in rules().regions if fnmatchcase(path, pattern)))


class _Flow:
    """Which node makes each value, and which nodes read it.

    A loop counts as an unknown reader of the values that it carries: they are not followed through the loop.
    """

    def __init__(self, graph: Graph) -> None:
        self.made: dict[int, Operator | Select] = {}
        self.read: dict[int, list[Operator | Select | None]] = defaultdict(list)
        self._enter(graph.body)
        for _, value in graph.outputs:
            self.read[value].append(None)

    def _enter(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if isinstance(node, Loop):
                for carries in node.carries:
                    for carry in carries:
                        self.read[carry.initial].append(None)
                        self.read[carry.final].append(None)
                for _, body in node.classes:
                    self._enter(body)
            elif isinstance(node, Push):
                self.read[node.value].append(None)
            elif isinstance(node, (Operator, Select)):
                operands, results = _ends(node)
                self.made.update(dict.fromkeys(results, node))
                for value in operands:
                    self.read[value].append(node)

    def sources(self, value: int) -> Iterator[Operator]:
        """Yield operators with contractions whose results reach ``value`` only through those without any."""
        found: set[int] = set()
        todo = [value]
        while todo:
            node = self.made.get(todo.pop())
            if node is None or id(node) in found:
                continue
            found.add(id(node))
            if isinstance(node, Operator) and node.contractions:
                yield node
            else:
                todo += _ends(node)[0]

    def only_weighs(self, operator: Operator) -> bool:
        """Whether the results of ``operator`` are used only as the weights by which experts are summed."""
        found: set[int] = set()
        todo = list(operator.results)
        while todo:
            value = todo.pop()
            for node in self.read[value]:
                weighs = isinstance(node, Operator) and weights_of(node) == value
                if weighs or id(node) in found:
                    continue
                if node is None or (isinstance(node, Operator) and (node.contractions or weights_of(node) is not None)):
                    return False
                found.add(id(node))
                todo += _ends(node)[1]
        return True


def _ends(node: Operator | Select) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(ids of a node's operands, ids of its results)."""
    return (node.operands, node.results) if isinstance(node, Operator) else ((node.then, node.otherwise), (node.result,))


def weights_of(operator: Operator) -> int | None:
    """Id of the router's weights, if ``operator`` is the weighted sum of experts, else None."""
    return operator.operands[1] if operator.role == "combine" and len(operator.operands) == 2 else None


def _routers(graph: Graph) -> Iterator[int]:
    """Yield the ids of the linears whose results are used only as weights of experts."""
    weights = [value for operator in graph.operators() if (value := weights_of(operator)) is not None]
    if not weights:
        return
    flow = _Flow(graph)
    for value in weights:
        yield from (one.id for one in flow.sources(value) if one.kind == "linear" and flow.only_weighs(one))
