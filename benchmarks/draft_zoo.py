"""Drafts every class with measured records in a folder, one process each, and writes a table of the results.

    python benchmarks/draft_zoo.py --records DIR [--only NAME ...] [--jobs 2] [--timeout 120] [--out results.json] [--specs DIR]
    python benchmarks/draft_zoo.py --records DIR --out results.json --keep

Each class is drafted from its first small record; the proof includes a published record of the class with the same inputs.
The classes of ``draft_outside.json`` have no records and were chosen before any of them was tried; they have their own summary.
With ``--keep``, classes that are in the file of ``--out`` are not drafted again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import resource
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SKIPPED = ("sdpa", "grouped", "cpu-eager")
OUTSIDE = Path(__file__).parent / "draft_outside.json"
NOTHING = {"exact": False, "gate": [], "spec": ""}
HEADS = ("class", "gate", "draft", "proofs", "could not be moved", "unsolved", "lines", "s", "what differs")


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


def outside() -> dict[str, list[dict[str, Any]]]:
    """The classes without records."""
    return {record["class"]: [record] for record in json.loads(OUTSIDE.read_text("utf-8"))}


def work(records: list[dict[str, Any]], timeout: float, pipe: Any) -> None:
    """Draft one class, in a process of its own."""
    import warnings

    warnings.filterwarnings("ignore")
    import diffusers
    import torch
    import transformers

    from symflops.cli.draft import report
    from symflops.draft.draft import MEMORY, draft
    from symflops.draft.trace.steps import Subject
    from symflops.verify.limits import limit_memory

    torch.set_num_threads(1)
    limit_memory(MEMORY)
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    small = [one for one in records if not one["published_size"] and not any(word in one["tag"] for word in SKIPPED)]
    first = (small or [one for one in records if not one["published_size"]] or records)[0]

    def subject(record: dict[str, Any]) -> Any:
        name = f"{record['package']}:{record['class']}"
        return Subject(name, record["config"], record["inputs"], {}, record["device"])

    published = [subject(one) for one in records if one["published_size"] and set(one["inputs"]) == set(first["inputs"])][:1]
    try:
        found = report(draft(subject(first), timeout, lambda _: None, published))
        found["published"] = len(published)
    except Exception as error:  # one class must not end the run
        found = {**NOTHING, "error": f"{type(error).__name__}: {error}"[:400]}
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    pipe.send(found)


def run(records: list[dict[str, Any]], timeout: float) -> dict[str, Any]:
    """Draft one class in a process, and end the process some time after it should have given up."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=work, args=(records, timeout, there))
    process.start()
    there.close()
    found: dict[str, Any] = {**NOTHING, "error": "timed out"}
    if here.poll(2 * timeout + 60):
        with contextlib.suppress(EOFError):
            found = here.recv()
    process.terminate()
    process.join()
    return found


def gated(found: dict[str, Any]) -> bool:
    """Whether both passes of the tape equal those of the counter."""
    return bool(found["gate"]) and all(one["measured"] == one["taped"] for one in found["gate"])


def verdict(found: dict[str, Any]) -> str:
    """The result in one word."""
    return "exact" if found["exact"] else "partial" if found.get("spec") else "none"


def row(name: str, found: dict[str, Any]) -> str:
    """One line of the table."""
    proofs = found.get("proofs", [])
    why = found.get("error") or next(iter(found.get("partial", ())), "")
    stuck = ", ".join(found.get("stuck", [])) or "-"
    cells = (
        name, "yes" if gated(found) else "no", verdict(found), f"{sum(one['exact'] for one in proofs)}/{len(proofs)}",
        stuck if len(stuck) < 90 else f"{len(found['stuck'])} numbers", len(found.get("unsolved", [])), found.get("lines", ""),
        found.get("processor_seconds", ""), why if len(why) < 90 else f"{why[:88]}...",
    )  # fmt: skip
    return "| " + " | ".join(str(cell).replace("|", "/").replace("<", "&lt;") for cell in cells) + " |"


def table(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """All rows."""
    yield f"| {' | '.join(HEADS)} |"
    yield f"|{'---|' * len(HEADS)}"
    yield from (row(name, found) for name, found in results.items())


def summary(results: dict[str, dict[str, Any]]) -> str:
    """A table in one sentence."""
    exact = [one for one in results.values() if one["exact"]]
    free = [one for one in exact if not one["stuck"]]
    count = len(results)
    shares = (("gate", sum(map(gated, results.values()))), ("exact", len(exact)), ("exact and nothing stuck", len(free)))
    text = ", ".join(f"{word} {number} ({100 * number / count:.0f} %)" for word, number in shares)
    if exact:
        lines, seconds = (statistics.median(one[key] for one in exact) for key in ("lines", "processor_seconds"))
        memory = max(one.get("memory", 0) for one in results.values())
        text += f"; exact ones have a median of {lines:g} lines and take {seconds:g} s of one core; most memory {memory} MB"
    return f"{count} classes: {text}."


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", required=True, type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--specs", type=Path)
    return parser.parse_args()


def draft_all(args: argparse.Namespace, every: dict[str, list[dict[str, Any]]], results: dict[str, Any]) -> None:
    """Draft the classes that have no result yet; print and save each result as it comes."""

    def one(name: str) -> tuple[str, dict[str, Any]]:
        return name, run(every[name], args.timeout)

    with ThreadPoolExecutor(args.jobs) as pool:
        for name, found in pool.map(one, [name for name in every if name not in results]):
            results[name] = found
            print(row(name, found), flush=True)
            if args.specs and found.get("spec"):
                args.specs.mkdir(parents=True, exist_ok=True)
                (args.specs / f"{name}.yaml").write_text(found["spec"], "utf-8")
            if args.out:
                args.out.write_text(json.dumps(results, indent=1), "utf-8")


def main() -> None:
    """Draft, print, and write the page."""
    args = arguments()
    measured, others = records_of(args.records), outside()
    every = {name: found for name, found in {**measured, **others}.items() if not args.only or name in args.only}
    results: dict[str, Any] = {}
    if args.keep and args.out and args.out.exists():
        results = {name: found for name, found in json.loads(args.out.read_text("utf-8")).items() if name in every}
    print("\n".join(table(results)))
    draft_all(args, every, results)
    ordered = [{name: results[name] for name in names if name in results} for names in (measured, others)]
    for some in filter(None, ordered):
        print(f"\n{summary(some)}")


if __name__ == "__main__":
    main()
