"""VeRL-Omni: estimators for ``register_diffusion_architecture``, and a meter with its keys.

VeRL-Omni gathers the lengths of its extractors as flat lists over the data-parallel group. Then it calls ``estimate_flops`` for
TFLOP/s, and divides by the size of the group and by the peak. If latents have several axes, their lengths are consecutive in
that list, so division into patches is exact.

Its counter is built in each worker: ``symflops.training.frameworks.verl_omni_plugin`` registers there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from symflops.evaluate.diffusion_passes import forward_passes, timesteps
from symflops.evaluate.latent_inputs import latent_inputs
from symflops.evaluate.latents import CONDITION, KEYS as LATENTS, PIPELINE_NAMES, columns_in, latent_lengths
from symflops.evaluate.lengths import Lengths, listed_lengths
from symflops.evaluate.units import in_flops
from symflops.formula.formula import evaluate
from symflops.library import lookup
from symflops.support.errors import SymflopsError
from symflops.training.devices.peaks import peak, reported_name
from symflops.training.introspect.model import of_model as live
from symflops.training.meter.batches import prompts, streams_of
from symflops.training.meter.mfu import MFUMeter
from symflops.training.meter.types import ConfigOptions, EstimatorOptions

VARIABLES = ("VERL_OMNI_DEVICE_FLOPS_TFLOPS",)
PHASES = {"actor": "full", "actor_infer": "forward", "ref": "forward"}
STEPS = ("all_timesteps", "train_timesteps")
SCALES = ("num_forward_passes", "true_cfg_scale", "guidance_scale")


class DiffusionFlops:
    """Implements ``DiffusionModelFlops`` for any model with a spec.

    Args:
        config: The config of the denoising model.
        convention: Which work counts.
        latents: The key of the latents if it is not one of ``LATENTS``.
        regime: The training regime: a name, or the result of :func:`lora_regime`.
        module: The live denoising model; its regime is detected and every parameter is checked.

    Raises:
        SymflopsError: an unknown model, or a config or module that does not fit.
    """

    def __init__(
        self, config: Any, *, convention: str = "symflops", latents: str = "", regime: str = "full", module: Any = None
    ) -> None:
        found = lookup.config_of(config)
        self.config = config
        self.latents = latents
        if module is not None:
            self.estimator: Any = live(module, convention=convention)
        else:
            catalog, name = lookup.by_config(found)
            self.estimator = lookup.interpreted(catalog, name, found, regime, convention)
            for line in lookup.left_to_class(catalog, name, found):
                warnings.warn(f"symflops: {line}", stacklevel=2)
        self.estimator.any_length = True  # as VeRL-Omni's counter, which counts a batch without prompts
        self.inputs = latent_inputs(self.estimator.program)
        sizes = self.estimator.sizes
        self.width = evaluate(self.inputs.width, sizes) if self.inputs.width else None
        self.units = tuple(int(evaluate(unit, sizes)) for unit in self.inputs.units)
        self.others = [one for one in self.inputs.others if one.stream in self.estimator.implied]
        self.axes = len(self.inputs.axes) + sum(len(one.axes) for one in self.others)

    def get_latent_seqlens(self, data: Any, config: Any = None) -> list[int]:
        """Lengths of the latents: ``axes`` numbers per sample; empty or 0 without latents, as in VeRL-Omni.

        If the config enables further inputs, such as images in the prompt, their lengths follow those of each sample.

        Raises:
            ValueError: the shape of the latents does not fit the model.
        """
        keys = (self.latents,) if self.latents else LATENTS
        others = [(one.names, one.layout, one.axes) for one in self.others]
        held = {key: _get(data, key) for key in (*keys, CONDITION, *(name for names, _, _ in others for name in names))}
        return latent_lengths(held, keys, (self.inputs.layout, self.inputs.axes, self.width), others)

    def get_prompt_seqlens(self, data: Any, config: Any = None) -> list[int]:
        """The lengths of the prompts, without padding; 0 for each sample of a batch without prompts."""
        found = prompts(data) or Lengths((0,), len(self.get_latent_seqlens(data)) // self.axes)
        return list(listed_lengths(found))

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
        whole (``whole``). VeRL-Omni also counts prompts without latents, and latents without prompts: Qwen-Image fails on both.

        If the work depends only on the number of patches, one number per sample is enough.

        Raises:
            ValueError: the lists do not match.
        """
        if not delta_time > 0:
            return 0.0
        one, prompt = self.inputs, "prompt" in self.estimator.streams
        others = [(other.field, other.axes, True) for other in self.others]
        *columns, texts = columns_in(latent_seqlens, prompt_seqlens if prompt else (), one.axes, others, self.units)
        batch: dict[str, Any] = {"prompt": texts} if prompt else {}
        for name, axes in ((one.stream, one.axes), *((other.stream, other.axes) for other in self.others)):
            own, columns = columns[: len(axes)], columns[len(axes) :]
            batch[name] = own[0] if len(axes) == 1 else [list(row) for row in zip(*own, strict=True)]
        for members in self.estimator.sets.values():
            batch |= {name: len(texts) for name, axes, _ in members if name not in batch and not axes}
        flops = in_flops(self.estimator, self.estimator.total(self.estimator.moments(**batch)))
        return float(flops * num_timesteps * num_forward_passes) / delta_time / 1e12

    def rates(
        self,
        latent_seqlens: Sequence[int],
        prompt_seqlens: Sequence[int],
        delta_time: float,
        device_name: str | None = None,
        **passes: int,
    ) -> tuple[float, float]:
        """Return (achieved TFLOP/s, peak TFLOP/s of the device), as VeRL-Omni does; an unknown peak is inf."""
        promised = peak(reported_name() if device_name is None else device_name, variables=VARIABLES).tflops
        achieved = self.estimate_flops(latent_seqlens, prompt_seqlens, delta_time, **passes)
        return achieved, math.inf if promised is None else promised


