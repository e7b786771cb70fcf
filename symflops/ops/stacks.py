"""``push``, ``pop`` and ``gather``: values used across iterations, such as skips of a UNet or hints of a side branch.

A stack exists only while the graph is built; the graph holds the values that were taken from it. Repeats that use a stack are
unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator

from symflops.algebra.truth import Truth
from symflops.algebra.unknown_size import UnknownSizeError
from symflops.diagnostics.findings import Diagnostic, Span
from symflops.model.nodes import Value
from symflops.ops.fields import FROM, Field, Form
from symflops.ops.kind import Call, operator_kind

STACK = Field("stack", Form.WORD, "the name of the stack", required=True)
Entry = tuple[Value, Truth, Span]


class Stacks:
    """The stacks of a graph: values with the conditions under which they are present."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Entry]] = {}
        self.depth = 0
        self.uses = 0

    def copy(self) -> dict[str, list[Entry]]:
        """The entries of each stack, for :meth:`restore`."""
        return {name: list(entries) for name, entries in self.lists.items()}

    def restore(self, lists: dict[str, list[Entry]]) -> None:
        """Go back to the entries of a :meth:`copy`, which may be restored again."""
        self.lists = {name: list(entries) for name, entries in lists.items()}

    def of(self, call: Call, filled: bool = True) -> list[Entry]:
        """The stack that an entry names; refuses an empty one unless it need not be ``filled``.

        Raises:
            UnknownSizeError: the entry is in a repeat that is not unrolled.
        """
        name: str = call.fields["stack"]
        self.uses += 1
        if self.depth:
            message = f"each iteration finds the stack '{name}' as the one before left it"
            hint = "a config, or a variant, that gives the count lets the iterations be written out"
            raise UnknownSizeError("", Diagnostic("structural-size", message, call.span, hint))
        stack = self.lists.setdefault(name, [])
        if filled and not stack:
            call.fail("empty-stack", f"the stack '{name}' is empty here", "stack", "'push' a value before")
        return stack

    def left(self) -> Iterator[Diagnostic]:
        """Findings about values that were pushed and never taken."""
        for name, entries in self.lists.items():
            if entries:
                message = f"{len(entries)} value{'s are' if len(entries) > 1 else ' is'} left on the stack '{name}'"
                yield Diagnostic("stack-left", message, entries[0][2], "each 'push' needs a 'pop', or a 'gather' of all")


@operator_kind("push", "put a value on a stack", FROM, STACK, saves="nothing")
def push(call: Call) -> None:
    """No work and no result."""
    call.stacks.of(call, filled=False).append((call.operand(), call.guard, call.span))
    call.moved = ()


@operator_kind(
    "pop",
    "take a value from a stack: the last one put there, or the first",
    STACK,
    Field("take", Form.WORD, "which one", default="last", words=("last", "first")),
    saves="nothing",
)
def pop(call: Call) -> None:
    """The pushed value."""
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
    """One value that depends on all pushed ones."""
    stack = call.stacks.of(call)
    call.values = {**call.values, "from": tuple(value for value, _, _ in stack)}
    call.result(call.values["like"][0].stream, stack[0][0].width)
    stack.clear()
