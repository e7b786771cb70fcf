"""Regimes share a graph unless their patterns select iterations of a repeat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from symflops.api import load, regime_of
from symflops.build.build import build
from symflops.ir.graph import Graph
from symflops.ir.patterns import cutting
from symflops.read.variants import view_of_config, view_of_regime
from tests import shipped
from tests.sampling import sampled


@pytest.mark.parametrize(
    ("name", "regime", "graphs"),
    [
        ("llama", "lora", 1),  # one of its patterns has a number, which is no index of a repeat
        ("sd3", "full:train=*.to_out.0.weight", 1),
        ("llama", "full:train=model.layers.0.*", 2),
        ("llama", "full:train=*.:2.mlp.*", 2),
        ("unet_2d", "full:train=down_blocks.0.*", 2),  # iterations that are written out
    ],
)
def test_a_pattern_that_selects_no_iteration_needs_no_graph_of_its_own(name: str, regime: str, graphs: int) -> None:
    made: list[Graph] = []

    def counted(*given: Any) -> Any:
        found = build(*given)
        made.extend([found] if isinstance(found, Graph) else [])
        return found

    assert cutting(regime_of(regime).patterns)
    program = replace(load(name), builder=counted).program(["full", regime], ["symflops"], {})
    assert len(made) == graphs
    assert program.regimes[0].trainable != program.regimes[1].trainable


@pytest.mark.parametrize("name", sampled(shipped.NAMES, 12))
def test_the_shared_graph_is_the_one_that_patterns_would_give(name: str) -> None:
    model, regime = shipped.load(name), replace(regime_of("lora"), lenient=True)
    graph, spec = model.graph({}), view_of_regime(view_of_config(model.spec, {}), regime)
    assert build(spec, dict(graph.fixed), cutting(regime.patterns)) == graph
