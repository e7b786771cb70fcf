"""Every convention in every printing: an estimate, the program of several conventions, closed forms, the module, the script, the meter, LaTeX and Markdown agree.

Pairs of spec and convention are drawn with a fixed seed; ``SYMFLOPS_NIGHTLY=1`` takes all of them on five batches each, and a thousand batches of some.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from symflops.api import CONVENTIONS, convention_of
from symflops.emit.javascript import script
from symflops.emit.latex import fragments as latex
from symflops.emit.markdown import document as markdown
from symflops.emit.math.definitions import abbreviated, with_plain_words
from symflops.emit.math.printer import letters
from symflops.emit.page.fragments import fragments, letters_of
from symflops.evaluate.batch import items_of
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.layouts import sets_of
from symflops.formula.formula import evaluate
from symflops.read.spec_files import pages
from symflops.support.findings import SymflopsError
from symflops.training.meter.accumulate import Accumulator
from tests.emit.math_reader import read
from tests.emit.script_reader import Script
from tests.sampling import NIGHTLY, amount, sampled
from tests.shipped import FILES, NAMES, cases_of, load
from tests.standalone import published, sizes_for

REGIMES = ("full", "forward", "lora", "checkpointed", "frozen-vision", "dpo", "grpo", "reference", "reward")
PASSES = ("forward", "backward", "recomputed")
SEED = 20
PAIRS = [(name, convention) for name in NAMES for convention in pages("conventions") if cases_of(FILES[name])]
SAMPLE = random.Random(SEED).sample(PAIRS, 6)
LONG = random.Random(SEED + 1).sample(PAIRS, 20)


def scaled(entry: Any, factor: int) -> Any:
    """The entry of an item, each length multiplied."""
    return [length * factor for length in entry] if isinstance(entry, (list, tuple)) else entry * factor


def drawn(batch: dict[str, Any], sets: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A ragged batch of a model, some of it padded: items are those of ``batch``, each length multiplied."""
    found: dict[str, Any] = {}
    for streams in sets.values():
        count, pad = chance.randint(1, 4), chance.random() < 0.7
        for name in [name for name, _, _ in streams if name in batch]:
            if isinstance(batch[name], list) and batch[name]:
                factors = [chance.randint(1, 3) for _ in range(count)]
                picked = [chance.choice(batch[name]) for _ in range(count)]
                real = [scaled(entry, factor) for entry, factor in zip(picked, factors, strict=True)]
                longer = [scaled(entry, factor + chance.randint(0, 2)) for entry, factor in zip(picked, factors, strict=True)]
                found[name] = {"lengths": real, "padded": longer} if pad else real
            else:
                found[name] = count if isinstance(batch[name], int) else batch[name]
    return found


