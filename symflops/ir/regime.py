"""Regimes: what trains, what is recomputed, and how many passes a step has."""

# Annotations are types here, not strings: serialisation reads them, and never evaluates text.
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symflops.support.findings import Span

MERGED = ("merged", "folded")
"""Kinds of adapters that stand on parameters, and not beside modules."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """A low-rank adapter beside each linear or convolution whose module path matches one of ``targets``.

    Attributes:
        kind: ``lora``, ``rslora`` or ``dora``; ``dora`` also computes the norm of the adapted weight in every forward pass.
            ``merged`` adds the product of the projections to a weight in every forward pass; ``folded`` computes it once more
            without gradients.
        rank: The rank.
        targets: Patterns of module paths; of ``merged`` and ``folded``, of parameter names.
        names: Names of the submodules: the adapted module, the down projection, the up projection.
        dropout: Whether the adapter's input has dropout; with it, ``dora`` repeats the base's product on that input.
        bias: Whether the up projection has a bias.
        in_out: Whether ``merged`` and ``folded`` take the weight of each expert as (in, out).
    """

    kind: str
    rank: int
    targets: tuple[str, ...]
    names: tuple[str, str, str]
    dropout: bool = False
    bias: bool = False
    in_out: bool = False


@dataclass(frozen=True, slots=True)
class Recompute:
    """Activation checkpointing: groups of modules whose forward work the backward pass repeats.

    Attributes:
        groups: Patterns of module paths; each module that matches is one group.
        every: Of the iterations of a repeat, only every ``every``-th is a group.
        attention_only: Whether only attention within the groups is recomputed.
        early_stop: Whether a group is recomputed only up to its last saved tensor, as PyTorch's non-reentrant checkpoint does.
        reentrant: Whether the checkpoint is PyTorch's reentrant one.
    """

    groups: tuple[str, ...]
    every: int = 1
    attention_only: bool = False
    early_stop: bool = True
    reentrant: bool = False


@dataclass(frozen=True, slots=True)
class Passes:
    """How many forward passes one step has: ``forward * timesteps * accumulation``.

    Attributes:
        forward: Forward passes per timestep and micro-batch.
        detached: How many of ``forward`` run without gradients.
        timesteps: Denoising steps.
        accumulation: Micro-batches.
    """

    forward: int = 1
    detached: int = 0
    timesteps: int = 1
    accumulation: int = 1

    @property
    def runs(self) -> int:
        """Number of forward passes in a step."""
        return self.forward * self.timesteps * self.accumulation

    @property
    def trained(self) -> int:
        """Number of forward passes in a step that are followed by a backward pass."""
        return (self.forward - self.detached) * self.timesteps * self.accumulation


@dataclass(frozen=True, slots=True)
class Phase:
    """An additional run of the model in a step: ``times`` times under the regime named ``regime``."""

    regime: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Regime:
    """How a model is trained or run in one step.

    Attributes:
        name: The name.
        train: Patterns of names of the parameters that train; empty for a regime that decodes.
        freeze: Patterns of names of parameters that do not train, although they match ``train``.
        loss: Names of the outputs that the loss reads; empty means all.
        input_grad: Names of the inputs that need a gradient.
        force_grad: Patterns of modules whose results are made to require a gradient.
        no_force_grad: Patterns of modules whose results are not, although the spec says that the class does so.
        enter_grad: Patterns of modules whose operands need a gradient, because something outside of the model is added to them.
        parts: Optional parts of the model that run, such as prediction heads that its class does not build.
        decode: Calls that keep a state for later ones: ``prefill`` for a prompt, ``step`` for new tokens after past ones,
            ``generate`` for the sum over all calls of a generation after a prompt; empty for calls that keep none.
        head: ``given`` if a batch says in a stream ``head`` on how many tokens the head runs; empty for all, and for the last
            one in a generation.
        doc: What it is.
        adapters: The adapters.
        recompute: Activation checkpointing; None: none.
        passes: Passes per step.
        phases: Additional runs of the model in the same step.
        lenient: Whether a pattern may match nothing if another one of its list matches something.
        places: Text of the regime's file -> its place there, for messages.
    """

    name: str
    train: tuple[str, ...] = ("*",)
    freeze: tuple[str, ...] = ()
    loss: tuple[str, ...] = ()
    input_grad: tuple[str, ...] = ()
    force_grad: tuple[str, ...] = ()
    no_force_grad: tuple[str, ...] = ()
    enter_grad: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    decode: str = ""
    head: str = ""
    doc: str = ""
    adapters: tuple[Adapter, ...] = ()
    recompute: Recompute | None = None
    passes: Passes = Passes()
    phases: tuple[Phase, ...] = ()
    lenient: bool = False
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def patterns(self) -> tuple[str, ...]:
        """All patterns of module paths and parameter names; a number or slice in one splits a repeat."""
        targets = tuple(target for adapter in self.adapters for target in adapter.targets)
        groups = self.recompute.groups if self.recompute else ()
        gradients = (*self.force_grad, *self.no_force_grad, *self.enter_grad)
        return (*self.train, *self.freeze, *gradients, *targets, *groups)

    @property
    def trains(self) -> bool:
        """Whether parameters may train; calls that keep a state have no backward pass."""
        return bool(self.train or self.adapters) and not self.decode

    def with_patterns(self, spell: Callable[[str], Sequence[str]]) -> "Regime":
        """This regime with each pattern replaced by the patterns ``spell(pattern)``."""

        def all_of(patterns: Sequence[str]) -> tuple[str, ...]:
            return tuple(text for pattern in patterns for text in spell(pattern))

        return replace(
            self,
            train=all_of(self.train),
            freeze=all_of(self.freeze),
            force_grad=all_of(self.force_grad),
            no_force_grad=all_of(self.no_force_grad),
            enter_grad=all_of(self.enter_grad),
            adapters=tuple(replace(adapter, targets=all_of(adapter.targets)) for adapter in self.adapters),
            recompute=replace(self.recompute, groups=all_of(self.recompute.groups)) if self.recompute else None,
        )

    def __repr__(self) -> str:
        return f"Regime('{self.name}': {self.doc})" if self.doc else f"Regime('{self.name}')"
