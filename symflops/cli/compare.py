"""One model under several regimes: forward, backward and recomputed FLOPs, and their ratio to full training and to
three times forward.

symflops compare llama --regimes full,lora,checkpointed --batch '{"text": [2048]}' --convention torch
"""

from __future__ import annotations

import argparse
import json
from typing import Any


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``symflops compare``."""
    parser.add_argument("spec", metavar="SPEC", help="name or path of a spec")
    parser.add_argument(
        "--regimes", default="full,lora,checkpointed", metavar="R,R", help="separated by commas; inline ones by ';'"
    )
    parser.add_argument("--config", metavar="PATH", help="config.json, model_index.json, or a folder with one")
    parser.add_argument("--batch", metavar="JSON|@FILE", help="default: one item of 1024 per length")
    parser.add_argument("--convention", default="symflops", metavar="C", help="what is counted (default: symflops)")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(args: argparse.Namespace) -> int:
    """Derive each regime and print the table."""
    from symflops.api import load
    from symflops.cli.estimate import batch_of
    from symflops.cli.explain import default_batch
    from symflops.lookup import read_config

    config = read_config(args.config) if args.config else {}
    model = load(args.spec)
    names = [name.strip() for name in args.regimes.split(";" if ";" in args.regimes or ":" in args.regimes else ",")]
    batch = batch_of(args.batch) if args.batch else default_batch(model.derive("full", args.convention, config).program)
    full = row("full", model.estimator(config, "full", args.convention), batch)
    rows = [row(name, model.estimator(config, name, args.convention), batch) for name in names]
    for found in rows:
        executed = found["total"] + found["recomputed"]
        found["to_full"] = executed / full["total"] if full["total"] else None
        found["to_three_forward"] = executed / (3 * full["forward"]) if full["forward"] else None
    if args.json:
        found = {"schema": 1, "spec": model.spec.name, "convention": args.convention, "batch": batch, "regimes": rows}
        print(json.dumps(found, indent=1))
    else:
        print("\n".join(table(model.spec.name, args.convention, rows)))
    return 0


def row(name: str, estimator: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """The figures of one regime, FLOPs of one step."""
    m = estimator.moments(**batch)
    return {
        "regime": name,
        "trainable_parameters": estimator.trainable_parameters,
        "forward": estimator.forward(m),
        "backward": estimator.backward(m),
        "recomputed": estimator.recomputed(m),
        "total": estimator.total(m),
    }


def table(spec: str, convention: str, rows: list[dict[str, Any]]) -> list[str]:
    """The table for people."""
    from symflops.cli.estimate import scaled

    head = ("regime", "trains", "forward FLOPs", "backward FLOPs", "recomputed FLOPs", "to full", "to 3 x forward")
    lines = [head]
    for found in rows:
        figures = [scaled(found[key]).strip() for key in ("trainable_parameters", "forward", "backward", "recomputed")]
        ratios = ["-" if found[key] is None else f"{found[key]:.3f}x" for key in ("to_full", "to_three_forward")]
        lines.append((found["regime"], *figures, *ratios))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    told = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    return [f"{spec}, convention {convention}; ratios count recomputed work", *told]
