"""A drawn case of a paper's witness, measured and derived: parameters, both passes under random regimes, and useful work."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from importlib import import_module
from random import Random
from typing import Any

import torch

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.parameters import instances_of, parameter_differences
from symflops.ir.index_sets import SAMPLES
from symflops.verify.bench import Choice
from symflops.verify.cases import LiveCase
from symflops.verify.live import parameters_of, run
from symflops.verify.running import Figure
from tests.papers.cases import Sample
from tests.verify.random_regimes import Outcome, RandomBench, derived_of, regime_of_choice


class PaperBench(RandomBench):
    """The witness ``name`` at the config and the batch of one draw, on the CPU, since it takes samples of any length."""

    def __init__(self, model: Model, name: str, seed: int, partly: bool = False) -> None:
        """``partly`` keeps samples alone through which all gradients flow: what trains may be a part that others lack."""
        self.cases, self.model = import_module(f"tests.papers.cases.{name}"), model
        torch.manual_seed(seed)
        random, self.samples = Random(seed), []
        while not self.samples:
            self.drawn, samples = self.cases.draw(random)
            self.samples = [sample for sample in samples if not partly or getattr(self.cases, "whole", bool)(sample)]
        self.config = asdict(self.drawn)
        self.real = import_module(f"tests.papers.{name}").Model(self.drawn).eval()
        lengths = getattr(self.cases, "lengths_of", lambda config, sample: sample)
        rows = [lengths(self.drawn, sample) for sample in self.samples]
        self.program = model.program(["full"], ["torch", "symflops"], self.config)
        self.case = LiveCase(self.config, batch_of(self.program, rows), device="cpu")
        self.fixed: set[int] = set()
        self.arguments = self.cases.inputs(self.drawn, self.samples)
        self.linears = tuple(path for path, module in self.real.named_modules() if type(module) is torch.nn.Linear)

    def parameters(self) -> dict[str, Any]:
        """What differs in names and shapes of parameters; empty where nothing does."""
        sizes = InterpretedEstimator(self.program, self.config, regime="full", convention="torch").sizes
        real, aliases = parameters_of(self.real)
        return {what: rows for what, rows in parameter_differences(real, instances_of(self.program, sizes), aliases).items() if rows}

    def draw_recompute(self, random: Random) -> None:
        """None: a layer runs for each sample, and a checkpoint takes no lists."""

    def draw(self, random: Random) -> Choice:
        """A random choice; of modules that run for rows which the data chooses, all or none."""
        drawn = super().draw(random)
        alike = lambda names: tuple(dict.fromkeys(self.alike(name) for name in names))  # noqa: E731
        return replace(drawn, train=alike(drawn.train), freeze=alike(drawn.freeze), targets=alike(drawn.targets))

    def alike(self, name: str) -> str:
        """``name``, for all modules of a list that the case says to be alike."""
        part = getattr(self.cases, "ALIKE", "")
        return re.sub(rf"{part}\.\d+", f"{part}.*", name) if part else name

    def check(self, choice: Choice, known: bool = False) -> Outcome:
        """Measure and derive."""
        found = derived_of(self.model, regime_of_choice(choice), self.config, self.case.batch)
        targets = tuple(name for name in self.linears if any(fnmatchcase(name, target) for target in choice.targets))
        return Outcome(choice, *map(Figure, self.measured(replace(choice, targets=targets)), found))

    def useful(self) -> Figure:
        """FLOPs of a forward pass under the convention ``symflops``, the measured ones with the brute-force pairs in place."""
        outputs = [output.text for output in self.model.spec.outputs]
        found, _ = run(self.real, self.arguments, self.case, False, False, outputs)
        expected = found.total
        if hasattr(self.cases, "useful_products"):
            for sample in self.samples:
                expected += 2 * (self.cases.useful_products(self.drawn, sample) - self.cases.products(self.drawn, sample))
        estimator = InterpretedEstimator(self.program, self.config, regime="full", convention="symflops")
        return Figure(expected, estimator.forward(estimator.moments(**self.case.batch)))


def batch_of(program: Any, rows: list[Sample]) -> dict[str, Any]:
    """A batch of the streams of a spec, from the lengths of each sample by the name of the batch variable."""
    batch: dict[str, Any] = {}
    for stream in program.streams:
        if stream.given and stream.variables and stream.items == SAMPLES:
            batch[stream.name] = [[row[name] for name in stream.variables] for row in rows]
    items: dict[str, Any] = {}
    for row in rows:
        for name, found in row.get("items", {}).items():
            items.setdefault(name, []).extend(found)
    return batch | items
