"""What a corpus costs: the sums over a table of lengths that models need, and the FLOPs that follow from them.

FLOPs are linear in moments, so one scan of a table prices every model, convention and regime.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from symflops.emit.sql.constants import Settling, product
from symflops.emit.sql.sums import Items, Rows, Total, sum_in, whole
from symflops.evaluate.batch import BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.moments import Moments, per_token, tokens_of
from symflops.formula.formula import ONE, ZERO, Bracket, Formula, Num, Sym, number
from symflops.ir.index_sets import ONCE
from symflops.support.errors import SymflopsError, did_you_mean

KINDS = ("forward", "backward", "recomputed", "total")


def columns_in(text: str) -> dict[str, tuple[str, ...]]:
    """The columns of each stream.

    >>> columns_in("text=n_tokens; images=t,h,w")
    {'text': ('n_tokens',), 'images': ('t', 'h', 'w')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(";"))):
        for part in [piece] if piece.count("=") < 2 else piece.split(","):
            name, mark, columns = part.partition("=")
            names = tuple(name.strip() for name in columns.split(","))
            if not mark or not all(names) or name.strip() in found:
                hint = "each stream once, e.g. --columns 'text=n_tokens' or 'latent=h,w; prompt=n'"
                raise SymflopsError(f"--columns maps streams to columns, {hint}, not '{text[:80]}'")
            found[name.strip()] = names
    return found


