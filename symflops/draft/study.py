"""What is known of a class while it is drafted, config by config, and the draft that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from symflops.draft import gate
from symflops.draft.document import Document
from symflops.draft.family import Family
from symflops.draft.prove import Proof
from symflops.draft.sampling import Laboratory
from symflops.draft.subject import Subject
from symflops.draft.symbols import Names
from symflops.draft.vary import Moves, Variable

HOLD_OUTS = 5


@dataclass(slots=True)
class Study:
    """One config of a class before any proof; ``name`` is that of a variant, nothing for the config that came first."""

    name: str
    subject: Subject
    gate: list[gate.Finding]
    laboratory: Laboratory
    moves: Moves
    structural: list[Variable]
    family: Family
    names: Names
    batch: Variable | None
    document: Document
    given_up: str = ""

    @property
    def free(self) -> list[Variable]:
        """What moves without another structure."""
        return [variable for variable in self.moves.variables if variable not in self.structural]

    @property
    def varied(self) -> list[str]:
        """What moved, in the words of the config and the inputs."""
        return [" with ".join(slot.label for slot in variable.slots) for variable in self.free]

    @property
    def stuck(self) -> list[str]:
        """What could not be moved without being refused, or without another structure."""
        structural = [variable.lead for variable in self.structural if variable.lead not in self.moves.filled]
        return [slot.label for slot in (*self.moves.stuck, *structural)]


@dataclass(slots=True)
class Draft:
    """A spec, what it was made from, and what is proven of it."""

    studies: list[Study]
    document: Document
    proofs: list[Proof] = field(default_factory=list)
    decide: list[str] = field(default_factory=list)
    seconds: float = 0.0
    processor: float = 0.0

    @property
    def subject(self) -> Subject:
        """What was drafted first."""
        return self.studies[0].subject

    @property
    def text(self) -> str:
        """The spec."""
        return self.document.text

    @property
    def gate(self) -> list[gate.Finding]:
        """Both passes by the tapes and by the counter."""
        return [one for study in self.studies for one in study.gate]

    @property
    def varied(self) -> list[str]:
        """What moved in any of its configs."""
        return list(dict.fromkeys(label for study in self.studies for label in study.varied))

    @property
    def stuck(self) -> list[str]:
        """What moved in none of its configs."""
        moved = {slot.label for study in self.studies for variable in study.free for slot in variable.slots}
        return list(dict.fromkeys(label for study in self.studies for label in study.stuck if label not in moved))

    @property
    def unsolved(self) -> list[tuple[str, tuple[int, ...]]]:
        """Dimensions without a formula, and what they were."""
        return [(one.place, one.values) for one in self.document.unsolved]

    @property
    def samples(self) -> int:
        """How many samples were fitted."""
        return sum(len(study.family.samples) for study in self.studies)

    @property
    def runs(self) -> int:
        """How often the module ran."""
        return sum(study.laboratory.runs for study in self.studies)

    @property
    def given_up(self) -> str:
        """What there was no time for."""
        return next((study.given_up for study in self.studies if study.given_up), "")

    @property
    def exact(self) -> bool:
        """Whether it is proven: enough hold-outs of each config, all equal, nothing unsolved, and something that varied."""
        drawn = [[one for one in self.proofs if one.of == study.name and not one.published] for study in self.studies]
        proven = all(len(proofs) >= HOLD_OUTS for proofs in drawn) and all(proof.exact for proof in self.proofs)
        found = proven and all(one.equal for one in self.gate) and all(study.varied for study in self.studies)
        return found and not self.unsolved and not self.given_up
