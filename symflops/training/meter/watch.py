"""Counts the calls of live models by hooks: with the lengths in a call's own arguments, and with the backward passes that ran.

A call counts in the step in which its forward pass ran. It has a gradient if autograd reaches one of its outputs; which outputs
it reaches, and which arguments require a gradient, decides what the backward pass computes. Calls inside of recomputation are
no calls. Calls for evaluation (without gradients, the trained model in eval mode), in a pause, and over a cache count as
executed work, but not in rates.

A call keeps lengths and names, never a tensor that has a history, so it keeps no graph alive. Lengths on a device stay there
until the step is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from symflops.evaluate.boundaries import told
from symflops.evaluate.lengths import same
from symflops.training.introspect.fingerprint import Fingerprint
from symflops.training.introspect.model import LIVE, Programs, checked_module
from symflops.training.introspect.steering import steered
from symflops.training.introspect.tree import LiveModelError, ends_of, wrappers_of
from symflops.training.meter.arguments import (
    EMBEDS,
    cached_tokens,
    labelled,
    over_cache,
    requires_grad,
    tensors_of,
    tokens_of_head,
    whole_rows,
    without_embeddings,
)
from symflops.training.meter.batches import streams_of
from symflops.training.meter.calls import DECODE, Call, More, State
from symflops.training.meter.observe import Observer, more_of
from symflops.training.meter.parts import Part
from symflops.training.meter.phases import Phase
from symflops.training.meter.proofs import Proofs, head_of
from symflops.training.meter.sums import Entry
from symflops.training.meter.witness import Hooks

COMPILED = "_orig_mod"


class Watched(Hooks):
    """The hooks on one model and its wrappers, and the states in which it has been called."""

    def __init__(self, watch: Watch, module: Any, spec: str | None, regime: str, main: bool) -> None:
        self.watch, self.spec, self.word, self.main = watch, spec, regime, main
        chain = wrappers_of(module)
        self.root = chain[-1]
        compiled = next((place for place, one in enumerate(chain) if COMPILED in one._modules), len(chain))
        self.compiled = compiled < len(chain) or getattr(self.root, "_compiled_call_impl", None) is not None
        self.owned = {id(one) for one in (*chain, *self.root._modules.values())}
        self.names = list(inspect.signature(self.root.forward).parameters)
        self.depth, self.past, self.grad = 0, 0, False
        self.arguments: dict[str, Any] = {}
        self.state: State | None = None
        self.rated = True
        self.states: dict[Any, State] = {}
        self.print: Fingerprint | None = Fingerprint(self.root)
        self.ignored, self.fields = set[str](), dict[str, Any]()
        self.fresh = True
        self.observer: Observer | None = None
        self.part: Part | None = None
        self.ends = ends_of(self.root)
        self.head, self.kept = head_of(self.root), -1
        self.rules: dict[str, tuple[str, bool]] = {}
        self.before: Part | None = None
        self.waiting: list[tuple[Part, Callable[[Any], None]]] = []
        self.handles = [handle for one in chain[: compiled + 1] for handle in self._hooked(one)]
        if self.head and not self.compiled:
            self.owned.add(id(self.ends[1]))
            self.handles.append(self.ends[1].register_forward_pre_hook(self._heads))
        for name, child in () if self.compiled else self.root._modules.items():
            if child is not None and next(child.parameters(), None) is not None:
                self.handles.append(child.register_forward_pre_hook(partial(self._enter, name), with_kwargs=True))
                self.handles.append(child.register_forward_hook(self._leave, always_call=True))

    def _hooked(self, module: Any) -> tuple[Any, Any]:
        import torch

        own = list(inspect.signature(module.forward).parameters.values())
        wild = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in own)
        names = self.names if wild else [one.name for one in own]
        enter, leave = partial(self._begin, names), self._end
        if getattr(module, "_compiled_call_impl", None) is not None:  # hooks are compiled with a module in place
            enter, leave = map(torch._dynamo.disable, (enter, leave))
        return (
            module.register_forward_pre_hook(enter, with_kwargs=True),
            module.register_forward_hook(leave, always_call=True),
        )

    def _begin(self, names: list[str], module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        import torch

        if id(module) not in self.owned or torch._C._current_graph_task_id() != -1:  # recomputation
            return
        self.depth += 1
        self.arguments = {**dict(zip(names, args, strict=False)), **named} or self.arguments
        if self.depth > 1:
            return
        self.grad = torch.is_grad_enabled()
        self.watch.guarded(self._opened, module)

    def _opened(self, module: Any) -> None:
        """Read the state of the model, before a call of it runs."""
        self.state, self.past, self.kept = None, cached_tokens(self.arguments), -1
        self.rated = not (self.watch.meter.is_paused or self.past) and self.trains()
        if self.fresh:
            self._compare()
        assert self.print is not None
        key = self.print.state()
        if key not in self.states:
            self.states[key] = self._read(bool(self.states))
        self.state = self.states[key]
        self._observe(self.state)
        if self.state.changed and self.grad:
            self.state.changed = False
            self.watch.tell(f"what trains has changed: {self.state.live.reading.words}")
        if self.rated:
            self.watch.proofs.entered(self)

    def trains(self) -> bool:
        """Whether a call now is no evaluation."""
        import torch

        return torch.is_grad_enabled() or self.root.training or not self.main

    def _observe(self, state: State) -> None:
        """Observe a call that tells more than earlier ones: how far recomputation runs, and where gradients enter."""
        outside, recomputed = self._outside(state), state.live.reading.recomputed
        again = self.grad and recomputed is not None and recomputed.early_stop and not state.observed
        if again or (outside and outside not in state.entered):
            self.observer = Observer(state.live.reading.tree.modules, recomputed.groups if recomputed and again else ())

    def _observed(self, state: State, observer: Observer) -> None:
        """Keep what was observed."""
        observer.end()
        self.observer, state.observed = None, True
        state.entered[self._outside(state)] = tuple(sorted(observer.entered))
        if observer.whole:
            state.live.recomputes_whole()
            state.known = {}

    def _outside(self, state: State) -> tuple[str, ...]:
        """The arguments that require a gradient and that the spec does not describe."""
        names = sorted(name for name, value in self.arguments.items() if self.grad and requires_grad(value))
        if self.part is not None:
            return (self.part.name, *names) if names else ()
        known = {EMBEDS} if self.ends[0] is not None else set()
        return tuple(name for name in names if name not in known and name not in state.live.names[0])

    def _compare(self) -> None:
        """Read the model anew if it has changed since its last step."""
        self.fresh = False
        changes = ["new"] if self.print is None else self.print.changes()
        if not changes:
            return
        known = self.print is not None and bool(self.states)
        self.fields |= (fields := steered(self.root, changes))
        if self.print is None or any(": requires_grad" not in change and ": adapters" not in change for change in changes):
            self.states = {}
        self.print = Fingerprint(self.root, self.ignored)
        if known and not self.states:
            more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
            state = self.states[self.print.state()] = self._read(False)
            told = f"{', '.join(changes[:3])}{more}) and was read anew: {state.live.reading.words}"
            self.watch.tell(f"the model has changed ({told}")
            self.watch.proofs.again(self, () if fields else changes)

    def _read(self, changed: bool) -> State:
        return State(checked_module(self.root, self.spec, self.watch.programs.check, self.fields), self.word, changed)

    def _heads(self, module: Any, args: tuple[Any, ...]) -> None:
        """Read how many tokens the head of a language model runs on; a hook of the head."""
        if id(module) in self.owned and args and hasattr(args[0], "shape"):
            self.kept = prod(args[0].shape[:-1])

    def _enter(self, name: str, child: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Begin a call of a part of the model by itself; a hook of the part."""
        import torch

        if id(child) not in self.owned or self.depth or torch._C._current_graph_task_id() != -1:
            return
        self.depth, self.grad = 1, torch.is_grad_enabled()
        self.part = Part(name, child, args, named)
        self.arguments = self.part.arguments
        self.watch.guarded(self._opened, child)

    def _leave(self, child: Any, _: Any, output: Any) -> None:
        """End a call of a part of the model by itself; a hook of the part."""
        if id(child) not in self.owned or (part := self.part) is None or child is not self.root._modules.get(part.name):
            return
        self.depth = 0
        self.watch.proofs.left()
        if output is not None and self.state is not None:
            self.watch.guarded(self._part_closed, part, output)
        self._forget()

    def _part_closed(self, part: Part, output: Any) -> None:
        """Record a call of a part, if its lengths are known, and the calls before that wait for them."""
        state = self.state
        assert state is not None
        if self.observer is not None:
            self._observed(state, self.observer)
        more = self._alone(state, part.name)
        program = state.program(self.watch.programs, self.watch.convention, more)
        part.ended(getattr(program, "estimator", program), output, self.before)
        self.before = part
        call = Call(state, self.watch.meter.current, {}, self.rated, more, part=part.name)
        self.watch.calls.append(call)
        self._outputs(call, output)
        self.waiting.append((part, partial(setattr, call, "streams")))
        self.waiting = [one for one in self.waiting if not one[0].settled(part, one[1])]

    def _alone(self, state: State, name: str) -> More:
        """Fields that a call of a part adds to the regime: the rest does not run, and a gradient may enter."""
        if not self.grad:
            return ()
        rest = [one for one, child in self.root._modules.items() if child is not None and one != name]
        trains = [one for one in rest if any(tensor.requires_grad for tensor in self.root._modules[one].parameters())]
        if any(map(requires_grad, self.arguments.values())):
            return () if trains else (("enter_grad", state.entered.get(self._outside(state), ())),)
        return (("freeze", tuple(f"{one}.*" for one in trains)),) if trains else ()

    def unread(self) -> list[str]:
        """The parts of the step whose lengths nothing told."""
        found, self.waiting, self.before = [part.name for part, _ in self.waiting], [], None
        return found

    def _forget(self) -> None:
        if self.observer is not None:
            self.observer.end()
        self.arguments, self.state, self.observer, self.part = {}, None, None, None

    def _end(self, module: Any, _: Any, output: Any) -> None:
        import torch

        if id(module) not in self.owned or torch._C._current_graph_task_id() != -1:
            return
        self.depth -= 1
        if self.depth:
            return
        self.watch.proofs.left()
        if output is not None and self.state is not None:
            self.watch.guarded(self._closed, output)
        self._forget()

    def _closed(self, output: Any) -> None:
        """Record a call, after it has run."""
        state, meter = self.state, self.watch.meter
        assert state is not None
        if self.observer is not None:
            self._observed(state, self.observer)
        program = state.program(self.watch.programs, self.watch.convention, DECODE if self.past else ())
        reader = getattr(program, "estimator", program)
        more: More = ()
        try:
            if self.past:
                more, streams = DECODE, over_cache(reader, self.arguments, self.past)
            else:
                more, streams = (
                    more_of(self, state, self._outside(state)),
                    streams_of(reader, without_embeddings(self.arguments)),
                )
        except Exception as error:
            raise LiveModelError(f"{error}; the arguments are {told(self.arguments)}") from None
        call = Call(state, meter.current, streams, self.rated, more)
        call.rows = whole_rows(self.arguments, streams)
        name, every = tokens_of_head(reader, self.arguments)
        if self.kept >= 0 and name in streams and self.kept != every:
            call.head = self.head, {**streams, name: same(1, self.kept)}
        if self.kept < 0 and self.head and name in streams and (numbers := labelled(self.arguments)):
            call.fused, call.rules = (self.head, name, numbers), self.rules
        self._outputs(call, output)
        self.watch.calls.append(call)

    def _outputs(self, call: Call, output: Any) -> None:
        """Let the outputs of a call tell which backward passes reach them."""
        for name, tensor in tensors_of(output) if self.grad else ():
            if tensor.requires_grad:
                call.outputs.append(name)
                tensor.register_hook(partial(call.reached, name))


