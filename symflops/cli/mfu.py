"""Model FLOPs utilisation: FLOPs / (seconds x devices x peak).

  symflops mfu llama-3.1-8b --batch 8192 --tokens-per-second 8500 --peak h100
  symflops mfu --config model_folder --batch '4096*128' --seconds 2.6 --devices 64 --peak h100
  symflops mfu --flops 1.62099e15 --seconds 10.64 --peak 354
  symflops mfu --kernel-details kernel_details.csv --seconds 10.64 --peak Ascend910B3

The FLOPs of a step are derived from a model and a batch, or given. The batch and what is done in a second are those of all
--devices together, or those of one device without --devices. --peak is TFLOP/s (or FLOP/s from a million on), or a device
('symflops device' lists them). --kernel-details is a profile of an Ascend device, of which the column aic_cube_fops is
summed: what it executed, recomputed work included.
"""

from __future__ import annotations

import argparse
import json
from decimal import Decimal, DecimalException
from typing import Any

from symflops.cli.terminal import (
    BATCH,
    CONFIG,
    CONVENTION,
    JSON,
    REGIME,
    SPEC_OR_CONFIG,
    argument,
    arguments_of,
    one_of,
    width,
    wrapped,
)
from symflops.evaluate.units import AS_SOURCE, TWICE_AS_HIGH, scaled
from symflops.support.errors import SymflopsError

MOST_CSV = 512 * 2**20  # bytes of a profile
COLUMN = "aic_cube_fops"


