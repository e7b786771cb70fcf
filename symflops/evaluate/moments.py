"""Results of an estimator: moments of a batch, FLOPs of a module, figures per token, and costs per item."""

from __future__ import annotations

import sys

from symflops.evaluate.batch import MANY, BatchError
from symflops.formula.table import ConfigError
from symflops.ir.index_sets import ONCE, padded_name
from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from symflops.evaluate.batch import Columns
    from symflops.evaluate.batch_moments import Batches
    from symflops.evaluate.stored import Stored

    K = TypeVar("K")


class Moments:
    """Sums over the items of a batch. Moments of two batches add, unless some (``whole``) belong to one batch as a whole.

    ``values`` are of real lengths, but for those that are ``always`` of padded ones; ``padded_values`` are all of padded
    lengths. Each is an attribute, too.

    Raises:
        BatchError: a sum of moments that do not add.
    """

    __slots__ = ("always", "names", "padded_values", "values", "whole")

    def __init__(
        self, names: tuple[str, ...], values: tuple[int, ...], padded: tuple[int, ...], whole: tuple[str, ...] = (),
        always: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.names, self.values, self.padded_values, self.whole, self.always = names, values, padded, whole, always

    def __getattr__(self, name: str) -> int:
        if name in Moments.__slots__ or name not in self.names:
            raise AttributeError(name)
        return self.values[self.names.index(name)]

    @property
    def padded(self) -> Moments | None:
        """The moments over padded lengths; None if they equal those over real lengths."""
        if self.padded_values == self.values:
            return None
        return Moments(self.names, self.padded_values, self.padded_values, self.whole, self.always)

    def __add__(self, other: Moments) -> Moments:
        if self.whole:
            hint = "take the moments of all items together, or add the FLOPs of each batch"
            raise BatchError(f"moments of one batch as a whole do not add ({', '.join(self.whole)}): {hint}")
        pairs = ((self.values, other.values), (self.padded_values, other.padded_values))
        values, padded = (tuple(a + b for a, b in zip(one, two, strict=True)) for one, two in pairs)
        return Moments(self.names, values, padded, (), self.always)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moments) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def __reduce__(self) -> Any:
        return Moments, self._all()

    def _all(self) -> tuple[tuple[Any, ...], ...]:
        return self.names, self.values, self.padded_values, self.whole, self.always

    def __repr__(self) -> str:
        return f"Moments({', '.join(f'{name}={value}' for name, value in self.as_dict().items())})"

    def named(self, names: tuple[str, ...], model: str) -> Moments:
        """Select moments by name, in the order of ``names``; ``model`` is for the message.

        Raises:
            BatchError: one of ``names`` is missing.
        """
        missing = [name for name in names if name not in self.names]
        if missing:
            raise BatchError(f"these moments are of another model: '{model}' needs '{missing[0]}'")
        sides = (dict(zip(self.names, side, strict=True)) for side in (self.values, self.padded_values))
        values, padded = (tuple(side[name] for name in names) for side in sides)
        return Moments(names, values, padded, self.whole, self.always)

    def as_dict(self) -> dict[str, int]:
        """Map moment names to values."""
        return dict(zip(self.names, self.values, strict=True))

    def sums(self) -> dict[str, int]:
        """Map each moment, by its name in closed forms, to its value, over real and over padded lengths.

        A moment ``x`` over padded lengths is named ``x_padded``.
        """
        padded = zip(self.names, self.padded_values, strict=True)
        return {padded_name(name): value for name, value in padded if name not in self.always} | self.as_dict()


class Flops:
    """FLOPs of one module in one step."""

    __slots__ = ("backward", "forward", "recomputed")  # a dataclass would take time to import

    def __init__(self, forward: int, backward: int, recomputed: int) -> None:
        self.forward, self.backward, self.recomputed = forward, backward, recomputed

    @property
    def total(self) -> int:
        """FLOPs of the forward and backward pass."""
        return self.forward + self.backward

    def __eq__(self, other: object) -> bool:
        return type(other) is Flops and all(getattr(self, name) == getattr(other, name) for name in Flops.__slots__)

    def __hash__(self) -> int:
        return hash((self.backward, self.forward, self.recomputed))

    def __repr__(self) -> str:
        return f"Flops(forward={self.forward}, backward={self.backward}, recomputed={self.recomputed})"


def summed(parts: Iterable[tuple[K, Any]]) -> dict[K, Any]:
    """Map each key to the sum of the values that are paired with it."""
    found: dict[K, Any] = {}
    for key, value in parts:
        found[key] = found.get(key, 0) + value
    return found


def whole_total(value: Any) -> int:
    """Convert a total to an int; raises SymflopsError if it is negative, fractional or not a number."""
    if getattr(value, "denominator", 1) != 1:
        raise SymflopsError("a length does not divide as the model divides it, or the convention counts parts of a FLOP")
    if not value >= 0 or value != int(value):
        raise SymflopsError(f"config and batch do not fit the model: a total of {value}")
    return int(value)


