"""Parses a draft and compares it with the real module: parameters, and both passes in several regimes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any

from symflops.api import Model
from symflops.compiler import Memo
from symflops.draft.trace import gate
from symflops.draft.trace.steps import Subject, full_config
from symflops.draft.trace.tape import guessing_values
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.parameters import Shape, instances_of, parameter_differences
from symflops.ir.program import Program
from symflops.ir.regime import Adapter, Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile, roots, specs_in
from symflops.support.findings import Source, SymflopsError
from symflops.training.introspect.tree import starred
from symflops.verify.applied import NAMES, adapted
from symflops.verify.limits import attempt
from symflops.verify.live import parameters_of
from symflops.verify.running import needed

SHARES = (0.15, 0.5)  # of the parameters that train
RANK = 4
SINGLE = "single"
NO_MEMORY = ("allocate memory", "could not create a primitive")  # messages of PyTorch's allocator and of oneDNN
DRAWN, GIVEN, PUBLISHED, DEFAULTS, VALUES, TOGETHER = "drawn", "given", "published", "defaults", "values", "together"
FORMS = "forms"
SHOWN = 3
NOWHERE = Path(__file__) / "draft.yaml"  # a path without a census file
FULL = Regime("full", train=("*",))


def regimes_of(real: Any, text: str, random: Random) -> list[Regime]:
    """Regimes of a proof: full training, adapters on some linears, two random choices of parameters."""
    found = [FULL]
    targets = targets_of(real, text, random)
    if targets:
        found.append(Regime("lora", train=(), adapters=(Adapter("lora", RANK, targets, NAMES),)))
    groups = sorted({starred(name) for name, tensor in real.named_parameters() if tensor.requires_grad})
    for number, share in enumerate(SHARES, 1):
        train = tuple(group for group in groups if random.random() < share) or tuple(groups[:1])
        found.append(Regime(f"frozen_{number}", train=train))
    return found


def single_of(real: Any, random: Random) -> Regime:
    """Regime that trains up to three single parameters."""
    names = [name for name, tensor in real.named_parameters() if tensor.requires_grad]
    return Regime(SINGLE, train=tuple(random.sample(names, min(3, len(names)))))


def targets_of(real: Any, text: str, random: Random) -> tuple[str, ...]:
    """Name patterns of linears that get an adapter: about half of the last path words only linears have."""
    leaves = [(last_words(name), module) for name, module in real.named_modules() if name and not [*module.children()]]
    others = {word for word, module in leaves if type(module) is not needed("torch").nn.Linear}
    every = {word for word, _ in leaves}
    words = [word for word in sorted(every - others) if f"{word}: {{op: linear" in text]
    chosen = [word for word in words if random.random() < 0.5] or words[:1]
    return tuple(f"*{word}" for word in chosen if not any(other.endswith(word) for other in every - {word}))


def last_words(name: str) -> str:
    """Last word of a path; with the word before it if it is an index."""
    words = name.split(".")
    return ".".join(words[-2:]) if words[-1].isdigit() and len(words) > 1 else words[-1]


@contextmanager
def training(real: Any, regime: Regime) -> Iterator[set[str]]:
    """Context with a regime's adapters in a module; yields the names of the trained parameters."""
    if not regime.adapters:
        named = [name for name, tensor in real.named_parameters() if tensor.requires_grad]
        yield {name for name in named if matches(name, regime.train)}
        return
    adapter = regime.adapters[0]
    linear = needed("torch").nn.Linear
    linears = [name for name, module in real.named_modules() if type(module) is linear]
    with adapted(real, [name for name in linears if matches(name, adapter.targets)], adapter.rank) as weights:
        yield weights


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name matches any of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(slots=True)
class Proof:
    """The verdict at one configuration.

    Attributes:
        label: Description of the configuration.
        checks: Number of comparisons made.
        differences: One text for each comparison that failed.
        kind: How the configuration was chosen: drawn at random, given, published, the class's defaults, with drawn values of
            tensors, several fields of the config changed together, or by the closed forms of the class.
        of: The name of the variant; empty for the first config.
        refused: Whether there was not enough memory.
    """

    label: str
    checks: int = 0
    differences: list[str] = field(default_factory=list)
    kind: str = DRAWN
    of: str = ""
    refused: bool = False

    @property
    def exact(self) -> bool:
        """Whether comparisons were made and none failed."""
        return self.checks > 0 and not self.differences

    def compare(self, regime: str, real: tuple[int, int], drafted: tuple[int, int]) -> None:
        """Compare the measured (forward, backward) FLOPs with the drafted ones; adds differences."""
        for name, wanted, own in zip(("forward", "backward"), real, drafted, strict=True):
            self.checks += 1
            if wanted != own:
                self.differences.append(f"{regime}, {name}: {wanted:,} measured, {own:,} drafted")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a real module.

    Attributes:
        shapes: Name -> shape.
        aliases: Further name of a shared parameter -> its first name.
        total: The number of elements of all.
    """

    shapes: Mapping[str, Shape]
    aliases: Mapping[str, str]
    total: int

    @staticmethod
    def of(real: Any) -> Parameters:
        """Collect the parameters of a module; a shared parameter counts once."""
        return Parameters(*parameters_of(real), sum(tensor.numel() for tensor in real.parameters()))

    def differing(self, drafted: Mapping[str, Shape]) -> list[str]:
        """Texts that say where the parameters of the draft (name -> shape) differ from the real ones."""
        found = parameter_differences(self.shapes, drafted, self.aliases)
        twice = {name for name, _ in found["extra"] if self.aliases.get(name, name) in self.shapes}
        return [
            *(f"{name}: {shape} real, None drafted" for name, shape in found["missing"]),
            *(f"{name}: {real} real, {own} drafted" for name, real, own in found["wrong"]),
            *(f"{name}: {'counted twice' if name in twice else 'not real'}" for name, _ in found["extra"]),
        ]


class Prover:
    """Compares a draft with the real module at one configuration after another.

    Trained parameters are chosen once, by patterns over names without indices, so that each regime is derived once for all
    sizes. One more regime trains single parameters, and so splits loops; it is checked at the first configuration alone.
    """

    def __init__(self, model: Model, text: str, seed: int) -> None:
        self.model, self.text, self.random = model, text, Random(seed)
        self.programs: dict[str, Program | None] = {}
        self.regimes: list[Regime] = []

    def prove(
        self, label: str, subject: Subject, lengths: Mapping[str, int], items: int, arguments: Mapping[str, Any] | None = None
    ) -> Proof:
        """Compare parameters and both passes in all regimes; returns the proof, even if the module raises.

        Args:
            label: Description of the configuration.
            subject: The class with this config.
            lengths: The values of the lengths of the draft.
            items: The number of items in the batch.
            arguments: Arguments of the call, which restrict the proof to full training; by default the subject's.
        """
        proof = Proof(label)
        try:
            self.compare(subject, lengths, items, proof, arguments)
        except SymflopsError as error:
            proof.differences.append(first_line(error))
        except Exception as error:  # whatever a module raises is a finding about this configuration
            proof.refused = isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)
            proof.differences.append(f"{type(error).__name__}: {error}"[:300])
        return proof

    def compare(
        self, subject: Subject, lengths: Mapping[str, int], items: int, proof: Proof, given: Mapping[str, Any] | None = None
    ) -> None:
        """Build the module, and add all comparisons at one configuration to ``proof``."""
        real = subject.build()
        arguments = subject.arguments() if given is None else given
        config = full_config(real, subject.config)
        first = not self.regimes
        if first:
            self.regimes = regimes_of(real, self.text, self.random)
        batch = self.batch(config, lengths, items)
        self.parameters(Parameters.of(real), config, proof)
        self.incomplete(subject.config, config, batch, proof)
        regimes = self.regimes if given is None else self.regimes[:1]
        for regime in [*regimes, *([single_of(real, self.random)] if first else [])]:
            drafted = self.passes(regime, config, batch)
            with training(real, regime) as trained:
                needed("torch").manual_seed(0)
                measured = gate.measured(real, arguments, trained)
            proof.compare(regime.name, measured, drafted)

    def program(self, regime: Regime, config: Mapping[str, Any]) -> Program:
        """Program of a regime, derived for all sizes, or for one config if the structure depends on it."""
        if regime.name == SINGLE:
            return replace(self.model, memo=Memo()).program([regime], ["torch"], config)
        if regime.name not in self.programs:
            try:
                self.programs[regime.name] = self.model.program([regime], ["torch"])
            except SymflopsError:
                self.programs[regime.name] = None
        return self.programs[regime.name] or self.model.program([regime], ["torch"], config)

    def batch(self, config: Mapping[str, Any], lengths: Mapping[str, int], items: int) -> dict[str, Any]:
        """Batch of ``items`` equal items, as keyword arguments of ``Estimator.moments``.

        They map each stream to a list of items: the length of the item, or the list of its lengths if it has several.
        ``lengths`` maps letters to values.
        """
        program = self.program(FULL, config)
        # an input that a variant lacks has length 0
        each = {one.name: [lengths.get(name, 0) for name in one.variables] for one in program.streams}
        found = {name: [item[0] if len(item) == 1 else item] * items for name, item in each.items() if item}
        return found or {stream.name: [[]] * items for stream in program.streams[:1]}

    def estimator(self, config: Mapping[str, Any], regime: Regime = FULL) -> InterpretedEstimator:
        """Estimator of the draft at a config, by default under full training."""
        return InterpretedEstimator(self.program(regime, config), config, regime=regime.name, convention="torch")

    def parameters(self, real: Parameters, config: Mapping[str, Any], proof: Proof) -> None:
        """Compare parameters by name and shape, and their total; adds differences to ``proof``."""
        drafted = self.estimator(config)
        wrong = real.differing(instances_of(self.program(FULL, config), drafted.sizes))
        proof.checks += 2
        if wrong:
            proof.differences.append(f"{len(wrong)} parameters differ: {'; '.join(wrong[:SHOWN])}")
        if real.total != drafted.parameters:
            proof.differences.append(f"{real.total:,} parameters real, {drafted.parameters:,} drafted")

    def incomplete(self, given: Mapping[str, Any], config: Mapping[str, Any], batch: Mapping[str, Any], proof: Proof) -> None:
        """Compare the draft's figures at a config as ``given`` and at the complete ``config``; adds differences."""
        try:
            own, whole = self.estimator(given), self.estimator(config)
            if own.sizes == whole.sizes:
                return
            moments = whole.moments(**batch)
            figures = [(one.parameters, one.forward(moments), one.backward(moments)) for one in (own, whole)]
        except SymflopsError:
            return  # the draft refuses a config without that field
        proof.checks += 1
        if figures[0] != figures[1]:
            keys = {row.letter: row.keys[0] for row in self.program(FULL, config).fields}
            other = [letter for letter in keys if own.sizes[letter] != whole.sizes[letter]]
            texts = [f"{keys[letter]}: {own.sizes[letter]!r} drafted, {whole.sizes[letter]!r} real" for letter in other]
            proof.differences.append(f"default of {'; of '.join(texts[:SHOWN])}")

    def passes(self, regime: Regime, config: Mapping[str, Any], batch: Mapping[str, Any]) -> tuple[int, int]:
        """(Forward, backward) FLOPs of the draft under a regime, for a batch as from :meth:`batch`."""
        estimator = self.estimator(config, regime)
        moments = estimator.moments(**batch)
        return estimator.forward(moments), estimator.backward(moments)


def measured(real: Any, arguments: Mapping[str, Any]) -> tuple[int, int]:
    """(Forward, backward) FLOPs of a real module in full training, by PyTorch's counter."""
    needed("torch").manual_seed(0)
    return gate.measured(real, arguments, {name for name, tensor in real.named_parameters() if tensor.requires_grad})


def runs(real: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether the forward pass of a module runs without error."""

    def run() -> bool:
        with needed("torch").no_grad(), guessing_values():
            real(**arguments)
        return True

    return attempt(run) or False


def first_line(error: BaseException, most: int = 300) -> str:
    """Message of an error on one line, cut to ``most`` characters."""
    return " ".join(str(error).split())[:most]


def library() -> SpecFile | None:
    """Any spec of the library, which gives access to the library's blocks; None if there is no library."""
    return next(iter(specs_in(roots()[0])), None)


def model_of(text: str) -> Model:
    """Parse a draft as a spec that may call blocks of the library.

    Raises:
        SpecError: The draft is not a valid spec.
    """
    shelf = library()
    blocks = shelf.block if shelf else lambda _: None
    return Model(SpecFile(Path(), NOWHERE, "draft"), read(Source("draft.yaml", text), blocks, lambda _: None))
