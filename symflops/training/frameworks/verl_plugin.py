"""verl's plugin: importing this module registers symflops for every model type in this process.

verl counts FLOPs in its Ray workers, and a driver cannot change their tables. Each worker imports this module by one of:

- the entry point group ``verl.plugins``, to which an installed symflops belongs (off: ``VERL_USE_EXTERNAL_PLUGINS=none``);
- the variable ``VERL_USE_EXTERNAL_MODULES=symflops.training.frameworks.verl_plugin``;
- a job's config: ``actor_rollout_ref.model.external_lib=symflops.training.frameworks.verl_plugin``.

The worker's model config determines LoRA.
``SYMFLOPS_VERL_REGIME`` (``lora:r=16,targets=*.q_proj|*.v_proj``) and ``SYMFLOPS_VERL_CONVENTION`` change what counts.
"""

from __future__ import annotations

import logging
import os
import warnings

from symflops.training.frameworks import verl


def install() -> None:
    """Register symflops in verl's table; if that fails, warn and leave verl unchanged."""
    regime = os.environ.get("SYMFLOPS_VERL_REGIME") or "full"
    convention = os.environ.get("SYMFLOPS_VERL_CONVENTION") or "symflops"
    try:
        verl.register(regime=regime, convention=convention, tell=logging.getLogger("symflops").warning)
    except Exception as error:
        warnings.warn(f"symflops: verl counts FLOPs by itself: {type(error).__name__}: {error}", stacklevel=2)


install()
