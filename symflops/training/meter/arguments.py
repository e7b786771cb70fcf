"""Reads the arguments and the output of a watched call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from symflops.evaluate.lengths import Lengths, same
from symflops.training.introspect.tree import LiveModelError
from symflops.training.meter.batches import DECODED, IGNORED, TOKENS

EMBEDS = "inputs_embeds"
BUT_LAST, LABELLED = "all tokens but the last of a row", "tokens with a label"


def cached_tokens(arguments: Mapping[str, Any]) -> int:
    """The number of tokens in the cache that a call is given."""
    lengths = (getattr(value, "get_seq_length", None) for name, value in arguments.items() if name.startswith("past_key"))
    return max((int(length()) for length in lengths if length is not None), default=0)


def over_cache(reader: Any, arguments: Mapping[str, Any], past: int) -> dict[str, Lengths]:
    """The lengths of a call over a cache: new tokens, and those in the cache.

    Raises:
        LiveModelError: the model has more than one stream.
    """
    given = next((arguments[name] for name in (*TOKENS, EMBEDS) if arguments.get(name) is not None), None)
    if given is None or len(reader.streams) != 1:
        raise LiveModelError("calls over a cache count for models of one stream of tokens")
    return {next(iter(reader.streams)): same(int(given.shape[0]), int(given.shape[1]), past)}


def without_embeddings(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call, with token ids in place of their embeddings; only the shape of ids matters."""
    embedded = arguments.get(EMBEDS)
    if embedded is None or arguments.get(TOKENS[0]) is not None:
        return arguments
    return {**arguments, TOKENS[0]: embedded.detach()[..., 0]}


def whole_rows(arguments: Mapping[str, Any], streams: Mapping[str, Lengths]) -> dict[str, Lengths] | None:
    """The lengths of whole rows of tokens, if the rows are packs of several sequences."""
    arguments, name = without_embeddings(arguments), next(iter(streams), "")
    given = next((arguments[name] for name in TOKENS if arguments.get(name) is not None), None)
    if given is None or len(streams) != 1 or len(given.shape) < 2:
        return None
    *rows, length = map(int, given.shape)
    return None if streams[name].count == prod(rows) else {name: same(prod(rows), length)}


def tokens_of_head(reader: Any, arguments: Mapping[str, Any]) -> tuple[str, int]:
    """The stream of the tokens that a language model predicts, and their number if its head runs on all; else ("", 0)."""
    known = reader.inputs()
    given = {**without_embeddings(arguments)}
    if DECODED in known and given.get(DECODED) is None:
        given[DECODED] = given.get("labels")
    name = next((name for name in (DECODED, *TOKENS) if name in known and hasattr(given.get(name), "shape")), "")
    return (known[name][0], prod(given[name].shape)) if name else ("", 0)


def labelled(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of tokens on which a head may run that is fused with a loss, by rule; lazy on a device."""
    labels: Any = arguments.get("labels")
    shifted: Any = arguments.get("shift_labels")
    if getattr(shifted, "ndim", 0) == 2:
        return {LABELLED: (shifted != IGNORED).sum()}
    if getattr(labels, "ndim", 0) != 2:
        return {}
    return {BUT_LAST: labels.shape[0] * (labels.shape[1] - 1), LABELLED: (labels[:, 1:] != IGNORED).sum()}


def requires_grad(value: Any) -> bool:
    """Whether an argument, or a tensor in it, requires a gradient."""
    if isinstance(value, (list, tuple)):
        return any(map(requires_grad, value))
    return bool(getattr(value, "requires_grad", False)) and hasattr(value, "grad_fn")


def tensors_of(output: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a model's output with their names; those in lists have the name and an index."""
    if hasattr(output, "register_hook"):
        yield "", output
    elif isinstance(output, Mapping) or hasattr(output, "__dataclass_fields__"):
        for name, value in output.items() if isinstance(output, Mapping) else vars(output).items():
            for inner, tensor in tensors_of(value):
                yield f"{name}.{inner}" if isinstance(value, (list, tuple)) else name, tensor
    elif isinstance(output, (list, tuple)):
        for place, value in enumerate(output):
            for _, tensor in tensors_of(value):
                yield str(place), tensor
