"""Holds a draft against the real module where its fit never was: parameters, and passes under several regimes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any

from symflops.api import Model
from symflops.catalog.library import SpecFile
from symflops.compiler import Memo
from symflops.diagnostics.findings import Source, SymflopsError
from symflops.draft.sample.family import INDEX
from symflops.draft.trace import gate
from symflops.draft.trace.subject import Subject, full_config, summed
from symflops.draft.trace.tape import answering
from symflops.frontend.read import read
from symflops.model.program import Program
from symflops.model.regime import Adapter, Regime
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.witness.live import parameters_of
from symflops.witness.parameter_names import instances_of
from symflops.witness.random_regimes import NAMES, lora
from symflops.witness.tensors import needed

NO_MEMORY = ("allocate memory", "could not create a primitive")  # as PyTorch's allocator and oneDNN say it


@dataclass(slots=True)
class Proof:
    """What one configuration says, drawn or ``published``, ``of`` a variant: nothing differs, or what does.

    It is ``refused`` where there was not enough memory for it.
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


def model_of(text: str, blocks: Any) -> Model:
    """A draft as symflops reads it back.

    Raises:
        SpecError: it is no valid spec.
    """
    source = Source("draft.yaml", text)
    return Model(SpecFile(Path("draft.yaml"), Path(), "draft"), read(source, blocks, lambda _: None))