configure = arguments_of(
    SPEC_OR_CONFIG,
    CONFIG,
    BATCH,
    REGIME,
    CONVENTION,
    one_of(
        argument("--flops", type=float, metavar="F", help="FLOPs of the step, on all --devices together"),
        argument("--kernel-details", metavar="CSV", help="sum its column aic_cube_fops instead"),
    ),
    one_of(
        argument("--seconds", type=float, metavar="S", help="wall time of the step"),
        argument("--steps-per-second", metavar="N", help="or steps of this batch in a second"),
        argument("--samples-per-second", metavar="N", help="or samples in a second"),
        argument("--tokens-per-second", metavar="N", help="or tokens in a second, e.g. 90k"),
        required=True,
    ),
    argument("--peak", "--device", required=True, metavar="P", help="TFLOP/s or FLOP/s of one device, or its name"),
    argument("--dtype", default="bf16", metavar="T", help="where --peak is a name (default: bf16)"),
    argument("--devices", type=int, default=1, metavar="N", help="devices that the FLOPs ran on (default: 1)"),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Compute and print MFU and HFU; return the exit code 0."""
    import math

    from symflops.training.devices.peaks import rate_of

    model, flops, executed, done = work_of(args)
    rate, source, peak = rate_of(args.peak, args.dtype)
    seconds = seconds_of(args, done)
    for name, value in (("FLOPs are", flops), ("seconds are", seconds), ("devices are", args.devices)):
        if not math.isfinite(value) or value < 0 or (value == 0 and not name.startswith("FLOPs")):
            raise SymflopsError(f"the {name} {value:g}, not a positive number")
    achieved = flops / seconds / args.devices
    if not math.isfinite(achieved):
        raise SymflopsError(f"{flops:g} FLOPs in {seconds:g} s are more than a number can hold")
    found = {"mfu": achieved / rate, "flops": flops, "seconds": seconds, "devices": args.devices}
    found |= {"achieved_tflops_per_device": achieved / 1e12, "peak_tflops": rate / 1e12, "peak_source": source}
    if model:
        found |= {"hfu": executed / seconds / args.devices / rate, "model": model}
    print(json.dumps(found) if args.json else "\n".join(printed(found, peak, getattr(args, "asked", ""))))
    return 0


def printed(found: dict[str, Any], peak: list[str], asked: str) -> list[str]:
    """Format the result as lines of text; ``peak`` are those about the device, ``asked`` is the model's name."""
    lines = [f"MFU {found['mfu']:.4f}: {found['achieved_tflops_per_device']:.2f} TFLOP/s a device", *peak]
    if found.get("model", {}).get("unit") == AS_SOURCE:
        lines.append(f"{TWICE_AS_HIGH}: MFU {2 * found['mfu']:.4f}")
    if "model" in found:
        model, amount = found["model"], scaled(int(found["flops"]))
        rules = f"regime {model['regime']}, convention {model['convention']}"
        lines.append(f"{asked or model['spec']}, {rules}: {amount}FLOPs a step")
        if found["hfu"] > found["mfu"]:
            lines.append(f"HFU {found['hfu']:.4f}, recomputed work included")
    if found["mfu"] > 1:
        lines.append("above 1: check the peak, the device count, and that FLOPs and seconds are of the same steps")
    return [line for text in lines for line in wrapped(text, width(), "", "  ")]


def seconds_of(args: argparse.Namespace, done: dict[str, int]) -> float:
    """Return the seconds of a step, also from a rate; ``done`` says how many samples and tokens a step has.

    Raises:
        SymflopsError: the step has none of what the rate counts.
    """
    from symflops.cli.amounts import rate

    for name, count in {"steps": 1, **done}.items():
        text = getattr(args, f"{name}_per_second")
        if text is not None:
            if not count:
                raise SymflopsError(f"a step has no {name} to count: give --seconds or --steps-per-second")
            return count / rate(text, f"--{name}-per-second")
    return float(args.seconds)


def work_of(args: argparse.Namespace) -> tuple[dict[str, Any], float, float, dict[str, int]]:
    """Return (estimate, FLOPs of a step, FLOPs with recomputed work, samples and tokens of a step).

    The estimate is {}, and samples and tokens are 0, if the command line gives FLOPs in place of a model.

    Raises:
        SymflopsError: both a model and FLOPs are given, or neither; or the estimate fails.
    """
    from symflops.cli.amounts import given_for_batch, samples_in

    given = args.flops is not None or args.kernel_details
    if given and (args.spec or args.config or given_for_batch(args)):
        needless = ["the model"] if args.spec or args.config else []
        told = " and ".join([*needless, *given_for_batch(args)])
        raise SymflopsError(f"--flops and --kernel-details say the work already: leave out {told}")
    if given:
        flops = float(summed(args.kernel_details)) if args.kernel_details else args.flops
        return {}, flops, flops, {"samples": 0, "tokens": 0}
    if not (args.spec or args.config):
        raise SymflopsError("say the work: a model (SPEC, or --config PATH), --flops, or --kernel-details")
    from symflops.cli.estimate import model_and_batch, noted
    from symflops.library.lookup import result

    args.strict = args.prove = False
    args.unit = "flops"
    estimator, batch = model_and_batch(args)
    found = noted(result(estimator, batch))
    done = {"samples": samples_in(batch), "tokens": found["tokens"] or 0}
    done = {name: count // (1 + args.guidance) for name, count in done.items()}
    scale = 2 if found["unit"] == "macs" else 1  # peak rates are in FLOPs
    model = {
        name: found[name] for name in ("spec", "variant", "regime", "convention", "parameters", "tokens", "evidence", "unit")
    }
    return model, float(scale * found["total"]), float(scale * (found["total"] + found["recomputed"])), done


def summed(path: str) -> Decimal:
    """Add the FLOPs of all kernels in the profile at ``path``; blank and N/A cells count as 0."""
    import csv

    from symflops.support.reading import read_lines

    total = Decimal(0)
    try:
        rows = csv.DictReader(read_lines(path, MOST_CSV), strict=True)
        name = next((name for name in rows.fieldnames or () if name.strip().lower() == COLUMN), None)
        if name is None:
            raise SymflopsError(f"{path} has no column '{COLUMN}': profile with aic_metrics that count cube FLOPs")
        for row in rows:
            text = (row[name] or "").strip().replace(",", "")
            if text and text.upper() not in ("N/A", "NA", "NAN", "-"):
                total += Decimal(text)
    except (csv.Error, DecimalException):
        raise SymflopsError(f"{path}: not a table of numbers") from None
    if not total.is_finite():
        raise SymflopsError(f"{path}: not a table of numbers")
    return total
