"""``python -m tests.fuzz --seed 0 --cases 20000 --kind regime``: every case ends in a result or a diagnostic, fast and small.

Exit code 1 when a case raised anything else, ran code, or took more than its time or memory; the smallest form of each
failure is printed.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import queue
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from symflops.api import load
from symflops.emit.emit import emit
from tests.fuzz.cases import KINDS, Case, Stock, draw, prepare
from tests.fuzz.guard import MEGABYTES, SECONDS, WATCH, Limits
from tests.fuzz.mutators import SENTINEL

STUCK = 300
NEED_PROGRAMS = {"config", "batch", "case", "program"}  # kinds that need the programs of all specs
SLOW = dict.fromkeys(("spec", "structure", "block", "peer", "catalog"), 10.0)  # seconds of kinds that derive a whole spec
SHRINKS, PATIENCE = 200, 20


def outcome(stock: Stock, case: Case) -> tuple[str, str, float, float]:
    """How a case ended (``result``, ``diagnostic`` or what went wrong), where, its CPU seconds and its megabytes."""
    run = prepare(stock, case)
    limits = Limits(SLOW.get(case.kind, SECONDS), MEGABYTES)
    where = ""
    try:
        with limits:
            ended = run()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        ended = f"{type(error).__name__}: {str(error)[:160]}"
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/symflops/" in frame.filename or "generated" in frame.filename]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.name}:{frame.lineno}" for frame in reversed(frames[-3:]))
    if WATCH.seen:
        ended, where = f"Executed: {WATCH.seen}", where
    if Path(SENTINEL).exists():
        ended = "Executed: the sentinel is there"
        Path(SENTINEL).unlink()
    return ended, where, limits.usage.seconds, limits.usage.megabytes


def signature(ended: str, where: str) -> str:
    """What makes two failures the same one."""
    return f"{ended.split(':')[0]} at {':'.join(where.split(' < ')[0].split(':')[:2])}"


def smaller(stock: Stock, case: Case, wanted: str) -> Case:
    """A smaller case that fails in the same way: lines, then pieces, then characters are left out."""
    tries, until = 0, time.monotonic() + PATIENCE
    for size in (max(1, len(case.data) // 2), max(1, len(case.data) // 8), "lines", 32, 8, 1):
        changed = True
        while changed and tries < SHRINKS and time.monotonic() < until:
            changed = False
            pieces = case.data.splitlines(keepends=True) if size == "lines" else [case.data[i : i + size] for i in range(0, len(case.data), size)]
            for position in range(len(pieces) - 1, -1, -1):
                tries += 1
                if tries > SHRINKS or time.monotonic() > until:
                    break
                less = Case(case.kind, b"".join(pieces[:position] + pieces[position + 1 :]), case.beside)
                ended, where, _, _ = outcome(stock, less)
                if ended not in ("result", "diagnostic") and signature(ended, where) == wanted:
                    case, changed = less, True
                    pieces = pieces[:position] + pieces[position + 1 :]
    return case


def work(first: int, step: int, count: int, seed: int, kinds: tuple[str, ...], until: float, few: bool, now: Any, out: Any) -> None:
    """Run every ``step``-th case from ``first`` on; ``now`` shows which one runs."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "empty").mkdir()
        os.chdir(Path(folder) / "empty")  # beside it lies ``specs``, which would be a project's
        stock = Stock(Path(folder), few)
        if NEED_PROGRAMS & set(kinds):
            assert stock.programs and stock.configs
            for name in stock.programs:
                stock.generated(name)
        emit(load(stock.path_of("small")).program(config={}), "0", ())  # what is imported late is imported now
        gc.collect()
        gc.freeze()  # the programs of all specs are no case's: no case pays for looking through them
        known: dict[str, int] = {}
        for number in range(first, count, step):
            now.value = number
            if time.monotonic() > until:
                break
            case = draw(stock, seed, number, kinds)
            ended, where, seconds, megabytes = outcome(stock, case)
            if ended not in ("result", "diagnostic"):
                sign = signature(ended, where)
                known[sign] = known.get(sign, 0) + 1
                if known[sign] == 1:
                    case = smaller(stock, case, sign)
                    out.put(("failure", number, case, f"{ended}\n    {where}", sign))
                else:
                    out.put(("again", number, None, "", sign))
                ended = "failure"
            out.put(("case", number, case.kind, ended, (seconds, megabytes)))
        out.put(("done", first, None, "", None))


