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
from dataclasses import dataclass
from functools import partial
from typing import Any

from symflops.evaluate.boundaries import told
from symflops.evaluate.units import in_flops
from symflops.training.introspect.fingerprint import Fingerprint
from symflops.training.introspect.model import LIVE, Programs, checked_module
from symflops.training.introspect.tree import LiveModelError, wrappers_of
from symflops.training.meter.arguments import (
    EMBEDS,
    cached_tokens,
    over_cache,
    requires_grad,
    tensors_of,
    whole_rows,
    without_embeddings,
)
from symflops.training.meter.batches import streams_of
from symflops.training.meter.calls import DECODE, Call, More, State
from symflops.training.meter.phases import Phase
from symflops.training.meter.proofs import Proofs
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
        self.print: Fingerprint | None = None
        self.ignored: set[str] = set()
        self.fresh = True
        self.handles = [handle for one in chain[: compiled + 1] for handle in self._hooked(one)]
        for name, child in () if self.compiled else self.root._modules.items():
            if child is not None and next(child.parameters(), None) is not None:
                self.handles.append(child.register_forward_pre_hook(partial(self._alone, name)))

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
        self.state, self.past = None, cached_tokens(self.arguments)
        self.rated = not (self.watch.meter.is_paused or self.past) and (self.grad or self.root.training or not self.main)
        if self.fresh:
            self._compare()
        assert self.print is not None
        key = self.print.state()
        if key not in self.states:
            self.states[key] = self._read(bool(self.states))
        self.state = self.states[key]
        if self.state.changed and self.grad:
            self.state.changed = False
            self.watch.tell(f"what trains has changed: {self.state.live.reading.words}")
        if self.rated:
            self.watch.proofs.entered(self)

    def _compare(self) -> None:
        """Read the model anew if it has changed since its last step."""
        self.fresh = False
        changes = ["new"] if self.print is None else self.print.changes()
        if not changes:
            return
        known = self.print is not None
        if self.print is None or any(": requires_grad" not in change and ": adapters" not in change for change in changes):
            self.states = {}
        self.print = Fingerprint(self.root, self.ignored)
        if known and not self.states:
            more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
            state = self.states[self.print.state()] = self._read(False)
            self.watch.tell(
                f"the model has changed ({', '.join(changes[:3])}{more}) and was read anew: {state.live.reading.words}"
            )
            self.watch.proofs.again(self, changes)

    def _read(self, changed: bool) -> State:
        return State(checked_module(self.root, self.spec, self.watch.programs.check), self.word, changed)

    def _alone(self, name: str, child: Any, *_: Any) -> None:
        """Refuse a part of the model that runs outside of a call of the model; a hook of the part."""
        import torch

        if id(child) not in self.owned or self.depth or torch._C._current_graph_task_id() != -1:
            return
        text = f"'{name}' ran outside of a call of {type(self.root).__name__}, and such work is not counted"
        is_rated = not self.watch.meter.is_paused and (torch.is_grad_enabled() or self.root.training or not self.main)
        (self.watch.refused if is_rated else self.watch.meter.warn)(text)

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
        self.arguments, self.state = {}, None

    def _closed(self, output: Any) -> None:
        """Record a call, after it has run."""
        state, meter = self.state, self.watch.meter
        assert state is not None
        program = state.program(self.watch.programs, self.watch.convention, DECODE if self.past else ())
        reader = getattr(program, "estimator", program)
        more: More = ()
        try:
            if self.past:
                more, streams = DECODE, over_cache(reader, self.arguments, self.past)
            else:
                more, streams = self._more(state), streams_of(reader, without_embeddings(self.arguments))
        except Exception as error:
            raise LiveModelError(f"{error}; the arguments are {told(self.arguments)}") from None
        call = Call(state, meter.current, streams, self.rated, more)
        call.rows = whole_rows(self.arguments, streams)
        for name, tensor in tensors_of(output) if self.grad else ():
            if tensor.requires_grad:
                call.outputs.append(name)
                tensor.register_hook(partial(call.reached, name))
        self.watch.calls.append(call)

    def _more(self, state: State) -> More:
        """What the arguments that require a gradient add to the regime."""
        needs = [name for name, value in self.arguments.items() if self.grad and requires_grad(value)]
        if not needs:
            return ()
        found: dict[str, list[str]] = {}
        for name in needs:
            if name == EMBEDS and hasattr(self.root, "get_input_embeddings"):
                tree = state.live.reading.tree
                table = self.root.get_input_embeddings()
                path = next((path for path, module in tree.modules.items() if module is table), "")
                found.setdefault("force_grad", []).append(path)
            elif name in state.live.names[0]:
                found.setdefault("input_grad", []).append(name)
            else:
                raise LiveModelError(f"the argument '{name}' requires a gradient, which '{state.live.name}' does not describe")
        return tuple((name, tuple(words)) for name, words in found.items())


