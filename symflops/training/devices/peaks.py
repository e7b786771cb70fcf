"""The peak rate of a device: an override, else a row of the table, else unknown.

Rates are dense, in TFLOP/s, per device as the framework enumerates them. ``table.csv`` gives each rate its source and a
confidence: A the vendor's page, B a source that cites the vendor, C a framework's table or a third party, D derived from
clocks and units, U no source. Rows of confidence U are notes and never used; their rate may be missing.

The number type is that of the operands; accumulation is in FP32. ``fp16_fp16`` and ``fp8_fp16`` accumulate in FP16.

Names match as a whole, ignoring case, because one device's name is often a part of another's.
"""

from __future__ import annotations

import csv
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
VARIABLE = "SYMFLOPS_PEAK_TFLOPS"
DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8", "int8", "fp4", "mxfp8", "mxfp4", "fp16_fp16", "fp8_fp16")
OF_TORCH = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
"""PyTorch's names of number types -> ours."""
MOST = 1e9
"""No device has as many TFLOP/s."""
CONFIDENCE = {
    "A": "the vendor's page",
    "B": "a source that cites the vendor",
    "C": "a framework's table or a third party",
    "D": "derived from clocks and units",
    "U": "no source",
}
OVERRIDE = f"give peak_tflops, or set {VARIABLE}"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: the peak rate of a device for one number type; NaN if not known."""

    name: str
    aliases: tuple[str, ...]
    dtype: str
    tflops: float
    source: str
    confidence: str
    note: str

    @property
    def known(self) -> bool:
        """Whether a source confirms the rate."""
        return self.confidence != "U"

    def matches(self, reported: str) -> bool:
        """Whether ``reported`` equals the name or an alias, ignoring case; ``*`` in an alias matches digits."""
        found = reported.strip().casefold()
        patterns = (re.escape(alias.casefold()).replace(r"\*", "[0-9]+") for alias in (self.name, *self.aliases))
        return any(re.fullmatch(pattern, found) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak rate of one device in TFLOP/s (None if unknown) and its source.

    ``reported`` is the name that the device reports. ``why`` explains a missing rate and how to supply one.
    """

    tflops: float | None
    reported: str
    dtype: str
    source: str = ""
    device: str = ""
    confidence: str = ""
    note: str = ""
    estimated: bool = False
    why: str = ""

    @property
    def flops_per_second(self) -> float | None:
        """The rate in FLOP/s; None if it is unknown."""
        return None if self.tflops is None else self.tflops * 1e12

    @property
    def brief(self) -> str:
        """The rate, the device and the number type on one line; ``symflops device`` prints the source."""
        what = f"{self.device}, {self.dtype} dense" if self.device else self.source
        return f"{self.tflops:g} TFLOP/s, {what}{', estimated' if self.estimated else ''}"

    def as_dict(self) -> dict[str, Any]:
        """Convert the peak to the JSON object that ``symflops device --json`` prints."""
        if self.tflops is None:
            return {"peak": None, "reported": self.reported}
        found = {"peak": self.tflops, "unit": "TFLOP/s", "dtype": self.dtype, "reported": self.reported, "source": self.source}
        more = {"device": self.device, "confidence": self.confidence, "note": self.note}
        return {**found, "estimated": self.estimated, **{name: value for name, value in more.items() if value}}

    def __repr__(self) -> str:
        return f"Peak({self.tflops} TFLOP/s {self.dtype}, {self.device or self.reported or self.source})"

    def __str__(self) -> str:
        if self.tflops is None:
            return f"unknown: {self.why}"
        known = f"{self.device or self.reported}, " if self.device or self.reported else ""
        mark = ", estimated" if self.estimated else ""
        trust = f" [{self.confidence}: {CONFIDENCE[self.confidence]}]" if self.confidence else ""
        return f"{self.tflops:g} TFLOP/s {self.dtype} dense ({known}{self.source}{trust}{mark})"


