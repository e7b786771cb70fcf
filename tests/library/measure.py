"""Measures the real class of a spec, and adds a record to ``tests/data/truth``: its case whose structure is that of its page.

    python -m tests.library.measure convnext lstm
    python -m tests.library.measure --regimes clip resnet:0:resnet.encoder.stages.*.layers.*
    python -m tests.library.measure --decoding llama mamba2:all
    python -m tests.library.measure --heads llama roberta_masked_lm:1

A page proves its closed forms by a record: of full training, with a loss over all outputs, on inputs without gradients, and of the structure that the
page has. The case is the first of that structure in the spec's file of cases. With ``--regimes`` a case, by its number, is
measured under regimes, and ``tests/data/regimes`` gets the records: what the rules of regimes do to each kind of operator. With
``--decoding`` each class of a spec that can generate is measured with its cache, on its first case that has one, or on all. With
``--heads`` a case, by its number, is measured with ``logits_to_keep``.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.regime import Adapter, Recompute, Regime
from symflops.training.introspect.tree import starred
from symflops.verify.applied import NAMES, adapted
from symflops.verify.bench import Bench, choice_of
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.classes import class_of, in_evaluation, package_of
from symflops.verify.live import build, outputs_of, parameters_of, reference_of, run
from symflops.verify.running import arguments_of, moved, needed
from tests.shipped import load
from tests.verify.decoding import measured as decoding_of

TRUTH = Path(__file__).resolve().parents[1] / "data/truth"
REGIMES = TRUTH.with_name("regimes")
TAG = "page"


def told(value: Any) -> Any:
    """An input as records have it: the shape of a tensor of features, the values of one of lengths; a list of such."""
    if isinstance(value, (list, tuple)):
        return list(map(told, value))
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_meta or value.is_floating_point():
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    return {"value": value.tolist()}


def measured(model: Model, case: LiveCase, **more: Any) -> dict[str, Any]:
    """The record of a case, with ``more`` arguments."""
    reference = reference_of(model, case)
    package, name = reference.rpartition(".")[0], reference.rpartition(".")[2]
    real, built = build(reference, case)
    config = in_evaluation(model.spec, built)
    program = model.program(["full"], ["torch"], config)
    sizes = InterpretedEstimator(program, config, regime="full", convention="torch").sizes
    arguments = moved(arguments_of(program, case.batch, sizes, case.arguments), case.device) | more
    outputs = outputs_of(model)
    forward, backward = run(real, arguments, case, train=True, outputs=outputs)
    shapes, _ = parameters_of(real)
    tensors: Counter[str] = Counter()
    for path, tensor in real.named_parameters():
        tensors[starred(path)] += tensor.numel()
    modules: Counter[str] = Counter()
    for path, flops in forward.modules.items():
        modules[starred(path)] += flops
    return {
        "id": f"{package}/{name}/{TAG}", "package": package, "version": str(needed(package_of(reference)).__version__),
        "torch": str(torch.__version__), "class": name, "tag": TAG, "published_size": False, "config": dict(case.config),
        "inputs": {key: told(value) for key, value in arguments.items()}, "device": case.device, "params_total": sum(tensors.values()),
        "params_by_tensor": dict(tensors), "fwd_flops": forward.total, "bwd_flops": backward.total, "by_module_fwd": dict(modules),
        "loss_over": list(outputs), "config_json": json.loads(json.dumps(dict(config), default=str)),
    }  # fmt: skip


def measured_in(model: Model, row: int, name: str, regime: Regime) -> dict[str, Any]:
    """The record of a case under a regime that a bench puts on the real class; its modules are not compared."""
    bench = Bench(model, cases_of(model.file)[row])
    choice = choice_of(regime, bench)
    hooks = [bench.real.get_submodule(path).register_forward_hook(lambda _, __, result: result.requires_grad_()) for path in regime.force_grad]
    trainable, forward, backward = bench.measured(choice)
    for hook in hooks:
        hook.remove()
    tensors: Counter[str] = Counter()
    with adapted(bench.real, choice.targets, choice.rank):
        for path, tensor in bench.real.named_parameters():
            tensors[starred(path)] += tensor.numel()
    reference = reference_of(model, bench.case)
    package, kind = package_of(reference), reference.rpartition(".")[2]
    words = {"train": list(regime.train), "freeze": list(regime.freeze), "recompute": regime.recompute and asdict(regime.recompute)}
    words["force_grad"] = list(regime.force_grad)
    words["adapters"] = [{"kind": "lora", "rank": one.rank, "targets": list(one.targets), "names": "plain"} for one in regime.adapters]
    return {
        "id": f"{package}/{kind}/{row}-{name}", "package": package, "version": str(needed(package).__version__),
        "torch": str(torch.__version__), "class": kind, "tag": f"{row}-{name}", "published_size": False, "config": dict(bench.case.config),
        "inputs": {key: told(value) for key, value in bench.arguments.items()}, "device": bench.case.device,
        "params_total": sum(tensors.values()), "params_by_tensor": dict(tensors), "params_trainable": trainable, "fwd_flops": forward,
        "bwd_flops": backward, "by_module_fwd": {}, "loss_over": list(outputs_of(model)),
        "config_json": json.loads(json.dumps(dict(bench.config), default=str)), "regime": words,
    }  # fmt: skip


def regimes_of(bench: Bench, groups: tuple[str, ...]) -> dict[str, Regime]:
    """The regimes that a model is measured under: frozen tensors, adapters of some linears, groups recomputed in three ways.

    Of a model with an input embedding, adapters are measured a second time, with a gradient of the embedded tokens. Without ``groups`` they are the items of its lists, else its outermost modules.
    """
    names = [name.split(".") for name, _ in bench.real.named_parameters()]
    ends = list(dict.fromkeys(".".join(["*", *words[-2:]] if len(words) > 2 else words) for words in names))
    lists = [name for name, module in bench.real.named_modules() if type(module).__name__ == "ModuleList" and not re.search(r"\.\d+\.", name)]
    groups = groups or tuple(f"{name}.*" for name in lists) or tuple(name for name, _ in bench.real.named_children())
    ways = {"recompute": {}, "whole": {"early_stop": False}, "reentrant": {"reentrant": True}}
    found = {name: Regime(name, recompute=Recompute(groups, **fields)) for name, fields in ways.items()}
    targets = tuple(dict.fromkeys("*." + ".".join(name.split(".")[-2:]) for name in bench.linears if name.count(".") > 1))[:2]
    lora = Adapter("lora", 4, targets or bench.linears[:1], NAMES)
    found |= {"freeze": Regime("freeze", freeze=tuple(ends[1::2])), "lora": Regime("lora", train=(), adapters=(lora,))}
    inputs = [name for name, module in bench.real.named_modules() if module is getattr(bench.real, "get_input_embeddings", lambda: None)()]
    return found | {"force": replace(found["lora"], force_grad=tuple(inputs[:1])) for _ in inputs[:1]}


def add(path: Path, records: list[dict[str, Any]]) -> None:
    """Write records to a file in place of those with their names."""
    names = {record["id"] for record in records}
    kept = [each for each in (json.loads(path.read_text()) if path.is_file() else []) if each["id"] not in names]
    lines = (json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in [*kept, *records])
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    for record in records:
        print(record["id"], record["params_total"], record["fwd_flops"], record["bwd_flops"], *([len(record["calls"])] if "calls" in record else []))


def under_regimes(name: str, row: int, groups: tuple[str, ...]) -> None:
    """Measure a case of a spec under each of its regimes; ``groups`` are recomputed."""
    model = load(name)
    bench = Bench(model, cases_of(model.file)[row])
    records = [measured_in(model, row, word, regime) for word, regime in regimes_of(bench, groups).items()]
    add(REGIMES / f"{records[0]['class']}_rules.json", records)


PAGES = {"prefill": "prefill", "decode": "step", "generate": "generate"}
"""Regime -> its field ``decode``."""


def decoding(name: str, every: bool) -> None:
    """Measure the calls that keep a state, for each class of a spec that can generate: its first case that keeps one, or ``every`` one."""
    model = load(name)
    for reference in model.spec.references:
        kind = class_of(reference)
        if not getattr(kind, "can_generate", bool)():
            continue
        known = [case for case in cases_of(model.file) if case.reference in ("", reference)]
        records = []
        for row, case in enumerate(known):
            record = decoded(model, replace(case, reference=reference), f"{row}-decoding")
            records += [record] if record else []
            if records and not every:
                break
        if records:
            add(REGIMES / f"{reference.rpartition('.')[2]}_decoding.json", records)


def decoded(model: Model, case: LiveCase, tag: str) -> dict[str, Any] | None:
    """The record of a case, with a call of each kind and length; None if the class keeps nothing."""
    try:
        real, config, calls = decoding_of(model, case)
    except Exception as error:
        print(f"{case.reference} {tag}: {type(error).__name__}: {error}".splitlines()[0])
        return None
    if not all(call.cache for call, _ in calls):
        print(f"{case.reference} {tag}: no cache")
        return None
    tensors: Counter[str] = Counter()
    for path, tensor in real.named_parameters():
        tensors[starred(path)] += tensor.numel()
    package, name = package_of(case.reference), case.reference.rpartition(".")[2]
    return {
        "id": f"{package}/{name}/{tag}", "package": package, "version": str(needed(package).__version__),
        "torch": str(torch.__version__), "class": name, "tag": tag, "published_size": False, "config": dict(case.config),
        "device": "cpu", "params_total": sum(tensors.values()), "params_by_tensor": dict(tensors), "fwd_flops": 0, "bwd_flops": 0,
        "config_json": json.loads(json.dumps(dict(config), default=str)), "calls": [
            {"name": f"{call.regime}-{'-'.join(map(str, call.entry if isinstance(call.entry, list) else [call.entry]))}",
             "regime": {"train": [], "decode": PAGES[call.regime]}, "batch": batch, "fwd_flops": call.forward, "cache": call.cache}
            for call, batch in calls
        ],
    }  # fmt: skip


def of_head(name: str, row: int, kept: int = 3) -> None:
    """Measure a case of a spec with its head on the last tokens of each sample."""
    model = load(name)
    case = cases_of(model.file)[row]
    record = measured(model, case, logits_to_keep=kept)
    batch = {**case.batch, "head": [kept] * len(case.batch["text"])}
    given = {"tag": f"{row}-head", "regime": {"train": ["*"], "adapters": [], "head": "given"}, "batch": batch}
    add(REGIMES / f"{record['class']}_heads.json", [{**record, **given, "id": record["id"].replace(f"/{TAG}", f"/{row}-head")}])


def main(names: list[str]) -> None:
    if names[:1] == ["--heads"]:
        for name in names[1:]:
            of_head(name.partition(":")[0], int(name.partition(":")[2] or 0))
        return
    if names[:1] == ["--decoding"]:
        for name in names[1:]:
            decoding(name.partition(":")[0], name.endswith(":all"))
        return
    if names[:1] == ["--regimes"]:
        for name, *more in (word.split(":") for word in names[1:]):
            under_regimes(name, int(more[0]) if more else 0, tuple(more[1].split("|")) if more[1:] else ())
        return
    for name in names:
        model = load(name)
        fixed = model.typical(["full"], ["torch"]).fixed
        for case in cases_of(model.file):
            config = in_evaluation(model.spec, build(reference_of(model, case), case)[1])
            if model.program(["full"], ["torch"], config).fixed == fixed:
                break
        else:
            raise SystemExit(f"{name}: no case has the structure of the page")
        record = measured(model, case)
        add(TRUTH / f"{record['class']}.json", [record])


if __name__ == "__main__":
    main(sys.argv[1:])
