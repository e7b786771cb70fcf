"""Names of the two index sets that every model has: one item per sample, and one item per batch."""

SAMPLES, ONCE = "samples", "once"
