"""Drafts every class with measured records below a folder, one process each, and prints the table of how that went.

    python benchmarks/draft_zoo.py --records DIR [--only NAME ...] [--timeout 120] [--out results.json] [--specs DIR]

Each class is drafted from its first small record; a published record of the class with the same inputs is part of the proof.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import resource
import statistics
import time
from pathlib import Path
from typing import Any

SKIPPED = ("sdpa", "grouped", "cpu-eager")


def records_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The records by class."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.rglob("*.json")):
        if "_variants" in path.name or path.parent.name.startswith("torch"):
            continue
        for record in json.loads(path.read_text("utf-8")):
            if record.get("package") in ("transformers", "diffusers") and not record.get("regime"):
                found.setdefault(record["class"], []).append(record)
    return found


def work(records: list[dict[str, Any]], timeout: float, pipe: Any) -> None:
    """Draft one class, in a process of its own."""
    import warnings

    warnings.filterwarnings("ignore")
    import diffusers
    import torch
    import transformers

    from symflops.cli.draft import report
    from symflops.draft.drafting import draft
    from symflops.draft.subject import Subject

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    small = [one for one in records if not one["published_size"] and not any(word in one["tag"] for word in SKIPPED)]
    first = (small or [one for one in records if not one["published_size"]] or records)[0]

    def subject(record: dict[str, Any]) -> Any:
        return Subject(f"{record['package']}:{record['class']}", record["config"], record["inputs"], {}, record["device"])

    published = [subject(one) for one in records if one["published_size"] and set(one["inputs"]) == set(first["inputs"])][:1]
    try:
        found = report(draft(subject(first), timeout, lambda _: None, published))
        found["published"] = len(published)
    except Exception as error:  # one class must not end the run
        found = {"exact": False, "error": f"{type(error).__name__}: {error}"[:400], "gate": [], "spec": ""}
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    pipe.send(found)


def run(records: list[dict[str, Any]], timeout: float) -> dict[str, Any]:
    """Draft one class, and give up some time after it should have."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=work, args=(records, timeout, there))
    process.start()
    there.close()
    found: dict[str, Any] = {"exact": False, "error": "timed out", "gate": [], "spec": ""}
    if here.poll(2 * timeout + 60):
        with contextlib.suppress(EOFError):
            found = here.recv()
    process.terminate()
    process.join()
    return found


def row(name: str, found: dict[str, Any]) -> str:
    """One line of the table."""
    gate = "yes" if found["gate"] and all(one["measured"] == one["taped"] for one in found["gate"]) else "no"
    proofs = found.get("proofs", [])
    verdict = "exact" if found["exact"] else "partial" if found.get("spec") else "none"
    held = f"{sum(one['exact'] for one in proofs)}/{len(proofs)}"
    why = found.get("error") or next((one for proof in proofs for one in proof["differences"]), "")
    stuck = ", ".join(found.get("stuck", [])) or "none"
    cells = [
        name,
        gate,
        verdict,
        held,
        stuck,
        str(len(found.get("unsolved", []))),
        str(found.get("lines", "")),
        str(found.get("processor_seconds", "")),
        why[:90],
    ]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def main() -> None:
    """Draft and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", required=True, type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--specs", type=Path)
    args = parser.parse_args()
    known = records_of(args.records)
    every = {name: found for name, found in known.items() if not args.only or name in args.only}
    results: dict[str, Any] = {}
    heads = (
        "class",
        "gate",
        "draft",
        "hold-outs and published",
        "could not be moved",
        "unsolved",
        "lines",
        "s (CPU)",
        "difference",
    )
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * len(heads)}")
    started = time.monotonic()
    for name, records in every.items():
        results[name] = run(records, args.timeout)
        print(row(name, results[name]), flush=True)
        if args.specs and results[name].get("spec"):
            args.specs.mkdir(parents=True, exist_ok=True)
            (args.specs / f"{name}.yaml").write_text(results[name]["spec"], "utf-8")
        if args.out:
            args.out.write_text(json.dumps(results, indent=1), "utf-8")
    exact = [one for one in results.values() if one["exact"]]
    gates = [one for one in results.values() if one["gate"] and all(part["measured"] == part["taped"] for part in one["gate"])]
    free = [one for one in exact if not one["stuck"]]
    count = len(results)
    spent = time.monotonic() - started
    print(f"\n{count} classes in {spent:.0f} s: gate {len(gates)}, exact {len(exact)}, nothing stuck {len(free)}")
    if exact:
        lines, seconds = (statistics.median(one[key] for one in exact) for key in ("lines", "processor_seconds"))
        memory = max(one.get("memory", 0) for one in results.values())
        print(f"median {lines:g} lines, {seconds:g} s of processor time; most memory {memory} MB")


if __name__ == "__main__":
    main()
