"""VeRL-Omni: estimators for ``register_diffusion_architecture``, and a meter with its keys and its variable for the peak.

VeRL-Omni gathers the lengths of its extractors as flat lists over the data-parallel group. Then it calls ``estimate_flops`` for
TFLOP/s, and divides by the size of the group and by the peak. If latents have several axes, their lengths are consecutive in
that list, so that patches are divided exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.catalog import lookup
from symflops.meter.batches import prompts, streams_of
from symflops.meter.mfu import MFUMeter
from symflops.runtime.lengths import Lengths, plain
from symflops.runtime.units import in_flops

VARIABLES = ("VERL_OMNI_DEVICE_FLOPS_TFLOPS",)
PHASES = {"actor": "full", "actor_infer": "forward", "ref": "forward"}


class DiffusionFlops:
    """The interface of ``DiffusionModelFlops``, for any model with a spec.

    Raises:
        SymflopsError: an unknown model, or a config that does not fit.
    """

    def __init__(self, config: Any, *, convention: str = "symflops", latents: str = "") -> None:
        found = dict(config) if isinstance(config, Mapping) else vars(config)
        self.config = config
        self.latents = latents
        self.estimator = lookup.estimator(*lookup.by_config(found), found, "full", convention)[1]
        streams = [stream for members in self.estimator.sets.values() for stream in members]
        self.stream, axes, _ = next((stream for stream in streams if stream[0] == "latent"), streams[0])
        self.axes = len(axes)

    def get_latent_seqlens(self, data: Any, config: Any = None) -> list[int]:
        """The lengths of the latents, ``axes`` numbers per sample."""
        rows = plain(streams_of(self.estimator, data, self.latents)[self.stream])
        return list(rows) if self.axes == 1 else [length for row in rows for length in row]

    def get_prompt_seqlens(self, data: Any, config: Any = None) -> list[int]:
        """The lengths of the prompts, without padding; 0 for each sample of a batch without prompts."""
        found = prompts(data) or Lengths((0,), len(self.get_latent_seqlens(data)) // self.axes)
        return list(plain(found))

    def estimate_flops(
        self,
        latent_seqlens: Sequence[int],
        prompt_seqlens: Sequence[int],
        delta_time: float,
        *,
        num_timesteps: int = 1,
        num_forward_passes: int = 1,
        **_: Any,
    ) -> float:
        """Achieved TFLOP/s of all samples together, forward and backward.

        All samples count as one batch, since the lists do not separate micro-batches; this matters for moments of a batch as a
        whole (``whole``).

        Raises:
            ValueError: the lists do not fit together.
        """
        flat = [int(length) for length in latent_seqlens]
        rows = [flat[start : start + self.axes] for start in range(0, len(flat), self.axes)]
        batch: dict[str, Any] = {self.stream: [row[0] for row in rows] if self.axes == 1 else rows}
        if "prompt" in self.estimator.streams:
            batch["prompt"] = [int(length) for length in prompt_seqlens]
        for members in self.estimator.sets.values():
            for name, axes, _absent in members:
                if name not in batch and not axes:
                    batch[name] = len(rows)
        one = in_flops(self.estimator, self.estimator.total(self.estimator.moments(**batch)))
        return float(one * num_timesteps * num_forward_passes) / delta_time / 1e12


def register(*pipelines: str, **options: Any) -> type:
    """Register pipelines by the class name of their ``model_index.json``.

    Raises:
        ImportError: VeRL-Omni is not installed.
    """
    from verl_omni.utils.mfu import DiffusionModelFlops, register_diffusion_architecture

    class Registered(DiffusionFlops, DiffusionModelFlops):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            DiffusionFlops.__init__(self, config, **options)

    registered: type = register_diffusion_architecture(*pipelines)(Registered)
    return registered


def meter(config: Any, *, devices: int, **options: Any) -> MFUMeter:
    """A meter with VeRL-Omni's keys; its variable sets the peak unless ``SYMFLOPS_PEAK_TFLOPS`` does."""
    return MFUMeter.of_config(config, devices=devices, **{"keys": "verl", "regimes": PHASES, "variables": VARIABLES, **options})
