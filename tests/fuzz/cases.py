"""The cases: what is drawn for a number, and what is run with it. A case is a kind and bytes, so that it can be made smaller."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sympy import Expr, Integer, Symbol

from symflops.api import load
from symflops.emit.emit import ENDINGS, emit
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.formula.domain import Setting
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import parse_expression
from symflops.formula.functions import flag_symbol, size_symbol
from symflops.formula.truth import Truth, UnknownSizeError
from symflops.ir.serialise import document_of
from symflops.library import cache as spot, lookup
from symflops.read.spec_files import roots, specs_in
from symflops.support.findings import Source, Span, SymflopsError
from tests.fuzz.kinds import MODELS, TREES, Trees, draw_tree, exact, prepare_tree
from tests.fuzz.mutators import INJECTIONS, NASTY, mutate_yaml, replace_token, token
from tests.fuzz.values import a_batch, a_config, as_text, whole_batch

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "tests" / "data" / "truth"
KINDS = ("spec", "expression", "config", "batch", *TREES)
WEIGHTS = {"expression": 4, "regime": 2}
EXPRESSIONS = (
    "H*d", "D//H", "2*D if i == L-1 else 6*D", "i in dual", "i not in dual and (i+1) % s == 0", "ceil(x, 4)*4", "round_up(y, 32)", "rq != null", "rq == null and i >= K", "per(patch, 3)[1]", "int(r*D)",
    "max(0, L-k)", "count(dual, 3)", "sum(dual) + len(dual)", "[1, 2, D]", "mode == 'sdpa'", "not tied", "p**2*o", "(n + 2*p - 3)//2 + 1", "prod([H, d, 2])", "rev([1, 2, 3])[0]", "range(3, 30, 4)", "min(L, D, 7)", "index([4, 5], 5)",
)  # fmt: skip
SMALL_SPEC = """language: 2
name: small
sizes:
  L: {key: layers, default: 4}
  D: {key: width, default: 8}
  H: {key: heads, default: 2}
  r: {key: ratio, default: 2.5}
  tied: {key: tied, default: false}
  mode: {key: mode, default: "'full'"}
  dual: {key: dual, default: "[]"}
  rq: {key: rank, optional: true}
derived: {F: int(r*D)}
streams: {text: [x], image: {over: images, axes: [h, w]}, sample: []}
inputs:
  t: {stream: text, width: D, layout: "b x c"}
  pic: {stream: image, width: D, when: tied}
  s: {stream: sample, width: D, layout: "b c"}
blocks:
  twice: {params: {w: null}, inputs: [x], outputs: [y], graph: [a: {op: linear, from: x, width: w, to: h}, b: {op: mul, from: h, to: y}]}
graph:
  - m: {repeat: L, index: i, graph: [n: {op: rms_norm, from: t, to: u}, q: {op: linear, from: u, width: 3*D, split: "[D, D, D]", to: [q, k, v]}, a: {op: attention, heads: H, mask: causal, sliding: "4 if i % 2 == 0 else null", query: q, key: k, value: v, to: o}, w: {block: twice, from: o, w: D, add_to: t, when: i in dual or i >= L-1}]}
  - c: {op: linear, from: s, width: F, when: mode == 'full', to: f}
  - g: {op: linear, from: t, width: D, with: s, gate: s, to: out}