class Watch:
    """Counts the calls of the models that a meter watches.

    ``calls`` are those of the running step, ``late`` earlier ones that wait for the rule of a fused head, and ``entries`` the
    sums of calls by phase and kind.
    """

    def __init__(self, meter: Any) -> None:
        self.meter, self.tell = meter, meter.tell
        self.models: list[Watched] = []
        self.calls: list[Call] = []
        self.late: list[Call] = []
        self.entries: dict[tuple[Any, ...], Entry] = {}

    def begin(self, programs: Programs, convention: str, prove: bool) -> None:
        """Begin to watch models, with their programs under a convention; with ``prove`` the first step is compared."""
        self.programs, self.convention, self.proofs = programs, convention, Proofs(self, prove)

    def add(self, module: Any, spec: str | None = None, regime: str = LIVE, main: bool = False) -> None:
        """Watch a model, unless it is watched already."""
        if all(one.root is not wrappers_of(module)[-1] for one in self.models):
            self.models.append(Watched(self, module, spec, regime, main))
            self.proofs.arm()

    def remove(self) -> None:
        """Remove all hooks; calls of the running step still count."""
        for model in self.models:
            for handle in model.handles:
                handle.remove()
        self.proofs.stop()
        self.models = []

    def guarded(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call ``function``; an exception makes the step one without MFU."""
        try:
            function(*arguments)
        except Exception as error:
            self.refused(f"{error}" if isinstance(error, LiveModelError) else f"{type(error).__name__}: {error}")

    def refused(self, reason: str) -> None:
        """Record work that could not be counted: the step has no MFU."""
        self.proofs.spoilt = True
        self.meter.unreadable(reason, what="call")

    def close(self, phases: Mapping[str, Phase]) -> None:
        """Add the calls of the step to the sums of their phases; must run in every step."""
        calls, self.calls = self.calls, []
        for model in self.models:
            for name in model.unread():
                self.refused(f"'{name}' ran outside of a call of {type(model.root).__name__}, and nothing tells its lengths")
        calls = [call for call in calls if call.streams]
        self.guarded(self.proofs.close, calls)
        late, waits = self.late, bool(self.proofs.pending)
        self.late = [call for call in [*late, *calls] if waits and call.fused is not None and call.fused[0] not in call.rules]
        for model in self.models:
            model.fresh = True
        for call in calls:
            if call.phase in phases:
                phases[call.phase].given.update(call.streams)
            call.later = partial(self._later, call, [])
        for call in [*late, *calls]:
            if not any(call is one for one in self.late):
                self.guarded(self._count, call, any(call is one for one in late))
        for phase in phases.values():
            phase.owed = bool(self.late)
        for key, entry in list(self.entries.items()):
            if key[0] in phases:
                try:
                    self._settle(phases[key[0]], entry)
                except Exception as error:
                    del self.entries[key]
                    self.refused(f"{type(error).__name__}: {error}")
        self.proofs.spoilt = False

    def _later(self, call: Call, found: list[Call]) -> Call:
        """The call in the running step for backward passes of a call of an earlier step."""
        if not found or not any(one is found[-1] for one in self.calls):
            found.append(replace(call, forward=0, ran={}, later=None))
            self.calls.append(found[-1])
        return found[-1]

    def _count(self, call: Call, late: bool) -> None:
        for more, forward, backward in call.parts():
            program = call.state.program(self.programs, self.convention, more)
            for piece, streams, _, again in call.pieces():
                key = (call.phase, id(program), forward, backward, call.rated, piece, again)
                if key not in self.entries:
                    self.entries[key] = Entry(
                        Phase.of(call.phase, program, False, None), forward, backward, call.rated, piece, bool(again)
                    )
                mine = self.entries[key].sums
                (mine.before if late and mine.awaited is None else mine.sums).add(**streams)

    def _settle(self, phase: Phase, entry: Entry) -> None:
        """Move the FLOPs of an entry to its phase; if a program is awaited, keep them for a later step."""
        mine = entry.sums
        found = mine.awaited.poll() if mine.awaited is not None else None
        if found is not None:
            mine.receive(found)
        if mine.awaited is not None or phase.awaited is not None:
            phase.owed = phase.owed or mine.awaited is not None
            mine.wait()
            return
        now, before = entry.flops(True), entry.flops(False)
        if entry.rated:
            phase.sums.add_known(*now)
            phase.before.add_known(*before)
        else:
            phase.before.add_known(0, now[1] + before[1], 0)
