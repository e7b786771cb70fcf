"""verl: estimators for ``verl.utils.flops_counter.ESTIMATE_FUNC``, and a meter under verl's keys.

verl calls ``f(config, tokens_sum, batch_seqlens, delta_time, **kargs)`` with the lengths of all data-parallel ranks and expects
achieved TFLOP/s, which it divides by its own peak and the world size. For a phase without a backward pass it also divides by 3,
so register a function of regime ``full``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from symflops.catalog import lookup
from symflops.meter.mfu import MFUMeter
from symflops.runtime.units import in_flops

PHASES = {"actor": "full", "actor_infer": "forward", "ref": "forward"}


def estimate_function(regime: str = "full", convention: str = "symflops") -> Callable[..., float]:
    """A function with verl's signature that returns TFLOP/s of a batch; NaN, with a warning, for an unknown model or batch.

    ``images_seqlens`` are patches per image or frame; they are used if the model's work depends on nothing else of an image.
    """
    known: dict[int, Any] = {}
    warned: set[str] = set()

    def estimate(config: Any, tokens_sum: int, batch_seqlens: Iterable[int], delta_time: float, **kargs: Any) -> float:
        try:
            if id(config) not in known:
                known[id(config)] = (config, estimator_of(config, regime, convention))
            one = known[id(config)][1]
            batch = batch_of(one, [int(length) for length in batch_seqlens], kargs.get("images_seqlens"))
            return float(in_flops(one, one.total(one.moments(**batch)))) / delta_time / 1e12
        except Exception as error:
            reason = f"symflops: no FLOPs for verl: {type(error).__name__}: {error}"
            if reason not in warned:
                warned.add(reason)
                warnings.warn(reason, stacklevel=2)
            return math.nan

    return estimate


def estimator_of(config: Any, regime: str, convention: str) -> Any:
    """The estimator of a config object or mapping.

    Raises:
        SymflopsError: an unknown model, or a config that does not fit.
    """
    found = lookup.config_of(config)
    return lookup.estimator(*lookup.by_config(found), found, regime, convention)[1]


def batch_of(estimator: Any, lengths: list[int], images: Iterable[int] | None) -> dict[str, Any]:
    """Streams of text and images; an image of ``p`` patches becomes a row of ``p`` patches, if the shape does not matter.

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
        probes = [(1,) * axis + (36,) + (1,) * (len(axes) - 1 - axis) for axis in range(len(axes))]
        if len({estimator.terms(1, *probe) for probe in probes[1:]}) > 1:
            raise ValueError("the model's work depends on the shape of images: patches alone do not tell it")
        batch[name] = [[1] * (len(axes) - 1) + [patches] if len(axes) > 1 else patches for patches in rows]
    return batch


def register(*model_types: str, regime: str = "full", convention: str = "symflops") -> Callable[..., float]:
    """Register an estimator in verl's table for these model types.

    Raises:
        ImportError: verl is not installed.
    """
    from verl.utils import flops_counter

    function = estimate_function(regime, convention)
    for model_type in model_types:
        flops_counter.ESTIMATE_FUNC[model_type] = function
    return function


def meter(config: Any, *, devices: int, **options: Any) -> MFUMeter:
    """A meter with verl's keys and phases; reference passes are timed but not logged."""
    return MFUMeter.of_config(config, devices=devices, **{"keys": "verl", "regimes": PHASES, **options})
