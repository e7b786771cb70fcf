"""Writes a site: a page with a calculator for every spec, and an index with a search. It works from a folder, offline.

  symflops site -o public
  symflops site llama qwen_image -o public

Pages whose spec, records and code have not changed are skipped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from symflops.cli.progress import in_workers
from symflops.cli.terminal import SPECS, argument, arguments_of
from symflops.support.errors import SymflopsError

configure = arguments_of(
    SPECS,
    argument("-o", "--out", metavar="DIR", required=True, help="the folder to write to"),
)


def run(args: argparse.Namespace) -> int:
    """Write the pages of models that changed since the last run, then the index; return exit code 0."""
    from symflops.cli.actions.generate import Stamps
    from symflops.cli.actions.site import INDEX, code_digest, compile_page, index, resource_files
    from symflops.read.spec_files import chosen_specs

    out, files = Path(args.out), chosen_specs(args.specs)
    stamps = Stamps(out, code_digest)
    try:
        for file, output in in_workers(compile_page, stamps.outdated(files), "drawing"):
            stamps.add(file, output)
        if not args.specs:  # a spec that no longer exists has no page
            stamps.known = {file.label: stamps.known[file.label] for file in files}
        stamps.write(dict(resource_files()))
        stamps.write({INDEX: index([stamp["entry"] for stamp in stamps.known.values()])})
    except OSError as error:
        raise SymflopsError(f"{error.filename or out}: {error.strerror or error}") from None
    finally:
        if out.is_dir():  # the next run skips finished pages
            stamps.save()
    print(f"{len(files)} models: {stamps.summary(files)}", file=sys.stderr)
    return 0
