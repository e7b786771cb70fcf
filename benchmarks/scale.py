"""How time grows with a spec, with a batch and with a library, and how long the shipped specs take.

    python benchmarks/scale.py [--json] [--quick] [--plot FILE.svg] [--history FILE.jsonl]

The specs of a family differ in their number of operators only; the streams of ``streams`` grow with it. The exponent of a stage
is the slope of its time over that number, both as logarithms: 1 is linear, 2 quadratic. Times are processor seconds, the best
of some rounds, without the garbage collector, as ``timeit`` has it. Each shipped spec is timed once, from its text to its
stored program with all stored regimes and, in brackets, to all of its generated texts. ``lengths`` sums up a batch of so many,
``samples`` prices each of them, ``specs`` reads the headers of a folder of so many specs. ``--quick`` takes small sizes, and
leaves out the shipped specs. ``--plot`` draws the times of all families over their sizes, ``--history`` appends this run to a
file, a JSON object a line. Exit code 1: an exponent or a time is above its limit.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from symflops.api import AnyRegime, Model, convention_of, load, regime_of
from symflops.build import scopes as limits
from symflops.cli.actions.stored_rules import baked
from symflops.compiler import build, derive, emit, lower, read
from symflops.emit.emit import ENDINGS
from symflops.emit.html.curves import picture
from symflops.emit.page.tree import Plot
from symflops.library import lookup
from symflops.library.catalog import by_name
from symflops.library.local import local_specs
from symflops.read import yaml_nodes
from symflops.read.spec_files import chosen_specs
from symflops.support.findings import Source

SIZES = (1_000, 2_000, 4_000, 8_000)
QUICK = (250, 500, 1_000)
ROUNDS, SHORT_ROUNDS = 2, 8
STAGES = ("read", "build", "derive", "lower", "emit")
EXPONENT, OUT_OF_CACHES = 1.15, 1.3  # the latter for batches, whose largest leave the processor's caches
MEDIAN, WORST = 0.1, 1.0
COLOURS = ("#0b62a4", "#c2410c", "#15803d", "#7e22ce", "#b91c1c", "#0f766e", "#a16207", "#be185d", "#334155", "#4d7c0f")
STYLE = (
    "text { font: 10px sans-serif; fill: #222; } .key { font-size: 7px; } .end { text-anchor: end; } "
    ".middle { text-anchor: middle; } .grid { stroke: #ddd; }"
)
HEAD = "language: 2\nname: scale\nsizes: {D: width, L: layers, F: {key: flag, type: bool}}\n"
TEXT = f"{HEAD}streams: {{text: [x]}}\ninputs: {{h: {{stream: text, width: D}}}}\n"
LAYERS = "graph:\n  - layers:\n      repeat: L\n      graph:\n"
END = "outputs: [h]\n"
LINEAR = "{op: linear, from: h, width: D, to: h}"
ATTENTION = """
        - q{n}: {{op: linear, from: h, width: D, to: q}}
        - k{n}: {{op: linear, from: h, width: D, to: k}}
        - a{n}: {{op: attention, heads: 1, query: q, key: k, value: k, to: o}}
        - o{n}: {{op: linear, from: o, width: D, add_to: h}}
