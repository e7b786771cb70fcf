"""The moments of a generated module, and the FLOPs of one of the model's modules.

Generated modules import this; those that stand alone hold the text below the line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from symflops.runtime.module_batch import Columns

# ---- what modules that stand alone hold, too
if TYPE_CHECKING:
    Sum = TypeVar("Sum", bound="ModelMoments")


class ModelMoments:
    """Sums over the items of a batch, which add, unless some (``whole``) are of the batch as a whole.

    ``padded`` holds the moments of the padded lengths if a batch gives both, ``lengths`` what waits for sizes. Names in
    ``_always`` are of padded lengths in any case.
    """

    __slots__ = ("lengths", "padded")

    _names: tuple[str, ...] = ()
    _whole: tuple[str, ...] = ()
    _always: tuple[str, ...] = ()

    def __init__(self, *values: int, padded: Any = None, lengths: Columns | None = None) -> None:
        self.padded, self.lengths = padded, lengths

    def __add__(self: Sum, other: Sum) -> Sum:
        if self._whole:
            told = "take the moments of all items together, or add the FLOPs of each batch"
            raise ValueError(f"moments of one batch as a whole do not add ({', '.join(self._whole)}): {told}")
        padded = None
        if self.padded is not None or other.padded is not None:
            padded = (self.padded or self) + (other.padded or other)
        one, two = self.lengths, other.lengths
        lengths = one or two if one is None or two is None else [left + right for left, right in zip(one, two, strict=True)]
        sums = [getattr(self, name) + getattr(other, name) for name in self._names]
        return type(self)(*sums, padded=padded, lengths=lengths)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in (*self._names, "padded", "lengths"))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = sorted((*self._names, "padded", *(("lengths",) if self.lengths is not None else ())))
        return f"Moments({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def _as_sums(self) -> tuple[int, ...]:
        """The moments in their order."""
        return tuple([getattr(self, name) for name in self._names])

    def as_dict(self) -> dict[str, int]:
        """The moments by name."""
        if self.lengths is not None:
            raise ValueError("these moments depend on sizes: make them with Estimator.moments")
        return {name: getattr(self, name) for name in self._names}

    def sums(self) -> dict[str, int]:
        """The moments of real and of padded lengths by name, as closed forms call them: ``x`` and ``x_padded``."""
        padded = (self if self.padded is None else self.padded).as_dict()
        more = {f"{name}_padded": value for name, value in padded.items() if name not in self._always}
        return {**more, **self.as_dict()}

    def _with(self: Sum, padded: Sum | None) -> Sum:
        """The moments of real lengths, with those of padded ones."""
        if padded is not None:
            self.padded = padded
            for name in self._always:
                setattr(self, name, getattr(padded, name))
        return self


class Flops:
    """FLOPs of one module in one step."""

    __slots__ = ("backward", "forward", "recomputed")

    def __init__(self, forward: int, backward: int, recomputed: int) -> None:
        self.forward = forward
        self.backward = backward
        self.recomputed = recomputed

    @property
    def total(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward

    def __repr__(self) -> str:
        return f"Flops(forward={self.forward}, backward={self.backward}, recomputed={self.recomputed})"
