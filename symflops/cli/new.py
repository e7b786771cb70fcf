"""Begins a spec: a commented copy of one that is like it, or a small decoder.

  symflops new my_model --like llama -o specs/language
  symflops new my_model --like llama --with window,experts
  symflops new my_model --extends llama --class transformers.ArceeForCausalLM

writes my_model.yaml, its cases where the other spec has some, and the schema that editors read where there is none yet. Files
that are there already are left as they are. Then it prints parameters and FLOPs at the defaults, and what changed against the
other spec: 64 experts turn 6.74 B parameters into 279 B.

With --class the spec has what differs from the one that it extends: the class and its siblings (the other heads) as reference,
their defaults, and the cases with the fields that their config has. Then the classes run, as 'symflops verify' runs them: it
prints where parameters, FLOPs or masks differ, module by module. That is no failure: it is what is left to write.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from symflops.cli.progress import progress
from symflops.cli.terminal import argument, arguments_of
from symflops.support.errors import SymflopsError

configure = arguments_of(
    argument("name", metavar="NAME", help="what the spec is called"),
    argument("--like", metavar="SPEC", help="name or path of the spec that it begins as"),
    argument(
        "--with", dest="features", metavar="F,..", default="", help="changes of the copy: window, chunks, picked, experts"
    ),
    argument("--extends", metavar="SPEC", help="name of the spec whose graph the class has; it goes with --class"),
    argument(
        "--class",
        dest="reference",
        metavar="CLASS",
        help="the class to describe: package.Class, or module:Class beside the spec",
    ),
    argument("-o", "--out", metavar="DIR", default=".", help="the folder to write to (default: this one)"),
)


def run(args: argparse.Namespace) -> int:
    """Write the files of a new spec, and print the next command; return the exit code 0."""
    from pathlib import Path

    from symflops.analysis.headline import headline
    from symflops.cli.actions.new import begin, start
    from symflops.read.spec_files import find_spec

    if args.extends or args.reference:
        found = extension(args)
    else:
        found = start(args.name, Path(args.out), args.like, [word.strip() for word in args.features.split(",") if word.strip()])
    begin(found)
    for path, _ in found:
        print(path)
    print(headline(find_spec(found[0][0]), find_spec(args.like) if args.like else None), file=sys.stderr)
    if args.reference:
        compared(str(found[0][0]))
    print(f"next: edit {found[0][0]}, then 'symflops check {found[0][0]}'", file=sys.stderr)
    return 0


def extension(args: argparse.Namespace) -> list[Any]:
    """Render the files of a spec that extends another one for a class, as (path, text).

    Raises:
        SymflopsError: options do not go together, or the class is not like those of the other spec.
    """
    from pathlib import Path

    from symflops.cli.actions.extend import extend

    if args.like or args.features:
        raise SymflopsError("--extends and --class go without --like and --with: what is added is written by hand")
    if not (args.extends and args.reference):
        raise SymflopsError("--extends SPEC and --class CLASS go together; --like SPEC begins a copy, without a class")
    return extend(args.name, Path(args.out), args.extends, args.reference)


def compared(path: str) -> None:
    """Print how the real classes of a spec compare with it, case by case; those that do not run, by their parameters alone."""
    from symflops.api import load
    from symflops.read.spec_files import find_spec
    from symflops.verify.authoring_report import render
    from symflops.verify.cases import cases_of
    from symflops.verify.classes import default_differences
    from symflops.verify.live import verify_live

    model = load(find_spec(path))
    cases, reports = cases_of(model.file), []
    print(*(f"{difference}\n" for difference in default_differences(model)), sep="", end="")
    for case in progress(cases, "verifying", lambda case: case.label):
        try:
            reports.append(verify_live(model, case, lenient=True))
        except SymflopsError as error:
            print(error)
    for report in reports:
        print(render(report, reports))
    unseen = next((f", {report.masks}" for report in reports if report.masks and report.masks.unseen), "")
    print(f"{len(cases)} cases, {sum(report.exact for report in reports)} exact{unseen}", file=sys.stderr)
