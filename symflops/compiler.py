"""The pipeline, from the text of a spec to the text of its estimator and its derivation.

    read    Source                    -> Spec          what the author wrote, and where
    build   Spec                      -> Graph         blocks expanded, names resolved, widths and streams checked
    derive  Graph, Regime             -> Derivation    every contraction of both passes, and why
    lower   Derivations, Conventions  -> Program       coefficients in sizes, moments in lengths
    emit    Program, Targets          -> files         code and formulas, two printings of one program

Nothing here touches the disk: sources come in as text, files go out as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.ground.diagnostics import Source
from symflops.model.graph import Graph
from symflops.model.program import Program
from symflops.model.regime import Convention, Regime
from symflops.stages.build import build
from symflops.stages.derive import derive, step_of
from symflops.stages.entries import BlockText
from symflops.stages.lower import lower
from symflops.stages.read import read


def graph_of(source: Source, library: BlockText, fixed: Mapping[str, Any] | None = None) -> Graph:
    """The graph of the spec in ``source``; ``library`` finds blocks, ``fixed`` are sizes that the structure takes as known."""
    return build(read(source, library), fixed)


def compile_graphs(steps: Sequence[Sequence[tuple[Graph, Regime, int]]], conventions: Sequence[Convention]) -> Program:
    """The program of a model under several regimes and conventions.

    Each step of training is a list of phases, the one that trains first: a graph, cut as its regime asks, the regime, and
    how often it runs.
    """
    return lower([step_of([(derive(graph, regime), times) for graph, regime, times in step]) for step in steps], conventions)
