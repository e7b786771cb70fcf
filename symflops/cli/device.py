"""The peak rate of a device, dense, in TFLOP/s, and where the figure comes from.

  symflops device "NVIDIA H100 80GB HBM3"
  symflops device "NVIDIA H200" --dtype fp8 --json

Without NAME all devices are listed. Exit code 1: the device, or its rate for this number type, is unknown.
"""

from __future__ import annotations

import json

from symflops.cli.arguments import JSON, argument, arguments_of
from symflops.diagnostics.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


configure = arguments_of(
    argument("name", nargs="?", metavar="NAME", help="the full name that the device reports"),
    argument("--dtype", default="bf16", metavar="T", help="number type of the matmuls (default: bf16)"),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Look up and print."""
    from symflops.devices.peaks import peak, table

    if args.name is None:
        rows = [row for row in table() if row.dtype == args.dtype and row.confidence != "U"]
        listed = [{"device": row.name, "peak": row.tflops, "confidence": row.confidence} for row in rows]
        lines = [f"{row.name:<30} {row.tflops:>8g} TFLOP/s  {row.confidence}  {row.source}" for row in rows]
        print(json.dumps(listed) if args.json else "\n".join(lines))
        return 0
    try:
        found = peak(args.name, args.dtype)
    except ValueError as error:
        raise SymflopsError(str(error)) from None
    text = f"{found}\n  {found.note}" if found.note else str(found)
    print(json.dumps(found.as_dict()) if args.json else text)
    return 1 if found.tflops is None else 0
