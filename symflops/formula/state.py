"""The state of a call of a model that keeps what it computed, as words of the language.

``stateful``: the call keeps keys, values and states for later calls. ``past``: the tokens before those of this call.
``resumed``: there are such tokens. ``single``: this call resumes with one token, so that recurrences take one step. ``final``:
the head runs on the last ``predicted`` tokens of the call alone; there is 1 in a generation.

A regime binds the words to constants, or to the symbols below until the work is summed over the calls of a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sympy import Expr, Integer, Symbol

from symflops.formula.functions import flag_symbol, size_symbol
from symflops.formula.truth import NO, YES, Truth

PAST, PROMPT, NEW = (size_symbol(name) for name in ("past", "prompt", "new"))
PREDICTED = size_symbol("predicted")
RESUMED, SINGLE = (flag_symbol(name) for name in ("resumed", "single"))
SYMBOLS: frozenset[Symbol] = frozenset((PAST, RESUMED, SINGLE))
"""Symbols that stand for the state until the calls are known."""


class State(NamedTuple):
    """The values of the words in expressions."""

    stateful: Truth = NO
    past: Expr = Integer(0)
    resumed: Truth = NO
    single: Truth = NO
    final: Truth = NO
    predicted: Expr = Integer(1)

    @property
    def words(self) -> dict[str, Any]:
        """Word -> value."""
        return self._asdict()


WITHOUT = State()
_STEP = State(YES, PAST, Truth.of(RESUMED), Truth.of(SINGLE))
STATES: Mapping[str, State] = {"": WITHOUT, "prefill": _STEP, "step": _STEP, "generate": _STEP._replace(final=YES)}
"""The state of the calls of a regime, by its field ``decode``."""


def state_of(decode: str, head: str) -> State:
    """The state of the calls of a regime with these fields."""
    return STATES[decode]._replace(final=YES, predicted=PREDICTED) if head else STATES[decode]


def has_state(*exprs: Expr) -> bool:
    """Whether an expression depends on the state of a call."""
    return any(not SYMBOLS.isdisjoint(expr.free_symbols) for expr in exprs)
