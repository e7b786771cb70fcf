"""Compares measured records with derivations: parameters by tensor, both passes and every module, without torch.

A record holds what a real model was built from and what was measured on it: ``class``, ``config_json``, ``inputs``,
``params_by_tensor`` (list indices replaced by ``*`` and summed), ``fwd_flops``, ``bwd_flops``, ``by_module_fwd`` and, where
PyTorch's counter missed something, ``uncounted_ops``. Configs and batches of published models become presets of a page.

A record of calls that keep a state has ``calls``, each with its ``regime``, ``batch``, ``fwd_flops`` and, as ``cache``, the
elements that the class's own cache has afterwards; each call is read as a record of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from types import NoneType
from typing import Any

from symflops.api import Model
from symflops.evaluate.classes import of_class
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.layouts import batch_of
from symflops.evaluate.parameters import instances_of
from symflops.evaluate.sizes import is_null, look_up
from symflops.ir.program import Field
from symflops.ir.regime import Regime
from symflops.read.regimes import regime_of_mapping
from symflops.support.findings import SymflopsError
from symflops.support.reading import fits, read_json
from symflops.training.introspect.tree import starred
from symflops.verify.classes import in_evaluation, with_value
from symflops.verify.running import rolled_up

FIELDS: Mapping[str, tuple[type, ...]] = {
    "id": (str,), "class": (str,), "config_json": (dict,), "params_total": (int,), "params_by_tensor": (dict,),
    "fwd_flops": (int,), "bwd_flops": (int, NoneType), "by_module_fwd": (dict,),
}  # fmt: skip
"""Required fields of a record, with their types."""
FIGURES, COUNTS = {...: int}, {...: {"flops": (int, NoneType)}}
SHAPES: Mapping[str, Any] = {
    "params_by_tensor": FIGURES, "by_module_fwd": FIGURES, "params_trainable": int, "bwd_flops_grouped_conv_fixed": int,
    "uncounted_ops": {"fwd": COUNTS, "bwd": COUNTS}, "tokens": dict, "inputs": dict, "regime": dict, "batch": dict,
}  # fmt: skip
"""Expected JSON structure of further fields, if they are present and not null."""
Record = Mapping[str, Any]
WITHIN = re.compile(r"[^.]\*|\*[^.]")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of comparing one record with its derivation.

    Attributes:
        id: The name of the record.
        status: ``exact``, ``mismatch``, ``no-spec`` or ``error``; for a record listed as inexact, ``inexact`` or ``stale`` (it
            is exact after all).
        parameters_ok: Whether parameters agree, each by its number of elements.
        forward_ok: Whether forward FLOPs agree.
        backward_ok: Whether backward FLOPs agree.
        modules_ok: Whether forward FLOPs of every module agree.
        expected: ``parameters``, ``forward`` and ``backward`` as measured.
        derived: The same figures as derived.
        why: Details of a difference or error.
        modules: Derived minus measured forward FLOPs, by path of the modules that differ.
    """

    id: str
    status: str
    parameters_ok: bool = False
    forward_ok: bool = False
    backward_ok: bool = False
    modules_ok: bool = False
    expected: Mapping[str, int | None] = field(default_factory=dict)
    derived: Mapping[str, int | None] = field(default_factory=dict)
    why: str = ""
    modules: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Convert the verdict to the JSON object that ``symflops verify --records --json`` prints."""
        keys = ("id", "status", "parameters_ok", "forward_ok", "backward_ok", "modules_ok", "expected", "derived")
        return {key: getattr(self, key) for key in keys}


def read_records(folder: Path) -> Iterator[Record]:
    """Yield the records of all ``*.json`` files below ``folder``, ordered by path.

    Raises:
        SymflopsError: the folder does not exist, or a file is not a list of records.
    """
    if not folder.is_dir():
        raise SymflopsError(f"there is no folder {folder}")
    for path in sorted(folder.rglob("*.json")):
        found = read_json(path)
        if not isinstance(found, list) or not all(isinstance(record, dict) and "class" in record for record in found):
            raise SymflopsError(f"{path}: not a list of records")
        for number, record in enumerate(called(found), 1):
            for name, kinds in FIELDS.items():
                if not isinstance(record.get(name, ...), kinds) or isinstance(record[name], bool):
                    raise SymflopsError(f"{path}: record {number} has no valid '{name}'")
            for name, shape in SHAPES.items():
                if record.get(name) is not None and not fits(record[name], shape):
                    raise SymflopsError(f"{path}: record {number} has no valid '{name}'")
            yield record


def called(records: Iterable[Record]) -> Iterator[Record]:
    """Yield each call of a record with ``calls`` as a record of its own, without gradients; other records unchanged."""
    for record in records:
        whole = {name: value for name, value in record.items() if name != "calls"}
        without = {"bwd_flops": 0, "by_module_fwd": {}}
        for call in record.get("calls", ({},)):
            added = {**without, **call, "id": f"{record.get('id')}/{call.get('name')}"} if call else {}
            yield {**whole, **added}


def expected_of(record: Record) -> dict[str, int | None]:
    """The measured figures of a record: ``parameters``, ``forward``, ``backward`` (None if not measured).

    FLOPs of operations that the counter missed are added if they are known.
    """
    missed = record.get("uncounted_ops") or {}
    extra = {side: sum(op["flops"] or 0 for op in missed.get(side, {}).values()) for side in ("fwd", "bwd")}
    backward = record.get("bwd_flops_grouped_conv_fixed")
    backward = record["bwd_flops"] if backward is None else backward
    return {
        "parameters": record["params_total"],
        "forward": record["fwd_flops"] + extra["fwd"],
        "backward": None if backward is None else backward + extra["bwd"],
    }


def verify_record(model: Model, record: Record) -> Verdict:
    """Derive the figures of ``record`` and compare them with the measured ones."""
    expected = expected_of(record)
    try:
        config, regime = config_of_record(model, record), regime_of_record(model, record)
        key = "estimator of a record", regime, json.dumps(config, sort_keys=True)  # calls of one class differ in their batches
        make = partial(model.estimator, config, regime, "torch")
        estimator = model.memo.once(key, make) if "batch" in record else make()
        moments = estimator.moments(**(record.get("batch") or batch_of(estimator.stored, arguments_of(model, record))))
        derived: dict[str, int | None] = {
            "parameters": estimator.parameters,
            "forward": estimator.forward(moments),
            "backward": estimator.backward(moments) + estimator.recomputed(moments),
        }
        wrong_tensors = list(tensor_differences(estimator, record))
        if "cache" in record and record["cache"] != (found := sum(estimator.cache(moments).values())):
            wrong_tensors.append(f"cache: {record['cache']} elements measured, {found} derived")
        modules = module_differences(estimator, moments, record)
    except SymflopsError as error:
        return Verdict(record["id"], "error", expected=expected, derived=dict.fromkeys(expected), why=str(error))
    trainable = record.get("params_trainable")
    parameters = derived["parameters"] == expected["parameters"] and not wrong_tensors
    if trainable is not None and trainable != estimator.trainable_parameters:
        parameters = False
        wrong_tensors.append(f"trainable: {trainable} measured, {estimator.trainable_parameters} derived")
    forward, backward = (derived[key] == expected[key] for key in ("forward", "backward"))
    exact = parameters and forward and backward and not modules
    measured = record["by_module_fwd"]
    wrong = [f"{name}: {measured[name]} FLOPs measured, {measured[name] + more} derived" for name, more in modules.items()]
    why = "; ".join([*wrong_tensors[:6], *wrong[:6]])
    status = "exact" if exact else "mismatch"
    return Verdict(record["id"], status, parameters, forward, backward, not modules, expected, derived, why, modules)


def config_of_record(model: Model, record: Record) -> Mapping[str, Any]:
    """Return the config of a record, changed for evaluation mode if the model ran in that mode.

    A record does not state the mode. But work without gradients in evaluation mode leaves parameters without one, so a record
    that lists such parameters was made in that mode.
    """
    config: Mapping[str, Any] = record["config_json"]
    if "class" in record:
        config = of_class(config, record["class"])
    return in_evaluation(model.spec, config) if record.get("params_without_grad") else config


def regime_of_record(model: Model, record: Record) -> Regime:
    """The regime of a record; without one all parameters train, and if stated inputs get gradients."""
    if record.get("regime"):
        regime = regime_of_mapping(record["regime"])
        return regime if regime.loss else replace(regime, loss=loss_of(model, record))
    wanted = (record.get("tokens") or {}).get("input_requires_grad")
    inputs = tuple(item.name.text for item in model.spec.inputs) if wanted else ()
    return Regime("record", input_grad=inputs, loss=loss_of(model, record))


def loss_of(model: Model, record: Record) -> tuple[str, ...]:
    """Names of the outputs that the loss of ``record`` sums; empty if it sums all, or does not say."""
    named = record.get("loss_over")
    outputs = [output.text for output in model.spec.outputs]
    summed = tuple(name for name in outputs if isinstance(named, list) and name in named)
    return () if len(summed) == len(outputs) else summed


def arguments_of(model: Model, record: Record) -> dict[str, Any]:
    """Map input names to what the record says of them; positional ``args`` are in the spec's order.

    A single tensor under an unknown name is used for every input: self-attention takes one sequence.
    """
    named = dict(record.get("inputs") or {})
    given = named.pop("args", None) or ()
    if not isinstance(given, (list, tuple)):
        raise SymflopsError(f"the record '{record['id']}' has no list of 'args'")
    names = [item.name.text for item in model.spec.inputs]
    if not given and len(named) == 1 and not named.keys() & set(names):
        return dict.fromkeys(names, *named.values())
    return {**dict(zip(names, given, strict=False)), **named}


def tensor_differences(estimator: InterpretedEstimator, record: Record) -> Iterator[str]:
    """Yield a line of text for each parameter whose measured and derived numbers of elements differ."""
    derived: dict[str, int] = {}
    counts = estimator.tensors()
    if any(WITHIN.search(name) for name in counts):  # an index that is part of a word, as in weight_ih_l0
        shapes = instances_of(estimator.stored, estimator.sizes)
        counts = {name: prod(shape) for name, shape in shapes.items()}
    for name, count in counts.items():
        derived[starred(name)] = derived.get(starred(name), 0) + count
    derived = {name: count for name, count in derived.items() if count}
    measured = {name: count for name, count in record["params_by_tensor"].items() if count}
    for name in sorted(derived.keys() | measured.keys()):
        if derived.get(name) != measured.get(name):
            yield f"{name}: {measured.get(name, 0)} elements measured, {derived.get(name, 0)} derived"


def module_differences(estimator: InterpretedEstimator, moments: Any, record: Record) -> dict[str, int]:
    """Map modules that differ to derived minus measured forward FLOPs; a module includes those inside it."""
    derived = rolled_up(estimator.running(moments))
    missed = sum(op["flops"] or 0 for op in (record.get("uncounted_ops") or {}).get("fwd", {}).values())
    differences = {name: derived.get(name, 0) - measured for name, measured in sorted(record["by_module_fwd"].items())}
    return {name: more for name, more in differences.items() if more and not 0 < more <= missed}


def published_of(records: Iterable[Record], models: Mapping[str, Model]) -> dict[str, list[dict[str, Any]]]:
    """Select the records that a spec's page shows: name of the spec -> their entries, as :func:`entry_of`.

    They are those of published size, else the first one. If none has the page's closed forms, one that has them is added.
    """
    found: dict[str, list[Record]] = {}
    for record in records:
        model = models.get(record["class"])
        if model is not None and not record.get("regime"):
            found.setdefault(model.spec.name, []).append(record)
    return {
        name: [entry_of(models[record["class"]], record) for record in kept(some, models)]
        for name, some in sorted(found.items())
    }


def kept(records: Sequence[Record], models: Mapping[str, Model]) -> list[Record]:
    """Select from the records of one spec those that :func:`published_of` shows."""
    found = [record for record in records if record.get("published_size")] or list(records[:1])
    structure = models[records[0]["class"]].typical(["full"], ["torch"]).fixed

    def proves(record: Record) -> bool:
        model = models[record["class"]]
        plain = regime_of_record(model, record) == Regime("record")
        return plain and model.program(["full"], ["torch"], config_of_record(model, record)).fixed == structure

    if not any(map(proves, found)):
        found += [record for record in records if proves(record)][:1]
    return found


def entry_of(model: Model, record: Record) -> dict[str, Any]:
    """Build the stored entry of a record: the sizes of its config, and the lengths of its batch.

    Raises:
        SymflopsError: the spec does not fit the record.
    """
    config = config_of_record(model, record)
    program = model.program(["full"], ["torch"], config)
    try:
        batch = batch_of(program, arguments_of(model, record))
    except SymflopsError as error:
        raise SymflopsError(f"{record['id']}: {error}") from None
    counted = {stream.name for stream in program.streams if stream.counts}
    return {
        "name": record["id"].rpartition("/")[2],
        "reference": f"{record['package']}.{record['class']}",
        "config": sizes_in(config, program.fields),
        "batch": {name: len(given) if name in counted else given for name, given in batch.items()},
    }


def sizes_in(config: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """Restrict a config to the fields that a program reads, each under its first key."""
    found: dict[str, Any] = {}
    for one in fields:
        value = look_up(config, one.keys)
        if value is not None or (one.nullable and is_null(config, one.keys)):
            value = len(value) if one.kind == "entries" and not isinstance(value, int) else value
            found = with_value(found, one.keys[0], value)
    return found
