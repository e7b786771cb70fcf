"""Number of runs of a diffusion model per step, read from pipeline data as VeRL-Omni's FLOPs counter does.

Source of the rule: the configuration that VeRL-Omni reads, with the cases of its own extractors as witnesses in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def forward_passes(pipeline: Mapping[str, Any], transformer: Mapping[str, Any]) -> int:
    """Number of forward passes of the transformer per denoising step.

    A ``num_forward_passes`` in the ``pipeline`` config decides (at least 1). Otherwise, a guidance-distilled transformer
    (``guidance_embeds``) runs once, and classifier-free guidance (``true_cfg_scale`` or ``guidance_scale`` above 1) takes two
    passes. Without guidance there is one.
    """
    explicit = pipeline.get("num_forward_passes")
    if explicit is not None:
        return max(1, int(explicit))
    if transformer.get("guidance_embeds"):
        return 1
    scales = (pipeline.get("true_cfg_scale"), pipeline.get("guidance_scale"))
    return 2 if any(scale is not None and scale > 1 for scale in scales) else 1


def timesteps(all_timesteps: Sequence[int] | None, preference: bool = False) -> int:
    """Number of denoising steps per training step: axis 1 of the shape ``all_timesteps``.

    1 for preference training (DPO), or if the shape has no axis 1.
    """
    if preference or all_timesteps is None or len(all_timesteps) < 2:
        return 1
    return max(1, int(all_timesteps[1]))
