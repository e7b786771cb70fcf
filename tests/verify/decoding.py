"""Measures calls of a real class that keep a state: a prompt, new tokens over a past, and a whole generation.

The class runs on the CPU with its own cache, under PyTorch's FLOP counter. Encoders and images run in the first call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase
from symflops.verify.classes import in_evaluation
from symflops.verify.live import build, reference_of
from symflops.verify.pairs import on_cpu
from symflops.verify.running import arguments_of, counter, filled, needed, plain_attention

CACHES = ("past_key_values", "cache_params")
TEXTS = ("decoder_input_ids", "input_ids")
TYPES = ("mm_token_type_ids", "token_type_ids")
ENCODED = "encoder_last_hidden_state"
FURTHER = 1
"""Token that further texts consist of."""
BOUNDS = re.compile(r"window|chunk_size|(conv_kernel|d_conv|conv_kernel_dim|kernel_size)$")
LIMITS = ("max_position_embeddings", "max_target_positions", "n_positions")
NEW, MOST = 5, 300


@dataclass(frozen=True, slots=True)
class Decoded:
    """FLOPs of one regime at one length, and the elements that the cache has afterwards.

    Attributes:
        regime: ``prefill``, ``decode`` or ``generate``.
        entry: The lengths of an item: tokens, [new, past] or [prompt, new].
        forward: FLOPs of the forward passes.
        cache: Elements of the tensors of the cache.
    """

    regime: str
    entry: Any
    forward: int
    cache: int


class Caller:
    """Calls a model with a cache.

    Args:
        model: The PyTorch module, on the CPU.
        arguments: Arguments of a forward pass. Texts get further tokens at the end.
        longest: Number of tokens that the longest call and its past have.
    """

    def __init__(self, model: Any, arguments: Mapping[str, Any], longest: int) -> None:
        self.model, self.torch = model, needed("torch")
        self.arguments = {name: value for name, value in arguments.items() if name != "labels"}
        self.name = next((name for name in TEXTS if name in arguments), "")
        if not self.name:
            raise SymflopsError(f"{type(model).__name__} takes no tokens")
        self.tokens = self.longer(self.arguments.pop(self.name), longest, FURTHER)
        self.per_token = {name: self.longer(self.arguments.pop(name), longest, 0) for name in TYPES if name in self.arguments}

    def longer(self, tokens: Any, length: int, value: int) -> Any:
        """Append ``value`` to rows of tokens up to a length."""
        return self.torch.nn.functional.pad(tokens, (0, max(0, length - tokens.shape[1])), value=value)

    def first(self, end: int) -> dict[str, Any]:
        """Arguments of the first call, which has tokens up to ``end``."""
        return {**self.arguments, **{name: value[:, :end] for name, value in self.per_token.items()}}

    def call(self, start: int, end: int, before: Any = None) -> Any:
        """Run the model on the tokens from ``start`` to ``end``, over the cache of the output ``before``."""
        given = {name: cache for name in CACHES if (cache := getattr(before, name, None)) is not None}
        if before is None:
            given = self.first(end)
        elif getattr(before, ENCODED, None) is not None:
            given |= {"encoder_outputs": (getattr(before, ENCODED),)}
        return self.model(**{self.name: self.tokens[:, start:end]}, **given, use_cache=True)

    def counted(self, call: Any) -> tuple[int, Any]:
        """Run ``call`` under the counter; returns (FLOPs, result)."""
        with self.torch.no_grad(), plain_attention(), counter(False) as mode:
            result = call()
        return int(mode.get_total_flops()), result

    def prefill(self, prompt: int) -> Decoded:
        """Measure a prompt."""
        flops, output = self.counted(lambda: self.call(0, prompt))
        return Decoded("prefill", prompt, flops, elements(output))

    def step(self, new: int, past: int) -> Decoded:
        """Measure ``new`` tokens over a past."""
        with self.torch.no_grad():
            before = self.call(0, past)
        flops, output = self.counted(lambda: self.call(past, past + new, before))
        return Decoded("decode", [new, past], flops, elements(output))

    def generate(self, prompt: int, new: int) -> Decoded:
        """Measure the generation of ``new`` tokens after a prompt, by the class's own ``generate``."""
        given = {self.name: self.tokens[:, :prompt], **self.first(prompt)}
        options = {"min_new_tokens": new, "max_new_tokens": new, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        if self.name == TEXTS[0]:  # else a token to begin with is added
            options["decoder_start_token_id"] = int(self.tokens[0, 0])
        flops, output = self.counted(lambda: self.model.generate(**given, **options, return_dict_in_generate=True))
        return Decoded("generate", [prompt, new], flops, elements(output))


def measured(model: Model, case: LiveCase) -> tuple[Any, Mapping[str, Any], list[tuple[Decoded, dict[str, Any]]]]:
    """Measure the class of a case: (PyTorch module, config, each call with its batch).

    Texts are below and above each window, chunk and kernel of the config. Items of a batch are equally long.

    Raises:
        SymflopsError: the class cannot be built, or does not take tokens.
    """
    case = replace(case, device="cpu")
    needed("torch").manual_seed(0)
    real, built = build(reference_of(model, case), case, model.file.path.parent)
    config = in_evaluation(model.spec, built)
    program = model.program(["forward"], ["torch"], config)
    sizes = InterpretedEstimator(program, config, regime="forward", convention="torch").sizes
    stream = "target" if "target" in case.batch else "text"
    given = "input_ids" in case.arguments
    batch = case.batch if given else {name: items[:1] for name, items in case.batch.items()}
    arguments = filled(arguments_of(program, batch, sizes, case.arguments), on_cpu)
    lengths = lengths_of(real.config, max(batch[stream]) if given else 0)
    caller = Caller(real, arguments, lengths[-1] + NEW)
    calls = [caller.prefill(length) for length in lengths]
    calls += [caller.step(new, length) for new in (1, 3) for length in lengths]
    calls += [caller.generate(length, NEW) for length in (lengths[0], lengths[-1])]
    return real, config, [(call, {**batch, stream: [call.entry] * len(batch[stream])}) for call in calls]


def lengths_of(config: Any, least: int) -> list[int]:
    """Lengths of at least ``least`` tokens below and above the windows, chunks and kernels that a config has."""
    text = config.get_text_config(decoder=True)
    known = {name: value for name, value in text.to_dict().items() if isinstance(value, int) and not isinstance(value, bool)}
    bounds = [value for name, value in known.items() if BOUNDS.search(name) and value < MOST]
    found = {2, 20, 70, *(value + more for value in bounds for more in (-1, 3))}
    most = min((known[name] for name in LIMITS if known.get(name, 0) > 0), default=MOST) - NEW - 2
    return sorted({min(max(length, 2) + max(0, least - 2), most) for length in found})


def elements(output: Any) -> int:
    """Number of elements of all tensors in the cache that ``output`` has."""
    caches = (getattr(output, name, None) for name in CACHES)
    return sum(tensor.numel() for cache in caches if cache is not None for tensor in tensors(cache, set()))


def tensors(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the floating-point tensors in a cache, once each: of objects, those in their attributes."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, needed("torch").Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors(item, seen)
    elif type(value).__module__.startswith("transformers.cache_utils"):
        yield from tensors(vars(value), seen)
