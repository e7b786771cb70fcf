"""The names that a program may import, and how they are called: those that README.md and the pages of docs/ publish."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.freeze.cases import ROOT

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "symflops.__version__": (),
    "symflops.load": (),
    "symflops.estimate": (),
    "symflops.Model": ("variants", "graph", "program", "derivation", "typical", "published", "check_regime", "derive", "estimator"),
    "symflops.Derived": ("forward", "backward", "estimator"),
    "symflops.MFUMeter": (
        "__init__", "of_config", "describe", "start", "phase", "spent", "add", "step", "state_dict", "load_state_dict", "add_batch", "pause", "paused", "resume", "settle",
    ),
    "symflops.SymflopsError": (),
    "symflops.SpecError": (),
    "symflops.meter.mfu.MFUMeter": (),
    "symflops.meter.batches.streams_of": (),
    "symflops.runtime.interpreted.InterpretedEstimator": (
        "__init__", "moments", "forward", "backward", "recomputed", "total", "by_module", "tensors", "per_sample", "per_item",
    ),
    "symflops.runtime.interpreted.Moments": ("as_dict", "__add__"),
    "symflops.runtime.lengths.of_mask": (),
    "symflops.runtime.lengths.of_cu_seqlens": (),
    "symflops.runtime.lengths.of_position_ids": (),
    "symflops.runtime.lengths.of_nested": (),
    "symflops.runtime.lengths.of_rows": (),
    "symflops.runtime.lengths.same": (),
    "symflops.lookup.by_config": (),
    "symflops.lookup.by_name": (),
    "symflops.lookup.estimator": (),
    "symflops.lookup.estimate": (),
    "symflops.devices.peaks.peak": (),
    "symflops.devices.peaks.Peak": ("__init__", "flops_per_second"),
    "symflops.cli.main.main": (),
    "symflops.adapters.verl.register": (),
    "symflops.adapters.verl.meter": (),
    "symflops.adapters.verl_omni.DiffusionFlops": ("__init__", "estimate_flops", "get_latent_seqlens", "get_prompt_seqlens"),
    "symflops.adapters.verl_omni.register": (),
    "symflops.adapters.verl_omni.meter": (),
    "symflops.adapters.megatron.RuntimeStatsMixin": ("_get_num_floating_point_operations_with_runtime_stats",),
    "symflops.adapters.megatron.num_floating_point_operations": (),
    "symflops.adapters.megatron.patch": (),
    "symflops.adapters.torchtitan.FlopsMixin": ("get_nparams_and_flops",),
    "symflops.adapters.torchtitan.nparams_and_flops": (),
    "symflops.adapters.torchtitan.meter": (),
    "symflops.adapters.huggingface.attach": (),
    "symflops.adapters.huggingface.callback": (),
    "symflops.adapters.lightning.FlopsMixin": ("count_batch",),
    "symflops.adapters.lightning.flops_of_batch": (),
    "symflops.adapters.lightning.callback": (),
    "symflops.adapters.accelerate.attach": (),
    "symflops.generated.language.llama.Estimator": (
        "__init__", "moments", "forward", "backward", "recomputed", "total", "by_module", "per_sample", "per_item",
    ),
    "symflops.generated.language.llama.Sizes": ("from_config",),
    "symflops.generated.language.llama.moments": (),
    "symflops.generated.language.llama.REGIMES": (),
    "symflops.generated.language.llama.CONVENTIONS": (),
    "symflops.generated.diffusion.unet_2d_condition_sdxl.Estimator": (),
}  # fmt: skip
DOTTED = re.compile(r"\bsymflops(?:\.[A-Za-z_]\w*)+")
IMPORTED = re.compile(r"^(?:>>> )?from (symflops[\w.]*) import ([\w, ]+)", re.MULTILINE)
FILES = ("yaml", "json", "md", "py")


def resolved(path: str) -> Any:
    """The object at a dotted path: the longest part of it that is a module, then attributes.

    Raises:
        AttributeError: there is no such object.
    """
    words = path.split(".")
    for end in range(len(words), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(words[:end]))
        except ModuleNotFoundError:
            continue
        for word in words[end:]:
            found = getattr(found, word)
        return found
    raise AttributeError(path)


def described(thing: Any, static: Any = None) -> Any:
    """What stands at a name: a module, a class, a value by its type, a property, or the parameters of a function."""
    if inspect.ismodule(thing):
        return "module"
    if inspect.isclass(thing):
        return "class"
    if isinstance(static, property) or not callable(thing):
        return "property" if static is not None else type(thing).__name__
    return [parameter(one) for one in inspect.signature(thing).parameters.values()]


def parameter(one: inspect.Parameter) -> str:
    """A parameter as its kind, its name and its default."""
    default = "" if one.default is one.empty else f" = {re.sub(r' at 0x[0-9a-f]+', '', repr(one.default))}"
    return f"{one.kind.name.lower()} {one.name}{default}"


def every_name() -> Iterator[tuple[str, Any]]:
    """Each published name with what stands there; methods and properties below their class."""
    for path, members in PUBLISHED.items():
        thing = resolved(path)
        yield path, described(thing)
        for member in members:
            yield f"{path}.{member}", described(getattr(thing, member), inspect.getattr_static(thing, member))


def pages() -> list[Path]:
    """The pages that publish names."""
    return [ROOT / "README.md", ROOT / "PIPELINES.md", *sorted((ROOT / "docs").rglob("*.md"))]


def mentioned() -> list[str]:
    """Every name of the package that a page mentions or imports."""
    found = set()
    for page in pages():
        text = page.read_text("utf-8")
        found |= {word for word in DOTTED.findall(text) if word.rpartition(".")[2] not in FILES}
        found |= {f"{module}.{name.strip()}" for module, names in IMPORTED.findall(text) for name in names.split(",") if name.strip()}
    return sorted(found)
