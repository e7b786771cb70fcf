"""Decodes work over a key-value cache, and splits work by lengths in its counts and by what PyTorch's counter sees.

A step runs ``x`` new tokens after ``past`` cached ones: queries see ``past + x`` keys, and all other work costs as much as
``x`` tokens. A generation of ``new`` tokens first runs the whole ``prompt``, which yields the first new token, then one token
at a time, ``max(0, new - 1)`` times. Under any mask, its queries are those of one sequence of ``prompt + max(0, new - 1)``
tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import compress

from sympy import Add, Expr, Integer, Rational, Symbol

from symflops.formula.functions import Excess, size_symbol
from symflops.formula.masks import useful_pairs
from symflops.formula.polynomial import Polynomial
from symflops.ir.contraction import Extent
from symflops.ir.graph import Length, Work
from symflops.support.findings import Diagnostic, SpecError


@lru_cache(maxsize=1 << 12)
def letters_of(count: Expr) -> frozenset[Symbol]:
    """The symbols in an execution count; cached, since many contractions have equal counts."""
    return frozenset(count.free_symbols)


def executions(work: Work) -> list[Expr]:
    """List the execution counts of ``work``: forward, recomputed, then one per gradient."""
    return [work.forward, work.recomputed, *(gradient.count for gradient in work.gradients)]


def spread(work: Work, lengths: frozenset[Symbol]) -> list[Work]:
    """Split ``work`` so that its execution counts do not depend on ``lengths``.

    Each product of lengths in the counts moves to the extent of one work. For example, ``x`` steps forward and
    ``max(0, x - 1)`` gradients become one work per step and one per step but the first.
    """
    counts = executions(work)
    if not any(letters_of(count) & lengths for count in counts):
        return [work]
    parts = [Polynomial.of(count).split(lambda atom: bool(atom.free_symbols & lengths)) for count in counts]
    executed, useful = (Polynomial.of(expr) for expr in (work.contraction.extent.executed, work.contraction.extent.useful))
    found: dict[tuple[Polynomial, Polynomial], list[Expr]] = {}
    for product in dict.fromkeys(product for part in parts for product in part):
        factor = Polynomial({product: Fraction(1)})
        once = [part[product].expr if product in part else Integer(0) for part in parts]
        key = (executed * factor, useful * factor)  # different factors may give one extent
        found[key] = [added(one, two) for one, two in zip(found.get(key, [Integer(0)] * len(once)), once, strict=True)]
    return [_times(work, *extent, once) for extent, once in found.items()]


def _times(work: Work, executed: Polynomial, useful: Polynomial, once: Sequence[Expr]) -> Work:
    extent = replace(work.contraction.extent, executed=executed.expr, useful=useful.expr)
    gradients = tuple(
        replace(gradient, count=count, reason="" if count == once[0] else gradient.reason)
        for gradient, count in zip(work.gradients, once[2:], strict=True)
    )
    contraction = replace(work.contraction, extent=extent)
    return replace(work, contraction=contraction, forward=once[0], recomputed=once[1], gradients=gradients)


@lru_cache(maxsize=1 << 12)
def added(one: Expr, two: Expr) -> Expr:
    """The sum of two execution counts, expanded."""
    return Polynomial.of(one + two).expr


def sides(work: Work) -> list[Work]:
    """Split ``work`` in two if PyTorch's counter sees only some of its passes, else return it alone.

    The first part has the forward pass and the gradients that the counter sees, or misses, like the forward pass. The second
    has the other gradients; it is left out if none of them is computed.
    """
    own = [operand.seen in (None, work.contraction.seen) for operand in work.contraction.operands]
    if all(own):
        return [work]
    other = _side(work, [not mine for mine in own])
    contraction = replace(other.contraction, seen=not work.contraction.seen)
    other = replace(other, contraction=contraction, forward=Integer(0), recomputed=Integer(0))
    return [_side(work, own), *([other] if any(count != 0 for count in executions(other)) else [])]


def _side(work: Work, kept: Sequence[bool]) -> Work:
    operands = tuple(compress(work.contraction.operands, kept))
    return replace(
        work, contraction=replace(work.contraction, operands=operands), gradients=tuple(compress(work.gradients, kept))
    )


PAST, PROMPT, NEW = (size_symbol(name) for name in ("past", "prompt", "new"))


def decoded(works: Sequence[Work], mode: str, name: str) -> tuple[Work, ...]:
    """Convert the work of whole sequences to decoding over a key-value cache.

    Args:
        works: the work of whole sequences.
        mode: ``step`` or ``generate``.
        name: the name of the regime, for error messages.

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
    """Symbols of the lengths of those sequences that are decoded token by token."""
    found = (work.contraction.extent.tokens for work in works)
    return frozenset(tokens for tokens in found if isinstance(tokens, Symbol))


def variables(mode: str, length: Length) -> tuple[Length, ...]:
    """Batch variables of a decoded stream, in the order in which a batch gives them for an item.

    They are [x, past] for the mode ``step``, and [prompt, new] for ``generate``.
    """
    if mode == "step":
        return (length, replace(length, symbol=PAST, axis="past"))
    return tuple(replace(length, symbol=symbol, axis=symbol.name) for symbol in (PROMPT, NEW))


def positions(group: Sequence[Length]) -> Expr:
    """Number of positions of an item whose batch variables are ``group``, cached positions included."""
    first, *others = [length.symbol for length in group]
    return first if not others else first + PAST if PAST in others else PROMPT + Excess(NEW - 1)


def _step(extent: Extent) -> Extent:
    if extent.tokens is None or extent.pairs is None:
        return extent
    keys = PAST + extent.tokens
    useful = Add(*(case.expr * useful_pairs(mask, extent.tokens, keys) for mask, case in extent.pairs.masks))
    return replace(extent, executed=useful if extent.executed == extent.useful else extent.tokens * keys, useful=useful)


def tokens_run(tokens: frozenset[Symbol], mode: str) -> dict[Symbol, Expr]:
    """Map each length in ``tokens`` to the tokens that a generation runs; empty for the mode ``step``."""
    return dict.fromkeys(tokens, PROMPT + Excess(NEW - 1)) if mode == "generate" else {}


def _generate(tokens: frozenset[Symbol]) -> Callable[[Extent], Extent]:
    steps: Expr = Excess(NEW - 1)
    run = tokens_run(tokens, "generate")

    def change(extent: Extent) -> Extent:
        if extent.tokens is None or extent.pairs is None:
            return replace(extent, executed=extent.executed.xreplace(run), useful=extent.useful.xreplace(run))
        useful = Add(*(case.expr * useful_pairs(mask, PROMPT + steps, PROMPT + steps) for mask, case in extent.pairs.masks))
        executed = PROMPT**2 + steps * PROMPT + Rational(1, 2) * steps * (steps + 1)
        return replace(extent, executed=useful if extent.executed == extent.useful else executed, useful=useful)

    return change
