"""What a regime leaves out of a model: parts that its class does not build, such as the layers that predict further ahead."""

from __future__ import annotations

from symflops.runtime.config import as_read, look_up
from symflops.runtime.sizes import default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from symflops.runtime.stored import Stored


def parts_left_out(stored: Stored, regime: str, config: Mapping[str, Any], sizes: Mapping[str, Any]) -> Iterator[str]:
    """A line for each part that a config has and the regime does not run."""
    for field in stored.regimes[regime].get("left_out", ()):
        value = look_up(as_read(stored.document, config), field["keys"])
        value = default(field, stored, sizes) if value is None else value
        if value:
            part, doc, key = field["part"], field["doc"], field["keys"][0]
            yield f"regime '{regime}' leaves out the {doc} ('{key}' is {value}): '{regime}:parts={part}' runs them"