class Fuzz:
    """A run over several processes, and what came of it."""

    def __init__(self, count: int, seed: int = 0, jobs: int = 1, kinds: tuple[str, ...] = KINDS, seconds: float = 1e9, few: bool = False) -> None:
        self.seconds, self.few = seconds, few
        self.count, self.seed, self.jobs, self.kinds = count, seed, jobs, kinds
        self.ended: dict[tuple[str, str], int] = {}
        self.failures: dict[str, tuple[int, int, Case | None, str]] = {}
        self.slowest: dict[str, tuple[float, int]] = {}
        self.largest: dict[str, tuple[float, int]] = {}
        self.wall = 0.0

    def run(self, tell: bool = False) -> Fuzz:
        """Run all cases."""
        start = time.monotonic()
        context = multiprocessing.get_context("spawn")
        out = context.Queue()
        now = [context.Value("q", -1) for _ in range(self.jobs)]
        processes = [context.Process(target=work, args=(job, self.jobs, self.count, self.seed, self.kinds, start + self.seconds, self.few, now[job], out), daemon=True) for job in range(self.jobs)]
        for process in processes:
            process.start()
        left, done, last, heard = set(range(self.jobs)), 0, time.monotonic(), time.monotonic()
        while left:
            try:
                message = out.get(timeout=5)
            except queue.Empty:
                if all(processes[job].is_alive() for job in left) and time.monotonic() - heard < STUCK:
                    continue
                for job in left:
                    self.failures[f"stuck or dead process {job}"] = (1, now[job].value, None, f"exit code {processes[job].exitcode}")
                    processes[job].kill()
                break
            heard = time.monotonic()
            done += message[0] == "case"
            left -= {message[1]} if message[0] == "done" else set()
            self.take(message)
            if tell and time.monotonic() - last > 30:
                last = time.monotonic()
                print(f"{done:,} cases, {len(self.failures)} kinds of failure, {last - start:.0f} s", file=sys.stderr, flush=True)
        for process in processes:
            process.join(timeout=10)
        self.wall = time.monotonic() - start
        return self

    def take(self, message: tuple[Any, ...]) -> None:
        """Count one message of a process."""
        what, number, case, ended, more = message
        if what == "case":
            self.ended[case, ended] = self.ended.get((case, ended), 0) + 1
            for best, value in ((self.slowest, more[0]), (self.largest, more[1])):
                best[case] = max(best.get(case, (0.0, 0)), (value, number))
        elif what in ("failure", "again"):
            times, first, smallest, text = self.failures.get(more, (0, number, case, ended))
            if case is not None and (smallest is None or len(case.data) < len(smallest.data)):
                first, smallest, text = number, case, ended
            self.failures[more] = (times + 1, first, smallest, text)

    def summary(self) -> str:
        """What a person reads."""
        lines = [f"{sum(self.ended.values()):,} cases of seed {self.seed} in {self.wall:.0f} s, {self.jobs} processes; limits {SECONDS} CPU s, {MEGABYTES} MB"]
        for kind in self.kinds:
            counts = ", ".join(f"{number:,} {ended}" for (of, ended), number in sorted(self.ended.items()) if of == kind)
            slow, large = self.slowest.get(kind, (0.0, 0)), self.largest.get(kind, (0.0, 0))
            lines.append(f"  {kind:<11} {counts}; slowest {slow[0]:.2f} s (case {slow[1]}), largest {large[0]:.0f} MB (case {large[1]})")
        for sign, (times, number, case, text) in sorted(self.failures.items(), key=lambda item: -item[1][0]):
            lines.append(f"FAILURE {sign}: {times} times, smallest case {number}\n    {text}")
            if case is not None:
                lines.append(f"    {case.beside}\n    {case.data[:1500]!r}")
        return "\n".join(lines)


NIGHTLY = {"spec": 25_000, "structure": 25_000, "config": 50_000, "batch": 50_000}
OTHERS = 20_000  # cases of each other kind in a night


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", "--count", dest="count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, help="default: a new one, which is printed")
    parser.add_argument("--nightly", action="store_true", help="a run of each kind, as long as a night has it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this wall time")
    parser.add_argument("--kind", "--kinds", dest="kinds", default=",".join(KINDS), help="one kind, or several with commas")
    args = parser.parse_args()
    seed = random.randrange(2**32) if args.seed is None else args.seed
    kinds = tuple(args.kinds.split(","))
    runs = [(NIGHTLY.get(kind, OTHERS), (kind,)) for kind in kinds] if args.nightly else [(args.count, kinds)]
    failed = False
    for count, chosen in runs:
        print(f"seed {seed}: {count:,} cases of {', '.join(chosen)}", flush=True)
        fuzz = Fuzz(count, seed, args.jobs, chosen, args.seconds).run(tell=True)
        print(fuzz.summary(), flush=True)
        failed |= bool(fuzz.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
