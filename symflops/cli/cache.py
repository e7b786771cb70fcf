"""The cache of programs that were derived on the spot: where it is, and how much it holds.

  symflops cache --clear

Entries are data, never code. A folder that others can write is not used.
"""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``symflops cache`` to ``parser``."""
    parser.add_argument("--clear", action="store_true", help="remove all entries")


def run(args: argparse.Namespace) -> int:
    """Print the folder, number of entries and size of the cache, or clear it; return the exit code 0."""
    from symflops.library.cache import clear, entries, folder
    from symflops.support.errors import SymflopsError

    try:
        if args.clear:
            print(f"{folder()}: {clear()} entries removed")
            return 0
        sizes = [path.stat().st_size for path in entries()]
        print(f"{folder()}: {len(sizes)} entries, {sum(sizes):,} bytes")
    except OSError as error:
        raise SymflopsError(f"the cache cannot be read: {error.strerror or error}") from None
    return 0