class Prover:
    """Compares a draft with the real module, configuration by configuration.

    What trains is chosen once, by patterns over names without indices, so that each regime is derived once for all sizes; the
    last regime trains single parameters, which cuts loops, and is checked at the first configuration.
    """

    def __init__(self, model: Model, text: str, seed: int) -> None:
        self.model, self.text, self.random = model, text, Random(seed)
        self.programs: dict[str, Program | None] = {}
        self.regimes: list[Regime] = []

    def prove(self, label: str, subject: Subject, lengths: Mapping[str, int], items: int) -> Proof:
        """Parameters by name and shape; forward; backward when all trains, with adapters, and for two random choices."""
        proof = Proof(label)
        try:
            real = subject.build()
            arguments = subject.arguments()
            config = full_config(real, subject.config)
            first = not self.regimes
            if first:
                self.regimes = self.chosen(real)
            batch = self.batch(config, lengths, items)
            self.parameters(real, config, proof)
            if subject.measured and not runs(real, arguments):
                self.recorded(subject.measured, config, batch, proof)
                return proof
            for regime in [*self.regimes, *([self.single(real)] if first else [])]:
                self.passes(real, arguments, config, batch, regime, proof)
        except SymflopsError as error:
            proof.differences.append(first_line(error))
        except Exception as error:  # whatever a module raises is a finding about this configuration
            proof.refused = isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)
            proof.differences.append(f"{type(error).__name__}: {error}"[:300])
        return proof

    def chosen(self, real: Any) -> list[Regime]:
        """All parameters; adapters on linears of some names; two random choices of parameters."""
        found = [Regime("full", train=("*",))]
        targets = self.targets(real)
        if targets:
            found.append(Regime("lora", train=(), adapters=(Adapter("lora", 4, targets, NAMES),)))
        groups = sorted({INDEX.sub("*", name) for name, tensor in real.named_parameters() if tensor.requires_grad})
        for number, share in enumerate((0.15, 0.5)):
            train = tuple(group for group in groups if self.random.random() < share) or tuple(groups[:1])
            found.append(Regime(f"frozen_{number + 1}", train=train))
        return found

    def single(self, real: Any) -> Regime:
        """A few single parameters."""
        names = [name for name, tensor in real.named_parameters() if tensor.requires_grad]
        return Regime("single", train=tuple(self.random.sample(names, min(3, len(names)))))

    def targets(self, real: Any) -> tuple[str, ...]:
        """Patterns of linears that get an adapter: of about half of the names that only plain linears have."""
        linear = needed("torch").nn.Linear
        plain: dict[str, bool] = {}
        for name, module in real.named_modules():
            if name and not any(True for _ in module.children()):
                plain[last_words(name)] = plain.get(last_words(name), True) and type(module) is linear
        words = sorted(word for word, known in plain.items() if known and f"{word}: {{op: linear" in self.text)
        chosen = [word for word in words if self.random.random() < 0.5] or words[:1]
        return tuple(f"*{word}" for word in chosen if not any(other != word and other.endswith(word) for other in plain))

    def program(self, regime: Regime, config: Mapping[str, Any]) -> Program:
        """A regime derived for all sizes, or for those of a config where the structure asks for them."""
        if regime.name == "single":
            return replace(self.model, memo=Memo()).program([regime], ["torch"], config)
        if regime.name not in self.programs:
            try:
                self.programs[regime.name] = self.model.program([regime], ["torch"])
            except SymflopsError:
                self.programs[regime.name] = None
        return self.programs[regime.name] or self.model.program([regime], ["torch"], config)

    def batch(self, config: Mapping[str, Any], lengths: Mapping[str, int], items: int) -> dict[str, Any]:
        """The batch for streams of the draft."""
        program = self.program(self.regimes[0], config)
        found: dict[str, Any] = {}
        for stream in program.streams:
            item = [lengths.get(name, 0) for name in stream.variables]  # an input that a variant has not is of no length
            if item:
                found[stream.name] = [item[0] if len(item) == 1 else item] * items
        return found or {stream.name: [[]] * items for stream in program.streams[:1]}

    def parameters(self, real: Any, config: Mapping[str, Any], proof: Proof) -> None:
        """Every parameter by name and shape."""
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

    def recorded(self, measured: tuple[int, int], config: Mapping[str, Any], batch: Mapping[str, Any], proof: Proof) -> None:
        """Both passes when all trains, against figures measured elsewhere."""
        estimator = InterpretedEstimator(self.program(self.regimes[0], config), config, regime="full", convention="torch")
        moments = estimator.moments(**batch)
        proof.checks += 2
        derived = estimator.forward(moments), estimator.backward(moments)
        for word, real, own in zip(("forward", "backward"), measured, derived, strict=True):
            if real != own:
                proof.differences.append(f"full, {word}: {real:,} recorded, {own:,} drafted")

    def passes(
        self, real: Any, arguments: Any, config: Mapping[str, Any], batch: Mapping[str, Any], regime: Regime, proof: Proof
    ) -> None:
        """Both passes under one regime."""
        program = self.program(regime, config)
        estimator = InterpretedEstimator(program, config, regime=regime.name, convention="torch")
        moments = estimator.moments(**batch)
        derived = estimator.forward(moments), estimator.backward(moments)
        patterns = regime.adapters[0].targets if regime.adapters else ()
        linear = needed("torch").nn.Linear
        before = {
            name: module
            for name, module in real.named_modules()
            if type(module) is linear and any(fnmatchcase(name, pattern) for pattern in patterns)
        }
        try:
            for target, module in before.items():
                put(real, target, lora(module, regime.adapters[0].rank))
            if patterns:
                trained = {f"{target}.{last}.weight" for target in before for last in NAMES[1:]}
            else:
                named = [(name, tensor.requires_grad) for name, tensor in real.named_parameters()]
                trained = {name for name, trains in named if trains and any(fnmatchcase(name, one) for one in regime.train)}
            needed("torch").manual_seed(0)
            measured = gate.measured(real, arguments, summed, trained)
        finally:
            for target, module in before.items():
                put(real, target, module)
        for word, real_flops, own in zip(("forward", "backward"), measured, derived, strict=True):
            proof.checks += 1
            if real_flops != own:
                proof.differences.append(f"{regime.name}, {word}: {real_flops:,} measured, {own:,} drafted")


def runs(real: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether a module runs on the device that it is on."""
    try:
        with needed("torch").no_grad(), answering():
            real(**arguments)
    except Exception:  # whatever it raises, it does not
        return False
    return True


def last_words(name: str) -> str:
    """The last word of a path, with the one before where it is an index."""
    words = name.split(".")
    return ".".join(words[-2:]) if words[-1].isdigit() and len(words) > 1 else words[-1]


def put(model: Any, target: str, module: Any) -> None:
    """Replace the module at a path."""
    parent, _, name = target.rpartition(".")
    setattr(model.get_submodule(parent), name, module)


def first_line(error: BaseException) -> str:
    """An error as one line."""
    return " ".join(str(error).split())[:300]