@dataclass(slots=True)
class Entry:
    """Sums of calls of the same kind: a program, and how often each call ran forward and backward."""

    sums: Phase
    forward: int
    backward: int
    rated: bool

    def flops(self, window: bool) -> tuple[int, int, int]:
        """(model FLOPs, executed FLOPs, tokens) of the window, or else of earlier ones; clears the sums.

        Raises:
            ValueError: a length does not fit the model.
        """
        one = self.sums.estimator
        found = (self.sums.sums if window else self.sums.before).read(reduce=False)
        if found.faults:
            raise ValueError("a call has lengths that do not fit the model")
        kinds = [one.coefficients[kind] for kind in ("forward", "backward", "recomputed")]

        def of(padded: bool, again: int) -> int:
            counts = (self.forward, self.backward, self.backward * again)
            return in_flops(one, sum(count * found.flops(kind, padded) for count, kind in zip(counts, kinds, strict=True)))

        tokens = found.tokens[0] * self.forward if found.tokens else 0
        return of(one.padded, 0), of(True, 1), tokens


class Watch:
    """Counts the calls of the models that a meter watches.

    ``calls`` are those of the running step, ``entries`` the sums of calls by phase and kind.
    """

    def __init__(self, meter: Any) -> None:
        self.meter = meter
        self.models: list[Watched] = []
        self.calls: list[Call] = []
        self.entries: dict[tuple[Any, ...], Entry] = {}

    def begin(self, programs: Programs, convention: str, prove: bool) -> None:
        """Begin to watch models, with their programs under a convention; with ``prove`` the first step is compared."""
        self.programs, self.convention, self.proofs = programs, convention, Proofs(self, prove)

    def add(self, module: Any, spec: str | None = None, regime: str = LIVE, main: bool = False) -> None:
        """Watch a model, unless it is watched already."""
        if all(one.root is not wrappers_of(module)[-1] for one in self.models):
            self.models.append(Watched(self, module, spec, regime, main))

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

    def tell(self, text: str) -> None:
        """Log one line."""
        self.meter.tell(text)

    def close(self, phases: Mapping[str, Phase]) -> None:
        """Add the calls of the step to the sums of their phases; must run in every step."""
        calls, self.calls = self.calls, []
        self.guarded(self.proofs.close, calls)
        for model in self.models:
            model.fresh = True
        for call in calls:
            if call.phase in phases:
                phases[call.phase].given.update(call.streams)
            call.later = partial(self._later, call, [])
            self.guarded(self._count, call)
        for phase in phases.values():
            phase.owed = False
        for key, entry in list(self.entries.items()):
            if key[0] in phases:
                try:
                    self._settle(phases[key[0]], entry)
                except Exception as error:
                    del self.entries[key]
                    self.refused(f"{type(error).__name__}: {error}")

    def _later(self, call: Call, found: list[Call]) -> Call:
        """The call in the running step for backward passes of a call of an earlier step."""
        if not found or not any(one is found[-1] for one in self.calls):
            found.append(Call(call.state, call.phase, call.streams, call.rated, call.more, 0, call.outputs))
            self.calls.append(found[-1])
        return found[-1]

    def _count(self, call: Call) -> None:
        for more, forward, backward in call.parts():
            program = call.state.program(self.programs, self.convention, more)
            key = (call.phase, id(program), forward, backward, call.rated)
            if key not in self.entries:
                self.entries[key] = Entry(Phase.of(call.phase, program, False, None), forward, backward, call.rated)
            self.entries[key].sums.sums.add(**call.streams)

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
