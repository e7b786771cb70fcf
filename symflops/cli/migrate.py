"""Rewrites specs and blocks of version 1 of the language in version 2; comments, order and all other lines stay.

  symflops migrate specs
  symflops migrate my_model.yaml --check

The rewritten files are listed on stdout. A folder is searched for specs and blocks; other files stay as they are. Exit code 1
if a file cannot be read, and with --check if a file is of version 1.
"""

from __future__ import annotations

import argparse
import sys

from symflops.cli.terminal import argument, arguments_of

configure = arguments_of(
    argument("paths", nargs="+", metavar="PATH", help="files or folders"),
    argument("--check", action="store_true", help="say which files are of version 1, and write nothing"),
)


def run(args: argparse.Namespace) -> int:
    """Rewrite files of version 1; return the exit code.

    The exit code is 1 if a file cannot be read or, with ``--check``, if a file is of version 1.
    """
    from pathlib import Path

    from symflops.read.migration import files_of, migrate
    from symflops.support.findings import SpecError, SymflopsError

    read = old = failed = 0
    for path, named in files_of(map(Path, args.paths)):
        read += 1
        try:
            if migrate(path, named, args.check):
                old += 1
                print(path)
        except SymflopsError as error:
            failed += 1
            lines = [one.render().split("\n")[0] for one in error.diagnostics] if isinstance(error, SpecError) else [str(error)]
            print("\n".join(lines), file=sys.stderr)
    done = "of version 1" if args.check else "rewritten"
    print(f"{old} of {read} files {done}" + (f", {failed} cannot be read" if failed else ""), file=sys.stderr)
    return 1 if failed or (args.check and old) else 0
