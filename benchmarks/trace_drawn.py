"""Traces classes without a spec that a seed draws, and holds the forms against the real classes at further configs.

    python benchmarks/trace_drawn.py --seed 1 [--count 100] [--out drawn.jsonl] [--only CLASS ...]
    python benchmarks/trace_drawn.py --out drawn.jsonl --summary

The classes are those of transformers' auto mappings and the models of diffusers that no shipped spec names: of each four
drawn, one is a causal language model, two are others of transformers, and one is of diffusers. A class that cannot be built
with the defaults of its config is replaced by the next one. Each is traced in a process of its own, with a limit on CPU time
and memory. A trace that says *proven* is compared once more with the real class, at configs that its own proof did not draw.
The limit holds three times as long by the clock, so a busy machine needs a larger one. With ``--out`` a run that was ended
goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from symflops.library.catalog import catalogs
from symflops.support.errors import SymflopsError
from symflops.verify.classes import class_of
from symflops.verify.limits import in_process
from symflops.verify.symbolic.explore import CANDIDATES
from symflops.verify.symbolic.inputs import LENGTHS
from symflops.verify.symbolic.target import Target, dotted, place_of, places
from symflops.verify.symbolic.traced import FIGURES, Traced, symbol
from symflops.verify.symbolic.tracer import Example
from symflops.verify.symbolic.tracing import trace

TURN = ("causal", "other", "diffusers", "other")
MAPPING = re.compile(r"MODEL_.*MAPPING_NAMES$")
CHECKS = 3
"""Further configs at which each proven form is compared."""
KINDS = ("all sizes", "in part", "unproven", "not traced", "no inputs", "not built")
NUMBERS = ("specialised", "dropped")
"""Kinds of fields that are numbers in the forms."""


def population() -> dict[str, list[str]]:
    """References of all classes without a spec, by group."""
    import diffusers
    import torch
    from transformers.models.auto import modeling_auto

    named = {name for entry in catalogs()[-1].specs.values() for name in entry["references"]}
    known = {name.rpartition(".")[2].rpartition(":")[2] for name in named}
    mappings = [getattr(modeling_auto, name) for name in sorted(dir(modeling_auto)) if MAPPING.match(name)]
    listed = ((name,) if isinstance(name, str) else name for mapping in mappings for name in mapping.values())
    every = dict.fromkeys(name for names in listed for name in names if name not in known)
    pictured = set(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values())
    causal = {name for name in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values() if name in every} - pictured
    models = [name for name in dir(diffusers.models) if isinstance(getattr(diffusers.models, name, None), type)]
    nets = [name for name in models if issubclass(getattr(diffusers.models, name), torch.nn.Module) and name not in known]
    return {
        "causal": [f"transformers.{name}" for name in sorted(causal)],
        "other": [f"transformers.{name}" for name in sorted(every.keys() - causal)],
        "diffusers": [f"diffusers.{name}" for name in sorted(nets)],
    }


def drawn(seed: int) -> Iterator[tuple[str, str]]:
    """Yield (group, class) in the order of a seed, until a group has no more."""
    random, left = Random(seed), population()
    for names in left.values():
        random.shuffle(names)
    while True:
        for group in TURN:
            if not left[group]:
                return
            yield group, left[group].pop()


def outcome(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Trace one class and compare its forms; called in a process of its own."""
    began = used()
    try:
        kind = class_of(name)
        found = trace(kind, seconds=seconds)
    except SymflopsError as error:
        text = str(error)
        what = "not built" if "cannot be built" in text or "has no class" in text else "not traced"
        return {"outcome": "no inputs" if "does not run" in text else what, "why": text[:300], **costs(began)}
    cost = costs(began)
    numeric = {field.name: f"{field.kind}: {field.note}" for field in found.fields.values() if field.kind in NUMBERS}
    what = "unproven" if not found.proven else "in part" if numeric else "all sizes"
    wrong, exact = checked(found, Target(kind), Random(seed)) if found.proven else ([], 0)
    return {
        "outcome": what, "why": found.unproven, "numbers": numeric, "missed": dict(found.missed),
        "symbols": len(found.symbols()),
        "proven at": found.exact, "checked": exact, "wrong": wrong, **cost,
    }  # fmt: skip


def used() -> float:
    """CPU seconds of this process and of those that it has ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def costs(began: float) -> dict[str, float]:
    """CPU seconds since then, and MB of the largest process."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"seconds": round(used() - began, 1), "MB": most >> 10}


def checked(found: Traced, target: Target, random: Random) -> tuple[list[str], int]:
    """What differs from the real class at configs in the domain, and the number of configs that were compared."""
    wrong, exact = list[str](), 0
    for _ in range(10 * CHECKS):
        if exact + len(wrong) == CHECKS:
            break
        point = {name: moved(found, name, random) for name in found.symbols()}
        try:
            mine = found.at(point)
            real = counted(found, target, point)
        except SymflopsError:
            continue
        if any(mine[name] != real[name] for name in FIGURES):
            wrong.append(f"{point}: {mine} by the forms, {real} counted")
        else:
            exact += 1
    return wrong, exact


