"""Holds a draft against the real module at configurations that its fit never saw: parameters, and passes under several regimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from symflops.api import Model
from symflops.draft import gate
from symflops.draft.slots import State
from symflops.draft.subject import Subject, full_config, summed
from symflops.draft.symbols import Names
from symflops.ground.diagnostics import Source, SymflopsError
from symflops.library import SpecFile
from symflops.model.regime import Adapter, Regime
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.stages.read import read
from symflops.witness.instances import instances_of
from symflops.witness.live import parameters_of
from symflops.witness.live_regimes import NAMES, lora
from symflops.witness.tensors import needed


@dataclass(slots=True)
class Proof:
    """What one configuration says: nothing differs, or what does."""

    label: str
    checks: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        """Whether nothing differs."""
        return self.checks > 0 and not self.differences


def model_of(text: str, blocks: Any) -> Model:
    """A draft as symflops reads it back.

    Raises:
        SpecError: it is no valid spec.
    """
    source = Source("draft.yaml", text)
    return Model(SpecFile(Path("draft.yaml"), Path("."), "draft"), read(source, blocks, None))


def batch_of(model: Model, names: Names, lengths: Mapping[str, int], items: int) -> dict[str, Any]:
    """The batch of a configuration: for each stream with lengths of its own as many items as there are, all alike."""
    program = model.program(["full"], ["torch"])
    found: dict[str, Any] = {}
    for stream in program.streams:
        variables = list(stream.variables)
        if variables:
            item = [lengths[name] for name in variables]
            found[stream.name] = [item[0] if len(item) == 1 else item] * items
    return found


class Prover:
    """Compares a draft with the real module, configuration by configuration."""

    def __init__(self, model: Model, names: Names, subject: Subject, seed: int) -> None:
        self.model, self.names, self.subject, self.random = model, names, subject, Random(seed)

    def prove(self, label: str, subject: Subject, lengths: Mapping[str, int], items: int) -> Proof:
        """Parameters by name and shape; forward; backward when all trains, with adapters, and for two random choices."""
        proof = Proof(label)
        try:
            real = subject.build()
            arguments = subject.arguments()
            config = full_config(real, subject.config)
            batch = self.batch(config, lengths, items)
            self.parameters(real, config, proof)
            names = [name for name, tensor in real.named_parameters() if tensor.requires_grad]
            regimes: list[tuple[str, Regime]] = [("full", Regime("full", train=("*",)))]
            targets = self.targets(real)
            if targets:
                regimes.append(("lora", Regime("lora", train=(), adapters=(Adapter("lora", 4, targets, NAMES),))))
            for number, share in enumerate((0.1, 0.5)):
                chosen = tuple(name for name in names if self.random.random() < share) or tuple(names[:1])
                regimes.append((f"frozen {number + 1}", Regime(f"frozen_{number}", train=chosen)))
            for name, regime in regimes:
                self.passes(real, arguments, config, batch, name, regime, proof)
        except SymflopsError as error:
            proof.differences.append(first_line(error))
        except Exception as error:
            proof.differences.append(f"{type(error).__name__}: {error}"[:300])
        return proof

    def batch(self, config: Mapping[str, Any], lengths: Mapping[str, int], items: int) -> dict[str, Any]:
        """The batch for streams of the draft."""
        program = self.model.program(["full"], ["torch"], config)
        found: dict[str, Any] = {}
        for stream in program.streams:
            variables = list(stream.variables)
            item = [lengths[name] for name in variables]
            if variables:
                found[stream.name] = [item[0] if len(item) == 1 else item] * items
        if not found:
            found = {stream.name: [[]] * items for stream in program.streams[:1]}
        return found

    def parameters(self, real: Any, config: Mapping[str, Any], proof: Proof) -> None:
        """Every parameter by name and shape."""
        program = self.model.program(["full"], ["torch"], config)
        sizes = InterpretedEstimator(program, config, regime="full", convention="torch").sizes
        expected, aliases = parameters_of(real)
        derived = {aliases.get(name, name): shape for name, shape in instances_of(program, sizes).items()}
        wrong = [f"{name}: {shape} real, {derived.get(name)} drafted" for name, shape in expected.items() if derived.get(name) != shape]
        wrong += [f"{name}: not real" for name in derived if name not in expected]
        proof.checks += 1
        if wrong:
            proof.differences.append(f"{len(wrong)} parameters differ: {'; '.join(wrong[:3])}")

    def targets(self, real: Any) -> tuple[str, ...]:
        """Linears that get an adapter: about half of those of one name."""
        linear = needed("torch").nn.Linear
        found = [name for name, module in real.named_modules() if type(module) is linear]
        weights: dict[int, int] = {}
        for tensor in (real.get_submodule(name).weight for name in found):
            weights[id(tensor)] = weights.get(id(tensor), 0) + 1
        owned = {name for name, _ in real.named_parameters()}
        found = [name for name in found if f"{name}.weight" in owned]
        words = sorted({name.rpartition(".")[2] for name in found})
        chosen = {word for word in words if self.random.random() < 0.5} or set(words[:1])
        return tuple(name for name in found if name.rpartition(".")[2] in chosen)

    def passes(
        self, real: Any, arguments: Any, config: Mapping[str, Any], batch: Mapping[str, Any], name: str, regime: Regime, proof: Proof
    ) -> None:
        """Both passes under one regime."""
        program = replace(self.model, _graphs={}).program([regime], ["torch"], config)
        estimator = InterpretedEstimator(program, config, regime=regime.name, convention="torch")
        moments = estimator.moments(**batch)
        derived = estimator.forward(moments), estimator.backward(moments)
        targets = regime.adapters[0].targets if regime.adapters else ()
        before = {target: real.get_submodule(target) for target in targets}
        try:
            for target, module in before.items():
                put(real, target, lora(module, regime.adapters[0].rank))
            if targets:
                trained = {f"{target}.{last}.weight" for target in targets for last in NAMES[1:]}
            elif regime.train == ("*",):
                trained = {one for one, tensor in real.named_parameters() if tensor.requires_grad}
            else:
                trained = set(regime.train)
            needed("torch").manual_seed(0)
            measured = gate.measured(real, arguments, summed, trained)
        finally:
            for target, module in before.items():
                put(real, target, module)
        for word, real_flops, own in zip(("forward", "backward"), measured, derived, strict=True):
            proof.checks += 1
            if real_flops != own:
                proof.differences.append(f"{name}, {word}: {real_flops:,} measured, {own:,} drafted")


def put(model: Any, target: str, module: Any) -> None:
    """Replace the module at a path."""
    parent, _, name = target.rpartition(".")
    setattr(model.get_submodule(parent), name, module)


def first_line(error: BaseException) -> str:
    """An error as one line."""
    return " ".join(str(error).split())[:300]


def states(drawn: Sequence[State]) -> list[State]:
    """Distinct states."""
    found: list[State] = []
    for state in drawn:
        if state not in found:
            found.append(state)
    return found
