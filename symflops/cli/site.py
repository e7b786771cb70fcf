"""Writes a site: a page with a calculator for every spec, and an index with a search. It works from a folder, offline.

  symflops site -o public
  symflops site llama qwen_image -o public

Pages whose spec, records and code have not changed are skipped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from symflops.cli.arguments import SPECS, argument, arguments_of

configure = arguments_of(
    SPECS,
    argument("-o", "--out", metavar="DIR", required=True, help="the folder to write to"),
)


def run(args: argparse.Namespace) -> int:
    """Make the pages that changed, then the index."""
    from symflops.catalog.library import chosen_specs
    from symflops.cli.progress import progress
    from symflops.commands.generate import printed, read_json, stamp_of, unchanged
    from symflops.commands.site import INDEX, STAMP, code_digest, compile_page, index, resource_files
    from symflops.diagnostics.errors import SymflopsError
    from symflops.system.files import write
    from symflops.system.workers import mapped

    out = Path(args.out)
    files = chosen_specs(args.specs)
    known = read_json(out / STAMP)
    codes = {root: code_digest(root) for root in {file.root for file in files}}
    todo = [file for file in files if not unchanged(file, known.get(file.label, {}), codes[file.root], out)]
    made = mapped(compile_page, todo)
    written = 0
    try:
        for file in progress(todo, "drawing", lambda file: str(file.name)):
            output = next(made)
            for name, text in output.files.items():
                written += write(out / name, text)
            known[file.label] = {**stamp_of(codes[file.root], output), "entry": dict(output.entry)}
        if not args.specs:  # a spec that is no longer there has no page
            known = {file.label: known[file.label] for file in files}
        for name, data in resource_files():
            written += write(out / name, data)
        written += write(out / INDEX, index([stamp["entry"] for stamp in known.values()]))
    except OSError as error:
        raise SymflopsError(f"{error.filename or out}: {error.strerror or error}") from None
    finally:
        if out.is_dir():  # what is done need not be done again
            write(out / STAMP, printed(known))
    skipped = len(files) - len(todo)
    print(f"{len(files)} models: {len(todo)} derived, {skipped} unchanged, {written} files written to {out}", file=sys.stderr)
    return 0