def moved(found: Traced, name: str, random: Random) -> int:
    """Another value of a symbol, or half of the time the same one."""
    value = found.fields[name].value
    if name in found.depths:
        return found.depths[name] + random.randint(0, 4)
    return max(2, random.choice((value, value, value, 2 * value, 3 * value, value // 2, value + 8, value + 1)))


def counted(found: Traced, target: Target, point: Mapping[str, int]) -> dict[str, int]:
    """Figures of the real class at a point.

    Raises:
        SymflopsError: it does not run there.
    """
    values = {symbol(name): point.get(name, one.value) for name, one in found.fields.items()}
    full = {name: int(found.value(name).xreplace(values)) for name, one in found.fields.items() if one.kind != "unused"}
    depths = {place_of(name): full.get(name, number) for name, number in found.depths.items()}
    known = (place for place, _ in places(target.settings(depths)) if place not in depths)
    fields = {place: full[dotted(place)] for place in known if dotted(place) in full}
    lengths = {name: full.get(name, value) for name, value in LENGTHS.items()}
    for device in ("meta", "cpu"):
        for candidate in range(CANDIDATES):
            try:
                real = Example(target, depths, fields, lengths, candidate, device).real(fields, lengths)
            except StopIteration:
                break
            except Exception:
                continue
            return {name: int(getattr(real, name)) for name in FIGURES}
    raise SymflopsError("it does not run")


def run(
    names: Iterator[tuple[str, str]], known: dict[str, dict[str, Any]], args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the results of ``args.count`` classes that can be built, each as soon as it is known."""
    left = args.count
    for group, name in names:
        if left <= 0:
            return
        result = known.get(name)
        if result is None:
            result = {"class": name, "group": group}
            try:
                work = partial(outcome, name, args.timeout, args.seed)
                result |= in_process(work, 5 * args.timeout, f"tracing {name}")
            except SymflopsError as error:
                result |= {"outcome": "not traced", "why": str(error)}
            if args.out:
                with args.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")
        left -= result["outcome"] != "not built"
        yield result


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table by group, and what all took."""
    built = [one for one in results if one["outcome"] != "not built"]
    yield f"| group | classes | {' | '.join(KINDS[:-1])} | wrong |"
    yield f"|---|{'--:|' * (len(KINDS) + 1)}"
    for group in (*dict.fromkeys(one["group"] for one in built), "all"):
        own = [one for one in built if group in ("all", one["group"])]
        count = Counter(one["outcome"] for one in own)
        cells = [len(own), *(count[kind] for kind in KINDS[:-1]), sum(bool(one.get("wrong")) for one in own)]
        yield f"| {group} | {' | '.join(map(str, cells))} |"
    compared = sum(one.get("proven at", 0) + one.get("checked", 0) for one in built)
    traced = [one for one in built if "symbols" in one]
    yield ""
    yield f"{compared} unseen configs were compared; {len(results) - len(built)} classes cannot be built with their defaults."
    if traced:
        seconds, memory = (statistics.median(one[key] for one in traced) for key in ("seconds", "MB"))
        yield f"Traces took a median of {seconds:g} s of one core and {memory:g} MB."


def line(one: Mapping[str, Any]) -> str:
    """A result in one line."""
    why = one.get("why") or "; ".join(f"{name} {note}" for name, note in one.get("numbers", {}).items())
    wrong = f"WRONG {one['wrong']}" if one.get("wrong") else ""
    cells = (one["class"], one["outcome"], wrong, f"{one.get('seconds', '')} s", f"{one.get('MB', '')} MB", why)
    return "  ".join(cell for cell in cells if cell)


def main() -> int:
    """Draw, trace, print a line per class and the table; exit code 1 if forms that said proven were wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--timeout", type=float, default=120.0, help="CPU seconds of a trace")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--summary", action="store_true", help="print the table of a file alone")
    args = parser.parse_args()
    results, began = [], time.monotonic()
    known = {}
    if args.out and args.out.exists():
        known = {one["class"]: one for one in map(json.loads, args.out.read_text("utf-8").splitlines())}
    if args.summary:
        results = list(known.values())
    else:
        import torch
        import transformers

        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        transformers.logging.set_verbosity_error()
        names = ((name.partition(".")[0], name) for name in args.only) if args.only else drawn(args.seed)
        for one in run(iter(names), known, args):
            results.append(one)
            print(line(one), flush=True)
    print("\n".join(["", *summary(results)]))
    if not args.summary:
        print(f"{time.monotonic() - began:.0f} s in all")
    return 1 if any(one.get("wrong") for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