@dataclass
class Printings:
    """One spec under one regime and convention, for one config, in every printing."""

    name: str
    convention: str
    regime: str
    config: dict[str, Any]

    def __post_init__(self) -> None:
        model = load(self.name)
        self.title = convention_of(self.convention).name
        self.alone = model.estimator(self.config, self.regime, self.convention)
        self.derived = model.derive(self.regime, self.convention, self.config)
        others = [name for name in CONVENTIONS if name != self.convention]
        self.program = model.program([self.regime], [*others, self.convention], self.config)
        self.together = InterpretedEstimator(self.program, self.config, regime=self.regime, convention=self.title)
        self.module = published(self.program)
        self.formulas = self.module.formulas
        self.estimator = self.module.Estimator(self.module.Sizes.from_config(self.config), regime=self.regime, convention=self.title)
        attributes = {size.attribute: self.script_value(size) for size in self.program.fields}
        self.script = Script(script.render(self.program, "1"), attributes)

    def script_value(self, size: Any) -> Any:
        """A size as a script holds it: a fraction as numerator and denominator."""
        value = self.together.sizes[size.letter]
        return [value.numerator, value.denominator] if size.kind == "rational" else value

    def figures(self, batch: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        """Forward, backward and recomputed FLOPs by printing."""
        estimators = {"alone": self.alone, "together": self.together, "module": self.estimator}
        found = {key: tuple(getattr(one, kind)(one.moments(**batch)) for kind in PASSES) for key, one in estimators.items()}
        found |= {f"modules of {key}": self.by_module(one, batch) for key, one in estimators.items()}
        found |= {f"meter of {key}": self.metered(one, batch) for key, one in estimators.items()}
        found["derive"] = self.of_forms(batch)
        found["module alone"] = self.of_formulas(batch)
        found["script"] = self.of_script(batch)
        for target in (latex, markdown):
            found[target.__name__] = self.of_page(target, batch)
        return found

    def of_formulas(self, batch: dict[str, Any]) -> tuple[int, ...]:
        """The figures of the printed module alone, which takes the lengths that a convention counts."""
        side = "padded" if self.together.padded else "lengths"
        given = {name: entries[side] if isinstance(entries, dict) else entries for name, entries in batch.items()}
        if self.together.padded_sums:
            given |= {f"{name}_padded": entries["padded"] for name, entries in batch.items() if isinstance(entries, dict)}
        sizes = sizes_for(self.formulas, self.together.stored, self.together.sizes)
        own = [sizes] if "sizes" in self.formulas.moments.__annotations__ else []
        rows = self.formulas.flops(sizes, self.formulas.moments(*own, **given), self.regime, self.title).values()
        return tuple(int(sum(row[place] for row in rows)) for place in range(3))

    def by_module(self, one: Any, batch: dict[str, Any]) -> tuple[int, ...]:
        modules = one.by_module(one.moments(**batch)).values()
        return tuple(sum(getattr(flops, kind) for flops in modules) for kind in PASSES)

    def metered(self, one: Any, batch: dict[str, Any]) -> tuple[int, ...]:
        sums = Accumulator(one)
        sums.add(**batch)
        read_sums = sums.read(reduce=False)
        assert not read_sums.faults
        return tuple(int(read_sums.flops(one.coefficients[kind], one.padded)) for kind in PASSES)

    def of_forms(self, batch: dict[str, Any]) -> tuple[Any, ...]:
        """What ``derive`` tells, and what moments are called there."""
        sums, case, program = self.alone.moments(**batch).sums(), self.derived.case, self.derived.program
        assert set(self.derived.forward) <= set(sums)
        named = [program.sum_name(place, case.convention) for place in range(len(program.moments))]
        forms = [getattr(case, kind) for kind in PASSES]
        return tuple(sum(evaluate(part, self.alone.sizes) * sums[named[place]] for place, part in form) for form in forms)

    def columns(self, batch: dict[str, Any], side: str) -> dict[str, list[int]]:
        """The lengths of a batch by axis."""
        found: dict[str, list[int]] = {}
        for streams in sets_of(self.together.stored).values():
            given = {name: batch[name][side] if isinstance(batch.get(name), dict) else batch.get(name) for name, _, _ in streams}
            counts = [entries if isinstance(entries, int) else len(entries) for entries in given.values() if entries is not None]
            for name, axes, absent in streams:
                entries = given[name]
                rows = [[absent] * (len(axes) or 1)] * max(counts, default=0) if entries is None else entries
                rows = [0] * rows if isinstance(rows, int) else rows if axes else [0] * len(rows)
                rows = [row if isinstance(row, (list, tuple)) else [row] for row in rows]
                found |= {axis: [row[place] for row in rows] for place, axis in enumerate(axes or (name,))}
        return found

    def of_script(self, batch: dict[str, Any]) -> tuple[Any, ...]:
        real, padded = (self.columns(batch, side) for side in ("lengths", "padded"))
        moments = self.script.moments(real.__getitem__, padded.__getitem__, self.together.padded)
        return self.script.flops(self.regime, self.title, moments)

    @cache  # noqa: B019
    def page(self, target: Any) -> dict[str, str]:
        """The closed forms of the convention as ``target`` prints them, by pass."""
        text = target.render_fragments(self.program, "1")["forms"].replace(r"\thinspace", r"\,")
        text = re.sub(r"\\notag|\\penalty900|&|\\(?:begin|end)\{align(?:ed)?\}|\$\$", " ", text)
        blocks = re.split(r"Regime .*?, convention ", text)[1:]
        known: dict[str, str] = {}
        found: dict[str, str] = {}
        for block in blocks:
            heading, _, rest = block.partition("\n")
            mine = re.search(rf"(?:^|[`{{ ]){re.escape(self.title)}(?:[`}}., ]|$)", re.sub(r"\\(?:allowbreak|penalty\d+)\{\}", "", heading))
            own = {}
            for kind, number in re.findall(r"The (\w+) (?:FLOPs|MACs) are those of equation \D*?(?:eq:.*?-)?(\d+)", rest):
                own[kind] = known[number]
            for kind, body, number in re.findall(r"\\mathrm\{(\w+)\} =\{\}(.*?)\\(?:label\{eq:.*?-|tag\{)(\d+)\}", rest, re.DOTALL):
                own[kind] = known[number] = re.sub(r"\\\\|\\cr\b", " ", body)
            found = own if mine else found
        return found

    @cache  # noqa: B019
    def letters(self) -> tuple[dict[str, str], dict[str, Any]]:
        """The letters of the page, and the values of sizes."""
        shown = abbreviated(self.program.first())
        sizes = dict(self.together.sizes)
        for definition in (*shown.definitions, *with_plain_words(shown).definitions):
            with suppress(LookupError):  # a count of layers that this config does not have
                sizes[definition.letter] = evaluate(definition.formula, sizes)
        sizes = {letter: re.sub(r"[^A-Za-z0-9 .,:/-]", "-", value) if isinstance(value, str) else value for letter, value in sizes.items()}
        return letters_of(fragments(shown)) | letters(with_plain_words(shown)), sizes

    def statistics(self, batch: dict[str, Any]) -> dict[str, int]:
        """The figures of a batch as a whole, on real lengths."""
        found: dict[str, int] = {}
        sets = items_of(self.together.stored, batch)
        for one in self.program.statistics:
            values = [evaluate(one.formula, {**self.together.sizes, **found, **item}) for item in sets.get(one.items, ())]
            found[one.name] = sum(values) if one.kind == "sum" else max(values, default=0)
        return found

    def of_page(self, target: Any, batch: dict[str, Any]) -> tuple[Any, ...]:
        names, sizes = self.letters()
        values = {names[letter]: value for letter, value in (sizes | self.statistics(batch)).items() if letter in names}
        sums, moments = self.together.moments(**batch), self.program.moments
        every = [moment for place, moment in enumerate(moments) if place in self.together.places]
        for moment, real, padded in zip(every, sums.values, sums.padded_values, strict=True):
            place = moments.index(moment)
            values |= {names[f"real@{place}"]: padded if moment.side else real, names[f"padded@{place}"]: padded}
        forms = self.page(target)
        return tuple(read(forms[kind], values) if kind in forms else 0 for kind in PASSES)

    def __hash__(self) -> int:
        return id(self)


def printings(name: str, convention: str, chance: random.Random) -> tuple[Printings, dict[str, Any]]:
    """A spec under a convention and a drawn regime that fits it, for the config of a drawn case, and the batch of the case."""
    case = chance.choice(cases_of(FILES[name])) if NIGHTLY else cases_of(FILES[name])[0]
    config = dict(case.config)
    for regime in sorted(REGIMES, key=lambda _: chance.random()):
        try:
            load(name).check_regime(regime, config)
        except SymflopsError:
            continue
        return Printings(name, convention, regime, config), dict(case.batch)
    raise AssertionError(f"no regime fits {name}")


def compare(name: str, convention: str, batches: int) -> None:
    """Compare all printings on drawn batches; on one that the model refuses, the next one is drawn."""
    chance = random.Random(f"{SEED}{name}{convention}")
    printed, given = printings(name, convention, chance)
    sets = sets_of(printed.together.stored)
    tried = 0
    for batch in (given, *(drawn(given, sets, chance) for _ in range(6 * batches))):
        try:
            expected = tuple(getattr(printed.alone, kind)(printed.alone.moments(**batch)) for kind in PASSES)
        except SymflopsError:
            continue
        figures = printed.figures(batch)
        assert figures == dict.fromkeys(figures, expected), (name, convention, printed.regime, batch)
        tried += 1
        if tried > batches:
            break
    assert tried > 1 or batches == 0


@pytest.mark.parametrize(("name", "convention"), sampled(SAMPLE, 9, 1))
def test_all_printings_of_a_convention_agree(name: str, convention: str) -> None:
    compare(name, convention, 2)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "convention"), PAIRS)
def test_all_printings_of_every_convention_agree(name: str, convention: str) -> None:
    compare(name, convention, amount(1, 5))


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "convention"), LONG)
def test_all_printings_agree_on_many_batches(name: str, convention: str) -> None:
    compare(name, convention, amount(1, 50))
