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
from symflops.ops.kind import FROM, Call, Field, Form, operator_kind
from symflops.support.findings import Diagnostic, Span

STACK = Field("stack", Form.WORD, "the name of the stack", required=True)
Entry = tuple[Value, Truth, Span]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A stack that loops fill and empty; all its values have one stream and width.

    Attributes:
        name: The name of the stack.
        stream: The stream of its values.
        width: The width of its values; None for indices.
        size: The letter of the size that must be known to unroll the loops.
        span: The place of the first push.
        taken: Whether a value was popped.
    """

    name: str
    stream: Stream
    width: Expr | None
    size: str
    span: Span
    taken: bool = False


class Stacks:
    """The stacks of a graph while it is built.

    Attributes:
        lists: For a stack used outside loops: its values, each with the condition under which it is there, and its place.
        sequences: The stacks that loops fill and empty, by name.
        counts: How often the loops around the current entry run, outermost first.
    """

    def __init__(self) -> None:
        self.lists: dict[str, list[Entry]] = {}
        self.sequences: dict[str, Sequence] = {}
        self.counts: list[Expr] = []

    def copy(self) -> tuple[dict[str, list[Entry]], dict[str, Sequence]]:
        """A copy of all stacks for :meth:`restore`: ``lists`` and ``sequences``."""
        return {name: list(entries) for name, entries in self.lists.items()}, dict(self.sequences)

    def restore(self, kept: tuple[dict[str, list[Entry]], dict[str, Sequence]]) -> None:
        """Return to the stacks ``kept`` by :meth:`copy`, which can be used several times."""
        self.lists = {name: list(entries) for name, entries in kept[0].items()}
        self.sequences = dict(kept[1])

    def of(self, call: Call, filled: bool = True) -> list[Entry]:
        """The values on the stack that ``call`` names; if ``filled``, an empty stack is an error.

        Raises:
            UnknownSizeError: loops around the entry, or loops that filled the stack, must be unrolled first.
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
        """The stack of loops to which ``call`` pushes ``value``, or from which it pops if that is None.

        None if the stack is used outside loops.

        Raises:
            UnknownSizeError: the loops must be unrolled first.
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
        elif known.taken or known.width != value.width or not known.stream.alike(value.stream, call.definitions.equal):
            raise written_out(call, name, size)
        return known

    def _size(self) -> str:
        """The letter of a size that decides how often the loops around the entry run; empty if all is known."""
        return next((name for count in self.counts for name in sizes_in(count)), "")

    def left(self) -> Iterator[Diagnostic]:
        """Yield a finding for each stack on which values are left."""
        hint = "each 'push' needs a 'pop', or a 'gather' of all"
        for name, entries in self.lists.items():
            if entries:
                message = f"{len(entries)} value{'s are' if len(entries) > 1 else ' is'} left on the stack '{name}'"
                yield Diagnostic("stack-left", message, entries[0][2], hint)
        for name, sequence in self.sequences.items():
            if not sequence.taken:
                yield Diagnostic("stack-left", f"the stack '{name}' is filled and never emptied", sequence.span, hint)


def written_out(call: Call, name: str, size: str) -> UnknownSizeError:
    """The error that loops which use the stack ``name`` must be unrolled, so that ``size`` must be known."""
    message = f"each iteration finds the stack '{name}' as the one before left it"
    hint = "a config, or a variant, that gives the count lets the iterations be written out"
    return UnknownSizeError(size, Diagnostic("structural-size", message, call.span, hint))


@operator_kind("push", "put a value on a stack", FROM, STACK, saves="nothing")
def push(call: Call) -> None:
    """Put the operand on the stack; there is no result."""
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
    """Take a value from the stack as the result."""
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
    """Empty the stack; the result depends on all values that were on it."""
    stack = call.stacks.of(call)
    call.values = {**call.values, "from": tuple(value for value, _, _ in stack)}
    call.result(call.values["like"][0].stream, stack[0][0].width)
    stack.clear()