class Priced:
    """A model whose FLOPs are priced from sums over a table.

    Raises:
        BatchError: the model lacks a stream, or a stream lacks a column; or moments are no sums over items.
    """

    def __init__(self, model: InterpretedEstimator, columns: Mapping[str, Sequence[str]]) -> None:
        self.model = model
        if model.whole:
            raise BatchError(
                f"'{model.name}': moments of one batch as a whole are not sums over rows ({', '.join(model.whole)})"
            )
        unknown = [name for name in columns if name not in model.streams]
        if unknown:
            hint = did_you_mean(unknown[0], model.streams, f"it has {', '.join(model.streams) or 'no streams'}")
            raise BatchError(f"'{model.name}' has no stream '{unknown[0]}': {hint}")
        self.columns = {name: tuple(columns[name]) for name in model.streams if name in columns}
        self.lengths: dict[str, Formula] = {}
        for streams in model.sets.values():
            for name, axes, absent in streams:
                self._stream(name, axes, absent)
        self.sets = {name: items for name in model.sets if (items := self._items(name))}
        if not self.sets:
            raise BatchError(f"'{model.name}' has no stream among {', '.join(columns)}")
        self.rows = Rows(tuple(self.sets.values()), tuple(self._conditions(self.sets)) if len(self.sets) > 1 else ())
        counted = Total(self.rows, self.rows.sets[0], ONE)  # a model without work over rows has their number, too
        self.totals = (counted, *(found for found in self._totals if found is not None))

    def _stream(self, name: str, axes: Sequence[str], absent: int) -> None:
        """Put columns, or the length of a stream that is left out, in place of the axes of a stream."""
        given = self.columns.get(name)
        if given is None and not self.model.streams[name]:
            raise BatchError(f"'{self.model.name}' needs the stream '{name}': --columns '{name}={','.join(axes) or 'count'}'")
        if given is not None and len(given) != max(len(axes), 1):
            wanted = f"{len(axes)} columns ({', '.join(axes)})" if len(axes) > 1 else "one column"
            raise BatchError(f"the stream '{name}' of '{self.model.name}' has {wanted}, not {len(given)}")
        self.lengths |= (
            {axis: number(absent) for axis in axes} if given is None else dict(zip(axes, map(Sym, given), strict=False))
        )

    def _of_set(self, items: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c for name, _, _ in self.model.sets[items] for c in self.columns.get(name, ())))

    def _counted(self, items: str) -> Formula:
        """How many items of a set a row has: one, or as many as a stream without lengths says."""
        counts = [Sym(self.columns[name][0]) for name, axes, _ in self.model.sets[items] if not axes and name in self.columns]
        return counts[0] if counts else ONE

    def _items(self, items: str) -> Items | None:
        """The items of a set that the model can run; None if no column has any."""
        own = self._of_set(items)
        if not own:
            return None
        stored, settling = self.model.stored, self._settling()
        conditions = [Bracket("at_least", (settling.of(row["formula"]), ONE)) for row in stored.inner if row["items"] == items]
        for row in self._moments:
            if row["items"] == items:
                settling.of(row["formula"])
        conditions += [Bracket("equal", (rest, ZERO)) for rest in settling.rests]
        conditions += self._conditions({items})
        return Items(own, tuple(dict.fromkeys(one for one in conditions if not is_sure(one))))

    def _conditions(self, sets: Collection[str]) -> Iterator[Bracket]:
        """The conditions on a batch of one row that read exactly these index sets."""
        stored, settling = self.model.stored, self._settling()
        for row in stored.conditions:
            if {one["items"] for one in row["statistics"]} == set(sets):
                alone = {one["name"]: settling.of(one["formula"]) for one in row["statistics"]}
                yield Bracket("at_least", (Settling(stored.formulas, self.model.sizes, alone).of(row["formula"]), ONE))

    def _settling(self) -> Settling:
        return Settling(self.model.stored.formulas, self.model.sizes, self.lengths)

    @cached_property
    def _moments(self) -> list[Mapping[str, Any]]:
        return [self.model.stored.moments[place] for place in self.model.places]

    @cached_property
    def _totals(self) -> list[Total | None]:
        """The sum of each moment; None if it is of no row."""
        settling = self._settling()

        def total(items: str, formula: int) -> Total:
            return Total(self.rows, self.sets[items], product((self._counted(items), settling.of(formula))))

        return [total(row["items"], row["formula"]) if row["items"] in self.sets else None for row in self._moments]

    def moments(self, row: Mapping[str, Any]) -> Moments:
        """The moments of the rows that a result sums up, and of no step.

        Raises:
            SymflopsError: the result lacks a sum, or has it as a float.
        """
        values: list[Any] = []
        for total in self._totals:
            found = None if total is None else sum_in(row, total)
            if total is not None and found is None:
                raise SymflopsError(
                    f"the result has no whole number for the sums of '{self.model.name}': query it with this model"
                )
            values.append(int(found or 0))
        names, model = tuple(self.model.moment_sets), self.model
        return Moments(names, tuple(values), tuple(values), (), model.padded_sums)

    def left_out(self, row: Mapping[str, Any]) -> int:
        """The rows that the model cannot run, of a result that is together."""
        return int(row["n_rows"]) - int(row[self.rows.count])

    def per_step(self) -> int:
        """FLOPs of each step, whatever its batch."""
        pairs = zip(self._moments, self.model.coefficients["total"], strict=True)
        sizes, formulas = self.model.sizes, self.model.stored.formulas
        return int(sum(cost * formulas.settled(row["formula"], sizes) for row, cost in pairs if row["items"] == ONCE and cost))

    def terms(self) -> list[tuple[Total, int]]:
        """The cost of each sum, both passes together.

        Raises:
            SymflopsError: the convention counts parts of a FLOP.
        """
        found = []
        for total, cost in zip(self._totals, self.model.coefficients["total"], strict=True):
            if Fraction(cost).denominator != 1:
                raise SymflopsError(f"convention '{self.model.convention}' counts parts of a FLOP: no row has a whole cost")
            if total is not None and cost:
                found.append((total, int(cost)))
        return found

    def figures(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """FLOPs and tokens of the rows that a result sums up."""
        m = self.moments(row)
        found = {kind: getattr(self.model, kind)(m) for kind in KINDS}
        tokens = tokens_of(self.model.stored, self.model.regime, self.model.sizes, m)
        return found | {"tokens": tokens, "flops_per_token": per_token(found["total"], tokens)}

    def described(self) -> dict[str, Any]:
        """The model as an estimate describes it."""
        model = self.model
        notes = list(model.notes(self.columns))
        if self.per_step():
            notes.append(f"{self.per_step():,} FLOPs of each step, whatever its batch, are not counted")
        return {
            "spec": model.name, "variant": model.variant, "regime": model.regime, "convention": model.convention,
            "unit": model.unit, "parameters": model.parameters, "notes": notes, "evidence": model.evidence,
        }  # fmt: skip


def is_sure(one: Bracket) -> bool:
    """Whether a condition holds for every length."""
    left, right = one.arguments
    return (
        isinstance(left, Num)
        and isinstance(right, Num)
        and (left.value >= right.value if one.kind == "at_least" else left == right)
    )


def all_totals(models: Iterable[Priced]) -> list[Total]:
    """The sums of several models, each once."""
    return list(dict.fromkeys(total for model in models for total in model.totals))


def summed_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows of groups as one row: sums add; the number of all rows is the same in each.

    Raises:
        SymflopsError: there is no row, or a sum is no whole number.
    """
    if not rows:
        raise SymflopsError("the models can run no row of the table")
    found: dict[str, Any] = {"n_rows": whole(rows[0]["n_rows"])}
    for name in rows[0]:
        if name.startswith(("s_", "n_")) and name != "n_rows":
            values = [whole(row.get(name)) for row in rows]
            if None in values:
                raise SymflopsError(
                    f"'{name}' of the result is {rows[0][name]!r}, which is no whole number: export sums as integers or texts"
                )
            found[name] = sum(value for value in values if value is not None)
    return found
