"""Writes down every figure that symflops derives, and compares two such files.

  python -m tests.freeze.figures write FILE [--jobs 2] [--quick]
  python -m tests.freeze.figures compare FILE [FILE]

A file is one JSON object, a figure a line, in the order of the keys; compressed where its name ends in .xz. ``compare`` with
one FILE holds it against the committed figures. Exit code 1 where a figure differs, is missing or is new.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.freeze import commands, estimates
from tests.freeze.calling import working_at
from tests.freeze.cases import ROOT, spec_names

BASELINE = Path(__file__).with_name("figures.json.xz")
SHOWN = 20
QUICK = 9  # of so many specs one is in the sample

Task = tuple[str, str, bool]


def tasks(quick: bool) -> list[Task]:
    """What is to be run, the longest first: (what, of which spec or folder, whether in short)."""
    found: list[Task] = [("verdicts", "regimes", quick)]
    if not quick:
        found = [("conformances", "", quick), ("verdicts", "truth", quick), *found]
    specs = spec_names()[:: QUICK if quick else 1]
    return found + [(what, spec, quick) for spec in specs for what in ("figures", "estimates")]


def run(task: Task) -> list[tuple[str, Any]]:
    """The figures of one task."""
    what, of, quick = task
    with tempfile.TemporaryDirectory() as cache, working_at(ROOT, Path(cache)):
        found: Iterator[tuple[str, Any]] = {
            "conformances": lambda: commands.conformances(),
            "verdicts": lambda: commands.verdicts(of),
            "estimates": lambda: commands.estimates_of(of, quick),
            "figures": lambda: estimates.figures_of(of, quick),
        }[what]()
        return json.loads(json.dumps(list(found)))


def collected(jobs: int, quick: bool) -> dict[str, Any]:
    """All figures by their keys; each task that is done is told.

    Raises:
        KeyError: two figures have one key.
    """
    found: dict[str, Any] = {}
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        todo = tasks(quick)
        for done, figures in enumerate(pool.imap_unordered(run, todo), 1):
            print(f"\r{done} of {len(todo)} tasks, {len(found) + len(figures)} figures", end="", file=sys.stderr, flush=True)
            for key, value in figures:
                if key in found:
                    raise KeyError(key)
                found[key] = value
    print(file=sys.stderr)
    return found


def write(path: Path, figures: dict[str, Any]) -> None:
    """Write figures, sorted, one a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(value, sort_keys=True, separators=(',', ':'))}" for key, value in sorted(figures.items())]
    data = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME) if path.suffix == ".xz" else data)


def read(path: Path) -> dict[str, Any]:
    """The figures of a file."""
    data = path.read_bytes()
    found: dict[str, Any] = json.loads(lzma.decompress(data) if path.suffix == ".xz" else data)
    return found


def compare(before: dict[str, Any], after: dict[str, Any], part: bool = False) -> int:
    """Print what differs, is missing and is new; the number of such keys. A ``part`` of the figures has none missing."""
    differing = [f"{key}: {before[key]} was, {after[key]} is" for key in sorted(before.keys() & after.keys()) if before[key] != after[key]]
    missing = [] if part else sorted(before.keys() - after.keys())
    new = sorted(after.keys() - before.keys())
    for title, found in (("differ", differing), ("are missing", missing), ("are new", new)):
        print(f"{len(found)} figures {title}")
        for line in found[:SHOWN]:
            print(f"  {line}")
    print(f"{len(after)} figures compared with {len(before)}")
    return len(differing) + len(missing) + len(new)


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    writing = actions.add_parser("write", help="derive all figures and write them")
    writing.add_argument("file", type=Path)
    writing.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    writing.add_argument("--quick", action="store_true", help="a sample of the specs, one case each")
    comparing = actions.add_parser("compare", help="compare a file with the committed figures, or with another file")
    comparing.add_argument("files", type=Path, nargs="+", metavar="FILE", help="the older one first, where there are two")
    comparing.add_argument("--quick", action="store_true", help="the last file is a sample: what it lacks is not missing")
    args = parser.parse_args()
    if args.action == "write":
        figures = collected(args.jobs, args.quick)
        write(args.file, figures)
        print(f"{len(figures)} figures written to {args.file}", file=sys.stderr)
        return 0
    if len(args.files) > 2:
        parser.error("compare takes one file or two")
    before, after = args.files if len(args.files) == 2 else (BASELINE, args.files[0])
    return 1 if compare(read(before), read(after), args.quick) else 0


if __name__ == "__main__":
    sys.exit(main())
