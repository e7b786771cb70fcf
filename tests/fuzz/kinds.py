"""Further kinds of cases: pages, records, profiles, folders and stored programs of a stranger, and what reads them."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import random
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from symflops.api import load
from symflops.cli.main import main
from symflops.emit.emit import ENDINGS, emit
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.regime import Regime
from symflops.ir.serialise import document_of, program_of
from symflops.library import cache as spot, local, lookup
from symflops.read.conventions import read_convention
from symflops.read.peer_pages import read_peers
from symflops.read.regimes import read_regime
from symflops.read.spec_files import roots
from symflops.support.findings import Source, SymflopsError
from symflops.support.reading import read_json
from symflops.verify.cases import read_cases
from symflops.verify.peers import Conforming, systems
from symflops.verify.records import read_records
from symflops.verify.verdicts import VerifiedSpec, verify_records
from tests.fuzz.mutators import INJECTIONS, NASTY, mutate_bytes
from tests.fuzz.structure import GLOBS, Mutator, of_json, of_yaml
from tests.fuzz.values import whole_batch

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "tests" / "data" / "peers"
PAGES = ROOT / "symflops"
TREES = ("structure", "block", "regime", "convention", "case", "record", "peer", "csv", "catalog", "program")
MODELS = ("small", "llama", "gpt2", "linear", "vit", "dit", "mixtral", "bert", "lstm", "clip", "resnet", "whisper")
"""The specs that pages and records are held against: of every group, each derived in well under a second."""


for module in pkgutil.walk_packages([str(ROOT / "symflops")], "symflops."):  # what is imported late runs code when it is
    if module.name.split(".")[1] not in ("draft", "adapters", "generated"):
        importlib.import_module(module.name)


class Trees:
    """The documents that are mutated, each read once."""

    def __init__(self, stock: Any) -> None:
        self.stock = stock

    @cached_property
    def specs(self) -> dict[str, Any]:
        return {name: of_yaml(text) for name, text in self.stock.specs.items() if len(text) < 12_000}

    @cached_property
    def blocks(self) -> dict[str, Any]:
        return {name: of_yaml(text) for name, text in self.stock.blocks.items()}

    @cached_property
    def regimes(self) -> list[Any]:
        return [of_yaml(path.read_text("utf-8")) for path in sorted((PAGES / "regimes").glob("*.yaml"))]

    @cached_property
    def conventions(self) -> list[Any]:
        return [of_yaml(path.read_text("utf-8")) for path in sorted((PAGES / "conventions").glob("*.yaml"))]

    @cached_property
    def pages(self) -> list[Any]:
        return [of_yaml(path.read_text("utf-8")) for path in sorted((PAGES / "conventions" / "peers").glob("*.yaml"))]

    @cached_property
    def cases(self) -> dict[str, Any]:
        found = {path.name.partition(".")[0]: of_yaml(path.read_text("utf-8")) for path in sorted(roots()[-1].glob("*/*.cases.yaml"))}
        return {name: tree for name, tree in found.items() if name in self.stock.programs}

    @cached_property
    def records(self) -> list[Any]:
        chosen = [record for record in self.stock.records if len(json.dumps(record)) < 12_000]
        return [of_json(record) for record in chosen if record["class"] in self.classes]

    @cached_property
    def classes(self) -> dict[str, Any]:
        """Loaded models by the names of their classes."""
        models = [load(self.stock.path_of(name)) for name in MODELS]
        return {reference.rpartition(".")[2]: model for model in models for reference in model.spec.references}

    @cached_property
    def configs(self) -> dict[str, dict[str, Any]]:
        """A measured config for each of ``MODELS``."""
        found = dict.fromkeys(MODELS, {})
        for record in reversed(self.stock.records):
            if record["class"] in self.classes:
                found[self.classes[record["class"]].spec.name] = record["config_json"]
        return found

    @cached_property
    def peers(self) -> list[tuple[str, Any]]:
        found = [(path.stem, record) for path in sorted(PEERS.glob("*.json")) for record in json.loads(path.read_text("utf-8")) if isinstance(record, dict) and ("flops" in record or "state" in record)]
        return [(system, of_json(record)) for system, record in found if len(json.dumps(record)) < 4000]

    @cached_property
    def programs(self) -> dict[str, Any]:
        """Documents of programs that fit a page or two."""
        texts = {name: json.dumps(document_of(program)) for name, program in self.stock.programs.items()}
        return {name: json.loads(text) for name, text in texts.items() if len(text) < 60_000}

    @cached_property
    def conforming(self) -> Conforming:
        return Conforming()


def draw_tree(trees: Trees, kind: str, rng: random.Random, beside: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a case, and what stands beside them."""
    if kind == "structure":
        return Mutator("spec", rng).mutated(rng.choice([tree for _, tree in sorted(trees.specs.items())])), beside
    if kind == "block":
        name = rng.choice(sorted(trees.blocks))
        users = [spec for spec in trees.stock.names if f"block: {name}" in trees.stock.specs[spec] and len(trees.stock.specs[spec]) < 12_000]
        return Mutator("block", rng).mutated(trees.blocks[name]), beside | {"block": name, "spec": rng.choice(users or ["small"])}
    if kind == "regime":
        return (a_line(rng) if rng.random() < 0.2 else Mutator(kind, rng).mutated(rng.choice(trees.regimes))), beside | {"spec": rng.choice(MODELS)}
    if kind == "convention":
        return Mutator(kind, rng).mutated(rng.choice(trees.conventions)), beside | {"spec": rng.choice(MODELS)}
    if kind == "case":
        name = rng.choice(sorted(trees.cases))
        return Mutator(kind, rng).mutated(trees.cases[name]), beside | {"spec": name}
    if kind == "record":
        return Mutator(kind, rng, as_json=True).mutated([rng.choice(trees.records)]), beside
    if kind == "peer":
        if rng.random() < 0.2:
            return Mutator("page", rng).mutated(rng.choice(trees.pages)), beside | {"page": True}
        system, record = rng.choice(trees.peers)
        return Mutator(kind, rng, as_json=True).mutated([record]), beside | {"system": system}
    if kind == "csv":
        return a_profile(rng), beside
    if kind == "catalog":
        beside["spec"] = rng.choice(("small", "llama", "linear", "gpt2"))
        if rng.random() < 0.3:
            return Mutator(kind, rng, as_json=True).mutated(of_json(a_catalog(trees, rng))), beside | {"forged": True}
        return Mutator("spec", rng).mutated(trees.specs[beside["spec"]]), beside
    name = rng.choice(sorted(trees.programs))
    data = Mutator(kind, rng, as_json=True).mutated(of_json(trees.programs[name]))
    return (mutate_bytes(data, rng) if rng.random() < 0.05 else data), beside | {"spec": name}


