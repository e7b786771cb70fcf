"""The two index sets of every model: one item per sample, and one item per batch."""

SAMPLES, ONCE = "samples", "once"
