"""Prints the graph of a model, as Mermaid (which GitHub renders) or DOT (for Graphviz)."""

from __future__ import annotations

import argparse

from symflops.cli.terminal import SPEC, STRUCTURE, argument, arguments_of

configure = arguments_of(
    SPEC,
    argument("--format", default="mermaid", choices=("mermaid", "dot"), help="default: mermaid"),
    STRUCTURE,
)


def run(args: argparse.Namespace) -> int:
    """Print the graph of a model; return the exit code 0."""
    from symflops.api import load
    from symflops.ir.network import dot, mermaid
    from symflops.library.lookup import read_config

    config = read_config(args.config) if args.config else {}
    drawn = load(args.spec).graph(config).to_networkx()
    print(mermaid(drawn) if args.format == "mermaid" else dot(drawn), end="")
    return 0
