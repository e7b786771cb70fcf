"""Writes branches: a group with a condition for each case, whose results have one name in all cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from symflops.draft.fit.index_conditions import Rows, condition
from symflops.draft.trace.reads import steps_in
from symflops.draft.trace.steps import Branch, Choice, Loop, Ref
from symflops.draft.write.scopes import Scope, Unsolved
from symflops.draft.write.tables import Tables

WriteEntries = Callable[[Sequence[Any], Scope, Sequence[Ref]], None]  # entries, their scope, and what is read after them


def write_branch(
    branch: Branch, loop: Loop, scope: Scope, later: Sequence[Ref], tables: Tables, write_entries: WriteEntries
) -> None:
    """One group for each case that makes something; ``loop`` has the branch in its body."""
    values = tables.values
    own = [{step.id for step in steps_in(case)} for case in branch.cases]
    defaults = {choice.id: default_of(choice, own, scope, tables) for choice in branch.choices}
    for case, entries in enumerate(branch.cases):
        waiting = [choice for choice in branch.choices if choice.sources[case] != defaults[choice.id]]
        if not entries and not waiting:
            continue
        inner = scope_of_item(loop, branch.items[case], scope)
        write_entries(entries, inner, [*(choice.sources[case] for choice in waiting), *later])
        for choice in waiting:
            (made,) = values.read_all([choice.sources[case]], inner)
            if choice.id not in values.made:
                tag = tables.streams.tag(made.rows, made.once)
                values.made[choice.id] = replace(made, name=values.names.fresh(made.name), tag=tag)
            wanted = values.made[choice.id]
            fitted = values.fitted(made, wanted.rows, wanted.width, inner, wanted.once)
            inner.add({"op": "add", "from": fitted.name, "to": wanted.name})
        scope.add({"when": case_condition(branch, case, loop, scope, tables), "graph": inner.entries})


def default_of(choice: Choice, own: Sequence[set[int]], scope: Scope, tables: Tables) -> Ref | None:
    """What a choice is unless a case says otherwise: a value from before the branch, copied to the choice's name."""
    found = next((ref for case, ref in enumerate(choice.sources) if ref.id not in own[case]), None)
    value = None if found is None else tables.values.read(found, scope)
    if value is None:
        return None
    tables.values.made[choice.id] = tables.values.copied(value, scope)
    return found


def scope_of_item(loop: Loop, item: int, scope: Scope) -> Scope:
    """A scope for what one item of a loop runs."""
    inner = Scope(f"{loop.prefix}.{item}", scope, loop, scope.index, scope.count)
    if scope.indexed:
        ending = f".{loop.start}"
        inner.indexed = {f"{path.removesuffix(ending)}.{item}": text for path, text in scope.indexed.items()}
        inner.prefix = scope.prefix
    return inner


def case_condition(branch: Branch, case: int, loop: Loop, scope: Scope, tables: Tables) -> str:
    """When an item has a case; without a condition the items of the first sample, noted as unsolved."""
    dims, family = tables.dims, tables.family
    starts = family.numbers(loop, lambda one: one.start)
    chosen = [one.chosen for one in family.parts[family.place[id(branch)]]]
    rows = Rows(starts, [[one == case for one in items] for items in chosen])
    found = condition(rows, scope.index, scope.count, family, dims.names)
    if found is not None:
        return found
    last = max(number for number, entries in enumerate(branch.cases) if entries)
    items, others = (
        [starts[0] + place for place, one in enumerate(branch.chosen) if (one == case) == own] for own in (True, False)
    )
    if case == last:
        return f"{scope.index} not in {others}"
    dims.unsolved.append(Unsolved(f"the items of {loop.prefix} that are like {branch.items[case]}", tuple(items)))
    return f"{scope.index} in {items}"
