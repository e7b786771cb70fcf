"""Model FLOPs utilisation: FLOPs / (seconds x devices x peak).

  symflops mfu --flops 1.62099e15 --seconds 10.64 --peak 354
  symflops mfu --kernel-details kernel_details.csv --seconds 10.64 --peak Ascend910B3

--peak is TFLOP/s (or FLOP/s from a million on), or the name of a device. --kernel-details is a profile of an Ascend
device, of which the column aic_cube_fops is summed: what it executed, recomputed work included.
"""

from __future__ import annotations

import json

from symflops.cli.arguments import JSON, argument, arguments_of, one_of
from symflops.diagnostics.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from decimal import Decimal

MOST_CSV = 512 * 2**20  # bytes of a profile
COLUMN = "aic_cube_fops"
FLOPS_FROM = 1e6  # no device does so many TFLOP/s, and none so few FLOP/s


configure = arguments_of(
    one_of(
        argument("--flops", type=float, metavar="F", help="FLOPs of the step, on all --devices together"),
        argument("--kernel-details", metavar="CSV", help="sum its column aic_cube_fops instead"),
        required=True,
    ),
    argument("--seconds", type=float, required=True, metavar="S", help="wall time of the step"),
    argument("--peak", required=True, metavar="P", help="TFLOP/s or FLOP/s of one device, or its name"),
    argument("--dtype", default="bf16", metavar="T", help="where --peak is a name (default: bf16)"),
    argument("--devices", type=int, default=1, metavar="N", help="devices that the FLOPs ran on (default: 1)"),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Divide and print."""
    import math

    flops = float(summed(args.kernel_details)) if args.kernel_details else args.flops
    rate, source = rate_of(args.peak, args.dtype)
    for name, value in (("FLOPs are", flops), ("seconds are", args.seconds), ("devices are", args.devices)):
        if not math.isfinite(value) or value < 0 or (value == 0 and not name.startswith("FLOPs")):
            raise SymflopsError(f"the {name} {value:g}, not a positive number")
    achieved = flops / args.seconds / args.devices
    if not math.isfinite(achieved):
        raise SymflopsError(f"{flops:g} FLOPs in {args.seconds:g} s are more than a number can hold")
    found = {"mfu": achieved / rate, "flops": flops, "seconds": args.seconds, "devices": args.devices}
    found |= {"achieved_tflops_per_device": achieved / 1e12, "peak_tflops": rate / 1e12, "peak_source": source}
    if args.json:
        print(json.dumps(found))
    else:
        print(f"MFU {found['mfu']:.4f}: {achieved / 1e12:.2f} of {rate / 1e12:g} TFLOP/s a device ({source})")
        if found["mfu"] > 1:
            print("above 1: check the peak, the device count, and that FLOPs and seconds are of the same steps")
    return 0


def rate_of(text: str, dtype: str) -> tuple[float, str]:
    """FLOP/s of one device and where they come from."""
    from symflops.devices.peaks import peak

    try:
        value = float(text)
        given = value if value >= FLOPS_FROM else value * 1e12
        return float(peak("", peak_tflops=given / 1e12).flops_per_second or 0), "given"
    except ValueError as error:
        if "positive" in str(error):
            raise SymflopsError(str(error)) from None
    try:
        found = peak(text, dtype)
    except ValueError as error:
        raise SymflopsError(str(error)) from None
    if found.flops_per_second is None:
        raise SymflopsError(f"the peak is unknown: {found.why}")
    return found.flops_per_second, str(found)


def summed(path: str) -> Decimal:
    """The sum of the column of FLOPs over all kernels; blank and N/A cells are kernels that have none."""
    import csv
    from decimal import Decimal, DecimalException

    from symflops.system.reading import read_lines

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
