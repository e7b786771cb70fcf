"""Measures the real class of a spec, and adds a record to ``tests/data/truth``: its case whose structure is that of its page.

    python -m tests.records.measure convnext lstm

A page proves its closed forms by a record: of full training, with a loss over all outputs, on inputs without gradients, and of the structure that the
page has. The case is the first of that structure in the spec's file of cases.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from symflops.api import Model
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.witness.cases import LiveCase, cases_of
from symflops.witness.classes import package_of
from symflops.witness.live import build, outputs_of, parameters_of, reference_of, run
from symflops.witness.modes import in_evaluation
from symflops.witness.module_work import starred
from symflops.witness.tensors import arguments_of, moved, needed
from tests.shipped import load

TRUTH = Path(__file__).resolve().parents[1] / "data/truth"
TAG = "page"


def told(value: Any) -> Any:
    """An input as records have it: the shape of a tensor of features, the values of one of lengths."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_meta or value.is_floating_point():
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    return {"value": value.tolist()}


def measured(model: Model, case: LiveCase) -> dict[str, Any]:
    """The record of a case."""
    reference = reference_of(model, case)
    package, name = reference.rpartition(".")[0], reference.rpartition(".")[2]
    real, built = build(reference, case)
    config = in_evaluation(model.spec, built)
    program = model.program(["full"], ["torch"], config)
    sizes = InterpretedEstimator(program, config, regime="full", convention="torch").sizes
    arguments = moved(arguments_of(program, case.batch, sizes, case.arguments), case.device)
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


def main(names: list[str]) -> None:
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
        path = TRUTH / f"{record['class']}.json"
        found = [each for each in (json.loads(path.read_text()) if path.is_file() else []) if each["id"] != record["id"]]
        lines = (json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in [*found, record])
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        print(record["id"], record["params_total"], record["fwd_flops"], record["bwd_flops"])


if __name__ == "__main__":
    main(sys.argv[1:])
