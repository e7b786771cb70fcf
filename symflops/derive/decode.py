"""Decoding: the work of a model whose causal self-attention runs over a cache of keys and values.

A step runs ``x`` new tokens after ``past`` cached ones: queries see ``past + x`` keys, and all else costs what ``x`` tokens
cost. A generation of ``new`` tokens runs the whole ``prompt`` first, which gives the first new token, then one token at a
time, ``max(0, new - 1)`` times. Its queries are those of one sequence of ``prompt + max(0, new - 1)`` tokens under any mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sympy import Add, Expr, Rational, Symbol

from symflops.algebra.functions import Excess, size_symbol
from symflops.algebra.masks import useful_pairs
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.model.contraction import Extent
from symflops.model.derivation import Work
from symflops.model.graph import Length

PAST, PROMPT, NEW = (size_symbol(name) for name in ("past", "prompt", "new"))


def decoded(works: Sequence[Work], mode: str, name: str) -> tuple[Work, ...]:
    """``works`` over a cache of keys and values.

    Args:
        works: the work of whole sequences.
        mode: ``step`` or ``generate``.
        name: the regime, for the message.

    Raises:
        SpecError: the model has no causal self-attention over one length.
    """
    tokens = decoded_tokens(works)
    if not tokens:
        message = f"regime '{name}' decodes, and the model has no causal self-attention"
        raise SpecError(
            [Diagnostic("no-decoder", message, None, "an attention with 'mask: causal', query and key of one stream")]
        )
    for work in works:
        pairs = work.contraction.extent.pairs
        if pairs is not None and any(mask.base == "causal" and mask.looks_ahead for mask, _ in pairs.masks):
            message = f"regime '{name}' decodes, and how '{work.operator.path}' runs token by token is not known"
            raise SpecError(
                [Diagnostic("no-decoder", message, None, "a causal mask with 'blocks' or 'sees' is of whole sequences")]
            )
    change = _step if mode == "step" else _generate(tokens)
    return tuple(replace(work, contraction=replace(work.contraction, extent=change(work.contraction.extent))) for work in works)


def decoded_tokens(works: Sequence[Work]) -> frozenset[Symbol]:
    """The lengths of the sequences that are decoded token by token."""
    found = (work.contraction.extent.tokens for work in works)
    return frozenset(tokens for tokens in found if isinstance(tokens, Symbol))


def variables(mode: str, length: Length) -> tuple[Length, ...]:
    """The batch variables of a decoded stream, in the order of a batch entry: ``[x, past]`` or ``[prompt, new]``."""
    if mode == "step":
        return (length, replace(length, symbol=PAST, axis="past"))
    return tuple(replace(length, symbol=symbol, axis=symbol.name) for symbol in (PROMPT, NEW))


def positions(group: Sequence[Length]) -> Expr:
    """The positions that an item takes, from its batch variables: those of a decoded stream include its past."""
    first, *others = [length.symbol for length in group]
    if not others:
        return first
    return first + PAST if PAST in others else PROMPT + Excess(NEW - 1)


def _step(extent: Extent) -> Extent:
    if extent.tokens is None or extent.pairs is None:
        return extent
    keys = PAST + extent.tokens
    useful = Add(*(case.expr * useful_pairs(mask, extent.tokens, keys) for mask, case in extent.pairs.masks))
    executed = useful if extent.executed == extent.useful else extent.tokens * keys
    return replace(extent, executed=executed, useful=useful)


def tokens_run(tokens: frozenset[Symbol], mode: str) -> dict[Symbol, Expr]:
    """The number of tokens that run through the model in a generation, for each decoded length; empty for a step."""
    return dict.fromkeys(tokens, PROMPT + Excess(NEW - 1)) if mode == "generate" else {}


def _generate(tokens: frozenset[Symbol]) -> Callable[[Extent], Extent]:
    steps: Expr = Excess(NEW - 1)
    run = tokens_run(tokens, "generate")

    def change(extent: Extent) -> Extent:
        if extent.tokens is None or extent.pairs is None:
            return replace(extent, executed=extent.executed.xreplace(run), useful=extent.useful.xreplace(run))
        useful = Add(*(case.expr * useful_pairs(mask, PROMPT + steps, PROMPT + steps) for mask, case in extent.pairs.masks))
        executed = PROMPT**2 + steps * PROMPT + Rational(1, 2) * steps * (steps + 1)
        executed = useful if extent.executed == extent.useful else executed
        return replace(extent, executed=executed, useful=useful)

    return change
