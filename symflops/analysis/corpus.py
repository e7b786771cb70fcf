"""Prices a corpus: sums over a table of lengths, and the FLOPs that follow from them.

FLOPs are linear in moments, so one scan of a table prices every model, convention and regime.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from symflops.emit.sql.sums import Items, Rows, Substitution, Total, product, sum_in, whole
from symflops.evaluate.batch import BatchError
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.moments import Moments, per_token, tokens_of
from symflops.formula.formula import ONE, ZERO, Bracket, Formula, Num, Sym, number
from symflops.ir.index_sets import ONCE
from symflops.support.errors import SymflopsError, did_you_mean

KINDS = ("forward", "backward", "recomputed", "total")


def columns_in(text: str) -> dict[str, tuple[str, ...]]:
    """Parse the ``--columns`` option: stream -> its columns.

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
    """Computes a model's FLOPs on a table with a sample per row, from SQL sums over the rows.

    ``columns`` maps each stream to the columns of the table that contain its lengths.

    Raises:
        BatchError: the model lacks a stream, a stream lacks a column, or moments are not sums over items.
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
        counted = Total(self.rows, self.rows.sets[0], ONE)  # the row count, needed even if no work depends on rows
        self.totals = (counted, *(found for found in self._totals if found is not None))

    def _stream(self, name: str, axes: Sequence[str], absent: int) -> None:
        """Set the columns with the lengths of a stream; without columns, its lengths are ``absent``."""
        given = self.columns.get(name)
        if given is None and not self.model.streams[name]:
            raise BatchError(f"'{self.model.name}' needs the stream '{name}': --columns '{name}={','.join(axes) or 'count'}'")
        if given is not None and len(given) != max(len(axes), 1):
            wanted = f"{len(axes)} columns ({', '.join(axes)})" if len(axes) > 1 else "one column"
            raise BatchError(f"the stream '{name}' of '{self.model.name}' has {wanted}, not {len(given)}")
        self.lengths |= (
            {axis: number(absent) for axis in axes} if given is None else dict(zip(axes, map(Sym, given), strict=False))
        )

    def _counted(self, items: str) -> Formula:
        """The number of items per row, as a formula: 1, or the count column of a stream without lengths."""
        counts = [Sym(self.columns[name][0]) for name, axes, _ in self.model.sets[items] if not axes and name in self.columns]
        return counts[0] if counts else ONE

    def _items(self, items: str) -> Items | None:
        """Return the columns of an index set and the conditions on a valid item; None without columns."""
        own = tuple(dict.fromkeys(c for name, _, _ in self.model.sets[items] for c in self.columns.get(name, ())))
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
        """Yield the conditions on a batch of one row whose statistics are of exactly the index sets ``sets``."""
        stored, settling = self.model.stored, self._settling()
        for row in stored.conditions:
            if {one["items"] for one in row["statistics"]} == set(sets):
                alone = {one["name"]: settling.of(one["formula"]) for one in row["statistics"]}
                yield Bracket("at_least", (Substitution(stored.formulas, self.model.sizes, alone).of(row["formula"]), ONE))

    def _settling(self) -> Substitution:
        return Substitution(self.model.stored.formulas, self.model.sizes, self.lengths)

    @cached_property
    def _moments(self) -> list[Mapping[str, Any]]:
        return [self.model.stored.moments[place] for place in self.model.places]

    @cached_property
    def _totals(self) -> list[Total | None]:
        """The SQL sum for each moment; None if the table has no columns for its index set."""
        settling = self._settling()

        def total(items: str, formula: int) -> Total:
            return Total(self.rows, self.sets[items], product((self._counted(items), settling.of(formula))))

        return [total(row["items"], row["formula"]) if row["items"] in self.sets else None for row in self._moments]

    def moments(self, row: Mapping[str, Any]) -> Moments:
        """Convert a result row of the query to moments; moments without an SQL sum are 0.

        Raises:
            SymflopsError: a sum is missing from the result, or is not a whole number.
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

    def refused_rows(self, row: Mapping[str, Any]) -> int:
        """Count the table's rows that the model cannot run; ``row`` is the query's result for the whole table."""
        return int(row["n_rows"]) - int(row[self.rows.count])

    def per_step(self) -> int:
        """Return the FLOPs of one step that do not depend on its batch."""
        pairs = zip(self._moments, self.model.coefficients["total"], strict=True)
        sizes, formulas = self.model.sizes, self.model.stored.formulas
        return int(sum(cost * formulas.checked(row["formula"], sizes) for row, cost in pairs if row["items"] == ONCE and cost))

    def terms(self) -> list[tuple[Total, int]]:
        """Return (SQL sum, FLOPs of both passes per unit of this sum) for each sum that costs something.

        Raises:
            SymflopsError: the convention counts fractions of a FLOP.
        """
        found = []
        for total, cost in zip(self._totals, self.model.coefficients["total"], strict=True):
            if Fraction(cost).denominator != 1:
                raise SymflopsError(f"convention '{self.model.convention}' counts parts of a FLOP: no row has a whole cost")
            if total is not None and cost:
                found.append((total, int(cost)))
        return found

    def figures(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Build the figures of a result row: FLOPs by pass (``KINDS``), ``tokens`` and ``flops_per_token``."""
        m = self.moments(row)
        found = {kind: getattr(self.model, kind)(m) for kind in KINDS}
        tokens = tokens_of(self.model.stored, self.model.regime, self.model.sizes, m)
        return found | {"tokens": tokens, "flops_per_token": per_token(found["total"], tokens)}

    def described(self) -> dict[str, Any]:
        """Return spec, regime, convention, parameters, notes and evidence, as :func:`symflops.estimate` does."""
        model = self.model
        notes = list(model.notes(self.columns))
        if self.per_step():
            notes.append(f"{self.per_step():,} FLOPs of each step, whatever its batch, are not counted")
        return {
            "spec": model.name, "variant": model.variant, "regime": model.regime, "convention": model.convention,
            "unit": model.unit, "parameters": model.parameters, "notes": notes, "evidence": model.evidence,
        }  # fmt: skip


def is_sure(one: Bracket) -> bool:
    """Whether a condition compares two constants and holds; False if a length decides it."""
    left, right = one.arguments
    return (
        isinstance(left, Num)
        and isinstance(right, Num)
        and (left.value >= right.value if one.kind == "at_least" else left == right)
    )


def all_totals(models: Iterable[Priced]) -> list[Total]:
    """Return the SQL sums that any of ``models`` needs, without duplicates."""
    return list(dict.fromkeys(total for model in models for total in model.totals))


def summed_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up result rows, one per group of table rows; ``n_rows``, equal in all of them, is not added.

    Raises:
        SymflopsError: ``rows`` is empty, or a sum is not a whole number.
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
