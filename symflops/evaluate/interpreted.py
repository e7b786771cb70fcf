"""The estimator: it interprets a stored program."""

from __future__ import annotations

from functools import cached_property
from operator import mul

from symflops.evaluate.batch import LONGEST, BatchError, FormError, merged
from symflops.evaluate.batch_moments import Batches
from symflops.evaluate.classes import check_class
from symflops.evaluate.config import as_json
from symflops.evaluate.evidence import evidence, inexact, left_to_class, parts_left_out
from symflops.evaluate.layouts import implied_streams, inputs_of, sets_of
from symflops.evaluate.module_tree import markdown_of
from symflops.evaluate.moments import (
    Flops,
    Moments,
    active_of,
    item_costs,
    summed,
    too_many_chosen,
    whole_if_possible,
    whole_total,
)
from symflops.evaluate.sizes import check_fit, sizes_of, unanswered
from symflops.evaluate.stored import DamageTold, Line, OtherStructure, config_value, stored_of
from symflops.evaluate.typical import example_of, lengths_taken
from symflops.evaluate.unread import check_unread
from symflops.formula.table import BoundFormulas, ConfigError
from symflops.ir.index_sets import PADDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from symflops.evaluate.stored import Stored
    from symflops.ir.program import Program


class InterpretedEstimator:
    """Parameters and FLOPs of one model under a regime and a convention of its program.

    ``program`` is a program, or the JSON object of a stored one.

    Raises:
        SymflopsError: no such regime or convention, or a config that does not fit.
    """

    account, proven = "", False  # comparison of parameters with a live module, and whether the real class agrees
    asked = ""  # the name by which the model was asked for
    path = ""  # the YAML file of the spec, if the estimator was made from it

    def __init__(
        self,
        program: Program | Mapping[str, Any],
        config: Mapping[str, Any],
        *,
        regime: str = "full",
        convention: str = "symflops",
    ) -> None:
        self.stored, self.config = stored_of(program), as_json(config)
        with DamageTold():
            self._read(self.stored, self.config, regime, convention)

    longest = LONGEST  # the largest length of a list
    any_length = False  # whether lengths on which the class fails are accepted

    def _read(self, stored: Stored, config: Mapping[str, Any], regime: str, convention: str) -> None:
        check_class(stored.name, stored.document["references"], stored.document["model_types"], config)
        self.unread = check_unread(stored, config)
        stored.check(regime, convention)
        self._bind(stored, sizes_of(stored, config), regime, convention)

    def _bind(self, stored: Stored, sizes: dict[str, Any], regime: str, convention: str) -> None:
        """Check the sizes, and evaluate everything that does not depend on a batch."""
        self.measured: Mapping[str, Any] = {}
        self.name, self.variant, self.regime, self.convention = stored.name, stored.variant, regime, convention
        self.unit = stored.of_convention("units", convention)
        self.exception: str = dict(stored.document.get("exceptions", ())).get(convention, "")
        self.sizes = sizes
        for letter, value in stored.fixed:
            if config_value(self.sizes[letter]) != value:
                raise OtherStructure(f"this derivation is of models whose '{letter}' is {value!r}, not {self.sizes[letter]!r}")
        check_fit(stored, self.sizes)
        chosen = stored.regimes[regime]
        self._values: dict[int, Any] = {}
        self._formulas = BoundFormulas(stored.formulas.nodes, self.sizes)
        self.padded = stored.of_convention("lengths", convention) == PADDED
        self.places = stored.places(convention)
        rows = [stored.moments[place] for place in self.places]
        self.sets, self.moment_sets = sets_of(stored), {row["name"]: row["items"] for row in rows}
        self._names = tuple(self.moment_sets)
        self._plain = None if self.padded else self._names  # names of moments usable without conversion
        self.parameters: int = whole_total(self._value(chosen["parameters"]))
        self.trainable_parameters: int = whole_total(self._value(chosen["trainable"]))
        self.parameters_active = active_of(stored, regime, self.sizes)
        self._unanswered = unanswered(stored, self.config, self.sizes)
        if self.parameters_active is not None and self.parameters_active > self.parameters:
            self._unanswered = self._unanswered or too_many_chosen(stored, regime, self.sizes, self.parameters)
        if not self._unanswered:
            _ = self._lines
        self.streams = {stream.name: stream.optional for stream in stored.streams if stream.given}
        asked = implied_streams(stored)
        self.implied = tuple(name for name, some in asked if any(one is None or self._value(one) for one in some))
        self.padded_sums = tuple(row["name"] for row in rows if row.get("side"))
        self.whole = tuple(name for name in stored.whole if name in self.moment_sets)

    @cached_property
    def _lines(self) -> list[Line]:
        """The contractions that the convention counts, with every formula of sizes evaluated."""
        if self._unanswered:
            raise ConfigError(self._unanswered)
        stored, name = self.stored, self.convention
        places = {place: number for number, place in enumerate(self.places)}
        kind, unseen = (stored.of_convention(table, name) for table in ("pairs", "unseen"))
        how = self._value, places, kind, unseen, stored.shares(name)
        return [Line(stored.document, position, *how) for position in stored.lines(self.regime, name)]

    @cached_property
    def _batches(self) -> Batches:
        """Reader that computes the moments of batches."""
        return Batches(self.stored, self.sizes, self.places, self.longest, self.any_length)

    @property
    def evidence(self) -> dict[str, Any]:
        """The evidence for an estimate; see :func:`symflops.evaluate.evidence.evidence`."""
        return evidence(self)

    @property
    def program(self) -> Program:
        """The program as the dataclasses of :mod:`symflops.ir.program`."""
        return self.stored.program

    def _value(self, position: int) -> Any:
        """The value of the formula of sizes at a position (cached)."""
        if position not in self._values:
            self._values[position] = self._formulas.checked(position, self.sizes)
        return self._values[position]

    @cached_property
    def coefficients(self) -> dict[str, tuple[Any, ...]]:
        """Map ``forward``, ``backward``, ``recomputed`` and ``total`` (the first two) to the FLOPs per unit of each moment."""
        found = {kind: [0] * len(self.moment_sets) for kind in ("forward", "backward", "recomputed", "total")}
        for line in self._lines:
            counts = (line.forward, line.backward, line.recomputed, line.forward + line.backward)
            for position, part in line.vector:
                for kind, count in zip(found.values(), counts, strict=True):
                    kind[position] += line.unit * part * count
        return {kind: tuple(map(whole_if_possible, values)) for kind, values in found.items()}

    def _not_whole(self) -> None:
        if self.whole:
            raise BatchError(f"moments of one batch as a whole are not sums over items ({', '.join(self.whole)})")

    def terms(self, *columns: Any) -> tuple[Any, ...]:
        """For each moment, the contribution of each item, given one column of lengths (int or array) per axis."""
        self._not_whole()
        return self._batches.terms(*columns)

    def rests(self, *columns: Any) -> tuple[Any, ...]:
        """For each division of lengths in the model, the remainder per item, 0 if valid; arguments as for :meth:`terms`."""
        self._not_whole()
        return self._batches.rests(*columns)

    def inner_lengths(self, *columns: Any) -> tuple[tuple[str, Any], ...]:
        """Pairs of index set and column, one per length inside the model; valid lengths are at least 1."""
        pairs = zip(self._batches.inner, self._batches.inner_terms(*columns), strict=True)
        return tuple((row["items"], left) for row, left in pairs)

    @property
    def taken(self) -> dict[str, int]:
        """Map each axis that a condition of the spec limits to a valid length."""
        return lengths_taken(self.stored, self.sizes)

    def inputs(self) -> dict[str, tuple[str, str, int | None]]:
        """Map each argument with lengths to (stream or index set, layout as text, number of channels or None)."""
        return inputs_of(self.stored, self._value)

    def moments(self, *whole: Any, **batch: Any) -> Moments:
        """The moments of a batch: per stream a list or integer array with one entry per item; or one dict of these."""
        try:
            return self.read(merged(whole, batch))
        except FormError as error:
            raise self._explained(error) from None

    def read(self, batch: Mapping[str, Any]) -> Moments:
        """Compute the moments of a batch; an error comes without the example that :meth:`moments` adds."""
        values, padded = self._batches.moments(batch)
        return Moments(self._names, values, padded, self.whole, self.padded_sums)

    def _explained(self, error: FormError) -> BatchError:
        """Copy of ``error`` with an example of a valid batch in its message."""
        example = example_of(self)
        return BatchError(f"{error}; e.g. {example}" if example else str(error))

    def notes(self, batch: Mapping[str, Any]) -> list[str]:
        """List what a user should know about an estimate of ``batch``, such as work that is not counted."""
        left_out = [name for name in self.implied if name not in batch]
        found = [f"the batch has no '{name}', which this config implies: its work is not counted" for name in left_out]
        found += [row["text"] for row in self.stored.document.get("expected", ()) if self._value(row["formula"]) == 0]
        found += [*left_to_class(self.stored, self.config), *parts_left_out(self.stored, self.regime, self.config, self.sizes)]
        if self.exception:
            found.append(f"convention '{self.convention}' makes an exception for this class: {self.exception}")
        return [*found, *inexact(self.measured)]

    def per_item(self, *whole: Any, **batch: Any) -> dict[str, Any]:
        """Map each index set to the FLOPs of its items in both passes, in the order of the batch; they sum to ``total``.

        Lists give lists of ints, and arrays integer arrays.

        Raises:
            BatchError: as ``moments``; or the cost of an item depends on other items.
        """
        self._not_whole()
        try:
            found = self._batches.read(merged(whole, batch))
        except FormError as error:
            raise self._explained(error) from None
        return item_costs(self._batches, found, self.padded, self.coefficients["total"])

    def per_sample(self, *whole: Any, **batch: Any) -> Any:
        """FLOPs of each sample, forward and backward; they sum to ``total``.

        Raises:
            BatchError: as ``moments``; or items of another index set also cost FLOPs, which ``per_item`` returns.
        """
        costs = self.per_item(*whole, **batch)
        others = [items for items, found in costs.items() if items != "samples" and len(found)]
        if others:
            raise BatchError(f"this batch has costs per {', '.join(others)} beside those per sample: use per_item")
        return costs["samples"]

    def _work(self, m: Any) -> list[tuple[Any, Any]]:
        """List (contraction, FLOPs that it has on the batch if it runs once)."""
        values = self._counted(m)
        return [(line, line.once(values)) for line in self._lines]

    def _counted(self, m: Any) -> tuple[int, ...]:
        """The values of moments that the convention counts: over padded or over real lengths.

        Raises:
            BatchError: the moments belong to another model.
        """
        found = self._own(m)
        return found.padded_values if self.padded else found.values

    def _own(self, m: Any) -> Moments:
        """Moments, or those of a batch, in the order of the model's own."""
        given: Moments = m if isinstance(m, Moments) else self.moments(m)
        return given if given.names == self._names else self._of_names(given)

    def _of_names(self, m: Moments) -> Moments:
        return m.named(self._names, self.name)

    def _pass(self, m: Any, kind: str) -> int:
        found = sum(map(mul, self.coefficients[kind], self._counted(m)))
        return found if type(found) is int and found >= 0 else whole_total(found)

    def forward(self, m: Moments | Mapping[str, Any]) -> int:
        """FLOPs of the forward pass, for moments or a batch."""
        return self._pass(m, "forward")

    def backward(self, m: Moments | Mapping[str, Any]) -> int:
        """FLOPs of the backward pass without recomputation."""
        return self._pass(m, "backward")

    def recomputed(self, m: Moments | Mapping[str, Any]) -> int:
        """FLOPs of forward work that the backward pass recomputes (activation checkpointing)."""
        return self._pass(m, "recomputed")

    def total(self, m: Moments | Mapping[str, Any]) -> int:
        """FLOPs of the forward and backward pass."""
        plain = isinstance(m, Moments) and m.names is self._plain
        found = sum(map(mul, self._total, m.values if plain else self._counted(m)))  # type: ignore[arg-type]
        return found if type(found) is int and found >= 0 else whole_total(found)

    @cached_property
    def _total(self) -> tuple[Any, ...]:
        """FLOPs of both passes per unit of each moment."""
        return self.coefficients["total"]

    def cache(self, m: Moments | Mapping[str, Any], bytes_each: int = 1) -> dict[str, int]:
        """Elements that a batch, or its moments, keeps for further tokens, by kind; bytes if an element has ``bytes_each``.

        Empty if the regime keeps nothing.
        """
        values = self._own(m).values
        places = {place: number for number, place in enumerate(self.places)}
        return {
            kind: whole_total(sum(self._value(part) * values[places[place]] for place, part in terms)) * bytes_each
            for kind, terms in self.stored.regimes[self.regime].get("cache", ())
        }

    def by_module(self, m: Moments | Mapping[str, Any]) -> dict[str, Flops]:
        """FLOPs per module that does work; ``*`` is the index of a repeat, whose copies are summed."""
        found: dict[str, list[Any]] = {}
        for line, size in self._work(m):
            sums = found.setdefault(line.module, [0, 0, 0])
            for position, count in enumerate((line.forward, line.backward, line.recomputed)):
                sums[position] += size * count
        return {module: Flops(*(whole_total(value) for value in sums)) for module, sums in found.items()}

    def by_contraction(self, m: Moments | Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        """Map each contraction, (module, name), to its FLOPs in both passes."""
        both = (((one.module, one.contraction), flops * (one.forward + one.backward)) for one, flops in self._work(m))
        return {contraction: whole_if_possible(flops) for contraction, flops in summed(both).items()}

    def running(self, m: Moments | Mapping[str, Any]) -> dict[tuple[str, ...], int]:
        """Map each call stack of modules, outermost first, to the FLOPs of its forward pass."""
        found = summed((line.within, flops * line.forward) for line, flops in self._work(m))
        return {modules: whole_total(work) for modules, work in found.items()}

    def _repr_markdown_(self) -> str:
        """Markdown table of coefficients, for notebooks."""
        return markdown_of(self)

    def tensors(self) -> dict[str, int]:
        """Map each parameter to its number of elements, summed over its copies in repeats."""
        return summed((name, self._value(count)) for name, count in self.stored.tensors(self.regime))

    def __repr__(self) -> str:
        return f"<Estimator of '{self.name}': {self.regime:.60}, {self.convention}, {self.parameters:,} parameters>"
