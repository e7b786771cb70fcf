"""Other frameworks' figures, derived: each record of a folder under the convention that is named after its framework.

symflops conform --peers shared/peers
symflops conform --peers shared/peers --system verl --json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from symflops.cli.terminal import argument, arguments_of

configure = arguments_of(
    argument("--peers", required=True, metavar="DIR", help="a folder of records, one file a system"),
    argument("--system", action="append", metavar="S", help="one system only; may be repeated"),
    argument("--pages", metavar="DIR", help="write the pages about conventions there"),
    argument("--json", action="store_true", help="print a JSON list, one object a record"),
)


def run(args: argparse.Namespace) -> int:
    """Derive the figure of each record of a framework, and print which differ and how many are equal.

    Return the exit code 0.
    """
    import sys

    from symflops.cli.progress import progress
    from symflops.verify.peers import Conforming, shares, systems

    conforming = Conforming()
    records = [
        (system, position, record)
        for system, found in systems(Path(args.peers))
        if not args.system or system in args.system
        for position, record in enumerate(found)
    ]
    found = [conforming.judge(*entry) for entry in progress(records, "deriving", lambda entry: entry[0])]
    if args.pages:
        write_pages(Path(args.pages), found)
    print(json.dumps([one.as_json() for one in found], indent=1) if args.json else "\n".join(differing(found)))
    counts = shares(found)
    width = max((len(system) for system in counts), default=0)
    for system, (equal, total) in counts.items():
        print(f"{system.ljust(width)}  {equal:4} of {total:4} equal  {100 * equal / total:5.1f} %", file=sys.stderr)
    return 0


def write_pages(folder: Path, found: list[Any]) -> None:
    """Write the pages of conformance, of differences between conventions, and of profilers."""
    from symflops.support.files import write
    from symflops.verify.convention_pages import conformance_page, differences_page, tools_page

    write(folder / "figures.md", conformance_page(found))
    write(folder / "differences.md", differences_page())
    write(folder / "tools.md", tools_page())


def differing(found: list[Any]) -> list[str]:
    """Format one line for each record whose figure differs from the derived one."""
    return [
        f"{one.status} {one.id}: {one.expected} there, {one.derived} derived: {one.explanation}"
        for one in found
        if not one.equal
    ]
