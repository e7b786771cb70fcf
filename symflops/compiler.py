"""The pipeline, from the text of a spec to the text of its estimator and its derivation.

    read    Source                    -> Spec          what the author wrote, and where
    build   Spec                      -> Graph         blocks expanded, names resolved, widths and streams checked
    derive  Graph, Regime             -> Derivation    every contraction of both passes, and why; what a convention counts of it
    lower   Derivations, Conventions  -> Program       coefficients in sizes, moments in lengths
    emit    Program, Targets          -> files         code and formulas, two printings of one program

Nothing here touches the disk: sources come in as text, files go out as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symflops.build.build import build
from symflops.count.count import count
from symflops.derive.derive import derive, step_of
from symflops.diagnostics.findings import Source
from symflops.frontend.entries import BlockText
from symflops.frontend.read import read
from symflops.lower.lower import lower
from symflops.model.convention import Convention
from symflops.model.derivation import Derivation
from symflops.model.graph import Graph
from symflops.model.program import Program
from symflops.model.regime import Regime


def graph_of(source: Source, library: BlockText, fixed: Mapping[str, Any] | None = None) -> Graph:
    """The graph of the spec in ``source``; ``library`` finds blocks, ``fixed`` are sizes that the structure takes as known."""
    return build(read(source, library), fixed)


Steps = Sequence[Sequence[tuple[Graph, Regime, int]]]
Deriver = Callable[[Graph, Regime, frozenset[str]], Derivation]
AS_DERIVED = Convention("")


def compile_graphs(steps: Steps, conventions: Sequence[Convention], deriver: Deriver = derive) -> Program:
    """The program of a model under several regimes and conventions.

    Each step of training is a list of phases, the one that trains first: a graph, cut as its regime asks, the regime, and
    how often it runs. Where no convention counts all of the derived work, its modules are as the first one counts them.
    ``deriver`` derives both passes of a graph under a regime, with the elements of its values that are asked for.
    """
    conventions = [convention.of(steps[0][0][0].spec.name) for convention in conventions]
    own = {convention.name: derived(steps, convention, deriver) for convention in conventions if not convention.is_plain}
    all_own = len(own) == len(conventions)
    derivations = own[conventions[0].name] if all_own else derived(steps, AS_DERIVED, deriver)
    return lower(derivations, [convention.plain for convention in conventions], own)


def derived(steps: Steps, convention: Convention, deriver: Deriver = derive) -> list[Derivation]:
    """Both passes of each step, and what a convention counts of them."""

    def phase(graph: Graph, regime: Regime) -> Derivation:
        return count(deriver(graph, regime, convention.elements), convention)

    return [step_of([(phase(graph, regime), times) for graph, regime, times in step]) for step in steps]
