"""Two models as a difference: of parameters and FLOPs, of closed forms, and cause by cause.

  symflops diff llama qwen3
  symflops diff old/config.json new/config.json --batch '{"text": [4096]}'
  symflops diff llama3-8b --set num_hidden_layers=40
  symflops diff linformer

A and B are names of models, or paths of specs or configs. Sizes of A are changed to those of B one by one, in the order of the
spec; what is then left are modules that differ. The causes sum to the difference. --set changes B.
Without B, A is compared with itself under --set, else with the baseline that its spec names.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from symflops.cli.amounts import chosen_batch, given_for_batch
from symflops.cli.terminal import BATCH, CONVENTION, JSON, REGIME, SET, argument, arguments_of, of_batch
from symflops.evaluate.units import scaled, unit_of
from symflops.support.errors import SymflopsError

WIDTH, WORDS = 80, 37

configure = arguments_of(
    argument("first", metavar="A", help="a model: a name, or a path"),
    argument("second", metavar="B", nargs="?", help="what it is compared with; default: A under --set, or the baseline of A"),
    SET,
    BATCH,
    REGIME,
    CONVENTION,
    argument("--top", type=int, default=12, metavar="N", help="causes to show (default: 12)"),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Compare two models, or a model with its baseline, and print the difference; return exit code 0."""
    from symflops.analysis.difference import Pair

    if args.top < 0:
        raise SymflopsError(f"--top is a number of causes, not {args.top}")
    if args.second is None and not args.set:
        return beside(args)
    (first, name), (second, changed) = subject(args.first, args, ()), subject(args.second or args.first, args, args.set or ())
    if first.estimator.unit != second.estimator.unit:
        raise SymflopsError(f"convention '{args.convention}' counts the two in different units")
    batch = chosen_batch(args, first.estimator, quiet=True)
    found = Pair(first, second, batch).difference()
    answer(args, found, [first.program.name, second.program.name], [changed, name], batch, first.estimator)
    return 0


def beside(args: argparse.Namespace) -> int:
    """Compare a model with the baseline that its spec names, print it, and return the exit code 0."""
    from symflops.analysis.baseline import compared
    from symflops.api import load
    from symflops.library.naming import named

    spec = named(args.first)
    if spec.config:
        raise SymflopsError(f"'{args.first}' is compared with a baseline at its defaults alone: say B")
    found = compared(load(spec.spec), args.regime, args.convention)
    if found is None:
        raise SymflopsError(f"the spec of '{args.first}' names no baseline: say B, what it is compared with")
    if given := given_for_batch(args):
        raise SymflopsError(f"{given[0]} is of two models; the spec says what its baseline is compared at")
    base, own = found.base.spec, found.own.spec
    answer(args, found.difference(), [base, own], [own, base], found.batch(found.lengths(found.here)), found.own.estimator)
    return 0


def answer(args: argparse.Namespace, found: Any, names: list[str], told: list[str], batch: Any, estimator: Any) -> None:
    """Print the difference of two models, as text or JSON.

    Args:
        args: The command line.
        found: The difference.
        names: Names of the first and the second model, for JSON.
        told: The names from which the title "A less B" is made.
        batch: The batch.
        estimator: The estimator whose unit all figures have.
    """
    if args.json:
        made = {"schema": 1, "first": names[0], "second": names[1], "regime": args.regime, "convention": args.convention}
        made |= {"unit": estimator.unit, "batch": batch, "parameters": three(found, "parameters")}
        made |= {name: three(found, name) for name in ("forward", "backward", "total")}
        made |= {"formula": {work: dict(texts(change)) for work, change in found.terms.items()}}
        print(json.dumps(made | {"causes": [cause(one) for one in found.causes]}))
        return
    print(f"{told[0]} less {told[1]}, regime {args.regime}, convention {args.convention}")
    print("\n".join(textwrap.wrap(of_batch(batch), WIDTH)))
    print("\n" + "\n".join(totals(found, unit_of(estimator))))
    print("\n" + "\n".join(formula(found)))
    print("\n" + "\n".join(causes(found, args.top)))


