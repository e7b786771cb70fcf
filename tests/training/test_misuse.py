"""A meter that is given anything never stops a job, never floods its log, and never prints what a batch holds."""

from __future__ import annotations

import warnings

import pytest
import torch
from hypothesis import given, strategies as st

from symflops.training.meter.mfu import MFUMeter
from tests.sampling import draws
from tests.training.test_packs import estimator

SECRET = "what a user said"
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), st.sampled_from(["", "8", "x", SECRET, b"8", (), [1], {}, {"a": SECRET}, object(), [SECRET] * 9]),
    st.builds(lambda: torch.ones(2, 3)), st.builds(lambda: (torch.ones(2, 8), torch.ones(2, 8))), st.builds(lambda: {"text": [SECRET] * 3}),
)  # fmt: skip
OPTIONS = ("devices", "dtype", "peak_tflops", "device_name", "variables", "fallback", "log", "clock", "log_every", "hidden", "keys", "scope", "device")


def told(function):
    """What ``function`` returns, and the warnings of the meter that it gives."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = function()
    return value, [str(one.message) for one in found if "symflops" in str(one.message)]


@given(st.dictionaries(st.sampled_from(OPTIONS), ANYTHING, max_size=2))
@draws(25, 100, 2000)
def test_options(options):
    """An option is refused as a ``ValueError`` where the meter is made, or told; nothing else is raised."""

    def run():
        try:
            meter = MFUMeter(estimator(), **{"peak_tflops": 1.0, "log": lambda line: None, **options})
        except ValueError as error:
            assert len(str(error)) < 300
            return {}
        meter.add(text=[8, 3])
        return meter.step(seconds=1.0)

    if callable(options.get("clock", print)) and (options.get("log", print) is None or callable(options.get("log", print))):
        found, lines = told(run)
        assert isinstance(found, dict) and len(lines) <= 3 and all(len(line) < 700 for line in lines)


@given(ANYTHING, ANYTHING, ANYTHING)
@draws(25, 100, 2000)
def test_batches(batch, seconds, steps):
    meter = MFUMeter(estimator(), peak_tflops=1.0, log=lambda line: None)

    def run():
        for _ in range(20):
            meter.add_batch(batch)
            meter.add(text=batch)
            meter.add(anything=batch)
            found = meter.step(seconds, steps)
        return found

    found, lines = told(run)
    assert isinstance(found, dict) and len(lines) <= 6 and sum(map(len, lines)) < 3000
    assert SECRET not in "".join(lines)
    assert meter.steps >= 0


@pytest.mark.parametrize("devices", ["8", 8.0])
def test_a_number_of_devices_as_text(devices):
    meter, lines = told(lambda: MFUMeter(estimator(), peak_tflops="989", devices=devices, dtype=torch.bfloat16))
    assert meter.devices == 8 and meter.peak.tflops == 989 and not lines
