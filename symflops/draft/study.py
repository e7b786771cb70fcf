"""What is known of a class while it is drafted, config by config, and the resulting draft."""

from __future__ import annotations

from dataclasses import dataclass, field

from symflops.draft.fit.symbols import Names
from symflops.draft.prove.prove import Proof
from symflops.draft.sample.family import Family
from symflops.draft.sample.runner import Runner
from symflops.draft.trace import gate
from symflops.draft.trace.subject import Subject
from symflops.draft.vary.variables import Moves, Variable
from symflops.draft.write.document import Document

HOLD_OUTS = 5
WITH = " with "


def labels_of(variables: list[Variable]) -> list[str]:
    """Variables in the words of the config and the inputs."""
    return [WITH.join(slot.label for slot in one.slots) for one in variables]


@dataclass(slots=True)
class Study:
    """One config of a class before any proof; ``name`` is that of a variant, empty for the first config."""

    name: str
    subject: Subject
    runner: Runner
    moves: Moves
    family: Family
    names: Names
    batch: Variable | None
    document: Document

    @property
    def free(self) -> list[Variable]:
        """What moves without changing the structure."""
        return [variable for variable in self.moves.variables if variable not in self.family.structural]

    @property
    def varied(self) -> list[str]:
        """What moved, in the words of the config and the inputs."""
        return labels_of(self.free)

    @property
    def stuck(self) -> list[str]:
        """What is refused when it moves, or changes the structure."""
        structural = [variable.lead for variable in self.family.structural if variable.lead not in self.moves.filled]
        return [slot.label for slot in (*self.moves.stuck, *structural)]


@dataclass(slots=True)
class Draft:
    """A spec and what is known of it, as plain data; it grows while the work goes on.

    Attributes:
        names: The variants that were drafted; the first config has an empty name.
        moved: For each of them, what varied and what could not be moved.
        unsolved: Places without a formula, with the values there.
        decide: What a person must decide.
        seconds: Wall-clock time.
        processor: Processor time in seconds.
        given_up: Why the work ended early; empty if it did not.
    """

    subject: Subject
    names: tuple[str, ...] = ("",)
    text: str = ""
    gate: list[gate.Finding] = field(default_factory=list)
    moved: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    unsolved: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    decide: list[str] = field(default_factory=list)
    samples: int = 0
    runs: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    given_up: str = ""

    @property
    def varied(self) -> list[str]:
        """What moved in any of the configs, in the words of the config and the inputs."""
        return list(dict.fromkeys(label for varied, _ in self.moved.values() for label in varied))

    @property
    def stuck(self) -> list[str]:
        """What moved in none of the configs: it was refused, or changed the structure."""
        free = {label for one in self.varied for label in one.split(WITH)}
        return list(dict.fromkeys(label for _, stuck in self.moved.values() for label in stuck if label not in free))

    @property
    def complete(self) -> bool:
        """Whether nothing was given up or left unsolved, something varied in each config, and the gate is passed."""
        varied = all(name in self.moved and self.moved[name][0] for name in self.names)
        return varied and not self.unsolved and not self.given_up and all(one.equal for one in self.gate)

    @property
    def exact(self) -> bool:
        """Whether the draft is complete and proven: enough hold-outs of each config, and all proofs equal."""
        drawn = [sum(one.of == name and not one.published for one in self.proofs) for name in self.names]
        return self.complete and min(drawn) >= HOLD_OUTS and all(proof.exact for proof in self.proofs)
