"""Writes the graph of a draft: converts each entry of a plan, then simplifies the result.

A loop is a repeat whose body reads the values of the previous item.
A branch is one group with a condition per case, whose results have the same names in all cases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symflops.draft.fit.conditions import Rows, condition
from symflops.draft.fit.formula import Vector, symbol
from symflops.draft.fit.symbols import fresh
from symflops.draft.polish.block_calls import called
from symflops.draft.polish.block_patterns import Pattern
from symflops.draft.polish.polish import inlined, polished, split_joint, tidied
from symflops.draft.trace.steps import Branch, Choice, Loop, Ref, Step, names_read, readers_of, refs_of, steps_in, values_in
from symflops.draft.write.convolution import find_axes, write_conv
from symflops.draft.write.dimensions import Unsolved
from symflops.draft.write.fused import Attention, Experts, attentions_in, experts_in, write_attention, write_experts
from symflops.draft.write.products import write_embedding, write_join, write_linear, write_norm, write_product, write_solve
from symflops.draft.write.values import Fields, Scope, Val, Values

INDICES = "ijk"
WRITERS: Mapping[str, Callable[[Step, Scope, Values], None]] = {
    "linear": write_linear,
    "conv": write_conv,
    "matmul": write_product,
    "solve": write_solve,
    "embedding": write_embedding,
    "norm": write_norm,
    "join": write_join,
}


@dataclass(frozen=True, slots=True)
class Style:
    """How a graph is written.

    Attributes:
        attention: Whether attention and experts are operators of their own, not products.
        grids: Whether rows have the axes of the convolution that produced them, not one length.
        patterns: Library blocks that may replace runs of entries.
        blocks: The names of all blocks of the library.
    """

    attention: bool = True
    grids: bool = True
    patterns: Sequence[Pattern] = ()
    blocks: Collection[str] = ()


def write_graph(values: Values, style: Style) -> tuple[list[Any], list[str]]:
    """(Entries of the draft's graph, names of its outputs)."""
    plan, scope = values.plan, Scope("")
    find_axes(plan.entries, values, style.grids)
    find_heads(values)
    write_entries(plan.entries, scope, plan.outputs, values, style)
    outputs = [value.name for value in values.read_all(plan.outputs, scope)]
    read = set(names_read(plan.entries))
    for name in plan.parameters:
        if name not in read:
            values.parameter(name, scope)
    entries, kept = scope.entries, set(outputs)
    split_joint(entries, values.by_name, entries, outputs)
    entries = inlined(called(polished(entries, kept), style.patterns, kept))
    return entries, tidied(entries, outputs, {value.name for value in values.inputs.values()})


def find_heads(values: Values) -> None:
    """Add a letter to the fitter's ``derived`` for each head size whose formula is a quotient.

    The letter then stands for the head size in all formulas, so that widths are written as its multiples.
    """
    dims, fitter = values.dims, values.dims.fitter
    for step in steps_in(values.plan.entries):
        for vector in dims.slice(step, 2, 2) if step.kind == "matmul" else ():
            found = dims.formula(vector)
            if found is None or dims.has_length(vector) or not found.divides:
                continue
            letter = fresh("d", {*dims.names.taken, *fitter.derived})
            fitter.derived[letter] = found.text
            fitter.known[vector] = symbol(letter)
            fitter.quotients = {letter: vector, **{n: v for n, v in fitter.quotients.items() if v != vector}}


def write_entries(entries: Sequence[Any], scope: Scope, later: Sequence[Ref], values: Values, style: Style) -> None:
    """Write steps, loops and branches in order; ``later`` are the references that are read after them."""
    readers = readers_of(entries, later)
    fused: dict[int, Attention | Experts] = {}  # id of the last step -> attention or experts
    if style.attention:
        fused = {**attentions_in(entries, readers), **experts_in(entries, readers, values.plan.parameters)}
    waiting: dict[int, list[Step]] = {}
    ends = {number: end for end, one in fused.items() for number in one.inner}
    for place, entry in enumerate(entries):
        after = [*refs_of(entries[place + 1 :]), *later] if isinstance(entry, (Loop, Branch)) else []
        match entry:
            case Loop():
                write_loop(entry, scope, after, values, style)
            case Branch():
                assert scope.loop is not None
                write_branch(entry, scope.loop, scope, after, values, style)
            case Step() if entry.id in ends:
                waiting.setdefault(ends[entry.id], []).append(entry)
            case Step() if not write_fused(fused.get(entry.id), readers, scope, values, style):
                for step in (*waiting.get(entry.id, ()), entry):
                    WRITERS[step.kind](step, scope, values)


def write_fused(
    one: Attention | Experts | None, readers: Mapping[int, Sequence[int]], scope: Scope, values: Values, style: Style
) -> bool:
    """Write an attention or experts as one operator; returns False if they do not fit, or there are none.

    ``readers`` maps the id of each value to those of the steps that read it.
    """
    match one:
        case Attention():
            return write_attention(one, scope, values)
        case Experts():
            return write_experts(one, readers.get(one.router.id) == [one.join.id], style.blocks, scope, values)
    return False


def write_loop(loop: Loop, scope: Scope, later: Sequence[Ref], values: Values, style: Style) -> None:
    """Write a loop; a loop-carried value has one name before, in and after it.

    ``later`` are the references that are read after the loop.
    """
    dims, paths = values.dims, values.paths
    carried: dict[int, Val] = {}
    for init, last in loop.carried:
        carried[last] = values.carried[last] = initial_value(loop, init, last, scope, later, values)
    count = dims.text(dims.family.numbers(loop, lambda one: one.count), f"items of {loop.prefix}")
    start = dims.text(dims.family.numbers(loop, lambda one: one.start), f"first of {loop.prefix}")
    body = body_of(loop, count, scope, values)
    write_entries(loop.body, body, [Ref("step", last) for last in carried], values, style)
    for last, value in carried.items():
        write_carried(last, value, body, values)
    keep_last(loop, body, later, scope, values)
    fields: Fields = {"repeat": count}
    if start != "0":
        fields["start"] = start
    if loop.shared:
        fields["shared"] = "true"
    if loop.others or any(isinstance(entry, Branch) for entry in loop.body):
        fields["index"] = body.index
    key = "_" if loop.shared or loop.others else paths.relative(loop.prefix, scope)
    scope.add({**fields, "graph": body.entries}, key)


def body_of(loop: Loop, count: str, scope: Scope, values: Values) -> Scope:
    """Empty scope for a loop's body."""
    index = INDICES[min(len(list(scope.outwards)), len(INDICES)) - 1]
    body = Scope(scope.prefix if loop.shared else f"{loop.prefix}.{loop.start}", scope, loop, index, count)
    if loop.others:
        for one in (loop.prefix, *loop.others):
            body.indexed[f"{one}.{loop.start}"] = f"{values.paths.relative(one, scope)}.{{{index}}}"
        body.prefix = scope.prefix
    return body


def initial_value(loop: Loop, init: Ref, last: int, scope: Scope, later: Sequence[Ref], values: Values) -> Val:
    """Initial value of a loop-carried value, under a name that every item may rebind.

    Args:
        loop: The loop.
        init: What the first item reads.
        last: The id of the step or choice that computes the value for the next item.
        scope: The list of entries that has the loop.
        later: The references that are read after the loop.
        values: The values of the draft.
    """
    dims = values.dims
    shape = final_shape(loop, last, values)
    value = values.source(init, shape, scope)
    again = init in [*later, *refs_of(loop.body)] or [one for one, _ in loop.carried].count(init) > 1
    if value.once and not dims.rows(dims.times(*shape))[1]:
        value = values.fitted(value, dims.rows(dims.times(*shape[:-1]))[0], shape[-1], scope, False)
    elif again or init.kind != "step" or value.once:
        value = values.copied(value, scope)
    return in_usual_stream(value, scope, values)


def final_shape(loop: Loop, last: int, values: Values) -> list[Vector]:
    """Shape of the loop-carried value that step ``last`` computes.

    For a choice (a value with one source per case of a branch), it is the shape of the first source that is a step.
    """
    chosen = {choice.id: choice for entry in loop.body if isinstance(entry, Branch) for choice in entry.choices}
    while last in chosen:
        last = next(ref.id for ref in chosen[last].sources if ref.kind == "step")
    return next(values.dims.result(step) for step in steps_in(loop.body) if step.id == last)


def in_usual_stream(value: Val, scope: Scope, values: Values) -> Val:
    """Value in the stream of values with as many rows; itself if it is in this stream."""
    tag = values.streams.tag(value.rows, False)
    if value.once or value.tag == tag:
        return value
    return values.selected(value, values.streams.per_item(value.rows), tag, scope)


def write_carried(last: int, value: Val, body: Scope, values: Values) -> None:
    """Append to ``body`` an entry that copies the result of step ``last`` to the loop-carried ``value``.

    The result is first brought to the shape and stream of that value, if necessary.
    """
    made = values.made[last]
    if (made.rows, made.width, made.once) != (value.rows, value.width, value.once):
        made = values.fitted(made, value.rows, value.width, body, value.once)
    body.add({"op": "add", "from": in_usual_stream(made, body, values).name, "to": value.name})
    values.made[last] = value


def keep_last(loop: Loop, body: Scope, later: Sequence[Ref], scope: Scope, values: Values) -> None:
    """Write entries by which values of a loop's last iteration can be read after the loop.

    These are the values in ``later`` that the body computes and that are not loop-carried. For each, a value of zeros with
    a new name is written to ``scope``, before the loop, and an entry at the end of ``body`` that copies the value to this
    name. From then on, ``values`` has the new name for it.
    """
    made = values_in(loop.body) - {last for _, last in loop.carried}
    for ref in dict.fromkeys(later):
        if ref.kind == "step" and ref.id in made and ref.id in values.made:
            value = values.made[ref.id]
            kept = values.zeros(value.rows, value.width, scope, value.once, value.name)
            body.add({"op": "add", "from": value.name, "to": kept.name})
            values.made[ref.id] = kept


def write_branch(branch: Branch, loop: Loop, scope: Scope, later: Sequence[Ref], values: Values, style: Style) -> None:
    """Write a branch as one conditional group per case, except for cases without steps and results.

    ``later`` are the references that are read after the branch.
    """
    own = [{step.id for step in steps_in(case)} for case in branch.cases]
    defaults = {choice.id: default_of(choice, own, scope, values) for choice in branch.choices}
    for case, entries in enumerate(branch.cases):
        waiting = [choice for choice in branch.choices if choice.sources[case] != defaults[choice.id]]
        if not entries and not waiting:
            continue
        inner = scope_of_item(loop, branch.items[case], scope)
        write_entries(entries, inner, [*(choice.sources[case] for choice in waiting), *later], values, style)
        for choice in waiting:
            (made,) = values.read_all([choice.sources[case]], inner)
            if choice.id not in values.made:
                tag = values.streams.tag(made.rows, made.once)
                values.made[choice.id] = replace(made, name=values.fresh(made.name), tag=tag)
            wanted = values.made[choice.id]
            fitted = values.fitted(made, wanted.rows, wanted.width, inner, wanted.once)
            inner.add({"op": "add", "from": fitted.name, "to": wanted.name})
        scope.add({"when": case_condition(branch, case, loop, scope, values), "graph": inner.entries})


def default_of(choice: Choice, own: Sequence[set[int]], scope: Scope, values: Values) -> Ref | None:
    """Source of a choice (a value with one source per case) that is from before the branch, or None.

    It is copied to the name of the choice. ``own`` has the ids of the steps of each case.
    """
    found = next((ref for case, ref in enumerate(choice.sources) if ref.id not in own[case]), None)
    value = None if found is None else values.read(found, scope)
    if value is None:
        return None
    values.made[choice.id] = values.copied(value, scope)
    return found


def scope_of_item(loop: Loop, item: int, scope: Scope) -> Scope:
    """Scope (list of entries) for the steps of a branch, whose paths are those of item ``item`` of a loop."""
    inner = Scope(f"{loop.prefix}.{item}", scope, loop, scope.index, scope.count)
    if scope.indexed:
        ending = f".{loop.start}"
        inner.indexed = {f"{path.removesuffix(ending)}.{item}": text for path, text in scope.indexed.items()}
        inner.prefix = scope.prefix
    return inner


def case_condition(branch: Branch, case: int, loop: Loop, scope: Scope, values: Values) -> str:
    """Condition on the loop's index that selects the items of a case of a branch.

    If none is found, it lists the items of the first sample; except for the last case, this counts as unsolved.
    """
    dims, family = values.dims, values.dims.family
    starts = family.numbers(loop, lambda one: one.start)
    rows = Rows(starts, [[one == case for one in part.chosen] for part in family.parts[family.place[id(branch)]]])
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
