"""Proofs of watched steps: the first one, and each first one after the model has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from symflops.training.introspect.older import names_of
from symflops.training.introspect.regime import plain
from symflops.training.introspect.tree import ends_of, starred
from symflops.training.meter.calls import Piece
from symflops.training.meter.outside import WATCHES, Outside
from symflops.training.meter.verdict import Verdict, sentence, work_of
from symflops.training.meter.witness import Witness

WITNESS = "torch"
"""The convention that counts as PyTorch's own counter does."""
TRIES = 3
"""Steps without a backward pass that are proven; a proof of a step with one ends proofs."""
MULTIPLY = ("bf16", "fp16", "fp8", "fp4", "int8")


class Part(NamedTuple):
    """The work of a call: its program under :data:`WITNESS`, and how often each kind of work ran."""

    number: int
    program: Any
    streams: Any
    rows: Any
    times: tuple[int, int, int]
    piece: Piece

    def work(self, program: Any, streams: Any) -> Counter[Any]:
        """FLOPs on ``streams`` by (modules that run, kind); a head that is fused with the loss has no module."""
        found = work_of(program, streams, self.times, *self.piece.place)
        if self.piece.again is None:
            return found
        own: Counter[Any] = Counter()
        for (_, kind), flops in found.items():
            own[(), kind] += flops
        if self.piece.again:
            own[(), "backward"] += sum(work_of(program, streams, (self.times[1], 0, 0), *self.piece.place).values())
        return own


