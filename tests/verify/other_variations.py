"""Other variations of configs than the fixed ones: several fields at once, fields left out, small numbers, and those of others.

Each is answered as a user's config is, as written and complete, census included, and compared with the real class, built and
run: ``python -m tests.verify.other_variations --seed 7 --joint 40 --short 20 --sweep --alike``. Exit 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from random import Random
from typing import Any

from symflops.api import load
from symflops.evaluate.classes import class_name
from symflops.library.lookup import by_name, interpreted
from symflops.library.records.verified import known_inexact
from symflops.read.spec_files import find_spec
from symflops.support.errors import SymflopsError
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.census.fields import ConfigField, value_at
from symflops.verify.census.observation import Derived, Observed, TooSlowError, observed, with_values
from symflops.verify.census.survey import Base, Survey, difference, widths
from symflops.verify.census.take import of_each_config, quiet
from symflops.verify.census.variations import Changes, edges, variations
from symflops.verify.classes import in_evaluation, plain_lists
from symflops.verify.live import reference_of
from tests.verify.variations import variations as fixed

LEFT_OUT = "(left out)"
"""What a change writes of a field that a config does not have."""


class Others:
    """Variations of one class, and what the spec answers for each.

    Attributes:
        name: The spec.
        survey: The class's small models, its fields and their words.
        random: Draws values.
    """

    def __init__(self, name: str, survey: Survey, seed: str) -> None:
        self.name, self.survey, self.random = name, survey, Random(seed)

    def joint(self, count: int) -> Iterator[tuple[Base, Changes]]:
        """``count`` variations of two to four fields at once."""
        for _ in range(count if self.survey.bases else 0):
            base = self.random.choice(self.survey.bases)
            fields = self.random.sample(self.survey.fields, min(len(self.survey.fields), self.random.randint(2, 4)))
            yield base, {item.path: self.random.choice(found) for item in fields if (found := self.values(item, base))}

    def values(self, item: ConfigField, base: Base) -> list[Any]:
        """Other values of a field."""
        part = item.path.rpartition(".")[0]
        if part and not isinstance(value_at(base.json, part), Mapping):
            return []
        value = plain_lists(value_at(base.json, item.path))
        words = self.survey.words.of(item)
        return [*variations(item, value, words, widths(base.json, part), self.random), *edges(item, value)]

    def sweep(self) -> list[tuple[Base, Changes]]:
        """Every whole number at small values and beside its own, alone and in lists, in any order."""
        return self.each(lambda path, value, config: swept(value))

    def level(self) -> list[tuple[Base, Changes]]:
        """Every whole number, alone and in lists, at 1, each number beside it and each double of one, in any order."""
        return self.each(leveled)

    def ragged(self) -> list[tuple[Base, Changes]]:
        """Lists of one length, and the number of their items, grown and shortened: two of them, and all but one, in any order."""
        found: list[tuple[Base, Changes]] = []
        for base in self.survey.bases:
            for longer in grown(base.json):
                sets = [*combinations(longer, 2), *combinations(longer, len(longer) - 1)]
                found += [(base, {path: longer[path] for path in chosen}) for chosen in dict.fromkeys(sets)]
        self.random.shuffle(found)
        return found

    def each(self, others: Callable[[str, Any, Mapping[str, Any]], Iterable[Any]]) -> list[tuple[Base, Changes]]:
        """Other values of each field at each base, in any order."""
        pairs = [(item.path, base) for item in self.survey.fields for base in self.survey.bases]
        values = [(path, base, plain_lists(value_at(base.json, path))) for path, base in pairs]
        found: list[tuple[Base, Changes]] = [
            (base, {path: other}) for path, base, value in values for other in others(path, value, base.json)
        ]
        self.random.shuffle(found)
        return found

    def short(self, count: int) -> Iterator[tuple[Base, Changes]]:
        """``count`` configs that leave out one to three fields of a case."""
        own = not self.survey.reference.startswith("torch.")  # whose batch_first only lays out a batch in another way
        for _ in range(count if self.survey.bases and own else 0):
            base = self.random.choice(self.survey.bases)
            parts = {name: value for name, value in base.case.config.items() if isinstance(value, Mapping)}
            paths = [*base.case.config, *(f"{name}.{key}" for name, part in parts.items() for key in part)]
            yield base, dict.fromkeys(self.random.sample(paths, min(len(paths), self.random.randint(1, 3))), LEFT_OUT)

    def case(self, base: Base, changes: Changes) -> LiveCase:
        """The case of a base with changes; what is left out may be large by default, and is built on the meta device."""
        kept = {path: value for path, value in changes.items() if value != LEFT_OUT}
        case = replace(base.case, config=with_values(base.case.config, kept, {}, self.survey.aliases))
        for path in (path for path, value in changes.items() if value == LEFT_OUT):
            part, _, last = path.rpartition(".")
            inner = value_at(case.config, part) if part else case.config
            if isinstance(inner, dict):
                inner.pop(last, None)
            case = replace(case, device="meta")
        return case

    def verdict(self, base: Base, changes: Changes) -> tuple[str, str]:
        """``exact``, ``refused``, ``wrong``, or why nothing can be said, and what differs: of the complete config, and as written."""
        case = self.case(base, changes)
        try:
            seen = observed(self.survey.reference, case, self.survey.folder)
        except TooSlowError:
            return "slow", ""
        except SymflopsError:
            return "unbuilt", ""
        named = {name: seen.config[name] for name in ("architectures", "_class_name") if name in seen.config}
        told = [self.answer(base, changes, seen, case, config) for config in (seen.config, {**case.config, **named})]
        return min(told, key=lambda one: ("wrong", "exact", "unrun", "refused").index(one[0]))

    def answer(self, base: Base, changes: Changes, seen: Observed, case: LiveCase, config: Mapping[str, Any]) -> tuple[str, str]:
        """The verdict on the answer for one reading of a config."""
        config = in_evaluation(self.survey.model.spec, config)
        try:
            estimator = interpreted(by_name(self.name), self.name, config, "full", "torch", tell=lambda text: None)
            derived = Derived(estimator.program, estimator)
            why = difference(seen, derived)
        except SymflopsError as error:
            return "refused", str(error)
        if why:
            return "wrong", why
        run = self.survey.run(base, changes, seen, case, derived)
        if run.real is None:
            return "unrun", ""
        return ("exact", "") if run.real == run.derived else ("wrong", f"forward, backward on {run.batch}: {run.derived} for {run.real}")


def swept(value: Any) -> Iterator[Any]:
    """Other numbers for a number, or for each item of a list."""
    if type(value) is int:
        yield from (other for other in dict.fromkeys((0, 1, 3, 5, value - 1, value + 1, value + 2)) if other not in (value, -1))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in swept(item))


def grown(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """For each length of two lists of a config or more: those lists, and the numbers equal to it, one longer and one shorter."""
    parts = {f"{name}.": value for name, value in config.items() if isinstance(value, Mapping)}
    values = {f"{part}{key}": plain_lists(value) for part, inner in {"": config, **parts}.items() for key, value in inner.items()}
    lists = {path: value for path, value in values.items() if isinstance(value, list)}
    lengths = Counter(len(value) for value in lists.values() if value)
    for length in (length for length, lists_of_it in lengths.items() if lists_of_it > 1):
        same = {path: value for path, value in lists.items() if len(value) == length}
        numbers = {path: value for path, value in values.items() if type(value) is int and value == length}
        yield {path: [*value, value[-1]] for path, value in same.items()} | {path: value + 1 for path, value in numbers.items()}
        yield {path: value[:-1] for path, value in same.items()} | {path: value - 1 for path, value in numbers.items()}


def leveled(path: str, value: Any, config: Mapping[str, Any]) -> Iterator[Any]:
    """The numbers beside a number or a list, items of lists included, and their doubles, that divide it or an item of it."""
    part = path.rpartition(".")[0]
    beside = [plain_lists(other) for other in ((value_at(config, part) if part else config) or {}).values()]
    numbers = {item for other in beside for item in (other if isinstance(other, list) else [other]) if type(item) is int and item > 0}
    numbers |= {2 * number for number in numbers} | {1}
    if type(value) is int:
        yield from (other for other in sorted(numbers) if other < value and value % other == 0)
    elif isinstance(value, list) and value and all(type(item) is int for item in value):
        for other in sorted(numbers):
            yield from ([*value[:place], other, *value[place + 1 :]] for place, item in enumerate(value) if other < item and item % other == 0)
            if len(set(value)) == 1 and other < value[0] and value[0] % other == 0:
                yield [other] * len(value)


def of_spec(name: str, seed: int, joint: int, short: int, sweep: bool, alike: bool, ragged: bool, seconds: float) -> tuple[str, Counter[str], list[dict[str, Any]]]:
    """The verdicts for one spec, and the answers that are wrong."""
    file = find_spec(name)
    model = load(file)
    by_class: dict[str, list[Any]] = {}
    for case in cases_of(file):
        by_class.setdefault(reference_of(model, case), []).append(case)
    counts: Counter[str] = Counter()
    wrong = []
    data = list(known_inexact(file.root))
    with quiet():
        for reference in of_each_config(by_class, file.path.parent):
            others = Others(name, Survey(model, reference, by_class[reference]), f"{seed}/{reference}")
            started = time.monotonic()
            several = (*others.joint(joint), *others.short(short), *(others.ragged() if ragged else ()))
            for base, changes in (*several, *(others.sweep() if sweep else ()), *(others.level() if alike else ())):
                if time.monotonic() - started > seconds:
                    counts["left"] += 1
                    continue
                try:
                    found, why = others.verdict(base, changes)
                except SymflopsError as error:
                    found, why = "wrong", f"refused late: {error}"
                except Exception as error:
                    found, why = "wrong", f"{type(error).__name__}: {error}"
                if found == "wrong" and any(f"/{class_name(reference)}/" in known for known in data) and why.startswith("forward"):
                    found = "data"
                counts[found] += 1
                if found == "wrong":
                    wrong.append({"spec": name, "class": reference, "base": base.number, "changes": dict(changes), "why": why})
    return name, counts, wrong


def main() -> int:
    """Draw, compare, print each wrong answer and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--joint", type=int, default=12, metavar="N", help="variations of several fields for each class")
    parser.add_argument("--short", type=int, default=0, metavar="N", help="configs that leave out one to three fields, for each class")
    parser.add_argument("--sweep", action="store_true", help="every number at small values and beside its own")
    parser.add_argument("--alike", action="store_true", help="every number at the numbers beside it that divide it")
    parser.add_argument("--ragged", action="store_true", help="lists of one length, and their number, changed but for some")
    parser.add_argument("--seconds", type=float, default=120, help="of one class; what is left after them is counted")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    total: Counter[str] = Counter()
    started = time.monotonic()
    work = partial(of_spec, seed=given.seed, joint=given.joint, short=given.short, sweep=given.sweep, alike=given.alike, ragged=given.ragged, seconds=given.seconds)
    with get_context("spawn").Pool(given.jobs, maxtasksperchild=4) as pool:
        for name, counts, wrong in pool.imap_unordered(work, given.specs or fixed()):
            total += counts
            for row in wrong:
                print(json.dumps(row, default=str), flush=True)
            print(f"{name:<24} {dict(counts)}", file=sys.stderr, flush=True)
    print(f"{total.total()} variations: {dict(total)}, {time.monotonic() - started:.0f} s")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