def whole_if_possible(value: Any) -> Any:
    """Convert a number to an int if it is whole."""
    return int(value) if getattr(value, "denominator", 0) == 1 else value


def active_of(stored: Stored, regime: str, sizes: Mapping[str, Any]) -> int | None:
    """The number of parameters used for one token: all but those of experts that it is not routed to.

    None if the program was stored in an older format without this figure.
    """
    formula = stored.regimes[regime].get("active")
    return None if formula is None else int(stored.formulas.checked(formula, sizes))


def too_many_chosen(stored: Stored, regime: str, sizes: Mapping[str, Any], parameters: int) -> str:
    """Explain why more parameters work for a token than there are: a size chooses more experts than the model has.

    Empty for a model without experts.
    """
    row, active = stored.regimes[regime], active_of(stored, regime, sizes) or 0
    only = stored.formulas.letters(row["active"]) - stored.formulas.letters(row["parameters"])
    for field in stored.document["fields"]:
        letter, value = field["letter"], sizes.get(field["letter"])
        if letter in only and type(value) is int:
            each = active - (active_of(stored, regime, {**sizes, letter: value - 1}) or 0)
            most = value + (parameters - active) // max(each, 1)
            if most <= 0:  # without experts none are chosen
                return ""
            return f"the config's '{field['keys'][0]}' is {value}: it has {most} expert{'s' * (most != 1)} to choose from"
    return "the config chooses more experts for a token than there are"


def per_token(total: int, tokens: int | None) -> int | None:
    """FLOPs per token, rounded to a whole number; None for a batch without tokens."""
    return (2 * total + tokens) // (2 * tokens) if tokens else None


def tokens_of(stored: Stored, regime: str, sizes: Mapping[str, Any], m: Moments) -> int | None:
    """Number of unpadded tokens of a batch: the queries of the model's first attention outside towers.

    None if the program has no tokens, or if ``m`` lacks a moment that the number depends on.
    """
    terms, values = stored.regimes[regime].get("tokens", ()), m.as_dict()
    names = [stored.moments[position]["name"] for position, _ in terms]
    if not terms or not values.keys() >= set(names):
        return None
    found = [stored.formulas.checked(part, sizes) * values[name] for name, (_, part) in zip(names, terms, strict=True)]
    return int(sum(found))


def item_costs(batches: Batches, found: Columns, padded: bool, costs: Sequence[Any]) -> dict[str, Any]:
    """Map each index set to the costs of its items: lists of ints, or arrays if the batch has arrays.

    Args:
        batches: the reader of the batch, with compiled formulas.
        found: the lengths of the batch.
        padded: whether costs are those of padded lengths.
        costs: the cost per unit of each moment.

    Raises:
        BatchError: as :meth:`symflops.evaluate.batch_moments.Batches.moments`.
    """
    always = [place in batches.always for place in range(len(batches.rows))]
    if padded or not any(always):
        made = costs_on(batches, found.padded if padded else found.real, found, costs)
    else:
        sides = (found.real, [not one for one in always]), (found.padded, always)
        one, two = (
            costs_on(batches, columns, found, [cost * kept for cost, kept in zip(costs, mine, strict=True)])
            for columns, mine in sides
        )
        made = {items: [int(a) + int(b) for a, b in zip(one[items], two[items], strict=True)] for items in one}
    if any(hasattr(column, "dtype") for column in (*found.real, *found.padded)):
        return made
    return {items: some.tolist() if hasattr(some, "tolist") else list(map(whole_total, some)) for items, some in made.items()}


def costs_on(batches: Batches, columns: Sequence[Any], found: Columns, costs: Sequence[Any]) -> dict[str, Any]:
    """Map each index set to the costs of its items for ``columns``, real or padded ones of ``found``."""
    if batches.inner or batches.conditions:
        batches.check(columns, found.padded)
    if any(hasattr(column, "dtype") or len(column) >= MANY for column in columns) and "numpy" in sys.modules:
        from symflops.evaluate import vectors

        try:
            return vectors.per_item(batches.terms, batches.rests, batches.sets, batches.moment_sets, columns, costs)
        except ConfigError:
            pass  # a divisor is 0: raised below if an item uses it
        except ValueError as error:
            raise BatchError(str(error)) from None
    made: dict[str, Any] = {}
    priced: dict[str, list[Any]] = {items: [] for items in batches.sets}
    for items, cost, function in zip(batches.moment_sets.values(), costs, batches.functions, strict=True):
        priced.setdefault(items, []).append((cost, function))
    for items in batches.sets:
        if batches.divided.rests:
            batches.check_divisions(items, columns, ())
        made[items] = [
            sum([cost * function(item) for cost, function in priced[items]]) for item in batches.items(items, columns)
        ]
    if ONCE in priced:
        made[ONCE] = [sum([cost * function([0] * len(batches.axes)) for cost, function in priced[ONCE]])]
    return made
