"""Calls of a watched model: their lengths, what their arguments add to the regime, and the backward passes that ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from symflops.evaluate.lengths import Lengths, same
from symflops.training.introspect.model import LIVE, LiveModule, Programs
from symflops.training.introspect.tree import LiveModelError

More = tuple[tuple[str, tuple[str, ...]], ...]
"""Fields that a call adds to a regime page: (name, items)."""


@dataclass(slots=True)
class State:
    """A model as it was when a call began: its programs belong to what trained and which adapters ran.

    Attributes:
        observed: Whether it is known how far recomputation runs.
        entered: Arguments with gradients that the spec does not describe -> the modules into which their gradients flow.
    """

    live: LiveModule
    regime: str
    changed: bool = False
    known: dict[tuple[str, More], Any] = field(default_factory=dict)
    observed: bool = False
    entered: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def program(self, programs: Programs, convention: str, more: More = ()) -> Any:
        """The estimator, or the one that is being derived, with the fields ``more`` in its regime."""
        found = self.known.get((convention, more))
        if found is None:
            found = self.known[convention, more] = self._program(programs, convention, more)
        return getattr(found, "found", None) or found

    def _program(self, programs: Programs, convention: str, more: More) -> Any:
        if more == DECODE:
            return programs.of(self.live, "decode", convention, whole=False)
        if not more and self.regime != LIVE:
            return programs.of(self.live, self.regime, convention, whole=False)
        fields = {name: list(words) for name, words in more}
        return programs.of(self.live, self.live.regime(**fields), convention, whole="freeze" not in fields)


DECODE: More = (("decode", ()),)


class Piece(NamedTuple):
    """The part of a call that runs on the same lengths.

    Attributes:
        place: The part of the model that ran, empty for all of it, and the part of that which did not.
        streams: The lengths of each stream.
        rows: The lengths of whole rows, where rows are packs.
        again: Of a head that is fused with the loss: whether the backward pass repeats its forward work. Else None.
    """

    place: tuple[str, str]
    streams: dict[str, Lengths]
    rows: dict[str, Lengths]
    again: bool | None = None


def single(number: Any) -> Lengths:
    """One item of a length, which may be on a device."""
    return Lengths((number.reshape(1),), 1) if hasattr(number, "reshape") else same(1, number)


@dataclass(slots=True)
class Call:
    """One call of a model.

    Attributes:
        state: The model's state.
        phase: The phase of the step.
        streams: The lengths of each stream.
        rated: Whether it counts in rates.
        more: What its arguments add to the regime.
        forward: 1, or 0 if the forward pass has been counted in an earlier step.
        outputs: Outputs that could have a gradient.
        ran: Backward pass (a graph task of autograd) -> outputs that its gradient reached.
        later: The call that gets backward passes after the end of the step.
        rows: The lengths of whole rows, if the rows are packs.
        part: The part of the model that ran by itself; empty for the model.
        fused: If the head did not run as a module: its path, the stream of its tokens, and their number by rule.
        rules: The rules by which the heads of models run, by path of the head: (name, whether the backward pass repeats it).
        head: The path of a head that ran on other tokens than the rest, and the streams with its tokens.
    """

    state: State
    phase: str
    streams: dict[str, Lengths]
    rated: bool
    more: More = ()
    forward: int = 1
    outputs: list[str] = field(default_factory=list)
    ran: dict[int, set[str]] = field(default_factory=dict)
    later: Callable[[], Call] | None = None
    rows: dict[str, Lengths] | None = None
    part: str = ""
    head: tuple[str, dict[str, Lengths]] | None = None
    fused: tuple[str, str, dict[str, Any]] | None = None
    rules: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def pieces(self) -> Iterator[Piece]:
        """Yield what runs on different lengths."""
        rows, head, again = self.rows or self.streams, self.head, None
        if self.fused is not None and self.fused[0] in self.rules:
            path, stream, numbers = self.fused
            rule, again = self.rules[path]
            head = path, {**self.streams, stream: single(numbers[rule])}
        if head is None:
            yield Piece((self.part, ""), self.streams, rows)
        else:
            yield Piece((self.part, head[0]), self.streams, rows)
            yield Piece((head[0], ""), head[1], head[1], again)

    def reached(self, name: str, _: Any) -> None:
        """Record that the running backward pass reached the output ``name``; a hook of its tensor."""
        import torch

        call = self if self.later is None else self.later()
        call.ran.setdefault(torch._C._current_graph_task_id(), set()).add(name)

    def parts(self) -> Iterator[tuple[More, int, int]]:
        """Yield (what it adds to the regime, number of forward passes, number of backward passes)."""
        passes: dict[More, int] = {}
        for reached in self.ran.values():
            more = self.more + self._loss(reached)
            passes[more] = passes.get(more, 0) + 1
        rest = self.forward
        for more, count in passes.items():
            yield more, rest, count
            rest = 0
        if rest:
            yield (self.more if self.more == DECODE or self.part else ()), 1, 0

    def _loss(self, reached: set[str]) -> More:
        """The field ``loss`` if the gradient left out outputs of the spec; empty if it reached all, or for a part."""
        if self.part:
            return ()
        if reached >= {name for name in self.outputs if name.isidentifier() and name != "loss"}:
            return ()
        names = self.state.live.names[1]
        if not names & set(self.outputs) or reached >= names & set(self.outputs):
            return ()
        if not reached & names:
            raise LiveModelError(f"the loss reads {', '.join(sorted(reached))}, which is no output of '{self.state.live.name}'")
        return (("loss", tuple(sorted(reached & names))),)
