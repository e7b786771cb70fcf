"""Device-hours of a training on N tokens or samples, at an MFU and the peak rate of a device.

  symflops budget llama-3.1-8b --tokens 15T --batch 8192 --peak h100 --mfu 40% --devices 1024
  symflops budget sdxl --samples 1e9 --height 1024 --width 1024 --peak h100 --mfu 40%
  symflops budget --config model_folder --tokens 2e9 --batch '{"text": [8192, 8192]}' --peak 989 --mfu 0.4 --regime lora

FLOPs are those of whole steps on the batch, forward and backward; recomputed work is none of them, as an MFU counts. --peak
is TFLOP/s (or FLOP/s from a million on), or the name of a device.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from symflops.cli.amounts import samples_in, share
from symflops.cli.estimate import asked
from symflops.cli.terminal import (
    BATCH,
    CONFIG,
    CONVENTION,
    JSON,
    REGIME,
    SPEC_OR_CONFIG,
    argument,
    arguments_of,
    heading_of,
    one_of,
    scaled,
    width,
    wrapped,
)
from symflops.evaluate.batch_text import whole
from symflops.support.errors import SymflopsError

configure = arguments_of(
    SPEC_OR_CONFIG,
    one_of(
        argument("--tokens", metavar="N", help="tokens to train on, e.g. 15T"),
        argument("--samples", metavar="N", help="or samples, e.g. 1e9"),
        required=True,
    ),
    argument("--mfu", required=True, metavar="U", help="the share of the peak, e.g. 40%%"),
    argument("--peak", "--device", required=True, metavar="P", help="TFLOP/s or FLOP/s of one device, or its name"),
    argument("--dtype", default="bf16", metavar="T", help="where --peak is a name (default: bf16)"),
    argument("--devices", type=int, default=1, metavar="D", help="devices that train at once (default: 1)"),
    CONFIG,
    BATCH,
    REGIME,
    CONVENTION,
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Compute and print the device-hours of a training; return the exit code 0."""
    from symflops.analysis.solve import budget
    from symflops.training.devices.peaks import rate_of

    mfu = share(args.mfu, "--mfu")
    name = "tokens" if args.samples is None else "samples"
    amount = whole(args.tokens if args.samples is None else args.samples, f"--{name}")
    if args.devices < 1:
        raise SymflopsError(f"there is at least one device, not {args.devices}")
    rate, source, peak = rate_of(args.peak, args.dtype)
    subject, batch = asked(args)
    runs = 1 + args.guidance
    each = samples_in(batch) // runs if args.samples else 0
    if args.samples and not each:
        raise SymflopsError("a step has no samples to count: give --batch with a list per stream, or --tokens")
    found = budget(subject, amount, batch, rate, mfu, each, runs)
    hours = found.device_hours / args.devices
    if args.json:
        told = {"schema": 1, "spec": subject.program.name, "regime": args.regime, "convention": args.convention}
        told |= {"batch": batch, **asdict(found), "mfu": mfu, "devices": args.devices, "hours": hours}
        print(json.dumps(told | {"peak_tflops": rate / 1e12, "peak_source": source}))
        return 0
    heading = heading_of(args, subject.program.name)
    print(f"{heading}, {amount:,} {name} in {found.steps:,} steps of {each or found.tokens_per_step:,}")
    print(f"  {'FLOPs of a step':<16} {found.flops_per_step:>34,}  {scaled(found.flops_per_step)}FLOPs")
    print(f"  {'FLOPs':<16} {found.flops:>34,}")
    print(f"  {'device-hours':<16} {found.device_hours:>34,.2f}  at MFU {mfu:g}")
    if args.devices > 1:
        print(f"  {'hours':<16} {hours:>34,.2f}  on {args.devices:,} devices, {hours / 24:,.1f} days")
    print("\n".join(line for text in peak for line in wrapped(text, width(), "  ", "    ")))
    return 0
