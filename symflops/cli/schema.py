"""Prints the JSON Schema (draft-07) of specs, blocks, regimes or conventions, for editors and other tools.

  symflops schema spec -o schema.json

A page names its schema in its first line, which editors with a YAML language server read:

  # yaml-language-server: $schema=schema.json
"""

from __future__ import annotations

import argparse
import sys

from symflops.cli.terminal import argument, arguments_of
from symflops.support.errors import SymflopsError

configure = arguments_of(
    argument(
        "page",
        nargs="?",
        choices=("spec", "block", "regime", "convention"),
        default="spec",
        help="what it is of (default: spec)",
    ),
    argument("-o", "--out", metavar="FILE", help="the file to write; default: to standard output"),
)


def run(args: argparse.Namespace) -> int:
    """Print or write the JSON Schema of one kind of file; return the exit code 0."""
    from pathlib import Path

    from symflops.cli.actions.new import editor_schema
    from symflops.support.files import write

    text = editor_schema(args.page)
    if args.out is None:
        print(text, end="")
        return 0
    try:
        write(Path(args.out), text)
    except OSError as error:
        raise SymflopsError(f"{args.out}: {error.strerror or error}") from None
    print(args.out, file=sys.stderr)
    return 0
