"""What each item of a batch costs."""

from __future__ import annotations

import sys

from symflops.model.index_sets import ONCE
from symflops.runtime.batch import MANY, BatchError
from symflops.runtime.moments import whole_total

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from symflops.runtime.batch import Columns
    from symflops.runtime.batch_moments import Batches


def item_costs(batches: Batches, found: Columns, padded: bool, costs: Sequence[Any]) -> dict[str, Any]:
    """What each item costs, per index set, as ``costs`` says per moment: lists of ints, or integer arrays for arrays.

    Raises:
        BatchError: as :meth:`symflops.runtime.batch_moments.Batches.moments`.
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
    """What each item of one side costs."""
    if batches.inner or batches.conditions:
        batches.check(columns, found.padded)
    if any(hasattr(column, "dtype") or len(column) >= MANY for column in columns) and "numpy" in sys.modules:
        from symflops.runtime import vectors

        try:
            return vectors.per_item(batches.terms, batches.rests, batches.sets, batches.moment_sets, columns, costs)
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