outputs: [out]
"""


@dataclass(frozen=True)
class Case:
    """A kind, the bytes that it is about, and what stands beside them (a seed, the name of a spec)."""

    kind: str
    data: bytes
    beside: dict[str, Any] = field(default_factory=dict)


class Stock:
    """What all cases draw from, read once: texts of specs and blocks, programs, configs that were measured, modules."""

    def __init__(self, folder: Path, few: bool = False) -> None:
        """Of ``few`` specs the programs are derived, or of all."""
        self.few = few
        self.folder = folder / "specs"
        for name in ("fuzz", "blocks"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        shipped = roots()[-1]
        self.specs = {file.name: file.source().text for file in specs_in(shipped)}
        self.specs["small"] = SMALL_SPEC
        self.blocks = {path.stem: path.read_text("utf-8") for path in sorted((shipped / "blocks").glob("*.yaml"))}
        self.names = sorted(self.specs)
        self.weights = [1 / len(self.specs[name]) for name in self.names]
        self.records = [record for path in sorted(RECORDS.glob("*.json")) for record in json.loads(path.read_text("utf-8"))]
        self.modules: dict[str, Any] = {}

    @cached_property
    def trees(self) -> Trees:
        """The documents that are mutated as trees."""
        return Trees(self)

    def path_of(self, name: str) -> Path:
        """The file of a spec."""
        if name == "small":
            path = self.folder / "fuzz" / "small.yaml"
            path.write_text(SMALL_SPEC, "utf-8")
            return path
        return next(file.path for file in specs_in(roots()[-1]) if file.name == name)

    @cached_property
    def programs(self) -> dict[str, Any]:
        """The programs of the shipped specs, and of the small one."""
        (self.folder / "fuzz" / "small.yaml").write_text(SMALL_SPEC, "utf-8")
        known = [file for file in specs_in(roots()[-1]) if not self.few or file.name in MODELS]
        paths = {file.name: file.path for file in known} | {"small": self.folder / "fuzz" / "small.yaml"}
        found = {}
        for name, path in sorted(paths.items()):
            try:
                found[name] = load(path).program(config={})
            except SymflopsError:
                continue
        return found

    @cached_property
    def configs(self) -> dict[str, list[dict[str, Any]]]:
        """Measured configs by spec."""
        owners = {reference.rpartition(".")[2]: name for name, program in self.programs.items() for reference in program.references}
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in self.programs}
        for record in self.records:
            if record["class"] in owners:
                found[owners[record["class"]]].append(record["config_json"])
        return found

    def streams(self, name: str) -> dict[str, int]:
        """The streams of a batch for a spec, with the number of their axes."""
        return {stream.name: len(stream.variables) for stream in self.programs[name].streams if stream.given}

    def generated(self, name: str) -> Any:
        """The catalog of a spec whose stored programs are read once, None if it has none."""
        if name not in self.modules:
            try:
                catalog = lookup.by_name(name)
                catalog.program = cache(catalog.program)  # type: ignore[method-assign]
                catalog.module(name)  # whose dataclass is made by code
                self.modules[name] = catalog
            except SymflopsError:
                self.modules[name] = None
        return self.modules[name]


def draw(stock: Stock, seed: int, number: int, kinds: tuple[str, ...] = KINDS) -> Case:
    """Case ``number`` of ``seed``; the same for ever."""
    rng = random.Random(f"{seed}:{number}")
    kind = rng.choices(kinds, [WEIGHTS.get(kind, 2) for kind in kinds])[0]
    beside: dict[str, Any] = {"seed": rng.randrange(2**32)}
    if kind in TREES:
        return Case(kind, *draw_tree(stock.trees, kind, rng, beside))
    if kind == "expression":
        text = rng.choice(EXPRESSIONS)
        for _ in range(rng.randrange(1, 5)):
            text = replace_token(text, rng) if rng.random() < 0.8 else f"({text}){rng.choice(('+', '*', '**', '//', ' or ', ' == ', ', '))}{token(text, rng)}"
        return Case(kind, (rng.choice((*NASTY, *INJECTIONS)) if rng.random() < 0.05 else text).encode("utf-8", "surrogatepass"), beside)
    if kind == "spec":
        name = rng.choices(stock.names, stock.weights)[0]
        if rng.random() < 0.15:
            block = rng.choice(sorted(stock.blocks))
            users = [spec for spec in stock.names if f"block: {block}" in stock.specs[spec]]
            if users:
                return Case(kind, mutate_yaml(stock.blocks[block], rng), beside | {"block": block, "spec": rng.choice(users)})
        return Case(kind, mutate_yaml(stock.specs[name], rng), beside)
    name = rng.choice(sorted(stock.programs))
    beside["spec"] = name
    if kind == "config":
        fields = [(key, item.kind) for item in stock.programs[name].fields for key in item.keys]
        config = a_config(fields, stock.configs[name], rng)
        if rng.random() < 0.3:
            config[rng.choice(("architectures", "_class_name", "model_type"))] = rng.choice((*stock.programs[name].references, *NASTY, 3, [], [3], {}, ["LlamaForCausalLM"], "llama"))
        return Case(kind, as_text(config, rng), beside)
    return Case(kind, as_text(a_batch(stock.streams(name), rng), rng), beside)


def prepare(stock: Stock, case: Case) -> Callable[[], str]:
    """Put the files of a case in place; what runs it, and tells how it ended: ``result`` or ``diagnostic``."""
    if case.kind in TREES:
        return prepare_tree(stock, case)
    runs = {"spec": _spec, "expression": _expression, "config": _config, "batch": _batch}
    return runs[case.kind](stock, case)


def _spec(stock: Stock, case: Case) -> Callable[[], str]:
    path = stock.folder / "fuzz" / "case.yaml"
    for old in (stock.folder / "blocks").iterdir():
        old.unlink()
    if "block" in case.beside:
        (stock.folder / "blocks" / f"{case.beside['block']}.yaml").write_bytes(case.data)
        path.write_text(stock.specs[case.beside["spec"]], "utf-8")
    else:
        path.write_bytes(case.data)
    rng = random.Random(case.beside["seed"])

    def run() -> str:
        try:
            model = load(path)
            fields = [(key, size.kind) for size in model.spec.sizes for key in size.keys]
            config = a_config(fields, [], rng) if rng.random() < 0.5 else {}
            program = model.program(config=config)
            streams = {stream.name: len(stream.variables) for stream in program.streams if stream.given}
            batch = a_batch(streams, rng) if rng.random() < 0.5 else whole_batch(streams)
            if rng.random() < 0.1:
                ending = rng.choice(ENDINGS)
                text = emit(program, "0", (), [ending])[ending]
                if ending == "py":
                    ast.parse(text)
            _estimate(program, config, batch if isinstance(batch, dict) else {})
        except SymflopsError as error:
            assert str(error)
            return "diagnostic"
        return "result"

    return run


def _estimate(program: Any, config: Any, batch: dict[str, Any], regime: str = "full", convention: str = "symflops") -> Any:
    estimator = InterpretedEstimator(program, config, regime=regime, convention=convention)
    found = lookup.result(estimator, batch)
    estimator.by_module(estimator.moments(**batch))
    exact([found, estimator.tensors()])
    return json.loads(json.dumps(found))


SPAN = Span(Source("expression", ""), 1, 1, 2)
NAMES: dict[str, Any] = {
    **{name: size_symbol(name) for name in ("L", "D", "H", "d", "i", "x", "y", "n", "s", "K", "k", "p", "o", "h", "w")},
    "r": Symbol("r", rational=True, nonnegative=True), "tied": Truth.of(flag_symbol("tied")), "three": Integer(3),
    "dual": Setting("dual", "list", size_symbol("dual")), "patch": Setting("patch", "list", size_symbol("patch"), True),
    "mode": Setting("mode", "text", size_symbol("mode")), "rq": Setting("rq", "number", size_symbol("rq"), True), "none": None,
    "at": (Integer(1), Integer(2)), "maybe": Setting("maybe", "flag", size_symbol("maybe"), True), "ratio": Setting("ratio", "rational", size_symbol("ratio"), True),
}  # fmt: skip


def _expression(stock: Stock, case: Case) -> Callable[[], str]:
    text = case.data.decode("utf-8", "replace")

    def run() -> str:
        try:
            value = evaluate(parse_expression(text, SPAN), NAMES)
        except (SymflopsError, UnknownSizeError):
            return "diagnostic"
        if isinstance(value, Expr):
            str(value)
        return "result"

    return run


def _config(stock: Stock, case: Case) -> Callable[[], str]:
    path = stock.folder / "config.json"
    path.write_bytes(case.data)
    name = case.beside["spec"]
    rng = random.Random(case.beside["seed"])
    batch = whole_batch(stock.streams(name))
    regime, convention = rng.choice(("full", "forward")), rng.choice(("symflops", "torch"))
    catalog, program = stock.generated(name), stock.programs[name]

    def run() -> str:
        try:
            config = lookup.read_config(str(path))
            try:
                lookup.by_config(config)
            except lookup.UnknownModelError:
                pass
        except SymflopsError:
            return "diagnostic"
        return _both(catalog, program, config, batch, regime, convention)

    return run


def _batch(stock: Stock, case: Case) -> Callable[[], str]:
    name = case.beside["spec"]
    rng = random.Random(case.beside["seed"])
    config = rng.choice([*stock.configs[name], {}])
    catalog, program = stock.generated(name), stock.programs[name]

    def run() -> str:
        from symflops.evaluate.batch_text import batch_of

        try:
            batch = batch_of(case.data.decode("utf-8", "replace"))
        except SymflopsError:
            return "diagnostic"
        return _both(catalog, program, config, batch, "full", rng.choice(("symflops", "torch")))

    return run


WRONG = (SymflopsError, ArithmeticError, LookupError, TypeError, ValueError)  # what a generated module raises for a wrong batch


def _derived(entries: Any, config: Any, tell: Any) -> Any:
    """The program of a config, which is not kept."""
    return document_of(load(entries.file).program([entries.regime], [entries.convention], config))


def _both(catalog: Any, program: Any, config: Any, batch: Any, regime: str, convention: str) -> str:
    """The generated module and the interpreter: both refuse, or both say the same."""
    found = []
    if catalog is not None:
        try:
            with patch.object(spot, "cached", _derived):  # which would write what it derives
                model = lookup.estimator(catalog, program.name, config, regime, convention)[1]
        except SymflopsError:
            found.append(None)
        else:
            try:
                m = model.moments(**batch)
                found.append({"parameters": model.parameters, "forward": model.forward(m), "backward": model.backward(m)})
            except WRONG:
                found.append(None)
    try:
        found.append(_estimate(program, config, batch, regime, convention))
    except SymflopsError:
        found.append(None)
    told = [None if item is None else {key: item[key] for key in ("parameters", "forward", "backward")} for item in found]
    assert all(item == told[0] or None in (item, told[0]) for item in told), told
    return "result" if any(item is not None for item in found) else "diagnostic"


__all__ = ["KINDS", "Case", "Stock", "draw", "prepare"]
