"""Presets of log keys and units, one per framework, for a meter's quantities.

Sources: verl ``perf/mfu/<phase>``, in supervised training ``train/mfu``; torchtitan ``mfu(%)``, ``tflops``,
``throughput(tps)``; Fabric ``device/mfu``, Lightning's Trainer ``train/device/mfu``; Composer ``throughput/device/mfu``; HF
logs are flat. Units are the frameworks' own.
"""

from __future__ import annotations

from collections.abc import Mapping

# quantity -> (key, factor); ``{phase}`` stands for the phase. Quantities: mfu and hfu (fractions), tflops and
# flops_per_second (achieved, per device), flops (cumulative, all devices), tokens_per_second (all devices), tokens_per_device
# (per second), peak (TFLOP/s per device).
PRESETS: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "plain": {
        "mfu": ("mfu", 1),
        "hfu": ("hfu", 1),
        "tflops": ("tflops_per_device", 1),
        "flops": ("flops_total", 1),
        "tokens_per_second": ("tokens_per_second", 1),
        "peak": ("peak_tflops", 1),
    },
    "verl": {
        "mfu": ("perf/mfu/{phase}", 1),
        "hfu": ("perf/hfu/{phase}", 1),
        "tflops": ("perf/tflops_per_device/{phase}", 1),
        "flops": ("perf/flops_total", 1),
        "tokens_per_device": ("perf/tokens_per_device/{phase}", 1),
        "peak": ("perf/mfu_peak_tflops", 1),
    },
    "verl-sft": {
        "mfu": ("train/mfu", 1),
        "hfu": ("train/hfu", 1),
        "tflops": ("train/tflops_per_device", 1),
        "flops": ("train/flops_total", 1),
        "tokens_per_device": ("train/tokens_per_device", 1),
        "peak": ("train/mfu_peak_tflops", 1),
    },
    "torchtitan": {
        "mfu": ("mfu(%)", 100),
        "hfu": ("hfu(%)", 100),
        "tflops": ("tflops", 1),
        "tokens_per_device": ("throughput(tps)", 1),
        "flops": ("total_flops", 1),
    },
    "lightning": {
        "mfu": ("device/mfu", 1),
        "hfu": ("device/hfu", 1),
        "flops_per_second": ("device/flops_per_sec", 1),
        "tokens_per_device": ("device/items_per_sec", 1),
        "flops": ("flops_total", 1),
    },
    "lightning-trainer": {
        "mfu": ("train/device/mfu", 1),
        "hfu": ("train/device/hfu", 1),
        "flops_per_second": ("train/device/flops_per_sec", 1),
        "tokens_per_device": ("train/device/items_per_sec", 1),
        "flops": ("train/flops_total", 1),
    },
    "hf": {
        "mfu": ("mfu", 1),
        "hfu": ("hfu", 1),
        "tflops": ("tflops_per_device", 1),
        "tokens_per_second": ("tokens_per_second", 1),
        "flops": ("flops_total", 1),
    },
    "composer": {
        "mfu": ("throughput/device/mfu", 1),
        "hfu": ("throughput/device/hfu", 1),
        "flops_per_second": ("throughput/device/flops_per_sec", 1),
        "tokens_per_second": ("throughput/tokens_per_sec", 1),
        "flops": ("throughput/flops_total", 1),
    },
}


def metrics(preset: str, phase: str, values: Mapping[str, float]) -> dict[str, float]:
    """Rename a phase's ``values`` to the keys of a preset; keys that lack ``{phase}`` get it appended."""
    found = {}
    for quantity, (key, factor) in PRESETS[preset].items():
        if quantity in values:
            named = key.replace("{phase}", phase or "train")
            of_all = quantity in ("flops", "peak")
            name = named if "{phase}" in key or not phase or of_all else f"{named}/{phase}"
            found[name] = values[quantity] * factor
    return found