def a_line(rng: random.Random) -> bytes:
    """A regime in one line."""
    base = rng.choice(("full", "lora", "forward", "checkpointed", "dpo", "x", "", "decode"))
    keys = ("r", "rank", "targets", "kind", "names", "train", "freeze", "loss", "groups", "every", "forward", "detached", "timesteps", "accumulation", "early_stop", "reentrant", "x")
    parts = [f"{rng.choice(keys)}={rng.choice((*GLOBS, *NASTY, *INJECTIONS, '1', '8', 'dora', 'peft', 'a|b|c', 'true'))}" for _ in range(rng.randrange(5))]
    return f"{base}:{','.join(parts)}".encode("utf-8", "surrogatepass")


CELLS = ("12", "1e9", "1,000,000", "N/A", "", "-", "nan", "-5", "1e400", "0x10", "1_000", "inf", "½", "١٢", '"', '"a,b"', "=1+1", "'", "\x00", "12.5", "9" * 400, "1e-400", " 7 ", "None")


def a_profile(rng: random.Random) -> bytes:
    """A table of kernels."""
    columns = ["Name", "aic_cube_fops", "Duration(us)"]
    rng.shuffle(columns)
    if rng.random() < 0.15:
        columns[rng.randrange(3)] = rng.choice((*NASTY, "AIC_CUBE_FOPS", " aic_cube_fops "))
    rows = [",".join(rng.choice(CELLS) if rng.random() < 0.2 else str(rng.randrange(10**12)) for _ in range(rng.choice((3, 3, 3, 2, 4)))) for _ in range(rng.choice((0, 1, 5, 2000)))]
    text = rng.choice(("\n", "\r\n", "\r")).join([",".join(columns), *rows]).encode("utf-8", "surrogatepass")
    return mutate_bytes(text, rng) if rng.random() < 0.3 else text


