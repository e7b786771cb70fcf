"""Finds config keys that neither spec nor class reads; refuses those that may be sizes under another name."""

from __future__ import annotations

from symflops.evaluate.classes import NAMING, named_classes
from symflops.evaluate.config import as_read, look_up
from symflops.formula.table import ConfigError
from symflops.support.errors import close_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from symflops.evaluate.stored import Stored

ALIKE, SHORT = 0.88, 4
"""Similarity (:mod:`difflib`) from which a key counts as misspelt (``hidden_sise``: 0.91), and the shortest word compared."""

EVERYWHERE = frozenset({
    *NAMING, "auto_map", "torch_dtype", "dtype", "transformers_version", "quantization_config", "_name_or_path",
    "name_or_path", "_diffusers_version", "_attn_implementation", "_attn_implementation_autoset", "_commit_hash",
    "_attn_implementation_internal", "attn_implementation", "task_specific_params", "finetuning_task",
    "problem_type", "torchscript", "use_bfloat16",
    "pruned_heads", "tokenizer_class", "prefix", "bos_token_id", "eos_token_id", "pad_token_id",
    "sep_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens",
    "begin_suppress_tokens", "return_dict", "return_dict_in_generate", "output_scores", "output_hidden_states",
    "output_attentions", "use_cache", "is_encoder_decoder", "is_decoder", "tie_encoder_decoder",
    "cross_attention_hidden_size", "chunk_size_feed_forward", "id2label", "label2id", "num_labels", "max_length",
    "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature",
    "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "remove_invalid_values",
    "exponential_decay_length_penalty", "tf_legacy_loss", "generation_config", "rope_scaling", "rope_theta",
})  # fmt: skip
"""Keys that any config of transformers or diffusers may have, or once had, without an effect on the model's structure
(transformers, ``configuration_utils.py``, ``PretrainedConfig``; diffusers, ``configuration_utils.py``, ``ConfigMixin``)."""

IDS = frozenset({"id", "ids", "index", "idx"}), frozenset({
    "audio", "begin", "bos", "cls", "decoder", "end", "eos", "image", "mask", "pad", "sep", "speech", "start", "token", "unk",
    "video", "vision",
})  # fmt: skip
"""Last words of a key of token ids, and words one of which precedes it: ``eos_token_id``, ``image_token_index``."""
LIMITS = frozenset({"max", "maximum", "min", "minimum", "length", "len", "limit", "ctx", "context", "positions"}), frozenset({
    "embeddings", "initial", "input", "model", "n", "new", "num", "original", "output", "position", "seq", "sequence", "text",
    "token", "tokens",
})  # fmt: skip
"""Words one of which every length limit contains, and words that it may also contain: ``max_seq_len``."""
FACTOR = 2
"""A float below this is a rate or a factor, not a size."""