def _get(data: Any, key: str) -> Any:
    """The entry of a batch under ``key``; None if there is none."""
    try:
        return data.get(key)
    except (AttributeError, KeyError):
        return None


def lora_regime(config: Any, rank: int, targets: Sequence[str]) -> str:
    """Return, as text, the regime for ``lora_rank`` and ``target_modules``: LoRA there, the rest frozen.

    Raises:
        SymflopsError: the targets are not a list of names, or one matches no module.
    """
    if isinstance(targets, str):
        raise SymflopsError(f"target_modules={targets!r}: give the list of names, or the module to read it off")
    found = lookup.config_of(config)
    catalog, name = lookup.by_config(found)
    _, document = catalog.of_structure(name, found)
    paths = {row[0].rpartition(".")[0] for row in (document or {}).get("all_tensors", ())}
    patterns = []
    for target in targets:
        patterns += [target] * (target in paths)
        patterns += [f"*.{target}"] * (not paths or any(path.endswith(f".{target}") for path in paths))
        if not patterns or patterns[-1].removeprefix("*.") != target:
            raise SymflopsError(f"no module of '{name}' is called '{target}'")
    return f"lora:r={rank},targets={'|'.join(patterns)}"


def count_batch(meter: MFUMeter, data: Any, *, pipeline: Any = None, transformer: Any = None, phase: str | None = None) -> None:
    """Add a batch to a meter, with its denoising steps and the passes of classifier-free guidance.

    Args:
        meter: The meter.
        data: The batch, with VeRL-Omni's keys.
        pipeline: The pipeline's config, for ``num_forward_passes``, ``true_cfg_scale`` and ``guidance_scale``.
        transformer: The denoising model's config, for ``guidance_embeds``.
        phase: The phase; by default the meter's current one.
    """
    found = meter.phases.get(phase) if phase is not None else next(iter(meter.phases.values()), None)
    if found is None:
        return
    try:
        scales = {name: _field(pipeline, name) for name in SCALES}
        guided = {"guidance_embeds": _field(transformer, "guidance_embeds")}
        times = next((_get(data, key) for key in STEPS if _get(data, key) is not None), None)
        key = next((key for key in LATENTS if _get(data, key) is not None), "")
        streams = with_condition(
            streams_of(found.estimator, renamed(data, found.estimator.implied), key), found.estimator, data
        )
        steps = timesteps(tuple(getattr(times, "shape", ())) or None)
        meter.add(passes=forward_passes(scales, guided), timesteps=steps, phase=found.name, **streams)
    except Exception as error:
        meter.unreadable(f"{type(error).__name__}: {error}", found.name)


