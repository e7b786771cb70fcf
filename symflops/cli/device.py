"""The peak rate of a device, dense, in TFLOP/s, and where the figure comes from.

  symflops device h100
  symflops device "NVIDIA H100 80GB HBM3"
  symflops device "NVIDIA H200" --dtype fp8 --json

Without NAME all devices are listed; a NAME that means several lists them. A number type is that of the operands, accumulated in
FP32; fp16_fp16 and fp8_fp16 accumulate in FP16. Exit code 1: the device, or its rate for this number type, is unknown.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from symflops.cli.terminal import JSON, argument, arguments_of, line_width, tell, width, wrapped
from symflops.support.errors import SymflopsError

configure = arguments_of(
    argument("name", nargs="?", metavar="NAME", help="what the device is called, or the name that it reports"),
    argument("--dtype", default="bf16", metavar="T", help="number type of the matmuls (default: bf16)"),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Look up a device and print its peak rate, or list all devices.

    Return the exit code: 1 if the rate is unknown.
    """
    from symflops.training.devices.peaks import peak_called, table

    if args.name is None:
        rows = [row for row in table() if row.dtype == args.dtype]
        listed = [{"device": row.name, "peak": row.tflops, "confidence": row.confidence} for row in rows if row.known]
        rates = {True: "{0.tflops:>8g} TFLOP/s  {0.confidence}  {0.source}", False: " unknown: no source"}
        lines = [clipped(f"{row.name:<30} {rates[row.known].format(row)}", line_width()) for row in rows]
        print(json.dumps(listed) if args.json else "\n".join(lines))
        return 0
    try:
        found, note = peak_called(args.name, args.dtype)
    except ValueError as error:
        raise SymflopsError(str(error)) from None
    if note:
        tell(note)
    print(json.dumps(found.as_dict()) if args.json else "\n".join(told(found)))
    return 1 if found.tflops is None else 0


def told(found: Any) -> list[str]:
    """Format a peak with its source as lines that fit the terminal: the rate on the first one."""
    from symflops.training.devices.peaks import CONFIDENCE

    if found.tflops is None:
        return wrapped(str(found), width(), "", "  ")
    trust = f" ({CONFIDENCE[found.confidence]})" if found.confidence else ""
    rows = ("source", f"{found.source}{trust}"), ("note", found.note)
    return [found.brief, *(line for name, text in rows if text for line in wrapped(text, width(), f"  {name:<7} ", " " * 10))]


def clipped(text: str, most: int) -> str:
    """Shorten ``text`` to at most ``most`` characters by cutting its end."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
