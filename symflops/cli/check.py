"""Reads and builds specs, and shows every mistake in each: place, reason and hint."""

from __future__ import annotations

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``symflops check``."""
    parser.add_argument("specs", nargs="*", metavar="SPEC", help="names or paths; default: all specs of the library")


def run(args: argparse.Namespace) -> int:
    """Check specs; 1 when there are findings."""
    from symflops.api import load
    from symflops.ground.diagnostics import SpecError
    from symflops.library import find_spec, roots, specs_in

    files = [find_spec(spec) for spec in args.specs] or list(specs_in(roots()[0]))
    failed = 0
    for file in files:
        try:
            model = load(file)
            model.graph({})
            for variant in model.variants:
                model.graph(variant=variant)
        except SpecError as error:
            failed += 1
            print(error, file=sys.stderr)
    print(f"{len(files)} specs, {failed} with findings" if failed else f"{len(files)} specs, all fine", file=sys.stderr)
    return 1 if failed else 0