def unread(document: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over config keys that neither the spec of a stored program nor its class knows, as (path, value).

    The keys of an inner config are included only if the spec reads one of them.
    """
    described = set(keys_of(document))
    census = census_of(document, next((name for _, name in named_classes(config)), "")) or {}
    known = described | {path for kind in ("described", "free", "guarded", "words") for path in census.get(kind, ())}
    for table in (document.get("reading") or {}).get("tables", {}).values():
        known |= set(_names(table, ""))
    parts = {key[:place] for key in known for place, letter in enumerate(key) if letter == "."}
    yield from _unread(config, "", known, parts)


def census_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The census of the class ``name`` (if empty, of the first class); None if there is no census."""
    census = document.get("census") or {}
    found: Mapping[str, Any] | None = census.get(name) if name else next(iter(census.values()), None)
    return found


def keys_of(document: Mapping[str, Any]) -> list[str]:
    """The config keys that a program reads, including those of model parts that a regime leaves out."""
    left_out = [row for regime in document["regimes"] for row in regime.get("left_out", ())]
    return [key for row in (*document["fields"], *left_out) for key in row["keys"]]


def _names(table: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the config keys in a stored ``reading``: names of fields, and fields of inner configs."""
    for name, others in table.get("names", {}).items():
        yield from (place + key for key in (name, *others))
    for name, inner in table.get("parts", {}).items():
        yield from (place + key for key in (name, *inner.get("flat", ())))
        yield from _names(inner, f"{place}{name}.")


def _unread(config: Mapping[str, Any], place: str, known: set[str], parts: set[str]) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        path = f"{place}{key}"
        if path in parts and isinstance(value, dict):
            yield from _unread(value, f"{path}.", known, parts)
        elif path not in known and path not in parts and key not in EVERYWHERE and not key.startswith("_"):
            yield path, value


def check_unread(program: Stored, config: Mapping[str, Any], strict: bool = False) -> list[str]:
    """Check a config for keys that neither the spec nor its class knows.

    Returns:
        One line per unknown key, with the nearest known key.

    Raises:
        ConfigError: an unknown key resembles a described key that the config lacks; or, if ``strict``, any unknown key.
    """
    found = as_read(program.document, config)
    keys = keys_of(program.document)
    absent = [key for key in keys if look_up(found, [key]) is None]
    lines = []
    for path, _ in unread(program.document, found):
        near = nearest(path, absent, ALIKE)
        if near and misspelt(path, near):
            raise ConfigError(f"the config has '{path}', which nothing reads, and no '{near}': is it misspelt?")
        like = nearest(path, keys, 0.7)
        lines.append(f"nothing reads the config's '{path}'" + (f"; there is '{like}'" if like else ""))
    if strict and lines:
        raise ConfigError(f"{lines[0]} (--strict)" if len(lines) == 1 else f"{lines[0]}, and {len(lines) - 1} more (--strict)")
    return lines


def check_numbers(program: Stored, config: Mapping[str, Any]) -> None:
    """Refuse a config without a class name if it has a number that neither the spec nor its class reads.

    Token ids are ignored. Length limits are ignored if the spec reads no length limit, or if the config has all limits that
    the spec reads.

    Raises:
        ConfigError: there is such a number; the message names its key and the nearest known key.
    """
    found = as_read(program.document, config)
    keys = keys_of(program.document)
    absent = [key for key in keys if look_up(found, [key]) is None]
    limited = any(map(is_limit, absent))
    numbers = [row for path, value in unread(program.document, found) for row in numbers_in(path, value)]
    numbers = [(path, number) for path, number in numbers if not is_id(path) and (limited or not is_limit(path))]
    if numbers:
        path, number = numbers[0]
        near = stands_for(path, absent, is_limit(path)) or stands_for(path, keys, is_limit(path))
        told = f"the config names no class, and nothing reads its '{path}' ({number!r})"
        told += f", and {len(numbers) - 1} more" if len(numbers) > 1 else ""
        like = f"the nearest key of '{program.name}' is '{near}'; " if near else ""
        raise ConfigError(f"{told}: {like}name its class under 'architectures', or the spec, to leave it unread (--lenient)")


def stands_for(path: str, keys: Sequence[str], limit: bool) -> str:
    """The one of ``keys`` that the unknown key ``path`` most likely means; empty if none is similar.

    If ``limit``, ``path`` is a length limit, and only length limits are considered; otherwise, only other keys.
    """
    words = {word.rstrip("s") for word in path.rpartition(".")[2].split("_")} - {"n", "num"}
    pool = [key for key in keys if is_limit(key) == limit]
    shared = [key for key in pool if words & {word.rstrip("s") for word in key.rpartition(".")[2].split("_")}]
    place, _, word = path.rpartition(".")
    return nearest(path, shared or pool, 0.3) or (nearest(word, shared or pool, 0.3) if place else "")


def numbers_in(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) for each possible size in ``value``, which a config has at ``path``."""
    if isinstance(value, dict):
        inner = [key for key in value if key not in EVERYWHERE and not key.startswith("_")]
        yield from (row for key in inner for row in numbers_in(f"{path}.{key}", value[key]))
    elif may_be_size(value):
        yield path, value


def may_be_size(value: Any) -> bool:
    """Whether a value is or contains a positive int, a float of at least ``FACTOR`` or a numeric string."""
    if isinstance(value, (list, tuple, dict)):
        return any(map(may_be_size, value.values() if isinstance(value, dict) else value))
    if isinstance(value, str):
        digits = value.strip()[:1]
        return digits.isdecimal() and digits != "0"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and value >= (1 if isinstance(value, int) else FACTOR)


def is_id(path: str) -> bool:
    """Whether the value under a key is a token id, judged by the words of the key.

    >>> [is_id(key) for key in ("eos_token_id", "image_token_index", "layer_ids", "num_ids")]
    [True, True, False, False]
    """
    *before, last = path.rpartition(".")[2].split("_")
    return last in IDS[0] and not IDS[1].isdisjoint(before)


def is_limit(path: str) -> bool:
    """Whether the value under a key is a limit on lengths, judged by the words of the key.

    >>> [is_limit(key) for key in ("max_seq_len", "n_ctx", "max_position_embeddings", "max_layers", "num_tokens")]
    [True, True, True, False, False]
    """
    words = set(path.rpartition(".")[2].split("_"))
    return not words.isdisjoint(LIMITS[0]) and words <= LIMITS[0] | LIMITS[1]


def misspelt(given: str, known: str) -> bool:
    """Whether two similar keys differ only in words of ``SHORT`` or more letters.

    ``v_head_dim`` is thus not ``q_head_dim`` misspelt.
    """
    pairs = list(zip(given.split("_"), known.split("_"), strict=False))
    same = given.count("_") == known.count("_")
    return same and all(one == other or min(len(one), len(other)) >= SHORT for one, other in pairs)


def nearest(path: str, keys: Sequence[str], cutoff: float) -> str:
    """The key of the same inner config most similar to ``path``; empty if all are below ``cutoff``."""
    place, _, word = path.rpartition(".")
    beside = [key.rpartition(".")[2] for key in keys if key.rpartition(".")[0] == place]
    found = close_to(word, beside, 1, cutoff)
    return ".".join(filter(None, (place, *found))) if found else ""
