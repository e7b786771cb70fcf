"""The figures that commands print: estimates of every case, verdicts on measured records, and other frameworks' figures."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.freeze.calling import call, digest, first_line
from tests.freeze.cases import ASSUMED, ROOT, cases_of

Figures = Iterator[tuple[str, Any]]
DATA = ROOT / "tests" / "data"


def estimates_of(spec: str, quick: bool = False) -> Figures:
    """What ``symflops estimate --json`` prints for the cases of a spec, under the default convention and ``torch``."""
    if spec.startswith(ASSUMED):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        for case in cases_of(spec)[: 1 if quick else None]:
            path.write_text(json.dumps(case.config), "utf-8")
            for options in ((), ("--convention", "torch")):
                words = ("estimate", spec, "--config", str(path), "--batch", json.dumps(case.batch), "--json", *options)
                done = call(*words)
                key = f"estimate|{spec}|{case.label}|{options[-1] if options else 'default'}"
                yield key, list(json.loads(done.out).values()) if done.code == 0 else [done.code, first_line(done.err)]


def verdicts(folder: str) -> Figures:
    """The verdict on every measured record below a folder of ``tests/data``."""
    done = call("verify", "--records", str(DATA / folder), "--strict", "--json")
    yield f"verify {folder}|exit code", done.code
    for one in json.loads(done.out):
        derived, expected = ([one[side][name] for name in sorted(one[side])] for side in ("derived", "expected"))
        fine = [one[name] for name in ("parameters_ok", "forward_ok", "backward_ok", "modules_ok")]
        yield f"verify {folder}|{one['id']}", [one["status"], *map(int, fine), derived, expected]


def conformances() -> Figures:
    """How every record of every framework comes out; a digest stands for expected figures and the explanation."""
    done = call("conform", "--peers", str(DATA / "peers"), "--json")
    yield "conform|exit code", done.code
    yield "conform|summary", done.err.strip().splitlines()[-50:]
    for one in json.loads(done.out):
        told = digest([one["expected"], one["explanation"]])
        yield f"conform|{one['system']}|{one['id']}", [one["status"], one["derived"], int(one["equal"]), told]
