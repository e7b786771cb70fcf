"""Writes the graph of a draft: converts each entry of a plan, then simplifies the result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.fit.formula import symbol
from symflops.draft.fit.symbols import fresh
from symflops.draft.polish.block_calls import called
from symflops.draft.polish.block_patterns import Pattern
from symflops.draft.polish.joint_attention import split_joint
from symflops.draft.polish.polish import inlined, polished, tidied
from symflops.draft.trace.steps import Branch, Loop, Ref, Step, names_read, readers_of, refs_of, steps_in
from symflops.draft.write.attention import Attention, attentions_in, write_attention
from symflops.draft.write.convolution import find_axes, write_conv
from symflops.draft.write.experts import Experts, experts_in, write_experts
from symflops.draft.write.join import write_join
from symflops.draft.write.loops import write_branch, write_loop
from symflops.draft.write.products import write_embedding, write_linear, write_norm, write_product, write_solve
from symflops.draft.write.scopes import Scope
from symflops.draft.write.values import Values

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
    GraphWriter(values, style).write(plan.entries, scope, plan.outputs)
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


class GraphWriter:
    """Writes the steps, loops and branches of a plan, each by the function for its kind."""

    def __init__(self, values: Values, style: Style) -> None:
        self.values, self.style = values, style

    def write(self, entries: Sequence[Any], scope: Scope, later: Sequence[Ref]) -> None:
        """Write steps, loops and branches in order; ``later`` are the references that are read after them."""
        readers = readers_of(entries, later)
        fused = self.fused(entries, readers)
        waiting: dict[int, list[Step]] = {}
        ends = {number: end for end, one in fused.items() for number in one.inner}
        for place, entry in enumerate(entries):
            after = [*refs_of(entries[place + 1 :]), *later] if isinstance(entry, (Loop, Branch)) else []
            match entry:
                case Loop():
                    write_loop(entry, scope, after, self.values, self.write)
                case Branch():
                    assert scope.loop is not None
                    write_branch(entry, scope.loop, scope, after, self.values, self.write)
                case Step() if entry.id in ends:
                    waiting.setdefault(ends[entry.id], []).append(entry)
                case Step() if not self.write_fused(fused.get(entry.id), readers, scope):
                    for step in (*waiting.get(entry.id, ()), entry):
                        WRITERS[step.kind](step, scope, self.values)

    def fused(self, entries: Sequence[Any], readers: dict[int, list[int]]) -> dict[int, Attention | Experts]:
        """Id of the last step -> attention or experts, for all of them among the steps in ``entries``.

        Empty if the style writes them as products. ``readers`` has the ids of the steps that read each value.
        """
        if not self.style.attention:
            return {}
        return {**attentions_in(entries, readers), **experts_in(entries, readers, self.values.plan.parameters)}

    def write_fused(self, one: Attention | Experts | None, readers: dict[int, list[int]], scope: Scope) -> bool:
        """Write an attention or experts as one operator; returns False if they do not fit, or there are none."""
        match one:
            case Attention():
                return write_attention(one, scope, self.values)
            case Experts():
                alone = readers.get(one.router.id) == [one.join.id]
                return write_experts(one, alone, self.style.blocks, scope, self.values)
        return False
