"""Helpers of lowering: find loops and batch variables of a graph, split and merge its work into program lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sympy import Symbol

from symflops.derive.decode import added, sides, spread, variables
from symflops.ir.batch import Layout
from symflops.ir.graph import Derivation, Graph, Length, Work
from symflops.ir.nodes import Loop, Node
from symflops.ir.patterns import running_texts
from symflops.lower.batch_statistics import without_padding


def loops(nodes: tuple[Node, ...]) -> Iterator[Loop]:
    """Yield all loops among ``nodes`` and inside of these loops, each before those inside of it."""
    for node in nodes:
        if isinstance(node, Loop):
            yield node
            for _, body in node.classes:
                yield from loops(body)


def repeat_letters(graph: Graph) -> frozenset[str]:
    """Letters of the sizes that decide how often loops run, directly or through derived sizes."""
    found = {symbol for loop in loops(graph.body) for symbol in loop.count.free_symbols}
    for symbol, value in reversed(graph.definitions):
        if symbol in found:
            found |= value.free_symbols
    return frozenset(symbol.name for symbol in found)


def measures(graph: Graph, derivation: Derivation) -> dict[Symbol, tuple[Length, ...]]:
    """Symbol of a length -> the lengths that a batch gives for it.

    That is the length itself, or two lengths (such as past and new tokens) if the regime decodes it token by token.
    """
    mode, tokens = derivation.regime.decode, derivation.decodes
    return {length.symbol: variables(mode, length) if length.symbol in tokens else (length,) for length in graph.lengths}


def has_default(layout: Layout, variables: Sequence[str]) -> bool:
    """Whether the axes of ``layout`` say that each of the lengths ``variables`` is 1 if a batch omits it."""
    return all(f"{name}=1" in layout.axes for name in variables)


def labels(nodes: tuple[Node, ...]) -> Iterator[tuple[str, str]]:
    """Yield (letter of the index, name of the module list) for each loop."""
    for loop in loops(nodes):
        words = [word for word in str(loop.path).split(".") if word.isidentifier()]
        yield loop.index.name, words[-1] if words else "layers"


def program_lines(work: Work, lengths: frozenset[Symbol]) -> list[Work]:
    """Split work so that each part can be a line of a program.

    No part has one of ``lengths`` in its run counts, and PyTorch's counter counts all of a part or nothing of it.
    """
    return [side for part in spread(work, lengths) for side in sides(part)]


def spread_all(derivation: Derivation, lengths: frozenset[Symbol]) -> Derivation:
    """``derivation`` with its work split by :func:`program_lines`, and useful runs without padding."""
    return replace(
        derivation, work=tuple(without_padding(part) for work in derivation.work for part in program_lines(work, lengths))
    )


def merged(works: Sequence[Work]) -> list[Work]:
    """Add the run counts of equal contractions of one module, such as those of several segments of a loop."""
    found: dict[tuple[object, ...], Work] = {}
    for work in works:
        contraction = work.contraction
        operands = tuple(gradient.kind for gradient in work.gradients)
        modules = running_texts(work.operator.path, work.operator.visits)
        key = (modules, contraction.name, contraction.seen, contraction.size, contraction.extent, contraction.items, operands)
        found[key] = _added(found[key], work) if key in found else work
    return list(found.values())


def _added(one: Work, two: Work) -> Work:
    gradients = []
    for first, second in zip(one.gradients, two.gradients, strict=True):
        reasons = dict.fromkeys(reason for both in (first.reason, second.reason) for reason in both.split("; ") if reason)
        gradients.append(replace(first, count=added(first.count, second.count), reason="; ".join(reasons)))
    recomputed = added(one.recomputed, two.recomputed)
    return replace(one, forward=added(one.forward, two.forward), gradients=tuple(gradients), recomputed=recomputed)
