"""Begins a spec: a commented copy of one that is like it, or a small decoder.

  symflops new my_model --like llama -o specs/language
  symflops new my_model --like llama --with window,experts

writes my_model.yaml, its cases where the other spec has some, and the schema that editors read where there is none yet. Files
that are there already are left as they are. Then it prints parameters and FLOPs at the defaults, and what changed against the
other spec: 64 experts turn 6.74 B parameters into 279 B.
"""

from __future__ import annotations

import argparse
import sys

from symflops.cli.terminal import argument, arguments_of

configure = arguments_of(
    argument("name", metavar="NAME", help="what the spec is called"),
    argument("--like", metavar="SPEC", help="name or path of the spec that it begins as"),
    argument(
        "--with", dest="features", metavar="F,..", default="", help="changes of the copy: window, chunks, picked, experts"
    ),
    argument("-o", "--out", metavar="DIR", default=".", help="the folder to write to (default: this one)"),
)


def run(args: argparse.Namespace) -> int:
    """Write the files of a new spec, and print the next command; return the exit code 0."""
    from pathlib import Path

    from symflops.analysis.headline import headline
    from symflops.cli.actions.new import begin, start
    from symflops.read.spec_files import find_spec

    found = start(args.name, Path(args.out), args.like, [word.strip() for word in args.features.split(",") if word.strip()])
    begin(found)
    for path, _ in found:
        print(path)
    print(headline(find_spec(found[0][0]), find_spec(args.like) if args.like else None), file=sys.stderr)
    print(f"next: edit {found[0][0]}, then 'symflops check {found[0][0]}'", file=sys.stderr)
    return 0
