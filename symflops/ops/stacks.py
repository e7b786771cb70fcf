"""``push``, ``pop`` and ``gather``: values used across iterations, such as skips of a UNet or hints of a side branch.

A stack used outside loops exists only while the graph is built; the graph holds the popped values. A stack that loops fill and
empty is a sequence: the graph holds its pushes and pops. Loops that do both, or that use a stack which is also used outside
them, are unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sympy import Expr

from symflops.formula.functions import sizes_in
from symflops.formula.truth import Truth, UnknownSizeError
from symflops.ir.nodes import Stream, Value
from symflops.ops.fields import FROM, Field, Form
from symflops.ops.kind import Call, operator_kind
from symflops.support.findings import Diagnostic, Span

STACK = Field("stack", Form.WORD, "the name of the stack", required=True)
Entry = tuple[Value, Truth, Span]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A stack that loops fill; all values have one stream and width.

    ``size`` must be known to unroll the loops. ``taken``: whether a value was popped.
    """

    name: str
    stream: Stream
    width: Expr | None
    size: str
    span: Span
    taken: bool = False


class Stacks:
    """Stacks of a graph: lists of values with the conditions of their presence, and sequences.

    ``counts`` are the iteration counts of the loops around the current entry, outermost first.
    """

    def __init__(self) -> None:
        self.lists: dict[str, list[Entry]] = {}
        self.sequences: dict[str, Sequence] = {}
        self.counts: list[Expr] = []

    def copy(self) -> tuple[dict[str, list[Entry]], dict[str, Sequence]]:
        """Snapshot of all stacks and sequences, for :meth:`restore`."""
        return {name: list(entries) for name, entries in self.lists.items()}, dict(self.sequences)

    def restore(self, kept: tuple[dict[str, list[Entry]], dict[str, Sequence]]) -> None:
        """Restore a snapshot of :meth:`copy`; it can be restored several times."""
        self.lists = {name: list(entries) for name, entries in kept[0].items()}
        self.sequences = dict(kept[1])

    def of(self, call: Call, filled: bool = True) -> list[Entry]:
        """Stack that ``call`` names; if ``filled``, an empty one is refused.

        Raises:
            UnknownSizeError: loops around the entry, or those that filled the stack, are not unrolled.
        """
        name: str = call.fields["stack"]
        if name in self.sequences:
            raise written_out(call, name, self.sequences[name].size)
        if self.counts:
            raise written_out(call, name, self._size())
        stack = self.lists.setdefault(name, [])
        if filled and not stack:
            call.fail("empty-stack", f"the stack '{name}' is empty here", "stack", "'push' a value before")
        return stack

    def sequence(self, call: Call, value: Value | None = None) -> Sequence | None:
        """Sequence that ``call`` pushes ``value`` to, or pops from; None if its stack is an ordinary list.

        Raises:
            UnknownSizeError: the loops must be unrolled.
        """
        name: str = call.fields["stack"]
        size = self._size()
        if not size or self.lists.get(name):
            return None
        known = self.sequences.get(name)
        if value is None:
            if known is None:
                raise written_out(call, name, size)
            self.sequences[name] = replace(known, taken=True)
        elif known is None:
            known = self.sequences[name] = Sequence(name, value.stream, value.width, size, call.span)
        elif known.taken or known.width != value.width or not known.stream.alike(value.stream):
            raise written_out(call, name, size)
        return known

    def _size(self) -> str:
        """Size that must be known to unroll the loops around an entry; empty if all counts are known."""
        return next((name for count in self.counts for name in sizes_in(count)), "")

    def left(self) -> Iterator[Diagnostic]:
        """Yield findings about values that were pushed and never popped."""
        hint = "each 'push' needs a 'pop', or a 'gather' of all"
        for name, entries in self.lists.items():
            if entries:
                message = f"{len(entries)} value{'s are' if len(entries) > 1 else ' is'} left on the stack '{name}'"
                yield Diagnostic("stack-left", message, entries[0][2], hint)
        for name, sequence in self.sequences.items():
            if not sequence.taken:
                yield Diagnostic("stack-left", f"the stack '{name}' is filled and never emptied", sequence.span, hint)


def written_out(call: Call, name: str, size: str) -> UnknownSizeError:
    """Error: the loops that use a stack must be unrolled, which requires ``size`` to be known."""
    message = f"each iteration finds the stack '{name}' as the one before left it"
    hint = "a config, or a variant, that gives the count lets the iterations be written out"
    return UnknownSizeError(size, Diagnostic("structural-size", message, call.span, hint))


@operator_kind("push", "put a value on a stack", FROM, STACK, saves="nothing")
def push(call: Call) -> None:
    """Put the operand on the stack; no result."""
    value = call.operand()
    call.moved = ()
    call.sequence = call.stacks.sequence(call, value)
    if call.sequence is None:
        call.stacks.of(call, filled=False).append((value, call.guard, call.span))


@operator_kind(
    "pop",
    "take a value from a stack: the last one put there, or the first",
    STACK,
    Field("take", Form.WORD, "which one", default="last", words=("last", "first")),
    saves="nothing",
)
def pop(call: Call) -> None:
    """Take a value from the stack and pass it on unchanged."""
    call.sequence = call.stacks.sequence(call)
    if call.sequence is None:
        stack = call.stacks.of(call)
        value, present, _ = stack.pop(0 if call.fields["take"] == "first" else -1)
        call.moved = ((value, present),)


@operator_kind(
    "gather",
    "take everything from a stack, as one value: rows like those of another one",
    STACK,
    Field("like", Form.VALUES, "the value whose rows the result has", required=True),
    saves="nothing",
)
def gather(call: Call) -> None:
    """Empty the stack into one value that depends on all pushed ones."""
    stack = call.stacks.of(call)
    call.values = {**call.values, "from": tuple(value for value, _, _ in stack)}
    call.result(call.values["like"][0].stream, stack[0][0].width)
    stack.clear()