"""


def repeat(operators: int) -> str:
    """Linears in the body of one repeat."""
    lines = (f"        - p{n}: {LINEAR}\n" for n in range(operators))
    return f"{TEXT}{LAYERS}{''.join(lines)}{END}"


def flat(operators: int) -> str:
    """Linears one after another, each in a module of its own."""
    lines = (f"  - layers.{n}.p: {LINEAR}\n" for n in range(operators))
    return f"{TEXT}graph:\n{''.join(lines)}{END}"


def repeats(operators: int) -> str:
    """Repeats of one linear each."""
    lines = (f"  - a{n}: {{repeat: L, graph: [p: {LINEAR}]}}\n" for n in range(operators))
    return f"{TEXT}graph:\n{''.join(lines)}{END}"


def conditions(operators: int) -> str:
    """Linears under a flag, each with a result of its own that is kept."""
    lines = (f"  - p{n}: {{op: linear, from: h, width: D, to: v{n}, when: F}}\n" for n in range(operators))
    return f"{TEXT}graph:\n{''.join(lines)}{END}"


def attention(operators: int) -> str:
    """Attentions between linears, with residual sums, in the body of one repeat."""
    return f"{TEXT}{LAYERS}{''.join(ATTENTION.format(n=n)[1:] for n in range(operators // 5))}{END}"


def tied(operators: int) -> str:
    """Linears that all use one weight, every other one in a repeat of its own."""
    weight = "tie: shared.weight, bias: false"
    line = LINEAR.replace("to: h", f"to: h, {weight}")
    lines = (f"  - p{n}: {line}\n  - a{n}: {{repeat: L, graph: [p: {line}]}}\n" for n in range(operators // 2))
    return f"{TEXT}graph:\n{''.join(lines)}{END}"


def streams(operators: int) -> str:
    """A stream for each eight linears, which are the body of a block, all in one repeat."""
    names = range(operators // 8)
    head = f"{HEAD}streams: {{{', '.join(f's{n}: [x{n}]' for n in names)}}}\n"
    inputs = f"inputs: {{{', '.join(f'h{n}: {{stream: s{n}, width: D}}' for n in names)}}}\n"
    block = f"blocks: {{eight: {{inputs: [h], outputs: [h], graph: [{', '.join(f'p{n}: {LINEAR}' for n in range(8))}]}}}}\n"
    calls = "".join(f"        - b{n}: {{block: eight, from: h{n}, to: h{n}}}\n" for n in names)
    return f"{head}{inputs}{block}{LAYERS}{calls}outputs: [{', '.join(f'h{n}' for n in names)}]\n"


FAMILIES: dict[str, Callable[[int], str]] = {
    family.__name__: family for family in (repeat, flat, repeats, conditions, attention, tied, streams)
}


def stages(text: str, regimes: Sequence[AnyRegime] = ("full",)) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The stages of a spec, each to be run once before the next one is taken."""
    made: list[Any] = []

    def step(make: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: made.append(make())

    counted = [convention_of(name) for name in ("symflops", "torch")]
    yield "read", step(lambda: read(Source("scale.yaml", text), lambda name: None))
    yield "build", step(lambda: build(made[0]))
    yield "derive", step(lambda: [derive(made[1], regime_of(regime)) for regime in regimes])
    yield "lower", step(lambda: lower(made[2], counted))
    yield "emit", step(lambda: emit(made[3], "", (), ("json", "py")))


def batch(count: int) -> list[int]:
    """Lengths of texts, up to 8,192 tokens."""
    return [1 + 7919 * number % 8192 for number in range(count)]


def lengths(count: int, _: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The moments of one batch."""
    model, given = lookup.estimator(by_name("llama"), "llama", {})[1], batch(count)
    yield "list", lambda: model.moments(text=given)
    yield "array", partial(model.moments, text=np.array(given))


def samples(count: int, _: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The costs of the samples of one batch."""
    model, given = lookup.estimator(by_name("llama"), "llama", {})[1], batch(count)
    yield "list", lambda: model.per_sample(text=given)
    yield "array", partial(model.per_sample, text=np.array(given))


def specs(count: int, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The headers of a folder of specs: read, and known from the cache."""
    (folder / "mine").mkdir(parents=True)
    for number in range(count):
        text = repeat(4).replace("name: scale", f"name: spec{number}")
        (folder / "mine" / f"spec{number}.yaml").write_text(f"{text}# {folder} {count}\n")  # a text is parsed once, then known
    os.environ["XDG_CACHE_HOME"] = str(folder.parent)
    yield "read", lambda: local_specs(str(folder))
    yield "known", lambda: local_specs(str(folder))


FURTHER = {family.__name__: family for family in (lengths, samples, specs)}
MANY, SOME = (50_000, 100_000, 200_000, 400_000), (25_000, 50_000, 100_000)
FURTHER_SIZES = {"lengths": MANY, "samples": MANY, "specs": (40, 80, 160, 320)}
FURTHER_QUICK = {"lengths": SOME, "samples": SOME, "specs": (10, 20, 40)}


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, whose runs depend on what the process held before."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def clock() -> float:
    """Seconds of this process's processor."""
    return time.process_time()


def seconds(steps: Iterable[tuple[str, Callable[[], Any]]]) -> dict[str, float]:
    """The time of each step."""
    found = {}
    with uncollected():
        for name, run in steps:
            start = clock()
            run()
            found[name] = clock() - start
    return found


def family_row(name: str, sizes: Sequence[int]) -> dict[str, Any]:
    """The times of a family of specs."""

    def rounds(size: int) -> Iterator[dict[str, float]]:
        for number in range(ROUNDS):
            yield seconds(stages(f"{FAMILIES[name](size)}# {number}\n"))  # a small text is parsed once, then known

    return row(name, "operators", sizes, rounds)


def further_row(name: str, sizes: Sequence[int]) -> dict[str, Any]:
    """The times of a family of batches or libraries."""

    def rounds(size: int) -> Iterator[dict[str, float]]:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(SHORT_ROUNDS):
                yield seconds(FURTHER[name](size, Path(folder) / str(number)))

    return row(name, name, sizes, rounds)


def row(name: str, unit: str, sizes: Sequence[int], rounds: Callable[[int], Iterator[dict[str, float]]]) -> dict[str, Any]:
    """The best times of the largest size, the exponent of each stage, and the sums of all sizes."""
    times = []
    for size in sizes:
        found = list(rounds(size))
        best = {stage: min(one[stage] for one in found) for stage in found[0]}
        times.append(best | {"all": sum(best.values())})
    exponents = {stage: slope(sizes, [one[stage] for one in times]) for stage in times[0]}
    points = [[size, one["all"]] for size, one in zip(sizes, times, strict=True)]
    return {"family": name, unit: sizes[-1], "seconds": times[-1], "exponents": exponents, "points": points}


def slope(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The exponent of the power that fits ``times`` best."""
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(max(one, 1e-9)) for one in times]).slope


def shipped_row(model: Callable[[], Model]) -> dict[str, Any]:
    """The seconds that one shipped spec takes to its stored program, with all stored regimes, and to all of its texts."""
    with uncollected():
        start = clock()
        loaded = model()
        regimes = baked(loaded)
        loaded.structure("", regimes, targets=("json",))
        program = clock() - start
        loaded.structure("", regimes, targets=ENDINGS)
        return {"spec": loaded.spec.name, "program": program, "texts": clock() - start}


def show(rows: Sequence[dict[str, Any]], specs: Sequence[dict[str, Any]]) -> None:
    """Print all tables."""
    for row in rows:
        columns = [f"{stage} {row['seconds'][stage]:6.2f} s {row['exponents'][stage]:5.2f}" for stage in row["seconds"]]
        print(f"{row['family']:<11}{row['points'][-1][0]:>7,}  " + "   ".join(columns))
    for row in specs[:10]:
        print(f"{row['spec']:<28}{row['program']:7.3f} s ({row['texts']:.3f} s)")
    if specs:
        median, worst = (statistics.median(row["program"] for row in specs), specs[0]["program"])
        print(f"{len(specs)} specs: median {median:.3f} s (at most {MEDIAN}), worst {worst:.3f} s (at most {WORST})")


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the times of all families over their sizes as a picture."""
    lines = tuple((row["family"], tuple((size, Fraction(seconds) * 10**6) for size, seconds in row["points"])) for row in rows)
    plot = Plot("scale", "CPU time of all stages over the size", "operators, lengths, samples or specs", "microseconds", lines)
    head, _, body = picture(plot).partition(">")
    colours = " ".join(f".curve-{n} {{ stroke: {one}; fill: none; stroke-width: 2; }}" for n, one in enumerate(COLOURS))
    svg = f'{head} xmlns="http://www.w3.org/2000/svg" style="background: white">\n<style>{STYLE} {colours}</style>{body}\n'
    path.write_text(svg, "utf-8")


def remember(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Append this run to a file: when and of which commit, and the times and exponents."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    when = datetime.now(UTC).isoformat(timespec="seconds")
    found = {row["family"]: {"points": row["points"], "exponent": round(row["exponents"]["all"], 3)} for row in rows}
    with path.open("a") as file:
        file.write(json.dumps({"when": when, "commit": commit, "python": platform.python_version(), "families": found}) + "\n")


def main() -> int:
    """Measure, print, and say whether all is within its limits."""
    parser = argparse.ArgumentParser(description="How time grows with a spec, a batch and a library")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--history", type=Path, metavar="FILE")
    given = parser.parse_args()
    yaml_nodes.MAX_NODES = 1_000_000  # a written-out list of 8,000 operators has more nodes than a spec may have
    limits.MAX_OPERATORS = 2 * SIZES[-1]
    seconds(stages(repeat(16)))  # what is loaded on first use
    rows = [family_row(name, QUICK if given.quick else SIZES) for name in FAMILIES]
    rows += [further_row(name, sizes) for name, sizes in (FURTHER_QUICK if given.quick else FURTHER_SIZES).items()]
    files = [] if given.quick else chosen_specs([])
    specs = sorted((shipped_row(lambda file=file: load(file)) for file in files), key=lambda row: -row["program"])
    if given.json:
        json.dump({"families": rows, "specs": specs}, sys.stdout, indent=1)
    else:
        show(rows, specs)
    if given.plot:
        draw(rows, given.plot)
    if given.history:
        remember(rows, given.history)
    steep = any(row["exponents"]["all"] > (OUT_OF_CACHES if row["family"] in FURTHER else EXPONENT) for row in rows)
    slow = bool(specs) and (specs[0]["program"] > WORST or statistics.median(row["program"] for row in specs) > MEDIAN)
    return int(steep or slow)


if __name__ == "__main__":
    raise SystemExit(main())
