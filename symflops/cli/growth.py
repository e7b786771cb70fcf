"""How the cost of a model grows: where attention overtakes all else, what one more token, layer or expert costs, and FLOPs
per token over the length.

  symflops growth llama
  symflops growth deepseek_v3 --config config.json --batch '{"text": [4096]}' --json

What one more costs is the exact difference of both closed forms, not a derivative.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from symflops.cli.estimate import asked
from symflops.cli.terminal import (
    BATCH,
    CONFIG,
    CONVENTION,
    JSON,
    REGIME,
    SPEC_OR_CONFIG,
    argument,
    arguments_of,
    heading_of,
    of_batch,
)
from symflops.evaluate.units import scaled, unit_of

BAR, WIDTH = 28, 80
PASS = {"forward": "forward", "both": "both passes"}
SIGNS = {"at_least": ">=", "at_most": "<=", "equal": "=", "multiple": "is a multiple of"}

configure = arguments_of(
    SPEC_OR_CONFIG,
    CONFIG,
    BATCH,
    REGIME,
    CONVENTION,
    argument("--over", metavar="STREAM", help="the stream whose items grow (default: the first)"),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Derive how the cost of a model grows with lengths and sizes, print it, and return exit code 0."""
    from symflops.analysis.growth import Growth

    subject, batch = asked(args, quiet=True)
    growth = Growth(subject, batch)
    overtakings, tokens, sizes = list(growth.overtakings()), list(growth.tokens()), list(growth.sizes())
    grown, over = growth.over(args.over or "")
    if args.json:
        told = {"schema": 1, "spec": subject.program.name, "regime": args.regime, "convention": args.convention}
        told |= {"unit": subject.estimator.unit, "batch": batch, "overtakes": list(map(overtaking, overtakings))}
        told |= {"one_more": [{**asdict(one), "formulas": terms_of(one)} for one in (*tokens, *sizes)]}
        told |= {"over": grown.stream, "per_token": [per_token(row) for row in over]}
        print(json.dumps(told))
        return 0
    unit = unit_of(subject.estimator)
    print(f"{heading_of(args, subject.program.name)}, regime {args.regime}, convention {args.convention}")
    print("\n".join(textwrap.wrap(of_batch(batch), WIDTH)))
    print("\n" + "\n".join(crossings(overtakings)))
    print("\n" + "\n".join(table((*tokens, *sizes), unit)))
    print("\n" + "\n".join(plot(grown, over, unit)))
    return 0


def overtaking(one: Any) -> dict[str, Any]:
    """Convert to JSON at which length attention costs as much as all other work.

    The length is ``root`` as a number, and ``formula`` in sizes.
    """
    found = one.crossover
    told = {"streams": one.streams, "letter": one.letter, "work": found.work, "kind": found.kind, "formula": root_of(one)}
    told |= {"root": one.root, "value": found.value, "assumed": tuple(map(condition, one.assumed)), "refused": one.refused}
    return told


def root_of(one: Any) -> str:
    """Print the formula of the length at which attention costs as much as all other work.

    The text is empty without a closed form.
    """
    from symflops.emit.python.printer import PythonPrinter

    text, found = PythonPrinter().text, one.crossover
    if not one.known or found.kind not in ("quotient", "root"):
        return ""
    if found.kind == "quotient":
        return f"({text(found.above)}) / ({text(found.below)})"
    return f"the positive root of ({text(found.square)})*z**2 + ({text(found.linear)})*z + ({text(found.constant)})"


def terms_of(one: Any) -> dict[str, str]:
    """Map each moment to the forward cost of one more token, layer or expert, as text."""
    from symflops.emit.python.printer import PythonPrinter

    return {name: PythonPrinter().text(formula) for name, formula in one.formulas}


def condition(assumed: Any) -> str:
    """Format an assumption about a length as a relation, such as ``S >= W``."""
    from symflops.emit.python.printer import PythonPrinter

    left, right = map(PythonPrinter().text, (assumed.left, assumed.right))
    return f"{left} {SIGNS[assumed.relation]} {right}"


def per_token(row: Any) -> dict[str, Any]:
    """Convert the work per token at one length to JSON: its FLOPs, and the share of attention."""
    each = {"flops": row.flops, "flops_per_token": float(row.each), "attention": float(row.attention)}
    return {"length": row.length, "tokens": row.tokens, **each}


def crossings(found: list[Any]) -> Iterator[str]:
    """Format the lengths at which attention costs as much as all other work; equal passes share a line."""
    yield "attention costs as much as all else" if found else "there is no attention that could overtake anything"
    alike: dict[Any, list[str]] = {}
    for one in found:
        alike.setdefault(replace(one, crossover=replace(one.crossover, work="")), []).append(PASS[one.crossover.work])
    for one, works in alike.items():
        streams, assumed = " and ".join(one.streams), " and ".join(map(condition, one.assumed))
        value, kind = one.crossover.value, one.crossover.kind
        if value is not None:
            head = f"from {value:,} tokens of {streams} on"
        else:
            head = f"{kind if kind in ('always', 'never') else 'at no length'} over {streams}"
        told = f"{' and '.join(works)}: {head}{f', where {assumed}' if assumed else ''}"
        yield from textwrap.wrap(told, WIDTH, initial_indent="  ", subsequent_indent="    ")
        if one.refused:
            yield from textwrap.wrap(f"refused: {one.refused}", WIDTH, initial_indent="    ", subsequent_indent="      ")
        if value is not None and (formula := root_of(one)):
            near = f" = {one.root:,.2f}" if one.root is not None else ""
            told = f"{one.letter} = {formula}{near}"
            yield from textwrap.wrap(told, WIDTH, initial_indent="    ", subsequent_indent="      ", break_long_words=False)


def table(rows: tuple[Any, ...], unit: str) -> Iterator[str]:
    """Format the cost of one more of each item (token, layer, expert) as table lines."""
    yield f"{'one more of':<32}{'now':>10}  {'parameters':>11}  {'forward':>9}  {'backward':>9}"
    for row in rows:
        name = row.name if row.step == 1 else f"{row.name} (+{row.step})"
        name = name if len(name) <= 31 else f"...{name[-28:]}"
        cells = [scaled(value) for value in (row.parameters, row.forward, row.backward)]
        yield f"{name:<32}{row.now:>10,}  {cells[0]:>11}  {cells[1]:>9}  {cells[2]:>9}"
        terms = " + ".join(f"({text})*{moment}" for moment, text in terms_of(row).items())
        if terms and row.kind == "count":
            yield from textwrap.wrap(f"forward {terms}", WIDTH, initial_indent="    ", subsequent_indent="      ")


def plot(grown: Any, rows: list[Any], unit: str) -> Iterator[str]:
    """Draw FLOPs per token as bars; the ``#`` part of a bar is attention."""
    title = f"{unit} per token, both passes, over {grown.label}; # is attention"
    yield from textwrap.wrap(title, WIDTH, subsequent_indent="  ")
    most = max((row.each for row in rows), default=0)
    for row in rows:
        width = round(BAR * row.each / most) if most else 0
        dark = round(width * row.attention)
        bar = "#" * dark + "-" * (width - dark)
        yield f"{row.length:>10,}  {scaled(int(row.each)):>10}  {float(100 * row.attention):>5.1f} %  {bar}"
