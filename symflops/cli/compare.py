"""One model under several regimes: forward, backward and recomputed FLOPs, and their ratio to full training and to
three times forward. Or under several conventions: what each counts, and the causes of each difference with their shares.

symflops compare llama --regimes full,lora:r=16,targets=*.q_proj,checkpointed --batch '{"text": [2048]}'
symflops compare llama --conventions symflops,verl,megatron --batch '{"text": [4096]}'
"""

from __future__ import annotations

import json
import sys

from symflops.cli.amounts import chosen_batch
from symflops.cli.terminal import (
    BATCH,
    CONFIG,
    CONVENTION,
    JSON,
    OVER,
    SPEC,
    argument,
    arguments_of,
    columns,
    heading_of,
    of_batch,
    styled,
    width,
    wrapped,
)
from symflops.evaluate.units import NAMES, percent, scaled
from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

configure = arguments_of(
    SPEC,
    argument("--regimes", default="full,lora,checkpointed", metavar="R,R", help="separated by commas, or by ';'"),
    argument("--conventions", metavar="C,C", help="compare these, under the first regime that --regimes names"),
    argument("--table", action="store_true", help="of conventions the table alone, without causes, which takes a moment"),
    CONFIG,
    BATCH,
    CONVENTION,
    argument("--plot", metavar="FILE", help="their ratios over the length, as a picture (needs matplotlib)"),
    OVER,
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Estimate under each regime or convention and print the table; return the exit code 0."""
    from symflops.analysis.convention_comparison import USUAL, by_regime, regimes_in, under
    from symflops.library.lookup import interpreter, read_config

    config = read_config(args.config) if args.config else {}
    names = regimes_in(args.regimes)
    if not names:
        raise SymflopsError("--regimes names no regime, e.g. full,lora")
    if args.conventions:
        return conventions(args, config, names[0])
    usual = tuple(names) == USUAL
    models = under(lambda name: interpreter(args.spec, config, name, args.convention), () if usual else names)
    full = models.get("full") or interpreter(args.spec, config, "full", args.convention)
    batch = chosen_batch(args, full, quiet=True)
    if len(models) < len(names):
        missing = [name for name in names if name not in models]
        print(f"left out: {', '.join(missing)}, which do{'es' if len(missing) == 1 else ''} not fit", file=sys.stderr)
    rows = by_regime(models, full, batch)
    if args.plot:
        plot(args, batch, models, executed=True)
    found = {"schema": 1, "spec": full.name, "convention": args.convention, "batch": batch, "regimes": rows}
    lines = table(heading_of(args, full.name), args.convention, rows)
    print(json.dumps(found, indent=1) if args.json else "\n".join([*lines, *defaulted(args, batch)]))
    return 0


def conventions(args: argparse.Namespace, config: dict[str, Any], regime: str) -> int:
    """Print the figures under each convention, and why each pair differs; return the exit code 0."""
    from symflops.analysis.convention_comparison import by_convention
    from symflops.library.lookup import interpreter

    names = list(dict.fromkeys(filter(None, (name.strip() for name in args.conventions.split(",")))))
    if not names:
        raise SymflopsError("--conventions names no convention, e.g. symflops,megatron")
    models = {name: interpreter(args.spec, config, regime, name) for name in names}
    first = models[names[0]]
    batch = chosen_batch(args, first, quiet=True)
    rows = by_convention(models, batch)
    if args.plot:
        plot(args, batch, models, executed=False)
    if not args.json:
        lines = convention_table(heading_of(args, first.name), regime, rows)
        print("\n".join([*lines, *defaulted(args, batch)]), flush=True)
    pairs = [] if args.table else differences(args.spec, config, batch, regime, names)
    if args.json:
        found = {"schema": 1, "spec": first.name, "regime": regime, "batch": batch, "conventions": rows}
        told = {} if args.table else {"differences": pairs}
        print(json.dumps({**found, **told}, indent=1))
    elif pairs:
        print("\n".join(line for pair in pairs for line in causes(pair, models)))
    return 0


def defaulted(args: argparse.Namespace, batch: dict[str, Any]) -> list[str]:
    """Name the batch, if the command line gives none, as lines for the terminal."""
    return [] if args.batch else wrapped(f"of a step on the {of_batch(batch)}", width())


def differences(spec: str, config: dict[str, Any], batch: dict[str, Any], regime: str, names: list[str]) -> list[Any]:
    """Return the difference of each pair of the conventions ``names``, split into its causes, as JSON objects.

    Those of a spec, regime and conventions with names are kept in the cache, since deriving them imports sympy.
    """
    if len(names) < 2:
        return []
    import contextlib

    from symflops.library.cache import keep, kept, place
    from symflops.library.lookup import by_name, is_file
    from symflops.support.files import digest

    if is_file(spec, regime, *names):
        return derived_differences(spec, config, batch, regime, names)[0]
    file, asked = by_name(spec).file(spec), json.dumps([config, batch, regime, names], sort_keys=True)
    path = None
    with contextlib.suppress(OSError):  # there is no home folder
        path = place(f"{file.name}-compared-{digest(str(file.path))[:16]}") / f"{digest(asked)[:16]}.json"
    found = kept(path) if path else None
    if found and found[0]["asked"] == asked and found[0]["facts"] == file.facts() and file.has(found[0]["sources"]):
        return json.loads(found[1])  # type: ignore[no-any-return]
    rows, sources = derived_differences(spec, config, batch, regime, names)
    with contextlib.suppress(OSError):
        if path:
            keep(path, json.dumps(rows), asked=asked, sources=sources, facts=file.facts())
    return rows


def derived_differences(
    spec: str, config: dict[str, Any], batch: dict[str, Any], regime: str, names: list[str]
) -> tuple[list[Any], dict[str, str]]:
    """Derive what :func:`differences` returns, with the digests of the spec's files by label."""
    from itertools import combinations

    from symflops.api import convention_of, load, regime_of
    from symflops.verify.differences import Comparison

    model = load(spec)
    comparison = Comparison(model, config, batch, regime_of(regime))
    comparison.pieces.prepare([convention_of(name).of(model.spec.called) for name in names])
    rows = [difference(comparison.difference(*pair)) for pair in combinations(names, 2)]
    return rows, dict(comparison.pieces.sources)


def causes(pair: dict[str, Any], models: Mapping[str, Any]) -> list[str]:
    """Format the difference ``pair`` of two conventions, cause by cause, as lines for the terminal."""
    first, second, most = pair["first"], pair["second"], width()
    units = [NAMES[models[name].unit] for name in (second, first)]
    told = f" ({units[0]} less {units[1]})" if units[0] != units[1] else ""
    lines = ["", *(styled(line, "bold") for line in wrapped(f"{second} - {first} = {pair['flops']:+,}{told}", most))]
    for rule in pair["rules"]:
        lines += wrapped(f"{rule['flops']:+,}  {percent(rule['share'])}  {rule['sentence']}", most, "  ", "      ")
    return lines


def difference(pair: Any) -> dict[str, Any]:
    """Convert the difference of two conventions to JSON, cause by cause."""
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
    """Format the FLOPs under each convention as table lines."""
    units = {NAMES[found["unit"]] for found in rows}
    shared = units.pop() if len(units) == 1 else ""
    cells = [("convention", "forward", "backward", "total", "to the first")]
    for found in rows:
        ratio = "-" if found["ratio"] is None else f"{found['ratio']:.4f}x"
        own = "" if shared else NAMES[found["unit"]]
        cells.append((found["convention"], *(scaled(found[key]) + own for key in ("forward", "backward", "total")), ratio))
    return titled(f"{spec}, regime {regime}{f', in {shared}' if shared else ''}", cells)


def plot(args: argparse.Namespace, batch: dict[str, Any], estimators: dict[str, Any], executed: bool) -> None:
    """Plot the FLOPs of each estimator, divided by those of the first, over the length of a stream.

    If ``executed``, recomputed work is included.
    """
    from symflops.emit.page.plots import ratios, save
    from symflops.evaluate.step import sweep

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


def table(spec: str, convention: str, rows: list[dict[str, Any]]) -> list[str]:
    """Format the FLOPs under each regime, with ratios, as table lines."""
    keys = ("trainable_parameters", "forward", "backward", "recomputed")
    cells = [("regime", "trains", "forward", "backward", "recomputed", "of full", "of 3 fwd")]
    for found in rows:
        ratios = ["-" if found[key] is None else f"{found[key]:.3f}x" for key in ("to_full", "to_three_forward")]
        trains, forward, backward, recomputed = (scaled(found[key]) for key in keys)
        cells.append((found["regime"], trains, forward, backward, recomputed, *ratios))
    unit = NAMES[rows[0]["unit"]]
    return titled(f"{spec}, convention {convention}, in {unit}; ratios count recomputed work", cells)


def titled(title: str, cells: list[Any]) -> list[str]:
    """Format a table below its title, as lines that fit the terminal."""
    most = width()
    return [*wrapped(title, most), *columns(cells, most)]
