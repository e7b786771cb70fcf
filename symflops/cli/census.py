"""Takes the census of the classes that specs name: which fields of their configs a spec describes.

The real class is built with every field of its config varied: flags flipped, null where it is accepted, numbers scaled, every
word that its source accepts. Parameters by name, FLOPs of both passes and, for fields that may move a mask, the pairs that it
hides are compared with the spec's (needs 'pip install symflops[verify]'). What comes out is written beside the spec, as
NAME.census.json: fields that are described, fields without effect, and guarded fields with the values that are known to be
exact. Estimates refuse every other value.

With --check nothing is built: a census is stale if the spec, the source of the class, or the version of its library changed,
and so is a comparison for all sizes ('symflops verify --symbolic --save').
With --compare the census is taken again and compared with the file, but for how many variations there were.

With --lengths the class of each live case runs on the CPU at 0, 1, 2, odd lengths, and around every number of its config. Each
batch that it refuses and the spec answers, or the other way round, is printed: conditions under 'requires' say what it takes.

Exit code 1 if a census is stale, or differs, or if lengths do. A spec without a census is told: its answers are 'as
specified', not 'measured'.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symflops.cli.terminal import SPECS, argument, arguments_of

configure = arguments_of(
    SPECS,
    argument("--check", action="store_true", help="say which censuses are stale, without building a model"),
    argument("--seed", type=int, default=18, metavar="N", help="of the numbers that are drawn (default: 18)"),
    argument("--save", metavar="DIR", help="write the variations and the figures of the real class there, by spec"),
    argument("--compare", action="store_true", help="write no census, and say which differ from their file"),
    argument("--lengths", action="store_true", help="compare which lengths the class and the spec take, and write nothing"),
    argument("--dry-run", action="store_true", help="write no census"),
    argument("--json", action="store_true", help="print every variation as a line of JSON"),
)


def run(args: argparse.Namespace) -> int:
    """Take, check or compare censuses, or test lengths; return the exit code."""
    from symflops.read.spec_files import chosen_specs

    files = chosen_specs(args.specs)
    if args.lengths:
        return lengths(files)
    return check(files) if args.check else take(files, args)


def check(files: list[Any]) -> int:
    """Print why censuses are stale; return the exit code, 1 if a census is stale."""
    from symflops.api import load
    from symflops.library.records.census import MISSING, stale
    from symflops.library.records.identities import stale_comparisons

    pairs = [(file, load(file).spec) for file in files]
    found = [reason for pair in pairs for reason in (*stale(*pair), *stale_comparisons(*pair))]
    for reason in found:
        print(reason)
    stale_ones = [reason for reason in found if not reason.endswith(MISSING)]
    print(f"{len(files)} specs, {len(stale_ones)} reasons to take a census or a comparison again", file=sys.stderr)
    return 1 if stale_ones else 0


def lengths(files: list[Any]) -> int:
    """Print batches that only the class or only the spec refuses; return exit code 1 if there are any."""
    from symflops.api import load
    from symflops.cli.progress import progress
    from symflops.verify.cases import cases_of
    from symflops.verify.census.lengths import LengthCensus
    from symflops.verify.census.take import quiet

    tried = other = 0
    for file in progress(files, "lengths", lambda file: str(file.name)):
        for case in cases_of(file):
            with quiet():
                rows = list(LengthCensus(load(file), case).rows())
            tried += len(rows)
            for row in rows:
                if not row.agrees:
                    print(f"{case.label}: {json.dumps(row.batch)}: {row}")
                    other += 1
    print(f"{tried} batches, {other} that only one of class and spec takes", file=sys.stderr)
    return 1 if other else 0


def take(files: list[Any], args: argparse.Namespace) -> int:
    """Take the census of each spec, and write it next to the spec or compare it with the one there.

    Return the exit code: 1 if a census differs from the one there.
    """
    from symflops.api import load
    from symflops.cli.progress import progress
    from symflops.library.records.census import census_of, census_path
    from symflops.support.files import write
    from symflops.verify.census.take import census_by_class, document_of, recorded, text_of

    other = 0
    for file in progress(files, "census", lambda file: str(file.name)):
        model = load(file)
        found = census_by_class(model, args.seed)
        for reference, one in found.items():
            print(f"{file.name}: {one}", file=sys.stderr)
            for row in one.rows if args.json else ():
                print(json.dumps({"spec": file.name, "class": reference, **row.as_json()}))
        path, document = census_path(file.path), document_of(model, found)
        if args.compare and uncounted(document["classes"]) != uncounted(census_of(file)):
            print(f"{path.name} is not what comes out")
            other += 1
        if found and not (args.dry_run or args.compare):
            write(path, text_of(document))
        if found and args.save:
            write(Path(args.save) / f"{file.name}.json", json.dumps(recorded(model, found, args.seed)) + "\n")
    return 1 if other else 0


def uncounted(classes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a census by class without ``variations``, so that two can be compared."""
    return {name: {key: value for key, value in entry.items() if key != "variations"} for name, entry in classes.items()}
