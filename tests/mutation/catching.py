"""Whether a mutant is caught: it does not build, or some measured record of its class is not exact.

Records are those of full training, those under other regimes, and those in ``partial.json``, on configs of its own: one
parameter of the real model trains alone, so that its backward pass tells which operators lie behind it; one part of each block
is recomputed, which tells what is saved where; linears get adapters, which tells which linears there are; and of the forward
pass the work on pairs that the real masks leave out is taken away.
"""

from __future__ import annotations

import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from symflops.api import Model
from symflops.evaluate.classes import class_in
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.regime import Adapter, Recompute, Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile, find_spec
from symflops.support.findings import Source, SpecError, SymflopsError
from symflops.verify.applied import NAMES
from symflops.verify.classes import in_evaluation
from symflops.verify.records import verify_record
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.trees import tree_of, written
from tests.verify.random_regimes import derived_of
from tests.verify.variations import judged, rows_of

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "tests" / "data" / "truth"
REGIMES = ROOT / "tests" / "data" / "regimes"
EXTRA = Path(__file__).parent / "records.json"
PARTIAL = Path(__file__).parent / "partial.json"
RANK = 4
SPECS = ("qwen_image", "llama", "wan", "sd3", "flux", "qwen3_moe", "deepseek_v3")


class Once:
    """A model whose program is derived once per regime and class, where its structure does not depend on the config."""

    def __init__(self, model: Model) -> None:
        self.model, self.spec = model, model.spec
        self.programs: dict[Any, Any] = {}

    def estimator(self, config: Any, regime: str | Regime, convention: str) -> InterpretedEstimator:
        name = regime.name if isinstance(regime, Regime) else regime
        key = (regime, class_in(config))
        program = self.programs.get(key)
        if program is None:
            program = self.model.program([regime], [convention], config)
            if not program.fixed:
                self.programs[key] = program
        return InterpretedEstimator(program, config, regime=name, convention=convention)


def numbers(model: Model, config: Any) -> dict[str, Any]:
    """Parameters and closed forms of a model by convention, under both shipped regimes."""
    try:
        program = model.program(("full", "forward"))
    except SpecError:
        program = model.program(("full", "forward"), config=config)
    found: dict[str, Any] = {"parameters": sorted((tensor.name, str(tensor.count)) for tensor in program.tensors)}
    for case in program.cases:
        forms = [{program.moments[position].name: str(formula) for position, formula in form} for form in (case.forward, case.backward)]
        found.setdefault(case.convention, {})[case.regime] = forms
    return found


