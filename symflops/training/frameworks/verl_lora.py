"""LoRA in verl: reads the regime from a worker's model config, and detects forward-only phases.

verl passes only the transformers config to its functions. The worker that builds the counter has ``lora_rank`` and
``target_modules``, so the counter records the worker's model config when it is built.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import wraps
from typing import Any

from symflops.library import lookup
from symflops.support.errors import SymflopsError
from symflops.training.frameworks.verl_omni import lora_regime
from symflops.training.introspect.proof import built, reference_of
from symflops.training.introspect.regime import read
from symflops.training.introspect.tree import tree_of

ALL = "all-linear"
VALUE = "value_model"
DEPTH = 8
UNREAD = ("exclude_modules", "target_parameters", "lora_adapter_path")


def caller_s(name: str) -> Any:
    """The local variable ``name`` of the nearest caller that has one, up to ``DEPTH`` frames; else None."""
    frame, depth = sys._getframe(1), 0
    while frame is not None and depth < DEPTH:
        if name in frame.f_locals:
            return frame.f_locals[name]
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return None


def watch(counter: type, models: dict[int, tuple[Any, Any]]) -> None:
    """Patch verl's ``FlopsCounter`` so that ``models`` gets (its config, the worker's model config)."""
    own = counter.__init__  # type: ignore[misc]
    if getattr(own, "symflops", None) is not None:
        return

    @wraps(own)
    def made(self: Any, config: Any) -> None:
        own(self, config)
        model = getattr(sys._getframe(1).f_locals.get("self"), "model_config", None)
        if getattr(model, "hf_config", None) is config:
            models[id(config)] = (config, model)

    made.symflops = models  # type: ignore[attr-defined]
    counter.__init__ = made  # type: ignore[misc]


def regime_of(config: Any, model: Any) -> str:
    """The regime that a worker's model config asks for: ``full`` or LoRA.

    Raises:
        SymflopsError: the config alone does not determine the adapter.
    """
    rank = int(getattr(model, "lora_rank", 0) or 0)
    megatron = getattr(model, "lora", None)
    if isinstance(megatron, Mapping) and int(megatron.get("rank", 0) or 0):
        raise SymflopsError("LoRA of Megatron fuses projections: set SYMFLOPS_VERL_REGIME")
    if not rank and not getattr(model, "lora_adapter_path", None):
        return "full"
    set_ones = [name for name in UNREAD if getattr(model, name, None)]
    if set_ones:
        raise SymflopsError(f"LoRA with '{set_ones[0]}' is not read off the config: set SYMFLOPS_VERL_REGIME")
    targets = getattr(model, "target_modules", None)
    if targets == ALL:
        regime = f"lora:r={rank},targets={'|'.join(linears(config))}"
    else:
        regime = lora_regime(config, rank, targets if isinstance(targets, str) else list(targets or ()))
    leaves = forced(config)
    return f"{regime},force_grad={'|'.join(leaves)}" if leaves else regime


def forced(config: Any) -> tuple[str, ...]:
    """Modules whose outputs get ``requires_grad`` although they are frozen, as verl sets it with LoRA.

    They are read from the library's class, built on the meta device.

    Raises:
        SymflopsError: the class cannot be built here.
    """
    found = lookup.config_of(config)
    catalog, name = lookup.by_config(found)
    module = built(reference_of(catalog, name, found), found)
    module.requires_grad_(False)
    module.enable_input_require_grads()
    return read(tree_of(module)).forced


def linears(config: Any) -> list[str]:
    """Paths of the linear modules in a decoder's layers, which PEFT selects for ``all-linear``.

    Raises:
        SymflopsError: the model has experts or an encoder, whose parameters may not belong to linear modules.
    """
    found = lookup.config_of(config)
    catalog, name = lookup.by_config(found)
    _, document = catalog.of_structure(name, found)
    rows: Any = (document or {}).get("all_tensors", ())
    names = [row[0] for row in rows if ".lora_" not in row[0] and ".base_layer." not in row[0]]
    streams = (document or {}).get("streams", ())
    working = {row[0] for row in (document or {}).get("all_lines", ())}
    bare = [one for one in names if not one.endswith((".weight", ".bias")) and {one, one.rpartition(".")[0]} & working]
    if not names or len(streams) > 1 or bare or any("expert" in one for one in names):
        raise SymflopsError(f"the linear modules of '{name}' are not known: give target_modules, or set SYMFLOPS_VERL_REGIME")
    paths = (one.removesuffix(".weight") for one in names if one.endswith(".weight"))
    return [path for path in paths if "*" in path and path in working]
