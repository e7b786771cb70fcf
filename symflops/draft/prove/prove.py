"""Reads a draft back, and compares it with the real module: parameters, and both passes under several regimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from symflops.api import Model
from symflops.catalog.library import SpecFile, roots, specs_in
from symflops.compiler import Memo
from symflops.diagnostics.findings import Source, SymflopsError
from symflops.draft.limits import attempt
from symflops.draft.prove.regimes import SINGLE, regimes_of, single_of, training
from symflops.draft.trace import gate
from symflops.draft.trace.subject import Subject, full_config, summed
from symflops.draft.trace.tape import answering
from symflops.frontend.read import read
from symflops.model.program import Program
from symflops.model.regime import Regime
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.runtime.parameters import instances_of
from symflops.witness.live import parameters_of
from symflops.witness.tensors import needed

NO_MEMORY = ("allocate memory", "could not create a primitive")  # as PyTorch's allocator and oneDNN say it


@dataclass(slots=True)
class Proof:
    """The verdict at one configuration.

    Attributes:
        label: What the configuration is.
        checks: How many figures were compared.
        differences: Those that differ; empty if the draft is exact there.
        published: Whether the configuration is a published one; else it was drawn.
        of: The variant, empty for the first config.
        refused: Whether there was not enough memory.
    """

    label: str
    checks: int = 0
    differences: list[str] = field(default_factory=list)
    published: bool = False
    of: str = ""
    refused: bool = False

    @property
    def exact(self) -> bool:
        """Whether nothing differs."""
        return self.checks > 0 and not self.differences

    def compare(self, regime: str, real: tuple[int, int], source: str, drafted: tuple[int, int]) -> None:
        """Compare FLOPs of both passes with those of the draft; ``source`` says how the real ones are known."""
        for name, wanted, own in zip(("forward", "backward"), real, drafted, strict=True):
            self.checks += 1
            if wanted != own:
                self.differences.append(f"{regime}, {name}: {wanted:,} {source}, {own:,} drafted")


class Prover:
    """Compares a draft with the real module, configuration by configuration.

    What trains is chosen once, by patterns over names without indices, so that each regime is derived once for all sizes. One
    more regime trains single parameters, and so cuts loops; it is checked at the first configuration alone.
    """

    def __init__(self, model: Model, text: str, seed: int) -> None:
        self.model, self.text, self.random = model, text, Random(seed)
        self.programs: dict[str, Program | None] = {}
        self.regimes: list[Regime] = []

    def prove(self, label: str, subject: Subject, lengths: Mapping[str, int], items: int) -> Proof:
        """Compare parameters, forward, and backward in full training, with adapters, and for two random choices.

        Args:
            label: What the configuration is.
            subject: The class with this config.
            lengths: The values of the lengths of the draft.
            items: The number of items in the batch.
        """
        proof = Proof(label)
        try:
            self.compare(subject, lengths, items, proof)
        except SymflopsError as error:
            proof.differences.append(first_line(error))
        except Exception as error:  # whatever a module raises is a finding about this configuration
            proof.refused = isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)
            proof.differences.append(f"{type(error).__name__}: {error}"[:300])
        return proof

    def compare(self, subject: Subject, lengths: Mapping[str, int], items: int, proof: Proof) -> None:
        """Add the comparisons at one configuration to a proof."""
        real = subject.build()
        arguments = subject.arguments()
        config = full_config(real, subject.config)
        first = not self.regimes
        if first:
            self.regimes = regimes_of(real, self.text, self.random)
        batch = self.batch(config, lengths, items)
        self.parameters(real, config, proof)
        if subject.measured and not runs(real, arguments):
            proof.compare("full", subject.measured, "recorded", self.passes(self.regimes[0], config, batch))
            return
        for regime in [*self.regimes, *([single_of(real, self.random)] if first else [])]:
            drafted = self.passes(regime, config, batch)
            with training(real, regime) as trained:
                needed("torch").manual_seed(0)
                measured = gate.measured(real, arguments, summed, trained)
            proof.compare(regime.name, measured, "measured", drafted)

    def program(self, regime: Regime, config: Mapping[str, Any]) -> Program:
        """A regime derived for all sizes, or for those of a config if the structure asks for them."""
        if regime.name == SINGLE:
            return replace(self.model, memo=Memo()).program([regime], ["torch"], config)
        if regime.name not in self.programs:
            try:
                self.programs[regime.name] = self.model.program([regime], ["torch"])
            except SymflopsError:
                self.programs[regime.name] = None
        return self.programs[regime.name] or self.model.program([regime], ["torch"], config)

    def batch(self, config: Mapping[str, Any], lengths: Mapping[str, int], items: int) -> dict[str, Any]:
        """The batch for the streams of the draft."""
        program = self.program(self.regimes[0], config)
        # an input that a variant lacks has length 0
        each = {one.name: [lengths.get(name, 0) for name in one.variables] for one in program.streams}
        found = {name: [item[0] if len(item) == 1 else item] * items for name, item in each.items() if item}
        return found or {stream.name: [[]] * items for stream in program.streams[:1]}

    def parameters(self, real: Any, config: Mapping[str, Any], proof: Proof) -> None:
        """Compare every parameter by name and shape."""
        program = self.program(self.regimes[0], config)
        sizes = InterpretedEstimator(program, config, regime="full", convention="torch").sizes
        expected, aliases = parameters_of(real)
        derived = {aliases.get(name, name): shape for name, shape in instances_of(program, sizes).items()}
        wrong = [
            f"{name}: {shape} real, {derived.get(name)} drafted"
            for name, shape in expected.items()
            if derived.get(name) != shape
        ]
        wrong += [f"{name}: not real" for name in derived if name not in expected]
        proof.checks += 1
        if wrong:
            proof.differences.append(f"{len(wrong)} parameters differ: {'; '.join(wrong[:3])}")

    def passes(self, regime: Regime, config: Mapping[str, Any], batch: Mapping[str, Any]) -> tuple[int, int]:
        """FLOPs of both passes of the draft under a regime."""
        estimator = InterpretedEstimator(self.program(regime, config), config, regime=regime.name, convention="torch")
        moments = estimator.moments(**batch)
        return estimator.forward(moments), estimator.backward(moments)


def runs(real: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether a module runs on its device."""

    def run() -> bool:
        with needed("torch").no_grad(), answering():
            real(**arguments)
        return True

    return attempt(run) or False


def first_line(error: BaseException, most: int = 300) -> str:
    """An error as one line."""
    return " ".join(str(error).split())[:most]


def library() -> SpecFile | None:
    """Any spec of the library, to find its blocks; None if there is no library."""
    return next(iter(specs_in(roots()[0])), None)


def model_of(text: str) -> Model:
    """Parse a draft as a spec that may call blocks of the library.

    Raises:
        SpecError: The draft is no valid spec.
    """
    shelf = library()
    blocks = shelf.blocks() if shelf else lambda _: None
    return Model(SpecFile(Path("draft.yaml"), Path(), "draft"), read(Source("draft.yaml", text), blocks, lambda _: None))
