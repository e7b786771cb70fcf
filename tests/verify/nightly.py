"""Random regimes on the real models: ``python -m tests.verify.nightly --count 5000``; exit 1 where any draw differs."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random

from symflops.api import load
from symflops.read.spec_files import find_spec
from symflops.support.findings import SymflopsError
from symflops.verify.bench import Choice
from symflops.verify.cases import cases_of
from tests.verify.random_regimes import RandomBench, benches

MODELS = ("llama", "qwen_image", "wan", "sd3", "flux", "qwen3_moe", "deepseek_v3")


def wrong(bench: RandomBench, choice: Choice, known: bool) -> str:
    """What differs, empty where nothing does."""
    try:
        outcome = bench.check(choice, known)
    except SymflopsError as error:
        return f"{type(error).__name__}: {error}"
    return "" if outcome.exact else str(outcome)


def main() -> int:
    """Draw, compare, print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, default=3, help="cases with longer repeats are left out")
    parser.add_argument("--symbolic", type=int, default=8, help="one draw in so many keeps the number of layers a symbol")
    parser.add_argument("--models", nargs="*", default=MODELS)
    given = parser.parse_args()
    built = benches({name: load(name) for name in given.models}, {name: cases_of(find_spec(name)) for name in given.models}, given.layers)
    started, failed, drawn = time.monotonic(), Counter(), Counter()
    for number in range(given.count):
        name, bench = built[number % len(built)]
        choice = bench.draw(Random(f"{given.seed}/{number}"))
        known = number // len(built) % given.symbolic != 0
        drawn[name] += 1
        found = wrong(bench, choice, known)
        if found:
            failed[name] += 1
            if sum(failed.values()) <= 10:
                small = bench.smallest(choice, lambda smaller: wrong(bench, smaller, known)[:30] == found[:30])
                print(f"{name}, draw {given.seed}/{number}: {wrong(bench, small, known)}\n  {small}", flush=True)
    for name in drawn:
        print(f"{name}: {drawn[name]} draws, {failed[name]} mismatches")
    print(f"in all: {given.count} draws, {sum(failed.values())} mismatches, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
