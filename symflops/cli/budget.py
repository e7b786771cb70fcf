"""Device-hours of a training on N tokens, at an MFU and the peak rate of a device.

  symflops budget llama --tokens 1e12 --peak h100 --mfu 0.4 --devices 512
  symflops budget --config model_folder --tokens 2e9 --batch '{"text": [8192, 8192]}' --peak 989 --mfu 0.4 --regime lora

FLOPs are those of whole steps on the batch, forward and backward; recomputed work is none of them, as an MFU counts. --peak
is TFLOP/s (or FLOP/s from a million on), or the name of a device.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

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
    scaled,
    whole,
    width,
    wrapped,
)
from symflops.support.errors import SymflopsError

configure = arguments_of(
    SPEC_OR_CONFIG,
    argument("--tokens", required=True, metavar="N", help="tokens to train on, e.g. 1e12"),
    argument("--mfu", type=float, required=True, metavar="U", help="the share of the peak, e.g. 0.4"),
    argument("--peak", required=True, metavar="P", help="TFLOP/s or FLOP/s of one device, or its name"),
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
    from symflops.training.devices.names import rate_of

    tokens = whole(args.tokens, "--tokens")
    if args.devices < 1:
        raise SymflopsError(f"there is at least one device, not {args.devices}")
    rate, source = rate_of(args.peak, args.dtype)
    subject, batch = asked(args)
    found = budget(subject, tokens, batch, rate, args.mfu)
    hours = found.device_hours / args.devices
    if args.json:
        told = {"schema": 1, "spec": subject.program.name, "regime": args.regime, "convention": args.convention}
        told |= {"batch": batch, **asdict(found), "mfu": args.mfu, "devices": args.devices, "hours": hours}
        print(json.dumps(told | {"peak_tflops": rate / 1e12, "peak_source": source}))
        return 0
    print(
        f"{heading_of(args, subject.program.name)}, {found.tokens:,} tokens in {found.steps:,} steps of {found.tokens_per_step:,}"
    )
    print(f"  {'FLOPs of a step':<16} {found.flops_per_step:>34,}  {scaled(found.flops_per_step)}FLOPs")
    print(f"  {'FLOPs':<16} {found.flops:>34,}")
    print(f"  {'device-hours':<16} {found.device_hours:>34,.2f}  at MFU {args.mfu:g}")
    if args.devices > 1:
        print(f"  {'hours':<16} {hours:>34,.2f}  on {args.devices:,} devices, {hours / 24:,.1f} days")
    print("\n".join(wrapped(f"peak {rate / 1e12:g} TFLOP/s ({source})", width(), "  ", "    ")))
    return 0