class Subject:
    """A spec, its blocks, and the records of its class, the smallest first."""

    def __init__(self, file: SpecFile) -> None:
        self.file = file
        self.name = file.name
        self.documents = {file.name: file.source().text}
        find = file.block
        spec = read(file.source(), find)
        for source in spec.sources[1:]:
            self.documents[Path(source.path).stem] = source.text
        self.trees = {name: tree_of(text) for name, text in self.documents.items()}
        classes = {reference.rpartition(".")[2] for reference in spec.references}
        self.records = [record for name in sorted(classes) if (RECORDS / f"{name}.json").is_file() for record in json.loads((RECORDS / f"{name}.json").read_text("utf-8"))]
        self.records += [record for record in json.loads(EXTRA.read_text("utf-8")) if record["class"] in classes]
        files = [REGIMES / f"{name}_variants.json" for name in sorted(classes)]
        self.variants = [record for path in files if path.is_file() for record in json.loads(path.read_text("utf-8"))]
        self.rows = partial().get(file.name, ())
        self.spec, once = spec, Once(self.model(file.name, self.documents[file.name]))
        self.varied = [pair for pair in rows_of(file.name) if pair[0]["effect"] and self.varies(once, *pair)]
        self.partial = [(row, single) for row in self.rows for single in row["measured"]]
        self.records.sort(key=lambda record: ("tiny" not in record["tag"], -len(record["config_json"]), record["fwd_flops"]))

    def model(self, document: str, text: str) -> Model:
        """The spec with one document replaced."""
        texts = {**self.documents, document: text}
        library = {name: Source(f"specs/blocks/{name}.yaml", texts[name]) for name in texts if name != self.name}
        return Model(self.file, read(Source(self.file.label, texts[self.name]), library.get))

    def varies(self, once: Once, row: Any, config: Any) -> bool:
        """Whether a model is exact at a variation of a config."""
        return judged(lambda: once.estimator(in_evaluation(self.spec, config), "full", "torch"), row) == "exact"

    def caught(self, model: Model) -> str:
        """Which record is not exact and how, or nothing."""
        once = Once(model)
        for record in self.records:
            verdict = verify_record(once, record)  # type: ignore[arg-type]
            if verdict.status != "exact":
                return f"{record['tag']}: {verdict.status}"
        for row, single in self.partial:
            if not alone(model, row, single):
                return " ".join(f"{key}: {value}" for key, value in single.items() if key != "figures")
        if not all(useful(model, row) for row in self.rows):
            return "useful pairs"
        for row, config in self.varied:
            if not self.varies(once, row, config):
                return " ".join(f"{path}: {value}" for path, value in row["set"].items())
        for record in self.variants:
            verdict = verify_record(model, record)
            if verdict.status != "exact":
                return f"{record['tag']}: {verdict.status}"
        return ""

    def mutants(self) -> list[Mutant]:
        """All mutants of the spec and its blocks."""
        return [mutant for name, tree in self.trees.items() for mutant in mutants(name, tree)]

    @cached_property
    def numbers(self) -> Any:
        """Every closed form of the spec as it is."""
        return numbers(self.model(self.name, self.documents[self.name]), self.records[0]["config_json"])

    def reason(self, model: Model) -> str:
        """Why no record tells a mutant from the spec: the ``same`` closed forms, or others but for no measured config."""
        return "same" if numbers(model, self.records[0]["config_json"]) == self.numbers else "unmeasured"

    def outcome(self, mutant: Mutant) -> str:
        """``diagnostic``, ``record``, the reason why it survived, or ``none`` where no choice of the mutant builds (a swap without an equal)."""
        swap = mutant.kind.startswith("swap")
        for tree in mutant.trees(self.trees[mutant.document]):
            try:
                model = self.model(mutant.document, written(tree))
                model.graph(self.records[0]["config_json"])
            except SymflopsError:
                continue
            try:
                return "record" if self.caught(model) else self.reason(model)
            except SymflopsError:
                return "diagnostic"
        return "none" if swap else "diagnostic"


def alone(model: Model, row: Any, single: Any) -> bool:
    """Whether trainable elements and both passes are those of one measurement of ``partial.json``."""
    recompute = Recompute((single["recompute"],)) if "recompute" in single else None
    adapters = (Adapter("lora", RANK, (single["targets"],), NAMES),) if "targets" in single else ()
    train = (single["train"],) if "train" in single else ()
    regime = Regime("alone", train=train, adapters=adapters, recompute=recompute)
    try:
        found = derived_of(model, regime, row["config"], row["batch"], known=True)
    except SymflopsError:
        return False
    return found == tuple(single["figures"])


def useful(model: Model, row: Any) -> bool:
    """Whether the forward pass without masked pairs is what was measured."""
    try:
        estimator = model.estimator(row["config"], "full", "symflops")
        return bool(estimator.forward(estimator.moments(**row["batch"])) == row["useful_forward"])
    except SymflopsError:
        return False


@cache
def partial() -> Any:
    """``partial.json``: per spec the configs and batches, and what was measured on each."""
    return json.loads(PARTIAL.read_text("utf-8")) if PARTIAL.is_file() else {}


@cache
def subject(name: str) -> Subject:
    """A spec of the list, which has records and is exact on them as it is."""
    found = Subject(find_spec(name))
    texts = {document: written(tree) for document, tree in found.trees.items()}
    assert found.records and not found.caught(found.model(name, texts[name])), f"{name} has no records, or is not exact on them as it is"
    return found