class Proofs:
    """Runs steps under a witness, and compares them when their programs are there.

    Attributes:
        spoilt: Whether a call of the running step could not be read, so that it cannot be proven.
        failed: The differences of a step from what was counted; empty without any.
    """

    def __init__(self, watch: Any, wanted: bool) -> None:
        self.watch, self.wanted, self.left_over = watch, wanted, TRIES if wanted else 0
        self.witness: Witness | None = None
        self.outside: Outside | None = None
        WATCHES.add(watch)
        self.models: list[Any] = []
        self.pending: list[tuple[Witness, list[Part], list[tuple[Any, str]]]] = []
        self.changed: list[tuple[Any, str]] = []
        self.spoilt, self.failed = False, ""

    def arm(self) -> None:
        """See modules that are not watched from now on, until a step is proven."""
        if any(one.compiled for one in self.watch.models):
            self.stop()
        elif self.left_over and self.outside is None:
            self.outside = Outside(self.watch)

    def again(self, model: Any, changes: Iterable[str]) -> None:
        """Prove the running step: ``model`` has changed."""
        self.changed += [(model, change) for change in changes if ": " not in change]
        self.left_over, self.failed, self.pending = TRIES * self.wanted, "", []

    def entered(self, model: Any) -> None:
        """Begin to count a call."""
        models = self.watch.models
        if self.witness is None and self.left_over and not any(call.rated for call in self.watch.calls):
            if any(one.compiled for one in models):
                self.left_over = 0
                self.watch.tell("the first step is not proven: PyTorch sees no operators of a compiled model")
                return
            self.arm()
            self.witness = Witness((one.root for one in models), self.outside)
        if self.witness is not None:
            self.models = list(models)
            part = model.part.name if model.part is not None else ""
            self.witness.call(models.index(model), model.state.live.reading.tree.modules, model.grad, part)

    def left(self) -> None:
        """End to count a call."""
        if self.witness is not None and self.witness.depth:
            self.witness.called()

    def stop(self) -> None:
        """Let PyTorch be as it was."""
        if self.witness is not None:
            self.witness.end()
        if self.outside is not None:
            self.outside.end()
        self.witness = self.outside = None

    def close(self, calls: list[Any]) -> None:
        """End the proof of a step that had ``calls``, and compare the steps whose programs are there."""
        witness, spoilt = self.witness, self.spoilt
        calls = [call for call in calls if call.rated]
        self.stop()
        if witness is not None and calls and not spoilt:
            self.left_over = 0 if any(call.ran for call in calls) else self.left_over - 1
            try:
                self.pending.append((witness, calls, self.changed))
                list(self._parts(calls))
            except Exception as error:
                self.watch.tell(f"the first step is not proven: {type(error).__name__}: {error}")
            self.changed = []
        if self.watch.models:
            self.arm()
        self.pending = [one for one in self.pending if not self._compared(*one)]
        if self.failed:
            self.watch.refused(self.failed)

    def _parts(self, calls: list[Any]) -> Iterable[Part]:
        roots = [model.root for model in self.models]
        for call in calls:
            number = next(place for place, root in enumerate(roots) if root is call.state.live.root)
            for more, forward, backward in call.parts():
                program = call.state.program(self.watch.programs, WITNESS, more)
                for piece in call.pieces():
                    yield Part(number, program, piece.streams, piece.rows, (forward, backward, backward), piece)

    def _compared(self, witness: Witness, calls: list[Any], changed: list[tuple[Any, str]]) -> bool:
        """Compare a step with its programs; False if one is being derived."""
        derived: dict[int, tuple[Counter[Any], Counter[Any]]] = {}
        try:
            parts = list(self._parts(calls))
            programs = [part.program.poll() if hasattr(part.program, "poll") else part.program for part in parts]
            if None in programs:
                return False
            if witness.problem:
                raise ValueError(witness.problem)
            if self._fused(witness, calls):
                return self._compared(witness, calls, changed)
            for part, program in zip(parts, programs, strict=True):
                for sums, streams in zip(derived.setdefault(part.number, (Counter(), Counter())), part[2:4], strict=True):
                    sums.update(part.work(program, streams))
            heads = [head_of(model.root) for model in self.models]
            adapters = [one for call in calls for one in call.state.live.reading.adapters]
            units = {starred(plain(one.path)) for one in adapters if one.kind != "lora"}
            older = [bool(names_of(model.root).rules) for model in self.models]
            verdicts = [Verdict(one, witness, *work, heads[one], units, older[one]) for one, work in derived.items()]
        except Exception as error:
            self.watch.tell(f"the first step is not proven: {type(error).__name__}: {error}")
            return True
        text, holds = sentence(verdicts, witness.outside)
        if holds:
            self.watch.tell(text)
            for model, name in changed:  # an attribute that does not change the work
                model.ignored.add(name)
                model.print = None
        elif self.watch.programs.check == "warn":
            self.watch.meter.warn(text)
        else:
            self.failed = text
            self.watch.refused(text)
        self._check_type(witness)
        return True

    def _fused(self, witness: Witness, calls: list[Any]) -> bool:
        """Find the tokens on which a head ran that is fused with the loss; whether a rule was found.

        A rule holds if the work that no module did is that of the head on the rule's tokens, to the last FLOP.
        """
        found = False
        for call in calls:
            if call.fused is None or call.fused[0] in call.rules:
                continue
            number = next(place for place, one in enumerate(self.models) if one.root is call.state.live.root)
            path = call.fused[0]
            done = [witness.seen.get(((number, ()), kind), 0) for kind in ("forward", "backward")]
            alike = [one for one in calls if one.fused is not None and one.rules is call.rules]
            for rule in call.fused[2]:
                for again in (False, True):
                    call.rules[path] = rule, again
                    due: Counter[str] = Counter()
                    for part in self._parts(alike):
                        if part.piece.again is not None:
                            program = part.program.poll() if hasattr(part.program, "poll") else part.program
                            for (_, kind), flops in part.work(program, part.streams).items():
                                due[kind] += flops
                    if done[0] and [due["forward"], due["backward"]] == done:
                        found = True
                        break
                    del call.rules[path]
                if path in call.rules:
                    break
        return found

    def _check_type(self, witness: Witness) -> None:
        """Warn if the products ran in fp32, and the peak is that of a faster type."""
        usual, peak = max(witness.types, key=witness.types.__getitem__, default=""), self.watch.meter.peak
        if usual == "torch.float32" and peak.dtype in MULTIPLY and peak.tflops and peak.source != "given":
            self.watch.meter.warn(f"products ran in fp32, and the peak is that of {peak.dtype}: give dtype='tf32' or 'fp32'")


def head_of(root: Any) -> str:
    """The path of the module that computes logits, as transformers' models tell it; empty without one."""
    head = ends_of(root)[1]
    path = next((path for path, module in root.named_modules() if module is head), "") if head is not None else ""
    return names_of(root).path(path) if path else ""
