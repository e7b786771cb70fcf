"""The two index sets of every model, one item per sample and one item per batch; and the side of padded lengths."""

SAMPLES, ONCE = "samples", "once"
PADDED = "padded"


def padded_name(name: str) -> str:
    """The name of a quantity in padded lengths: ``name`` with the suffix ``_padded``."""
    return f"{name}_{PADDED}"