@lru_cache(maxsize=1)
def table() -> tuple[Row, ...]:
    """All rows of the table, including those of confidence U."""
    return tuple(
        Row(
            row["name"],
            tuple(alias for alias in row["aliases"].split("|") if alias),
            row["dtype"],
            float(row["dense_tflops"] or "nan"),
            row["source"],
            row["confidence"],
            row["note"],
        )
        for row in _rows("table.csv")
    )


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def peak(
    reported: str, dtype: Any = "bf16", *, peak_tflops: float | str | None = None, variables: Sequence[str] = (),
    fallback: str | None = None, properties: Any = None, environment: Mapping[str, str] | None = None,
) -> Peak:  # fmt: skip
    """The peak rate of the device that reports itself as ``reported``, for matmuls of ``dtype``.

    The rate is the first of: ``peak_tflops`` (TFLOP/s), the variable ``SYMFLOPS_PEAK_TFLOPS``, the framework's own
    ``variables``, the table. With ``fallback="capability"`` the rate of an unknown device is estimated, with a warning, from
    ``properties`` as ``torch.cuda.get_device_properties`` returns them (``major``, ``minor``, ``multi_processor_count``,
    ``clock_rate`` in kHz). An override holds for any ``dtype``.

    Raises:
        ValueError: an unknown number type or fallback, or ``peak_tflops`` is not a positive number.
    """
    dtype = OF_TORCH.get(str(dtype).removeprefix("torch."), str(dtype))
    if dtype not in DTYPES:
        raise ValueError(f"no number type '{dtype}'; there are {', '.join(DTYPES)}")
    if fallback not in (None, "capability"):
        raise ValueError(f"no fallback '{fallback}'; there is 'capability'")
    if peak_tflops is not None:
        return Peak(_given(peak_tflops), reported, dtype, "given")
    found = _of_environment(os.environ if environment is None else environment, (VARIABLE, *variables), reported, dtype)
    found = found or of_table(reported, dtype)
    if found.tflops is None and fallback and properties is not None:
        return _estimated(reported, dtype, properties) or found
    return found


def _given(rate: Any) -> float:
    """Convert a given rate to TFLOP/s; one too high for a device is taken for FLOP/s, with a warning.

    Raises:
        ValueError: it is no positive number.
    """
    try:
        found = float(rate)
    except (TypeError, ValueError):
        found = math.nan
    if not _positive(found):
        raise ValueError(f"the peak is {rate!r}, not a positive number of TFLOP/s")
    if found < MOST:
        return found
    warnings.warn(f"a peak of {found:g} TFLOP/s is taken for FLOP/s: give {found / 1e12:g}", stacklevel=4)
    return found / 1e12


def _of_environment(environment: Mapping[str, str], names: Sequence[str], reported: str, dtype: str) -> Peak | None:
    for name in names:
        text = environment.get(name, "")
        try:
            value = float(text) if text else None
        except ValueError:
            value = math.nan
        if value is not None and not _positive(value):
            warnings.warn(f"{name} is {text!r}, not a positive number of TFLOP/s: it is not used", stacklevel=3)
        elif value is not None:
            return Peak(value, reported, dtype, f"environment variable {name}")
    return None


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def of_table(reported: str, dtype: str) -> Peak:
    """Look up a peak in the table; it has no rate if the table lacks the device or the number type."""
    rows = {row.dtype: row for row in table() if row.matches(reported)}
    found, blank = rows.get(dtype), Peak(None, reported, dtype)
    if found and found.known:
        return Peak(found.tflops, reported, dtype, found.source, found.name, found.confidence, found.note)
    reason = f"no device '{reported}' in the table"
    if found:
        reason = f"no source for the {dtype} rate of '{found.name}'" + (f" ({found.note})" if found.note else "")
    elif rows:
        known = ", ".join(row.dtype for row in rows.values() if row.known) or "no source for any"
        reason = f"'{next(iter(rows.values())).name}' has no {dtype} rate ({known})"
    return replace(blank, why=f"{reason}; {OVERRIDE}")


def _estimated(reported: str, dtype: str, properties: Any) -> Peak | None:
    """Estimate the peak as units x FLOP per cycle x clock; None if the FLOP per cycle is unknown."""
    from fnmatch import fnmatchcase

    capability = f"{getattr(properties, 'major', '')}.{getattr(properties, 'minor', '')}"
    units, clock = getattr(properties, "multi_processor_count", 0), getattr(properties, "clock_rate", 0)
    for row in _rows("capability.csv"):
        if (row["capability"], row["dtype"]) == (capability, dtype) and fnmatchcase(reported, row["names"]) and units and clock:
            value = units * int(row["flop_per_cycle"]) * clock * 1e3 / 1e12
            source = f"{units} units x {row['flop_per_cycle']} FLOP a cycle x {clock / 1e6:g} GHz, as {row['source']}"
            warnings.warn(f"the peak of '{reported}' is estimated: {value:.1f} TFLOP/s ({source}); {OVERRIDE}", stacklevel=4)
            return Peak(value, reported, dtype, source, confidence="D", estimated=True)
    return None


def reported_name() -> str:
    """The name of the first accelerator, empty without one; asks torch only if it is already imported."""
    import sys

    torch = sys.modules.get("torch")
    for kind in ("cuda", "npu", "xpu", "hpu"):
        module = getattr(torch, kind, None)
        try:
            if module is not None and module.is_available():
                return str(module.get_device_name())
        except Exception:  # a broken driver is no reason to stop a job
            return ""
    return ""