def subject(text: str, args: argparse.Namespace, changes: Sequence[str]) -> tuple[Any, str]:
    """Load the model that ``text`` names, with ``changes`` of fields: (model, its name for headings)."""
    from symflops.analysis.subject import Subject
    from symflops.library.naming import heading, selected
    from symflops.library.settings import settings_in

    try:
        found = selected(text, settings=settings_in(changes))
        made = Subject(found.spec, found.config or None, args.regime, args.convention)
        _ = made.estimator
    except SymflopsError as error:
        raise SymflopsError(f"{text}: {error}" + ("" if Path(text).exists() else "; give a config in its place")) from None
    return made, heading(text, changes)


def texts(change: Any) -> list[tuple[str, str]]:
    """Return a difference of closed forms as pairs (name of the moment, coefficient as text)."""
    from symflops.emit.python.printer import PythonPrinter

    return [(moment.name, PythonPrinter().text(formula)) for moment, formula in change]


def three(found: Any, name: str) -> dict[str, int]:
    """Map ``first`` and ``second`` to the figure ``name`` of that model, and ``difference`` to second less first."""
    one, two = getattr(found.first, name), getattr(found.second, name)
    return {"first": one, "second": two, "difference": two - one}


def cause(one: Any) -> dict[str, Any]:
    """Convert one cause of a difference to JSON: kind, words, figures and closed form."""
    told = {"kind": one.kind, "cause": one.words, **asdict(one.figures), "total": one.figures.total}
    return told | {"formula": {"forward": dict(texts(one.terms))}}


def totals(found: Any, unit: str) -> Iterator[str]:
    """Format the figures of both models and their differences as lines."""
    yield f"{'':<12}{'A':>20}  {'B':>20}  {'B - A':>22}"
    for name in ("parameters", "forward", "backward"):
        one, two, change = three(found, name).values()
        small = max(one, two) < 10**15
        cells = [f"{value:,}" if small else signed(value).removeprefix("+") for value in (one, two)]
        yield f"{name:<12}{cells[0]:>20}  {cells[1]:>20}  {f'{change:+,}' if small else signed(change):>22}"


def formula(found: Any) -> Iterator[str]:
    """Format the difference of the closed forms as lines."""
    yield "closed form of the difference"
    for name, change in found.terms.items():
        text = " + ".join(f"({coefficient})*{moment}" for moment, coefficient in texts(change)) or "0"
        yield from textwrap.wrap(f"{name} = {text}", WIDTH, initial_indent="  ", subsequent_indent="    ")


def causes(found: Any, top: int) -> Iterator[str]:
    """Yield the lines of a table: the ``top`` largest causes of a difference of two models, and one line for all others."""
    if not found.causes:
        yield "no cause: both cost the same"
        return
    yield f"{'cause':<{WORDS}}  {'parameters':>11}  {'forward':>11}  {'backward':>11}"
    for one in found.causes[:top]:
        first, *more = textwrap.wrap(one.words, WORDS, break_on_hyphens=False)
        cells = [signed(value) for value in (one.figures.parameters, one.figures.forward, one.figures.backward)]
        yield f"{first:<{WORDS}}  {cells[0]:>11}  {cells[1]:>11}  {cells[2]:>11}"
        yield from (f"  {line}" for line in more)
        text = " + ".join(f"({coefficient})*{moment}" for moment, coefficient in texts(one.terms))
        if text:
            yield from textwrap.wrap(f"forward {text}", WIDTH, initial_indent="    ", subsequent_indent="      ")
    left = found.causes[top:]
    if left:
        cells = [signed(sum(getattr(one.figures, name) for one in left)) for name in ("parameters", "forward", "backward")]
        yield f"{f'{len(left)} more':<{WORDS}}  {cells[0]:>11}  {cells[1]:>11}  {cells[2]:>11}"


def signed(value: int) -> str:
    """Format a number with its sign, four digits and an SI prefix."""
    return f"{'+' * (value > 0)}{scaled(value)}"
