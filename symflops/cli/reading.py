"""Writes how the classes of specs read a config, beside each spec: other names of fields, nulls, configs inside configs.

  symflops reading llama
  symflops reading --check

The classes are asked, so their libraries must be installed. Afterwards run 'symflops generate'. With --check nothing is
written; exit code 1 if a file is not what the classes say.
"""

from __future__ import annotations

import argparse
import sys

from symflops.cli.terminal import SPECS, argument, arguments_of

configure = arguments_of(SPECS, argument("--check", action="store_true", help="compare, and write nothing"))


def run(args: argparse.Namespace) -> int:
    """Write the readings of specs, or compare them with those on disk.

    Return the exit code: 1 if ``--check`` finds a difference.
    """
    import logging

    from symflops.api import load
    from symflops.read.spec_files import chosen_specs
    from symflops.support.files import holds, write
    from symflops.verify.class_reading import reading_of, text_of

    logging.getLogger("transformers").setLevel(logging.ERROR)
    changed = []
    for file in chosen_specs(args.specs):
        found = reading_of(load(file))
        if not found or holds(file.reading_path, text_of(found).encode()):
            continue
        changed.append(file.label)
        if not args.check:
            write(file.reading_path, text_of(found))
    for label in changed:
        print(f"{label}: {'the reading differs' if args.check else 'reading written'}")
    done = f"run 'symflops reading {' '.join(args.specs)}'".replace(" '", "'") if args.check and changed else ""
    print(f"{len(changed)} {'differ' if args.check else 'written'}{': ' + done if done else ''}", file=sys.stderr)
    return 1 if args.check and changed else 0
