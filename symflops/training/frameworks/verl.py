"""verl: estimators for ``verl.utils.flops_counter.ESTIMATE_FUNC``, and a meter under verl's keys.

verl calls ``f(config, tokens_sum, batch_seqlens, delta_time, **kargs)`` with the lengths of all data-parallel ranks and expects
achieved TFLOP/s, which it divides by its own peak and the world size. For a phase without a backward pass it also divides by 3,
so register a function of regime ``full``.

verl passes only the transformers config to its functions. The worker that builds the counter has ``lora_rank`` and
``target_modules``, so the counter records the worker's model config when it is built, and LoRA is detected from that.

Each process has its own table, and verl reads it in its Ray workers: :mod:`symflops.training.frameworks.verl_plugin`
registers there.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from math import isqrt
from typing import Any, Unpack

from symflops.evaluate.units import in_flops
from symflops.library import lookup
from symflops.support.errors import SymflopsError
from symflops.training.frameworks.verl_omni import lora_regime
from symflops.training.introspect.background import is_first
from symflops.training.introspect.proof import built, reference_of
from symflops.training.introspect.regime import read
from symflops.training.introspect.tree import tree_of
from symflops.training.meter.mfu import MFUMeter
from symflops.training.meter.phases import estimators_of_config
from symflops.training.meter.types import ConfigOptions

MODELS: dict[int, tuple[Any, Any]] = {}
"""id(transformers config) -> (that config, model config of the verl worker that counts it)."""
PHASES = {"actor": "full", "actor_infer": "forward", "ref": "forward"}
VALUE_HEAD, VALUE = "ForTokenClassification", "value_model"
ALL = "all-linear"
DEPTH = 8
UNREAD = ("exclude_modules", "target_parameters", "lora_adapter_path")
Function = Callable[..., float]

# a frame of 576 patches in several shapes
SHAPES = ((24, 24), (1, 576), (12, 48), (8, 72), (4, 144))


def estimate_function(
    regime: str = "full",
    convention: str = "symflops",
    otherwise: Function | None = None,
    tell: Callable[[str], object] | None = None,
) -> Function:
    """Build a function with verl's signature that returns the achieved TFLOP/s of a batch.

    ``images_seqlens`` are patches per image or frame; they suffice if work on an image depends only on its patches.

    Args:
        regime: The training regime.
        convention: Which work counts.
        otherwise: verl's own function, used for a model or batch that symflops cannot count, with one warning per model type.
            Without it, or if it fails as well, the result is NaN.
        tell: Receives one line per model type that symflops counts.
    """
    known: dict[int, tuple[Any, Any]] = {}
    said: set[str] = set()

    def estimator(config: Any) -> Any:
        if id(config) not in known:
            try:
                model = MODELS.get(id(config), (None, None))[1]
                own = regime_of(config, model) if regime == "full" and model is not None else regime
                critic = getattr(model, "model_type", None) == VALUE
                found: Any = estimator_of(value_model(config) if critic else config, own, convention)
                if tell is not None and is_first():
                    tell(f"symflops counts the FLOPs of '{kind_of(config)}': regime {own}, convention {convention}")
            except Exception as error:
                found = error
            known[id(config)] = (config, found)
        return known[id(config)][1]

    def estimate(config: Any, tokens_sum: int, batch_seqlens: Iterable[int], delta_time: float, **kargs: Any) -> float:
        if not delta_time > 0:
            return 0.0
        one = estimator(config)
        try:
            if isinstance(one, Exception):
                raise one
            batch = batch_of(one, [int(length) for length in batch_seqlens], kargs.get("images_seqlens"))
            moments = one.moments(**batch)
            lora = one.trainable_parameters != one.parameters
            # verl reports a third of this for forward-only phases; with LoRA, total / 3 is not the forward pass
            forward = lora and local_of_caller("forward_only") is True
            flops = 3 * one.forward(moments) if forward else one.total(moments)
            return float(in_flops(one, flops)) / delta_time / 1e12
        except Exception as error:
            kind = f"'{kind_of(config)}'" if error is one else f"some batches of '{kind_of(config)}'"
            return fallback(kind, error, config, tokens_sum, batch_seqlens, delta_time, kargs)

    def fallback(kind: str, error: Exception, *batch: Any) -> float:
        """Return what verl's own function answers, or NaN if it fails; warn once per model type ``kind``."""
        answer, words = math.nan, "the answer is NaN"
        if otherwise is not None:
            try:
                answer, words = called(otherwise, *batch), "verl's own function answers"
            except Exception as own:
                words = f"verl's own function fails ({type(own).__name__}: {own}), the answer is NaN"
        if kind not in said:
            said.add(kind)
            warnings.warn(f"symflops: {words} for {kind}: {type(error).__name__}: {error}", stacklevel=3)
        return answer

    estimate.otherwise = otherwise  # type: ignore[attr-defined]
    return estimate


