"""How the estimates come out on a fixed set of variations of configs, against the figures of the real classes.

``symflops census --seed N --save DIR`` varies every field of each class's config and records what the real class has: its
parameters, their shapes, and the FLOPs of both passes. ``python -m tests.verify.variations pack DIR`` packs that into
``tests/data/variations.json.xz``; ``python -m tests.verify.variations`` reports per spec how many variations come out exact,
are refused, or are silently wrong, without the library. Apart from these it tells 0 to 3 and odd numbers, which are tried at the
first base whatever else was built there.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from symflops.evaluate.classes import class_name
from symflops.evaluate.parameters import instances_of
from symflops.library.lookup import by_name, interpreted
from symflops.library.records.verified import known_inexact
from symflops.support.errors import SymflopsError
from symflops.verify.census.take import shapes_digest
from symflops.verify.classes import in_evaluation
from tests.shipped import load

SHOWN = ("exact", "refused", "wrong", "idle", "unrun", "data")
FILE = Path(__file__).parent.parent / "data" / "variations.json.xz"


@cache
def variations() -> dict[str, Any]:
    """The recorded variations, by spec."""
    return json.loads(lzma.decompress(FILE.read_bytes()))


def rows_of(spec: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each variation of a spec, with its complete config."""
    for found in variations()[spec]["classes"].values():
        for row in found["rows"]:
            yield row, {**found["bases"][str(row["base"])], **row["config"]}


def verdict(spec: str, row: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """``exact``, ``refused``, ``wrong``, or ``data``: exact but for FLOPs that depend on where a router sends each token."""
    config = in_evaluation(load(spec).spec, config)
    found = judged(lambda: interpreted(by_name(spec), spec, config, "full", "torch", tell=lambda text: None), row)
    return "data" if found == "passes" and depends_on_data(spec) else "wrong" if found == "passes" else found


def judged(make: Callable[[], Any], row: Mapping[str, Any]) -> str:
    """What comes of the estimator that ``make`` makes for a variation: ``exact``, ``refused``, or ``wrong``, ``passes`` in FLOPs alone."""
    try:
        estimator = make()
        if row["passes"] is not None:
            m = estimator.moments(**row["batch"])
        shapes = shapes_digest(instances_of(estimator.program, estimator.sizes).values())
    except SymflopsError:
        return "refused"
    if (estimator.parameters, shapes) != (row["parameters"], row["shapes"]):
        return "wrong"
    if row["passes"] is not None and [estimator.forward(m), estimator.backward(m)] != row["passes"]:
        return "passes"
    return "exact"


@cache
def depends_on_data(spec: str) -> bool:
    """Whether the work of a spec's classes depends on data, so that records of them are known to be inexact."""
    known = known_inexact(load(spec).file.root)
    return any(f"/{class_name(name)}/" in record for name in variations()[spec]["classes"] for record in known)


def told(row: Mapping[str, Any], found: str) -> str:
    """A verdict; of what the class builds and cannot run, exact parameters are ``idle``, and a refusal is ``unrun``."""
    return {"exact": "idle", "refused": "unrun"}.get(found, found) if row["passes"] is None else found


def report(specs: list[str]) -> int:
    """Print the counts per spec; returns how many are wrong."""
    total: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for spec in specs:
        found = [(row, told(row, verdict(spec, row, config))) for row, config in rows_of(spec)]
        counts = Counter(one for row, one in found if row["effect"] and not row.get("edge"))
        still = Counter(one for row, one in found if not row["effect"] and not row.get("edge"))
        edges = Counter(one for row, one in found if row.get("edge"))
        total += counts
        total["wrong"] += still["wrong"]
        small += edges
        shown = ", ".join(f"{counts[name]} {name}" for name in SHOWN if name in SHOWN[:3] or counts[name])
        print(f"{spec:<24} {shown}; without effect: {dict(still)}; 0 to 3 and odd numbers: {dict(edges)}")
    whole, idle = sum(total.values()), total["idle"] + total["unrun"]
    runs, of_all = 100 * total["exact"] / max(1, whole - idle), 100 * (total["exact"] + total["idle"]) / max(1, whole)
    print(
        f"{len(specs)} specs, variations that change the real class: {dict(total)}, {runs:.1f} % exact of those that run, "
        f"{of_all:.1f} % of all; 0 to 3 and odd numbers: {dict(small)}"
    )
    return total["wrong"] + small["wrong"]


def pack(folder: Path) -> None:
    """Pack the files of ``symflops census --save``."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    FILE.write_bytes(lzma.compress(json.dumps(found, sort_keys=True, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    if sys.argv[1:2] == ["pack"]:
        pack(Path(sys.argv[2]))
    else:
        sys.exit(1 if report(sys.argv[1:] or list(variations())) else 0)