def renamed(data: Any, implied: Sequence[str]) -> Any:
    """Return a batch with further inputs also under the model's argument names, if any are ``implied``."""
    more = {name: _get(data, other) for name, other in PIPELINE_NAMES.items() if implied}
    more = {name: given for name, given in more.items() if given is not None and _get(data, name) is None}
    return {**dict(data.items()), **more} if more else data


def with_condition(streams: dict[str, Any], estimator: Any, data: Any) -> dict[str, Any]:
    """Add the lengths of condition images to those of the latents, to which edit models append them."""
    name, axes, _ = next(stream for members in estimator.sets.values() for stream in members if stream[1])
    if len(axes) > 1 or name not in streams or _get(data, CONDITION) is None:
        return streams
    more = streams_of(estimator, {CONDITION: _get(data, CONDITION)}, CONDITION)[name]
    one, two = (list(listed_lengths(lengths)) for lengths in (streams[name], more))
    return streams | {name: Lengths(([a + b for a, b in zip(one, two, strict=True)],), len(one))}


def _field(config: Any, name: str) -> Any:
    """The field ``name`` of a config object or mapping; None if there is none."""
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def register(*pipelines: str, **options: Unpack[EstimatorOptions]) -> type:
    """Register pipelines by class name in ``model_index.json``; by default all of VeRL-Omni and symflops.

    A missing config, an unknown model or a batch that does not fit never ends a worker: VeRL-Omni's own class answers, or 0
    without one, after one warning. ``options`` are those of :class:`DiffusionFlops`.

    Raises:
        ImportError: VeRL-Omni is not installed.
    """
    from verl_omni.utils import mfu

    table = getattr(getattr(mfu, "diffusion_flops_counter", None), "_REGISTRY", {})
    registered: type = DiffusionFlops
    for pipeline in pipelines or sorted({*table, *lookup.described("pipelines")}):
        own = table.get(pipeline)
        made = safe(mfu.DiffusionModelFlops, getattr(own, "own", own), options)
        registered = mfu.register_diffusion_architecture(pipeline)(made)
    return registered


def safe(base: type, other: type | None, options: Mapping[str, Any]) -> type:
    """Build a class for VeRL-Omni's registry that never raises.

    ``base`` is VeRL-Omni's interface, ``other`` the class registered before, which answers on errors; ``options`` are those of
    :class:`DiffusionFlops`.
    """

    class Registered(base):  # type: ignore[misc]
        own = other

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.theirs = (other or base)(config)
            self.warned = False
            try:
                self.ours: DiffusionFlops | None = DiffusionFlops(config, **options)
            except Exception as error:
                self.ours = None
                self.warn(error)

        def warn(self, error: Exception) -> None:
            if not self.warned:
                self.warned = True
                words = "VeRL-Omni's own class answers" if other else "MFU will be 0"
                warnings.warn(f"symflops: {words}: {type(error).__name__}: {error}", stacklevel=3)

        def get_latent_seqlens(self, data: Any) -> list[int]:
            return self.answer("get_latent_seqlens", [], data)  # type: ignore[no-any-return]

        def get_prompt_seqlens(self, data: Any) -> list[int]:
            return self.answer("get_prompt_seqlens", [], data)  # type: ignore[no-any-return]

        def estimate_flops(self, *lengths: Any, **passes: Any) -> float:
            return self.answer("estimate_flops", 0.0, *lengths, **passes)  # type: ignore[no-any-return]

        def answer(self, method: str, nothing: Any, *arguments: Any, **options: Any) -> Any:
            if self.ours is not None:
                try:
                    return getattr(self.ours, method)(*arguments, **options)
                except Exception as error:
                    self.warn(error)
            try:  # VeRL-Omni's own classes expect one length per latent
                return getattr(self.theirs, method)(*arguments, **options) if not self.ours or self.ours.axes == 1 else nothing
            except Exception:
                return nothing

    return Registered


def meter(config: Any, *, devices: int, **options: Unpack[ConfigOptions]) -> MFUMeter:
    """A meter with VeRL-Omni's keys and peak variable; ``SYMFLOPS_PEAK_TFLOPS`` takes precedence."""
    chosen: ConfigOptions = {"keys": "verl", "regimes": PHASES, "variables": VARIABLES, **options}
    return MFUMeter.of_config(config, devices=devices, **chosen)
