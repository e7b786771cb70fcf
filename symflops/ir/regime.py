"""Regimes: what trains, what is recomputed, and how often the model runs in a step."""

# Annotations are types here, not strings: serialisation reads them, and never evaluates text.
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symflops.support.findings import Span


@dataclass(frozen=True, slots=True)
class Adapter:
    """A low-rank adapter beside each linear or convolution whose module path matches a target.

    ``kind`` is ``lora``, ``rslora`` or ``dora``; ``dora`` also computes the norm of the adapted weight in every forward pass,
    and with ``dropout`` the base's product a second time, on the input that is dropped out.
    ``names`` are those of the base, the down and the up projection below the module.
    """

    kind: str
    rank: int
    targets: tuple[str, ...]
    names: tuple[str, str, str]
    dropout: bool = False


@dataclass(frozen=True, slots=True)
class Recompute:
    """Groups of modules whose forward work the backward pass repeats (activation checkpointing).

    ``groups`` are patterns of module paths; of a repeat, every ``every``-th iteration is a group. With ``early_stop`` a group
    is repeated only up to its last saved tensor, as PyTorch's non-reentrant checkpoint does.
    """

    groups: tuple[str, ...]
    every: int = 1
    attention_only: bool = False
    early_stop: bool = True
    reentrant: bool = False


@dataclass(frozen=True, slots=True)
class Passes:
    """How often the model runs in one step.

    ``forward`` passes per timestep, ``detached`` of them without gradients, over ``timesteps`` denoising steps and
    ``accumulation`` micro-batches.
    """

    forward: int = 1
    detached: int = 0
    timesteps: int = 1
    accumulation: int = 1

    @property
    def runs(self) -> int:
        """Forward passes of a step."""
        return self.forward * self.timesteps * self.accumulation

    @property
    def trained(self) -> int:
        """Forward passes of a step that have a backward pass."""
        return (self.forward - self.detached) * self.timesteps * self.accumulation


@dataclass(frozen=True, slots=True)
class Phase:
    """A further run of the model in a step: under a regime, by name, ``times`` times."""

    regime: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Regime:
    """How a model is trained.

    ``train`` and ``freeze`` are patterns over parameter names. ``loss`` names the outputs that the loss uses (all if empty),
    ``input_grad`` the inputs that need a gradient, ``force_grad`` the modules whose result is made to need one,
    ``no_force_grad`` those that make none need one though the spec says so. ``parts`` are those of the model that run beside
    what its class builds, such as prediction heads. ``decode`` runs causal self-attention over a cache: ``step`` for new tokens
    over ``past`` ones, ``generate`` for a whole generation of ``new`` tokens after a ``prompt``, summed over its steps.
    ``phases`` are further runs of the model in the same step. In a ``lenient`` regime a pattern may match nothing as long as
    another one of its list matches. ``places`` are the places of its texts on its page.
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
        """Every pattern over paths; an index in a pattern cuts the repeat that it selects from."""
        targets = tuple(target for adapter in self.adapters for target in adapter.targets)
        groups = self.recompute.groups if self.recompute else ()
        return (*self.train, *self.freeze, *self.force_grad, *self.no_force_grad, *targets, *groups)

    def with_patterns(self, spell: Callable[[str], Sequence[str]]) -> "Regime":
        """The regime with each pattern replaced by those of ``spell``."""

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
