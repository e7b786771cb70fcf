"""One model under several regimes: forward, backward and recomputed FLOPs, and their ratio to full training and to
three times forward. Or under several conventions: what each counts, and the causes of each difference with their shares.

symflops compare llama --regimes full,lora,checkpointed --batch '{"text": [2048]}' --convention torch
symflops compare llama --conventions symflops,verl,megatron --batch '{"text": [4096]}'
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from symflops.cli.arguments import BATCH, CONFIG, CONVENTION, JSON, OVER, SPEC, argument, arguments_of
from symflops.cli.estimate import aligned, batch_of, scaled
from symflops.cli.explain import default_batch
from symflops.runtime.units import NAMES

configure = arguments_of(
    SPEC,
    argument("--regimes", default="full,lora,checkpointed", metavar="R,R", help="separated by commas; inline ones by ';'"),
    argument("--conventions", metavar="C,C", help="compare these, under the first regime that --regimes names"),
    CONFIG,
    BATCH,
    CONVENTION,
    argument("--plot", metavar="FILE", help="their ratios over the length, as a picture (needs matplotlib)"),
    OVER,
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Derive each regime or convention and print the table."""
    from symflops.catalog.lookup import closed_forms, read_config

    config = read_config(args.config) if args.config else {}
    names = [name.strip() for name in args.regimes.split(";" if ";" in args.regimes or ":" in args.regimes else ",")]
    first = closed_forms(args.spec, config, "full", args.convention)
    batch = batch_of(args.batch) if args.batch else default_batch(first.program)
    if args.conventions:
        return conventions(args, config, batch, names[0])
    full = row("full", first.estimator(config), batch)
    forms = {name: closed_forms(args.spec, config, name, args.convention) for name in names}
    estimators = {name: form.estimator(config) for name, form in forms.items()}
    rows = [row(name, estimator, batch) for name, estimator in estimators.items()]
    if args.plot:
        plot(args, batch, estimators, executed=True)
    for found in rows:
        executed = found["total"] + found["recomputed"]
        found["to_full"] = executed / full["total"] if full["total"] else None
        found["to_three_forward"] = executed / (3 * full["forward"]) if full["forward"] else None
    found = {"schema": 1, "spec": first.program.name, "convention": args.convention, "batch": batch, "regimes": rows}
    print(json.dumps(found, indent=1) if args.json else "\n".join(table(first.program.name, args.convention, rows)))
    return 0


def conventions(args: argparse.Namespace, config: dict[str, Any], batch: dict[str, Any], regime: str) -> int:
    """Compare conventions: a table, and the causes of the difference of each pair."""
    from itertools import combinations

    from symflops.api import load, regime_of
    from symflops.witness.differences import Comparison, percent

    model = load(args.spec)
    names = list(dict.fromkeys(name.strip() for name in args.conventions.split(",")))
    estimators = {name: model.estimator(config, regime, name) for name in names}
    rows = [{**row("", estimator, batch), "convention": name} for name, estimator in estimators.items()]
    for found in rows:
        del found["regime"], found["recomputed"], found["trainable_parameters"]
        found["ratio"] = found["total"] / rows[0]["total"] if rows[0]["total"] else None
    comparison = Comparison(model, config, batch, regime_of(regime))
    pairs = [comparison.difference(*pair) for pair in combinations(names, 2)]
    if args.plot:
        plot(args, batch, estimators, executed=False)
    if args.json:
        found = {"schema": 1, "spec": model.spec.name, "regime": regime, "batch": batch, "conventions": rows}
        print(json.dumps({**found, "differences": [difference(pair) for pair in pairs]}, indent=1))
        return 0
    print("\n".join(convention_table(model.spec.name, regime, rows)))
    for pair in pairs:
        units = [NAMES[estimators[name].unit] for name in (pair.second, pair.first)]
        told = f" ({units[0]} less {units[1]})" if units[0] != units[1] else ""
        print(f"\n{pair.second} - {pair.first} = {pair.flops:+,}{told}")
        for step in pair.steps:
            print(f"  {step.flops:+,}  {percent(step.share)}  {step.sentence(pair.first, pair.second)}")
    return 0


def difference(pair: Any) -> dict[str, Any]:
    """The difference of two conventions as JSON has it, cause by cause."""
    rules = [
        {
            "words": step.words,
            "flops": int(step.flops),
            "share": None if step.share is None else float(step.share),
            "terms": dict(step.terms),
            "sentence": step.sentence(pair.first, pair.second),
        }
        for step in pair.steps
    ]
    return {"first": pair.first, "second": pair.second, "flops": int(pair.flops), "rules": rules}


def convention_table(spec: str, regime: str, rows: list[dict[str, Any]]) -> list[str]:
    """The table for people."""
    passes = ("forward", "backward", "total")
    units = {NAMES[found["unit"]] for found in rows}
    shared = f" {units.pop()}" if len(units) == 1 else ""
    lines = [("convention", *(name + shared for name in passes), "to the first")]
    for found in rows:
        ratio = "-" if found["ratio"] is None else f"{found['ratio']:.4f}x"
        own = "" if shared else NAMES[found["unit"]]
        lines.append((found["convention"], *(scaled(found[key]).strip() + own for key in passes), ratio))
    return [f"{spec}, regime {regime}", *aligned(lines)]


def plot(args: argparse.Namespace, batch: dict[str, Any], estimators: dict[str, Any], executed: bool) -> None:
    """The ratio of each to the first, over the length of the items of a stream; with recomputed work if ``executed``."""
    from symflops.emit.page.plots import ratios, save, sweep

    grown = sweep(batch, args.over or "")
    lines: dict[str, list[float | None]] = {}
    first: list[int] = []
    for name, estimator in estimators.items():
        moments = [estimator.moments(**grown.at(side)) for side in grown.sides]
        totals = [estimator.total(m) + (estimator.recomputed(m) if executed else 0) for m in moments]
        first = first or totals
        lines[name] = [total / base if base else None for total, base in zip(totals, first, strict=True)]
    title = f"{args.spec}: a step under {'regimes' if executed else 'conventions'}"
    tokens = [grown.tokens(side) for side in grown.sides]
    save(ratios(title, grown.label, tokens, lines, next(iter(estimators))), args.plot)


def row(name: str, estimator: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """The figures of one regime: the work of one step, in the unit of the convention."""
    m = estimator.moments(**batch)
    return {
        "regime": name,
        "unit": estimator.unit,
        "trainable_parameters": estimator.trainable_parameters,
        "forward": estimator.forward(m),
        "backward": estimator.backward(m),
        "recomputed": estimator.recomputed(m),
        "total": estimator.total(m),
    }


def table(spec: str, convention: str, rows: list[dict[str, Any]]) -> list[str]:
    """The table for people."""
    passes = ("forward", "backward", "recomputed")
    unit = NAMES[rows[0]["unit"]] if rows else NAMES["flops"]
    lines = [("regime", "trains", *(f"{name} {unit}" for name in passes), "to full", "to 3 x forward")]
    for found in rows:
        trains, *figures = [scaled(found[key]).strip() for key in ("trainable_parameters", *passes)]
        full, three = ["-" if found[key] is None else f"{found[key]:.3f}x" for key in ("to_full", "to_three_forward")]
        lines.append((found["regime"], trains, figures[0], figures[1], figures[2], full, three))
    return [f"{spec}, convention {convention}; ratios count recomputed work", *aligned(lines)]
