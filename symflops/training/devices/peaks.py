"""The peak rate of a device: an override, else a row of the table, else unknown.

Rates are dense, in TFLOP/s, per device as the framework enumerates them. ``table.csv`` gives each rate its source and a
confidence: A the vendor's page, B a source that cites the vendor, C a framework's table or a third party, D derived from
clocks and units, U no source. Rows of confidence U are notes and never used; their rate may be missing.

The number type is that of the operands; accumulation is in FP32. ``fp16_fp16`` and ``fp8_fp16`` accumulate in FP16.

The name that a driver reports is looked up as a whole, ignoring case, because one device's name is often a part of another's.
A typed name may omit vendor, case and hyphens, or be part of a name that only one device has.
"""

from __future__ import annotations

import csv
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from symflops.support.errors import SymflopsError, did_you_mean

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


VENDORS = frozenset(("nvidia", "amd", "instinct", "tesla", "geforce", "intel", "google", "huawei", "habana", "aws"))


def peak_called(word: str, dtype: str) -> tuple[Peak, str]:
    """Look up the device called ``word``: (its peak for ``dtype``, note on other matches, or empty).

    If ``word`` matches several devices or none, the peak has no rate, but a reason.

    Raises:
        ValueError: as :func:`symflops.training.devices.peaks.peak`.
    """
    found = peak(word, dtype)
    if found.tflops is not None or any(row.matches(word) for row in table()):
        return found, ""
    try:
        name, others = called(word)
    except ValueError as error:
        return replace(found, why=str(error)), ""
    note = f"'{word}' is read as {name}; there is also {', '.join(others)}" if others else ""
    return replace(peak(name, dtype), reported=word), note


def called(word: str) -> tuple[str, tuple[str, ...]]:
    """Find the device called ``word``: (its name in the table, other names that contain the words).

    Raises:
        ValueError: ``word`` is ambiguous or unknown; the message lists candidates.
    """
    rows = {row.name: row for row in table()}
    whole = [name for name, row in rows.items() if words(word) in (words(known) for known in (name, *row.aliases))]
    partly = [name for name, row in rows.items() if set(words(word)) <= words_of(row)] if words(word) else []
    names = list(dict.fromkeys(whole or partly))
    if len(names) == 1:
        return names[0], tuple(name for name in partly if name != names[0])
    if names:
        raise ValueError(f"'{word}' means several devices: {', '.join(names)}")
    plain = {" ".join(words(known)): row.name for row in rows.values() for known in (row.name, *row.aliases)}
    near = did_you_mean(" ".join(words(word)), list(plain), "'symflops device' lists all")
    for text, name in plain.items():
        near = near.replace(f"'{text}'", f"'{name}'")
    raise ValueError(f"no device '{word}' in the table: {near}")


def words(text: str) -> tuple[str, ...]:
    """Split a name into lower-case words without vendors."""
    return tuple(word for word in re.findall(r"[a-z0-9*]+", text.casefold()) if word not in VENDORS)


def words_of(row: Row) -> set[str]:
    """The lower-case words in the name and aliases of a row's device, without vendors."""
    return {word for name in (row.name, *row.aliases) for word in words(name)}


RATE = re.compile(r"([\d.]+(?:e[+-]?\d+)?)\s*([tp]?)flop(?:s|/s|s/s)?", re.IGNORECASE)
SCALES = {"": 1.0, "t": 1e12, "p": 1e15}
FLOPS_FROM = 1e6  # numbers from here on are FLOP/s, smaller ones TFLOP/s


def rate_of(text: str, dtype: str) -> tuple[float, str, list[str]]:
    """Parse the rate of one device: (FLOP/s, text on the source of the rate, lines on the device for a terminal).

    ``text`` is the name of a device, or a number, such as ``989`` or ``989 TFLOP/s``. Without a unit, numbers below 1e6 are
    TFLOP/s, others FLOP/s.

    Raises:
        SymflopsError: the number is not positive, the device's rate is unknown, or the number is also in a device's name.
    """
    number, unit = None, RATE.fullmatch(text.strip())
    with suppress(ValueError):
        number = float(unit[1]) * SCALES[(unit[2] or "").casefold()] if unit else float(text)
    if len(text.strip()) > 2 and text.strip().isdecimal():
        devices = [row.name for row in table() if text.strip() in words_of(row)]
        if devices:
            raise SymflopsError(f"'{text}' may be {devices[0]} or a rate: write '{devices[0]}' or '{text} TFLOP/s'")
    try:
        given = None if number is None else number / 1e12 if unit or number >= FLOPS_FROM else number
        found, note = peak_called(text, dtype) if given is None else (peak("", peak_tflops=given), "")
    except ValueError as error:
        raise SymflopsError(str(error)) from None
    if found.flops_per_second is None:
        raise SymflopsError(f"the peak is unknown: {found.why}")
    source = f"{found}; {note}" if note else str(found)
    lines = [f"peak {found.brief}", *([note] if note else [])]
    return found.flops_per_second, source if number is None else "given", lines