def a_catalog(trees: Trees, rng: random.Random) -> dict[str, Any]:
    """A catalog of a folder."""
    whole = json.loads((ROOT / "generated" / "catalog.json").read_text("utf-8"))
    chosen = rng.sample(sorted(whole["specs"]), 3)
    return {**whole, "specs": {name: whole["specs"][name] for name in ("llama", *chosen)}}


def exact(value: Any, where: str = "") -> None:
    """Every number of an answer is whole and not negative."""
    if isinstance(value, dict):
        for key, item in value.items():
            exact(item, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            exact(item, where)
    else:
        assert value is None or isinstance(value, (str, bool)) or (isinstance(value, int) and value >= 0), f"{where} is {value!r}"


def prepare_tree(stock: Any, case: Any) -> Callable[[], str]:
    """What runs a case."""
    kind = {"structure": "_spec", "block": "_spec", "regime": "_page", "convention": "_page"}.get(case.kind, f"_{case.kind}")
    return globals()[kind](stock, case)


def refusing(run: Callable[[], object]) -> Callable[[], str]:
    """``run`` as a case: an answer, or a diagnostic."""

    def ended() -> str:
        try:
            run()
        except SymflopsError as error:
            assert str(error)
            return "diagnostic"
        return "result"

    return ended


def answer(program: Any, config: Any, regime: str, convention: str) -> None:
    """The answer about a batch, which is exact."""
    estimator = InterpretedEstimator(program, config, regime=regime, convention=convention)
    batch = whole_batch({stream.name: len(stream.variables) for stream in estimator.stored.streams if stream.given})
    exact(lookup.result(estimator, batch))


def _spec(stock: Any, case: Any) -> Callable[[], str]:
    folder = stock.folder
    for old in (folder / "blocks").iterdir():
        old.unlink()
    path = folder / "fuzz" / "case.yaml"
    if case.kind == "block":
        (folder / "blocks" / f"{case.beside['block']}.yaml").write_bytes(case.data)
        path.write_text(stock.specs[case.beside["spec"]], "utf-8")
    else:
        path.write_bytes(case.data)
    rng = random.Random(case.beside["seed"])

    def run() -> None:
        program = load(path).program(config={})
        if rng.random() < 0.1:
            emit(program, "0", (), [rng.choice(ENDINGS)])
        answer(program, {}, "full", "symflops")

    return refusing(run)


def _page(stock: Any, case: Any) -> Callable[[], str]:
    name = case.beside["spec"]
    config, text = stock.trees.configs[name], case.data.decode("utf-8", "surrogatepass")
    path = stock.path_of(name)

    def run() -> None:
        regimes: list[Any] = [Regime("full")]
        conventions: list[Any] = ["symflops"]
        if case.kind == "convention":
            conventions = [read_convention(Source("case.yaml", text))]
        else:
            regimes = [text if not text.startswith(("{", "[")) and "\n" not in text else read_regime(Source("case.yaml", text))]
        program = load(path).program(regimes, conventions, config)
        answer(program, config, program.regimes[0].name, program.conventions[0])

    return refusing(run)


def _case(stock: Any, case: Any) -> Callable[[], str]:
    program = stock.programs[case.beside["spec"]]

    def run() -> None:
        for found in read_cases(Source("case.yaml", case.data.decode("utf-8", "surrogatepass"))):
            estimator = InterpretedEstimator(program, found.config, regime="full", convention="symflops")
            exact(lookup.result(estimator, found.batch))

    return refusing(run)


def _record(stock: Any, case: Any) -> Callable[[], str]:
    folder = fresh(stock.folder / "records")
    (folder / "case.json").write_bytes(case.data)
    classes = {name: VerifiedSpec(model.file, cold=True) for name, model in stock.trees.classes.items()}

    def run() -> None:
        for verdict in verify_records(list(read_records(folder)), classes):
            json.dumps(verdict.as_json())
            exact(dict(verdict.derived))

    return refusing(run)


def _peer(stock: Any, case: Any) -> Callable[[], str]:
    if "page" in case.beside:
        return refusing(lambda: read_peers(Source("case.yaml", case.data.decode("utf-8", "surrogatepass"))))
    folder = fresh(stock.folder / "peers")
    (folder / f"{case.beside['system']}.json").write_bytes(case.data)
    conforming = stock.trees.conforming
    if len(conforming.programs) > 200 or sum(len(model.memo.known) for model in conforming.models.values()) > 600:
        conforming.programs.clear(), conforming.models.clear()

    def run() -> None:
        for system, records in systems(folder):
            for place, record in enumerate(records):
                json.dumps(conforming.judge(system, place, record).as_json())

    return refusing(run)


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def command(*words: str) -> tuple[int, str]:
    """The exit code and the output of a command; what it should not raise, it raises."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, "--traceback"])
    assert code in (0, 1, 2), code
    assert code == 0 or err.getvalue().strip()
    return code, out.getvalue()


def _csv(stock: Any, case: Any) -> Callable[[], str]:
    path = stock.folder / "case.csv"
    path.write_bytes(case.data)

    def run() -> str:
        code, out = command("mfu", "--kernel-details", str(path), "--seconds", "2", "--peak", "100", "--json")
        if code:
            return "diagnostic"
        found = json.loads(out, parse_constant=lambda word: 1 / 0)
        assert found["mfu"] >= 0 and found["flops"] >= 0
        return "result"

    return run


def _unkept(*_: object, **__: object) -> None:
    raise OSError("nothing is kept in a case")


def _catalog(stock: Any, case: Any) -> Callable[[], str]:
    """A folder with specs and generated files: the catalog of it is listed, and estimates by name and by config."""
    folder = fresh(stock.folder / "project")
    (folder / "specs" / "nn").mkdir(parents=True)
    (folder / "generated" / "language").mkdir(parents=True)
    name = case.beside["spec"]
    (folder / "specs" / "nn" / f"{name}.yaml").write_bytes(case.data if "forged" not in case.beside else stock.specs[name].encode())
    for place in ("catalog.json", ".stamp.json", "manifest.json", "language/llama.json", f"nn/{name}.json"):
        (folder / "generated" / place).parent.mkdir(exist_ok=True)
        (folder / "generated" / place).write_bytes(case.data)
    (folder / "config.json").write_text(json.dumps(stock.trees.configs["llama"] | {"architectures": ["LlamaForCausalLM"]}))
    batch = ("--batch", '{"text": [5]}', "--json")
    before = Path.cwd()

    def run() -> str:
        os.chdir(folder)
        try:
            with patch.object(spot, "keep", _unkept), patch.object(local, "keep", _unkept):
                codes = [command(*words)[0] for words in (("list", "--json"), ("estimate", name, *batch), ("estimate", "--config", "config.json", *batch), ("generate", "--check"))]
        finally:
            os.chdir(before)
        return "result" if 0 in codes[1:] else "diagnostic"

    return run


def _program(stock: Any, case: Any) -> Callable[[], str]:
    path = stock.folder / "case.json"
    path.write_bytes(case.data)
    config = next(iter(stock.configs[case.beside["spec"]]), {})

    def run() -> None:
        document = read_json(path)
        if not isinstance(document, dict):
            raise SymflopsError("not an object")  # as the catalog says
        answer(program_of(document), config, "full", "symflops")

    return refusing(run)
