"""The estimator of a generated module: everything but the model's own formulas.

Generated modules import this; those that stand alone hold the text below the line.
"""

from __future__ import annotations

import sys

from symflops.runtime.module_batch import (
    BatchFormError,
    columns_of,
    differ,
    in_use,
    listed,
    too_short_item,
    vectors_here,
)
from symflops.runtime.module_moments import ModelMoments
from symflops.runtime.module_sizes import OtherStructure, as_tuple, in_flops, lines_of, settled, tensors_of, total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Generic, TypeVar

    from symflops.runtime.module_batch import Axes, Columns

# ---- what modules that stand alone hold, too
if TYPE_CHECKING:
    S = TypeVar("S")
    M = TypeVar("M", bound=ModelMoments)
else:
    S = M = None

    class Generic:
        """Takes the types of sizes and moments, which only type checkers read."""

        __slots__ = ()

        def __class_getitem__(cls, _: object) -> type:
            return cls


class BoundEstimator(Generic[S, M]):
    """What binds sizes, a regime and a convention to a model's formulas, and reads batches; ``ModelEstimator`` is its whole.

    Modules override what has an underscore.
    """

    name = ""
    streams: Mapping[str, bool] = {}
    sets: Mapping[str, tuple[Axes, ...]] = {}
    moment_sets: Mapping[str, str] = {}
    whole: tuple[str, ...] = ()
    padded_sums: tuple[str, ...] = ()

    _moments: Any = ModelMoments
    _sized = False  # whether moments depend on sizes
    _fixed: tuple[tuple[str, Any], ...] = ()  # the sizes that decide the structure
    _conventions: Mapping[str, tuple[str, str, bool]] = {}  # pairs, lengths, whether unseen work counts
    _units: Mapping[str, str] = {}  # the unit of each convention that does not count a multiply-add as two FLOPs
    _hidden: Mapping[str, tuple[int, ...]] = {}  # per regime the lines that it does not see
    _regimes: Mapping[str, tuple[Any, ...]] = {}  # work, column, gradients, recomputed, parameters, those of adapters
    _own: Mapping[str, Mapping[str, tuple[Any, int, bool, bool]]] = {}  # by convention with rules of its own
    _shares: Mapping[str, int] = {}  # per convention into how many parts its lines divide a FLOP
    _demanding = False  # whether the class refuses some batches as a whole
    _inner_sets: tuple[str, ...] = ()  # the index set of each inner length
    _inner_sized = False  # whether what the class refuses depends on sizes
    _growing = False  # whether every inner length grows with each length
    _falling = False  # whether every inner length grows or falls with each length

    __slots__ = (
        "_elements", "_lines", "_total", "coefficients", "convention", "padded", "parameters", "regime", "sizes",
        "trainable_parameters",
    )  # fmt: skip

    def __init__(self, sizes: S, *, regime: str = "full", convention: str = "symflops") -> None:
        for attribute, value in self._fixed:
            given = as_tuple(getattr(sizes, attribute))
            if given != value:
                raise OtherStructure(f"this module is of models whose '{attribute}' is {value!r}, not {given!r}")
        if regime not in self._regimes:
            raise ValueError(f"no regime '{regime}'; this module has {', '.join(self._regimes)}")
        if convention not in self._conventions:
            raise ValueError(f"no convention '{convention}'; this module has {', '.join(self._conventions)}")
        self.sizes, self.regime, self.convention = sizes, regime, convention
        for value, text in self._requires(sizes):
            if value != 0:
                raise ValueError(f"the config does not fit the model: {text}")
        try:
            self._settle(sizes, regime, convention)
        except ZeroDivisionError as error:
            raise ValueError(f"the config does not fit the model: {error}") from None

    @property
    def unit(self) -> str:
        """The unit of what it counts: ``flops``, ``macs`` of two FLOPs each, or ``macs_as_flops`` as its source has it."""
        return self._units.get(self.convention, "flops")

    def _settle(self, sizes: S, regime: str, convention: str) -> None:
        """Evaluate what depends on the sizes alone."""
        pairs, lengths, unseen = self._conventions[convention]
        work, column, gradients, recomputed, *counts = self._regimes[regime]
        self.padded = lengths == "padded"
        own = self._own.get(convention, {}).get(regime)
        work, column, gradients, recomputed = own or (work, column, gradients, recomputed)
        self._lines = lines_of(work(sizes, pairs), column, gradients, recomputed)
        if convention in self._shares:
            self._lines = in_flops(self._lines, self._shares[convention])
        if not unseen and self._hidden:
            hidden = self._hidden[regime]
            self._lines = [line for position, line in enumerate(self._lines) if position not in hidden]
        self.coefficients = self._bound()
        if convention in self._shares:
            self.coefficients = {kind: tuple(map(settled, values)) for kind, values in self.coefficients.items()}
        self._total = self.coefficients["total"]
        self._elements = tensors_of(*[count(sizes) for count in counts])
        self.parameters = total_of(sum(self._elements.values()))
        self.trainable_parameters = total_of(self._trained(sizes).get(regime, self.parameters))

    def _bound(self) -> dict[str, tuple[int, ...]]:
        """One coefficient per moment and pass."""
        costs: dict[tuple[int, ...], list[int]] = {}
        for _, amount, unit, forward, gradients, again in self._lines:
            cost = costs.get(amount)
            if cost is None:
                cost = costs[amount] = [0, 0, 0]
            cost[0] += unit * forward
            cost[1] += unit * sum(gradients)
            cost[2] += unit * again
        one, two, three = ([0] * len(self.moment_sets) for _ in range(3))
        for amount, cost in costs.items():
            for place, part in enumerate(amount):
                if part:
                    one[place] += part * cost[0]
                    two[place] += part * cost[1]
                    three[place] += part * cost[2]
        total = [forward + backward for forward, backward in zip(one, two, strict=True)]
        return {"forward": tuple(one), "backward": tuple(two), "recomputed": tuple(three), "total": tuple(total)}

    @staticmethod
    def _requires(*_: Any, **__: Any) -> tuple[tuple[int, str], ...]:
        """What must be 0 of the sizes, each with what it means if it is not."""
        return ()

    @staticmethod
    def _sums(*_: Any, **__: Any) -> Any:
        """The moments of columns of lengths, after the sizes."""

    @staticmethod
    def _terms(*_: Any, **__: Any) -> tuple[Any, ...]:
        """What one item of each index set adds to each moment; or what each of whole columns of items adds."""
        return ()

    @staticmethod
    def _rests(*_: Any, **__: Any) -> tuple[Any, ...]:
        """The remainders of divisions of lengths, which must be 0."""
        return ()

    @staticmethod
    def _inner(*_: Any, **__: Any) -> tuple[Any, ...]:
        """What the model leaves of one item of each index set, which must be at least 1; or of whole columns of items."""
        return ()

    @staticmethod
    def _demands(*_: Any, **__: Any) -> tuple[tuple[Any, str], ...]:
        """Whether the class takes a batch as a whole, by one condition each, and what it takes."""
        return ()

    @staticmethod
    def _takes(*_: Any, **__: Any) -> tuple[tuple[str, ...], ...]:
        """For each inner length that is a condition, what the class takes, and the axes that it reads; else nothing."""
        return ()

    @staticmethod
    def _inputs(*_: Any, **__: Any) -> dict[str, tuple[str, str, int | None]]:
        return {}

    @staticmethod
    def _implied(*_: Any, **__: Any) -> dict[str, Any]:
        return {}

    @staticmethod
    def _trained(*_: Any, **__: Any) -> dict[str, int]:
        """The elements that train, of each regime that does not train everything."""
        return {}

    @staticmethod
    def _dot(*_: Any, **__: Any) -> Any:
        """The sum of coefficients times moments."""

    @classmethod
    def _of_batch(cls, sizes: Any, batch: dict[str, Any]) -> M:
        """The moments of a batch; without sizes those that depend on them wait for them."""
        real, padded = cls._read(sizes, batch)
        waits = sizes is None and cls._sized
        result: M = cls._moments(lengths=[listed(column) for column in real]) if waits else cls._summed(sizes, real, padded)
        if any(map(differ, real, padded)):
            more = cls._moments(lengths=[listed(one) for one in padded]) if waits else cls._summed(sizes, padded)
            return result._with(more)
        return result

    @classmethod
    def _read(cls, sizes: Any, batch: dict[str, Any]) -> tuple[Columns, Columns]:
        """Per axis of all streams the lengths of the items, real and padded; refuses another form with an example."""
        real: Columns = []
        padded: Columns = []
        try:
            for streams in cls.sets.values():
                lengths, padding = columns_of(streams, cls.streams, batch)
                real += lengths
                padded += padding
        except BatchFormError as error:
            example = cls._example(sizes)
            raise ValueError(f"{error}; e.g. {example}" if example else str(error)) from None
        return real, padded

    @classmethod
    def _example(cls, sizes: Any) -> str:
        """A batch of two items that the model takes, as text."""
        rows = [row for streams in cls.sets.values() for row in streams]
        rows = [row for row in rows if not cls.streams[row[0]]] or rows
        wide = any(len(axes) > 1 for _, axes, _ in rows)
        lengths = (64, 448, 3360, 32_000) if wide else (1024, 3360, 32_000)
        taken = {} if sizes is None else cls._taken(sizes)
        for length, known in [(length, known) for length in lengths for known in (({}, taken) if taken else ({},))]:
            shown: dict[str, Any] = {}
            for name, axes, _ in rows:
                entries: list[Any] = [[known.get(axis, size) for axis in axes] for size in (length, length // 2)]
                shown[name] = (entries if len(axes) > 1 else [row[0] for row in entries]) if axes else len(entries)
            try:
                cls._of_batch(sizes, dict.fromkeys(cls.streams) | shown)
            except (ValueError, ArithmeticError, LookupError, TypeError):
                continue
            return str(shown).replace("'", '"')
        return ""

    @classmethod
    def _taken(cls, sizes: Any) -> dict[str, int]:
        """A length that what the class takes names, for each axis that it limits."""
        found: dict[str, int] = {}
        for words, *axes in filter(None, cls._takes(sizes)):
            values = [int(word) for word in "".join(c if c.isdigit() else " " for c in words).split()]
            found |= zip(axes, values * len(axes), strict=False)
        return found

    @classmethod
    def _summed(cls, sizes: Any, columns: Columns, padded: Columns | None = None) -> M:
        """The sums over the items, by vectors if there are many and numpy is in use already."""
        if (cls._inner_sets or cls._demanding) and (sizes is not None or not cls._inner_sized):
            cls._check(sizes, columns, padded)
        if not cls.whole and columns and len(columns[0]) > 99 and "numpy" in sys.modules:
            found = vectors_here()
            if found is not None:
                known = sizes if cls._sized else None
                of = cls._terms, cls._rests, known, cls.sets, cls.moment_sets
                fast: M = cls._moments(*found.sums(*of, columns))
                return fast
        result: M = cls._sums(sizes, *[column if type(column) is list else column.tolist() for column in columns])
        return result

    @classmethod
    def _check(cls, sizes: Any, columns: Columns, padded: Columns | None = None) -> None:
        """Refuse a batch that the class does not take, or an item of which the model leaves nothing."""
        demands = cls._demands(sizes, *columns)
        if not all(fits for fits, _ in demands):
            demands = cls._demands(sizes, *in_use(columns, padded))
        for fits, words in demands:
            if not fits:
                raise ValueError(f"the batch does not fit the model: the class takes {words}")
        if not cls._inner_sets:
            return
        many = columns and len(columns[0]) > 99 and "numpy" in sys.modules and not cls.whole
        found = vectors_here() if many else None
        if cls._growing or cls._falling:
            kinds = [min, max] if cls._falling else [min]
            plain = ([kind(column, default=1) for column in columns] for kind in kinds)
            ends = plain if found is None else found.ends(kinds, columns)
            if all(min(cls._inner(sizes, *lengths)) >= 1 for lengths in ends):
                return
        elif found is not None and found.all_left(cls._inner, sizes, columns):
            return
        streams = [(items, name, axes) for items, of in cls.sets.items() for name, axes, _ in of]
        rows = [(items, name, axis, len(axes)) for items, name, axes in streams for axis in axes or ("",)]
        takes = cls._takes(sizes)
        for which, items in enumerate(cls._inner_sets):
            mine = [(place, row) for place, row in enumerate(rows) if row[0] == items]

            def left(lengths: list[int], which: int = which) -> int:
                return int(cls._inner(sizes, *lengths)[which])

            for number, item in enumerate(zip(*[columns[place] for place, _ in mine], strict=True)):
                lengths = [0] * len(columns)
                for (place, _), length in zip(mine, item, strict=True):
                    lengths[place] = int(length)
                if left(lengths) < 1:
                    raise ValueError(too_short_item(number, lengths, mine, left, *(takes[which : which + 1])))
