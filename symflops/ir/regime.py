"""Regimes: what trains, what is recomputed, and how many passes a step has."""

# Annotations are types here, not strings: serialisation reads them, and never evaluates text.
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symflops.support.findings import Span


@dataclass(frozen=True, slots=True)
class Adapter:
    """A low-rank adapter beside each linear or convolution whose module path matches a target.

    ``kind`` is ``lora``, ``rslora`` or ``dora``; ``dora`` also computes the norm of the adapted weight in every forward pass,
    and with ``dropout`` repeats the base's product on the input after dropout.
    ``names`` are the submodules of the base, the down projection and the up projection.
    """

    kind: str
    rank: int
    targets: tuple[str, ...]
    names: tuple[str, str, str]
    dropout: bool = False


@dataclass(frozen=True, slots=True)
class Recompute:
    """Activation checkpointing: groups of modules whose forward work the backward pass recomputes.

    ``groups`` are patterns of module paths; of a repeat, every ``every``-th iteration is a group. With ``early_stop`` a group
    is recomputed only up to its last saved tensor, like PyTorch's non-reentrant checkpoint.
    """

    groups: tuple[str, ...]
    every: int = 1
    attention_only: bool = False
    early_stop: bool = True
    reentrant: bool = False


@dataclass(frozen=True, slots=True)
class Passes:
    """Numbers of forward passes, timesteps and micro-batches in one step.

    ``forward`` passes per timestep, ``detached`` of them without gradients, over ``timesteps`` denoising steps and
    ``accumulation`` micro-batches.
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
        """Number of forward passes in a step that have a backward pass."""
        return (self.forward - self.detached) * self.timesteps * self.accumulation


@dataclass(frozen=True, slots=True)
class Phase:
    """An additional run of the model in a step: ``times`` times under the regime of that name."""

    regime: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Regime:
    """A way to train a model: trained parameters, adapters, recomputation, and passes per step.

    ``train`` and ``freeze`` are patterns over parameter names. ``loss`` names the outputs that the loss uses (all if empty),
    ``input_grad`` the inputs that need a gradient, ``force_grad`` the modules whose result is forced to require one, and
    ``no_force_grad`` modules exempt from such a rule of the spec. ``parts`` are optional parts of the model that run, such as
    prediction heads that its class does not build. ``decode`` runs causal self-attention over a cache: ``step`` for new tokens
    over ``past`` ones, ``generate`` for a whole generation of ``new`` tokens after a ``prompt``, summed over its steps.
    ``phases`` are additional runs of the model in the same step. In a ``lenient`` regime a pattern may match nothing if another
    pattern of its list matches. ``places`` locate the texts in the regime's file, for findings.
    """

    name: str
    train: tuple[str, ...] = ("*",)
    freeze: tuple[str, ...] = ()
    loss: tuple[str, ...] = ()
    input_grad: tuple[str, ...] = ()
    force_grad: tuple[str, ...] = ()
    no_force_grad: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    decode: str = ""
    doc: str = ""
    adapters: tuple[Adapter, ...] = ()
    recompute: Recompute | None = None
    passes: Passes = Passes()
    phases: tuple[Phase, ...] = ()
    lenient: bool = False
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Every pattern over module paths; a pattern with an index splits the repeat that it selects from."""
        targets = tuple(target for adapter in self.adapters for target in adapter.targets)
        groups = self.recompute.groups if self.recompute else ()
        return (*self.train, *self.freeze, *self.force_grad, *self.no_force_grad, *targets, *groups)

    def with_patterns(self, spell: Callable[[str], Sequence[str]]) -> "Regime":
        """The regime with each pattern replaced by the patterns of ``spell(pattern)``."""

        def all_of(patterns: Sequence[str]) -> tuple[str, ...]:
            return tuple(text for pattern in patterns for text in spell(pattern))

        return replace(
            self,
            train=all_of(self.train),
            freeze=all_of(self.freeze),
            force_grad=all_of(self.force_grad),
            no_force_grad=all_of(self.no_force_grad),
            adapters=tuple(replace(adapter, targets=all_of(adapter.targets)) for adapter in self.adapters),
            recompute=replace(self.recompute, groups=all_of(self.recompute.groups)) if self.recompute else None,
        )

    def __repr__(self) -> str:
        return f"Regime('{self.name}': {self.doc})" if self.doc else f"Regime('{self.name}')"