def called(function: Function, config: Any, tokens_sum: int, lengths: Any, seconds: float, kargs: dict[str, Any]) -> float:
    """Call a function of verl's table; ``kargs`` are passed only if it accepts ``**kwargs``."""
    takes = any(one.kind == inspect.Parameter.VAR_KEYWORD for one in inspect.signature(function).parameters.values())
    return function(config, tokens_sum, lengths, seconds, **(kargs if takes else {}))


def kind_of(config: Any) -> str:
    """The model type of a config object or mapping."""
    found = config.get("model_type") if isinstance(config, dict) else getattr(config, "model_type", None)
    return str(found or type(config).__name__)


def estimator_of(config: Any, regime: str, convention: str) -> Any:
    """The estimator of a config object or mapping.

    Raises:
        SymflopsError: an unknown model, or a config that does not fit.
    """
    found = lookup.config_of(config)
    return lookup.estimator(*lookup.by_config(found), found, regime, convention)[1]


def batch_of(estimator: Any, lengths: list[int], images: Iterable[int] | None) -> dict[str, Any]:
    """Build a batch from text ``lengths`` and from ``images``, the numbers of patches of each image.

    Each image gets some valid shape, if the model's work depends only on its number of patches.

    Raises:
        ValueError: the work depends on the shape of images, or the model has no stream for images.
    """
    (text, *_), *others = estimator.sets.values()
    batch: dict[str, Any] = {text[0]: lengths}
    rows = [int(patches) for patches in images] if images is not None else []
    if rows:
        if not others:
            raise ValueError("the model has no images")
        name, axes, _ = others[0][0]
        if len(axes) > 1 and not only_patches_count(estimator, len(axes)):
            raise ValueError("the model's work depends on the shape of images, and verl gives the patches of each frame alone")
        shapes = {patches: shape_of(estimator, {text[0]: lengths[:1]}, name, len(axes), patches) for patches in set(rows)}
        batch[name] = [shapes[patches] for patches in rows]
    return batch


