"""Sums work over the calls that keep a state, and splits work by lengths in its counts and by what PyTorch's counter sees.

Operators say what a call costs that continues ``past`` tokens (:mod:`symflops.formula.state`). A step is one such call with
``x`` new tokens. A generation of ``new`` tokens first runs the whole ``prompt``, which yields the first new token, then one
token at a time, ``max(0, new - 1)`` times. Work without new tokens, such as an encoder's, runs in the first call alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import compress

from sympy import Add, Expr, Integer, Mul, Symbol
from sympy.core.symbol import Str

from symflops.derive.dependence import run_once
from symflops.formula.functions import AtLeast, Equal, Excess, Longest, Together, is_index, size_symbol, sizes_in
from symflops.formula.masks import useful_pairs
from symflops.formula.polynomial import Polynomial
from symflops.formula.state import NEW, PAST, PREDICTED, PROMPT, RESUMED, SINGLE, SYMBOLS
from symflops.formula.summation import closed_sum
from symflops.formula.truth import Truth, UnknownSizeError
from symflops.formula.words import as_written
from symflops.ir.contraction import Contraction, Extent
from symflops.ir.graph import Graph, Length, Limit, Work
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import OF_OTHERS, Node, Operator, with_operators
from symflops.support.findings import Diagnostic, SpecError

ZERO, ONE = Integer(0), Integer(1)
AT_FIRST = dict.fromkeys(SYMBOLS, ZERO)


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


def decoded(works: Sequence[Work], graph: Graph, mode: str, name: str) -> tuple[tuple[Work, ...], frozenset[Symbol]]:
    """Convert the work of one call to that of the calls of a regime; returns it with the lengths that are decoded.

    Args:
        works: The work of one call, whose execution counts do not depend on lengths or on the state.
        graph: The graph.
        mode: ``prefill``, ``step`` or ``generate``.
        name: The name of the regime, for error messages.

    Raises:
        SpecError: the model keeps nothing for further tokens, or work over a past has no closed form.
    """
    tokens = decoded_tokens(graph)
    keepers = (one for one in graph.operators() if any(kept.kind != OF_OTHERS for kept in one.keeps))
    guards = (operator.guard.expr.xreplace(AT_FIRST) for operator in keepers)
    conditions = [guard for guard in guards if not any(is_index(symbol.name) for symbol in guard.free_symbols)]
    if tokens and conditions and ONE not in conditions and (sizes := sizes_in(*conditions)):
        message = f"regime '{name}' decodes, and the model keeps something for further tokens if {as_written(conditions[0])}"
        raise UnknownSizeError(sizes[0], Diagnostic("structural-size", message, None))
    if not tokens:
        message = f"regime '{name}' decodes, and the model keeps nothing for further tokens"
        hint = "an attention with 'mask: causal', query and key of one stream; a 'scan'; or 'keep'"
        raise SpecError([Diagnostic("no-decoder", message, None, hint)])
    for work in works:
        pairs = work.contraction.extent.pairs
        if pairs is not None and any(mask.base == "causal" and mask.looks_ahead for mask, _ in pairs.masks):
            message = f"regime '{name}' decodes, and how '{work.operator.path}' runs token by token is not known"
            raise SpecError(
                [Diagnostic("no-decoder", message, None, "a causal mask with 'blocks' or 'sees' is of whole sequences")]
            )
    calls = _Calls(tokens, graph, mode, name)
    found = tuple(replace(work, contraction=calls.contraction(work)) for work in works)
    return found, frozenset() if mode == "prefill" else tokens


def first_calls(works: Sequence[Work], graph: Graph, mode: str, tokens: frozenset[Symbol]) -> tuple[Limit, ...]:
    """Conditions on a step whose model has items, such as images, that run in the first call alone: each text has a past.

    A batch does not say to which text such an item belongs. With a past it costs nothing.

    Args:
        works: The work of one call.
        graph: The graph.
        mode: ``prefill``, ``step`` or ``generate``.
        tokens: The lengths that are decoded.
    """
    calls = _Calls(tokens, graph, mode, "")
    apart = {work.contraction.items for work in works if calls.alone(work)} if mode == "step" else set()
    begun = Truth.of(1 - BEGUN)
    text = "a past for every text in a step with %s ({0} here), which run in the first call: see the regime 'prefill'"
    others = sorted(apart - calls.items - {ONCE})
    return tuple(Limit(ONCE, begun, text % items, (Together(Str(items), ONE),)) for items in others)


def decoded_tokens(graph: Graph) -> frozenset[Symbol]:
    """Symbols of the lengths of which a call keeps something for further tokens."""
    lengths = {length.symbol for length in graph.lengths}
    own = (one for operator in graph.operators() for one in operator.keeps if one.kind != OF_OTHERS)
    kept = (one.stream.rows.free_symbols & lengths for one in own)
    return frozenset(symbol for symbols in kept for symbol in symbols)


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
    return first if not others else first + PAST if PAST in others else PROMPT + STEPS


def tokens_run(tokens: frozenset[Symbol], mode: str) -> dict[Symbol, Expr]:
    """Map each length in ``tokens`` to the tokens that a generation runs; empty for the mode ``step``."""
    return dict.fromkeys(tokens, PROMPT + STEPS) if mode == "generate" else {}


STEPS: Expr = Excess(NEW - 1)
BEGUN: Expr = Longest(1 - AtLeast(PAST, ONE))
"""1 if some text of a step has no past, so that work for the whole batch runs in a first call; else 0."""
INDEX = size_symbol("step@")


def kept_alone(graph: Graph) -> Graph:
    """``graph`` whose operators have what they keep for further tokens as their only contractions."""
    tokens = decoded_tokens(graph)

    def replaced(operator: Operator) -> list[Node]:
        own = operator.keeps
        if any(graph.values[result].stream.rows.free_symbols.isdisjoint(tokens) for result in operator.results):
            own = tuple(kept for kept in own if kept.kind != OF_OTHERS)
        extents = ((kept, Extent(kept.rows, kept.rows)) for kept in own)
        work = (Contraction(kept.kind, (), kept.width, kept.stream.items, extent) for kept, extent in extents)
        return [replace(operator, contractions=tuple(work), parameters=())]

    return replace(graph, body=with_operators(graph.body, replaced))


def kept_after(works: Sequence[Work], graph: Graph, mode: str) -> tuple[tuple[str, str, Expr], ...]:
    """List the elements that are kept after all calls of a regime: (kind, index set, elements per item).

    ``works`` is that of :func:`kept_alone`, in one call.
    """
    tokens = decoded_tokens(graph)
    calls = _Calls(tokens, graph, mode, "")
    whole = {**AT_FIRST, **dict.fromkeys(tokens, PROMPT + STEPS)} if mode == "generate" else calls.call
    found: dict[tuple[str, str], list[Expr]] = {}
    for work in works:
        part = work.contraction
        found.setdefault((part.name, part.items), []).append(work.forward * part.size * part.extent.executed.xreplace(whole))
    return tuple((*key, Polynomial.of(Add(*some)).expr) for key, some in found.items())


class _Calls:
    """Sums the runs of one call over the calls of a step or a generation.

    Args:
        tokens: The lengths that are decoded.
        graph: The graph.
        mode: ``prefill``, ``step`` or ``generate``.
        name: The name of the regime, for error messages.
    """

    def __init__(self, tokens: frozenset[Symbol], graph: Graph, mode: str, name: str) -> None:
        self.tokens, self.graph, self.mode, self.name = tokens, graph, mode, name
        self.lengths = {length.symbol: length.items for length in graph.lengths if length.symbol != PREDICTED}
        self.items = {self.lengths[symbol] for symbol in tokens}
        self.first: dict[Expr, Expr] = {PAST: ZERO, RESUMED: ZERO, SINGLE: ZERO, **dict.fromkeys(tokens, PROMPT)}
        self.next: dict[Expr, Expr] = {PAST: PROMPT + INDEX, RESUMED: ONE, SINGLE: ONE, **dict.fromkeys(tokens, ONE)}
        resumed = AtLeast(PAST, ONE)
        single = resumed * Mul(*(Equal(symbol, ONE) for symbol in tokens))
        self.call: dict[Expr, Expr] = AT_FIRST if mode == "prefill" else {RESUMED: resumed, SINGLE: single}

    def contraction(self, work: Work) -> Contraction:
        """The contraction of ``work`` with its runs in all calls."""
        extent, items = work.contraction.extent, work.contraction.items
        if self.alone(work):
            executed, useful = (self.once(one, items) for one in (extent.executed, extent.useful))
        else:
            executed = self.runs(extent.executed, work)
            useful = executed if extent.executed == extent.useful else self.useful(extent, work)
        return replace(work.contraction, extent=replace(extent, executed=executed, useful=useful))

    @cached_property
    def kept(self) -> frozenset[int]:
        """Ids of the operators that later calls do not run."""
        return run_once(self.graph, self.tokens)

    def alone(self, work: Work) -> bool:
        """Whether the first call alone has ``work``: it is of items such as images, or of constant rows that are kept."""
        extent = work.contraction.extent
        varied = (extent.executed.free_symbols | extent.useful.free_symbols) & self.lengths.keys()
        return varied.isdisjoint(self.tokens) if varied else work.operator.id in self.kept

    def once(self, runs: Expr, items: str) -> Expr:
        """Runs of work that the first call alone has, since its results are kept; ``items`` is its index set."""
        if self.mode == "generate":
            return runs.xreplace(self.first)
        if self.mode == "prefill":
            return runs.xreplace(self.call)
        first = 1 - self.call[RESUMED] if items in self.items else BEGUN if items == ONCE else ZERO
        return first * runs.xreplace(self.call)

    def runs(self, runs: Expr, work: Work) -> Expr:
        """Runs in all calls.

        Raises:
            SpecError: they have no closed form.
        """
        if self.mode != "generate":
            return runs.xreplace(self.call)
        steps = Longest(STEPS) if work.contraction.items == ONCE else STEPS  # the longest generation has the batch's last call
        later = closed_sum(INDEX, ZERO, steps, runs.xreplace(self.next))
        if later is None:
            message = f"regime '{self.name}' decodes, and the work of '{work.operator.path}' over all steps has no closed form"
            raise SpecError(
                [Diagnostic("no-decoder", message, work.operator.span, "a regime with 'decode: step' has one step")]
            )
        return Polynomial.of(runs.xreplace(self.first) + later).expr

    def useful(self, extent: Extent, work: Work) -> Expr:
        """Useful runs in all calls: of causal self-attention, those of one sequence of all tokens."""
        if self.mode != "generate" or extent.tokens is None or extent.pairs is None:
            return self.runs(extent.useful, work)
        rows = PROMPT + STEPS
        return Add(*(case.expr * useful_pairs(mask, rows, rows) for mask, case in extent.pairs.masks))
