"""VeRL-Omni's plugin: importing this module registers symflops for every pipeline in this process.

VeRL-Omni builds its counter in each worker, after the worker has imported the job's external library:
``actor_rollout_ref.model.external_lib=symflops.training.frameworks.verl_omni_plugin``.

``SYMFLOPS_VERL_OMNI_REGIME`` (``lora:r=64,targets=*.to_q|*.to_v``) and ``SYMFLOPS_VERL_OMNI_CONVENTION`` change what counts.
"""

from __future__ import annotations

import os
import warnings

from symflops.training.frameworks import verl_omni


def install() -> None:
    """Register symflops in VeRL-Omni's registry; if that fails, warn and leave VeRL-Omni unchanged."""
    regime = os.environ.get("SYMFLOPS_VERL_OMNI_REGIME") or "full"
    convention = os.environ.get("SYMFLOPS_VERL_OMNI_CONVENTION") or "symflops"
    try:
        verl_omni.register(regime=regime, convention=convention)
    except Exception as error:
        warnings.warn(f"symflops: VeRL-Omni counts FLOPs by itself: {type(error).__name__}: {error}", stacklevel=2)


install()