def shape_of(estimator: Any, text: dict[str, Any], name: str, axes: int, patches: int) -> Any:
    """Lengths along the axes of an image of ``patches`` patches, with as few rows as the model accepts."""
    if axes == 1:
        return patches
    shapes = [[1] * (axes - 2) + [rows, patches // rows] for rows in range(1, isqrt(patches) + 1) if patches % rows == 0]
    for shape in shapes:
        with suppress(SymflopsError, ValueError):
            estimator.moments(**text, **{name: [shape]})
            return shape
    return [1] * (axes - 1) + [patches]


def only_patches_count(estimator: Any, axes: int) -> bool:
    """Whether work on an image is a sum over frames of a function of the frame's number of patches."""
    coefficients = estimator.coefficients["total"]

    def work(*image: int) -> tuple[int, ...]:
        terms = estimator.terms(1, *(1,) * (axes - len(image)), *image)
        pairs = zip(estimator.moment_sets.values(), coefficients, terms, strict=True)
        return tuple(c * term for items, c, term in pairs if items == "images")

    of_one = work(*SHAPES[0])
    frames = axes < 3 or work(2, *SHAPES[0]) == tuple(2 * term for term in of_one)
    return frames and all(work(*shape) == of_one for shape in SHAPES)


def register(
    *model_types: str,
    regime: str = "full",
    convention: str = "symflops",
    tell: Callable[[str], object] | None = None,
) -> Function:
    """Register an estimator in verl's table for ``model_types``; by default all of verl and symflops.

    The function that was registered before counts models that symflops cannot count. Returns the last type's function.

    Raises:
        ImportError: verl is not installed.
    """
    from verl.utils import flops_counter

    table = flops_counter.ESTIMATE_FUNC
    watch(flops_counter.FlopsCounter, MODELS)
    function: Function = estimate_function(regime, convention)
    for model_type in model_types or sorted({*table, *lookup.described("model_types")}):
        own = table.get(model_type, getattr(flops_counter, "_estimate_unknown_flops", None))
        function = estimate_function(regime, convention, getattr(own, "otherwise", own), tell)
        table[model_type] = function
    return function


def value_model(config: Any) -> dict[str, Any]:
    """The config of verl's critic for an actor's ``config``: a token-classification head with one label.

    Raises:
        SymflopsError: no spec describes the actor, or its spec has no token-classification class.
    """
    found = lookup.config_of(config)
    catalog, name = lookup.by_config(found)
    classes = (lookup.class_name(reference) for reference in catalog.specs[name]["references"])
    head = next((word for word in classes if word.endswith(VALUE_HEAD)), None)
    if head is None:
        raise lookup.UnknownModelError(f"'{name}' describes no class with a head per token: give critic=config")
    return {**found, "architectures": [head], "num_labels": 1}


def meter(config: Any, *, devices: int, critic: Any = None, **options: Unpack[ConfigOptions]) -> MFUMeter:
    """A meter with verl's keys and phases; reference passes are timed but not logged.

    Args:
        config: The config of the actor.
        devices: The accelerators that share the work.
        critic: The config of the critic, or True for the actor's with a value head; None for none.
        options: As for :meth:`MFUMeter.of_config`; ``keys="verl-sft"`` is for ``train/mfu`` of supervised training.
    """
    keys = options.get("keys", "verl")
    named: dict[str, Any] = {"keys": keys, "regimes": PHASES if keys == "verl" else "full", **options}
    if critic is None:
        return MFUMeter.of_config(config, devices=devices, **named)
    regimes, convention, spec = named.pop("regimes"), named.pop("convention", "symflops"), named.pop("spec", None)
    estimators: dict[str, Any] = {}
    reasons = []
    for phases in (regimes, {"critic": "full"}):
        try:
            other = phases is not regimes
            one = value_model(config) if other and critic is True else critic if other else config
            estimators |= estimators_of_config(one, phases, convention, None if other else spec)
        except Exception as error:
            reasons.append(f"no MFU of {', '.join(phases)}: {type(error).__name__}: {error}")
    for reason in reasons if estimators else ():
        warnings.warn(f"symflops: {reason}", stacklevel=2)
    return MFUMeter(estimators or None, devices=devices, reason="; ".join(reasons), **named)


def local_of_caller(name: str) -> Any:
    """The value of the local variable ``name`` in the nearest of ``DEPTH`` callers that has one; else None."""
    frame: Any = sys._getframe(1)
    for _ in range(DEPTH):
        if frame is not None and name in frame.f_locals:
            return frame.f_locals[name]
        frame = getattr(frame, "f_back", None)
    return None


def watch(counter: type, models: dict[int, tuple[Any, Any]]) -> None:
    """Patch verl's ``FlopsCounter`` so that it records the model config of the worker that builds one.

    The record is in ``models``: id(transformers config) -> (that config, the worker's model config).
    """
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
